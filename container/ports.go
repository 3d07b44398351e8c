package container

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"corpus-git/container/network"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
)

// networkUp makes the network before a container in it is recorded; one that the kernel refuses is taken away.
func (m Manager) networkUp(n network.Network) error {
	unlock, err := m.Store.Lock("")
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.Up(n); err != nil {
		if used, uerr := m.networked(); uerr == nil && !used {
			_ = m.Down(n) // what is missing for the one is missing for the other
		}
		return err
	}
	return nil
}

// network removes the network if no container is in it.
func (m Manager) network() error {
	unlock, err := m.Store.Lock("")
	if err != nil {
		return err
	}
	defer unlock()
	if used, err := m.networked(); err != nil || used {
		return err
	}
	n, err := m.Network.Get()
	if err != nil {
		return err
	}
	return m.Down(n)
}

// ports changes the published ports and the rules of the kernel, under the lock of the addresses. The rules are written even if nothing changes, or the change is refused, because an
// earlier call may have been killed before, and others may have removed them.
func (m Manager) ports(change func(*network.Network) error) (network.Network, error) {
	unlock, err := m.Store.Lock("")
	if err != nil {
		return network.Network{}, err
	}
	defer unlock()
	n, err := m.Network.Get()
	if err != nil {
		return n, err
	}
	before := slices.Clone(n.Ports)
	err = change(&n)
	if err != nil {
		n.Ports = before
	} else if !slices.Equal(before, n.Ports) {
		err = m.Network.Put(n)
	}
	if err != nil && fault.KindOf(err) != fault.Refused {
		return n, err
	}
	used, uerr := m.networked()
	if uerr == nil && used {
		uerr = m.Up(n)
	}
	return n, errors.Join(err, uerr)
}

// networked reports whether a container is in the network.
func (m Manager) networked() (bool, error) {
	list, err := m.Store.List()
	return slices.ContainsFunc(list, func(c Container) bool { return c.Target == "" }), err
}

// Publish publishes a port of a container that runs at a port of this machine. If that port was published for another container, new connections go to this one, and established
// ones stay with the other; that is fault.Refused if nothing answers at the port of this one.
func (m Manager) Publish(ctx context.Context, name string, listen, port uint16) error {
	return m.change(name, func(c Container, d Driver) error {
		if c.Target != "" {
			return NotSupported(c, "published")
		}
		running, err := d.Running(ctx, c)
		if err != nil {
			return err
		}
		if !running {
			return NotRunning(c)
		}
		a, err := d.Address(ctx, c)
		if err != nil {
			return err
		}
		p := network.Port{Listen: listen, Container: name, To: netip.AddrPortFrom(a, port)}
		if c.Address6.IsValid() {
			p.To6 = netip.AddrPortFrom(c.Address6.Addr(), port)
		}
		wait, err := m.patience(p)
		if err != nil {
			return err
		}
		silent := m.answers(ctx, p.To, wait)
		_, err = m.ports(func(n *network.Network) error {
			i := slices.IndexFunc(n.Ports, func(p network.Port) bool { return p.Listen == listen })
			if i >= 0 && n.Ports[i].To != p.To && silent != nil {
				return fault.New(fault.Refused, "", "nothing answers at port %d of %s, and port %d is answered by %s: %w", port, name, listen, n.Ports[i].Container, silent).
					WithHint("start the service first; without the other one:  corpus-git container unpublish %d", listen)
			}
			n.Ports = append(slices.DeleteFunc(n.Ports, func(p network.Port) bool { return p.Listen == listen }), p)
			slices.SortFunc(n.Ports, func(a, b network.Port) int { return int(a.Listen) - int(b.Listen) })
			return nil
		})
		if err == nil && silent != nil {
			m.Say(fmt.Sprintf("nothing answers at port %d of %s yet", port, name))
		}
		return err
	})
}

// How long a service may take to accept a connection, and the interval of attempts.
const (
	answerWait  = 2 * time.Second
	answerEvery = 200 * time.Millisecond
)

// patience returns how long a service may take to be started: a port that nobody answers yet may be published before.
func (m Manager) patience(p network.Port) (time.Duration, error) {
	n, err := m.Network.Get()
	if slices.ContainsFunc(n.Ports, func(o network.Port) bool { return o.Listen == p.Listen && o.To != p.To }) {
		return m.Patience, err
	}
	return 0, err
}

// answers returns an error if nothing accepts connections there, also after a while.
func (m Manager) answers(ctx context.Context, at netip.AddrPort, wait time.Duration) error {
	for deadline := time.Now().Add(wait); ; {
		once, end := context.WithTimeout(ctx, answerWait)
		conn, err := m.Dial(once, "tcp", at.String())
		end()
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := sleep.For(ctx, answerEvery); err != nil {
			return err
		}
	}
}

// Unpublish stops publishing a port. A port that is not published is fault.Refused.
func (m Manager) Unpublish(listen uint16) error {
	_, err := m.ports(func(n *network.Network) error {
		before := len(n.Ports)
		n.Ports = slices.DeleteFunc(n.Ports, func(p network.Port) bool { return p.Listen == listen })
		if len(n.Ports) == before {
			return fault.New(fault.Refused, "", "port %d is not published", listen)
		}
		return nil
	})
	return err
}
