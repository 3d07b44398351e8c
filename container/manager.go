package container

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"corpus-git/container/network"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Manager performs the operations on containers, one at a time on each.
type Manager struct {
	Store   Store
	Drivers map[string]Driver
	Network network.Store
	// Up and Down make the network of the kernel what is recorded, and remove it.
	Up, Down func(network.Network) error
	// Dial connects to a service of a container.
	Dial func(ctx context.Context, kind, address string) (net.Conn, error)
	// Patience is how long a service may take to be started before the port of another container is switched to it.
	Patience time.Duration
	// Say is called with messages about operations that take time.
	Say func(string)
}

// driver returns the driver of a container.
func (m Manager) driver(c Container) (Driver, error) {
	d, ok := m.Drivers[c.Driver]
	if !ok {
		return nil, fault.New(fault.Usage, "", "there is no driver %q", c.Driver)
	}
	return d, nil
}

// Get finds a container and its driver.
func (m Manager) Get(name string) (Container, Driver, error) {
	c, err := m.Store.Get(name)
	if err != nil {
		return c, nil, err
	}
	d, err := m.driver(c)
	return c, d, err
}

// change calls do for a container, under its lock.
func (m Manager) change(name string, do func(Container, Driver) error) error {
	if _, err := m.Store.Get(name); err != nil {
		return err
	}
	unlock, err := m.Store.Lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	c, d, err := m.Get(name) // its current record
	if err != nil {
		return err
	}
	return do(c, d)
}

// Create makes a container and starts it. An interrupted creation is continued, if the settings are the original ones; other settings, a container that exists, and a machine that
// lacks what its driver or the network needs are fault.Refused, a full file system is fault.Busy; they leave nothing.
func (m Manager) Create(ctx context.Context, c Container) (Container, error) {
	if err := errors.Join(CheckName(c.Name), c.Limits.Check()); err != nil {
		return c, err
	}
	d, err := m.driver(c)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return c, err
	}
	unlock, err := m.Store.Lock(c.Name)
	if err != nil {
		return c, err
	}
	defer unlock()
	n, err := m.Network.Get()
	if err != nil {
		return c, err
	}
	begun, unknown := m.Store.Get(c.Name)
	if unknown == nil && !begun.Ready {
		if other := begun.Differences(c); len(other) > 0 {
			return c, fault.New(fault.Refused, "", "the creation of %s was interrupted, and had other settings: %s", c.Name, strings.Join(other, ", ")).
				WithHint("repeat them to continue it, or begin again after  corpus-git container destroy %s --yes", c.Name)
		}
		m.Say("continuing: its creation was interrupted")
		if begun.Target != "" && c.Target != "" {
			begun.Target, begun.Options = c.Target, c.Options // which may have been the reason
		}
		c = begun
	} else {
		if c.Target == "" {
			err = m.networkUp(n)
		}
		if err == nil {
			c, err = m.Store.Add(c, n.Prefix)
		}
		if err != nil {
			return c, err
		}
	}
	if c.Target == "" && network.HasIPv6() {
		c.Address6 = n.Address6(c.Address.Addr())
	}
	if err := d.Create(ctx, c, m.Say); err != nil {
		if k := fault.KindOf(err); ctx.Err() == nil && (k == fault.Refused || k == fault.Busy) { // there is nothing to continue
			err = errors.Join(err, m.forget(c.Name), m.network())
		}
		return c, err
	}
	c.Ready = true
	if err := m.Store.Put(c); err != nil {
		return c, err
	}
	m.Say("starting " + c.Name)
	return m.start(ctx, c, d)
}

// complete refuses a container whose creation was interrupted.
func complete(c Container) error {
	if c.Ready {
		return nil
	}
	return fault.New(fault.Refused, "", "the creation of %s was interrupted", c.Name).WithHint("corpus-git container create %s  continues it", c.Name)
}

// start records that a container is to be running, and starts it.
func (m Manager) start(ctx context.Context, c Container, d Driver) (Container, error) {
	if err := complete(c); err != nil {
		return c, err
	}
	if !c.Started {
		c.Started = true
		if err := m.Store.Put(c); err != nil {
			return c, err
		}
	}
	return c, d.Start(ctx, c)
}

// Start starts a container. It is not an error if it is running already.
func (m Manager) Start(ctx context.Context, name string) error {
	return m.change(name, func(c Container, d Driver) error {
		_, err := m.start(ctx, c, d)
		return err
	})
}

// Stop shuts a container down. It is not an error if it is stopped already.
func (m Manager) Stop(ctx context.Context, name string) error {
	return m.change(name, func(c Container, d Driver) error {
		if err := d.Stop(ctx, c); err != nil {
			return err
		}
		c.Started = false
		return m.Store.Put(c)
	})
}

// Resize changes the limits of a container.
func (m Manager) Resize(ctx context.Context, name string, change func(*Limits)) (Container, error) {
	var now Container
	return now, m.change(name, func(c Container, d Driver) error {
		change(&c.Limits)
		if err := c.Limits.Check(); err != nil {
			return err
		}
		if err := d.Resize(ctx, c); err != nil {
			return err
		}
		now = c
		return m.Store.Put(c)
	})
}

// Storage gives the volume of a container another size, in bytes; 0 removes it with its files. A running container is stopped meanwhile, unless its volume is only
// enlarged.
func (m Manager) Storage(ctx context.Context, name string, change func(was int64) (int64, error)) (Container, error) {
	var now Container
	return now, m.change(name, func(c Container, d Driver) error {
		if err := complete(c); err != nil {
			return err
		}
		size, err := change(c.Storage)
		if err != nil {
			return errors.Join(err, m.again(ctx, c, d))
		}
		do := func() error {
			if err := d.Storage(ctx, c, size); err != nil {
				return err
			}
			c.Storage = size
			return m.Store.Put(c)
		}
		if err := d.Room(c, size); err != nil {
			return errors.Join(err, m.again(ctx, c, d))
		}
		running, err := d.Running(ctx, c)
		if err != nil {
			return err
		}
		if c.Target != "" || running && c.Storage > 0 && size >= c.Storage {
			if err = do(); fault.KindOf(err) == fault.Busy && c.Target == "" {
				err = m.paused(ctx, &c, d, do)
			}
		} else {
			err = m.paused(ctx, &c, d, do)
		}
		now = c
		return err
	})
}

// paused calls do while a container is stopped, and starts it again if it was running, or is to be: a command that was killed may have stopped it.
func (m Manager) paused(ctx context.Context, c *Container, d Driver, do func() error) error {
	running, err := d.Running(ctx, *c)
	if err != nil {
		return err
	}
	if running {
		m.Say("stopping " + c.Name)
		if err := d.Stop(ctx, *c); err != nil {
			return err
		}
	}
	err = do()
	if running || c.Started {
		m.Say("starting " + c.Name)
		err = errors.Join(err, d.Start(context.WithoutCancel(ctx), *c))
	}
	return err
}

// again starts a container that is to be running: an earlier call was killed after it had done what it stopped the container for.
func (m Manager) again(ctx context.Context, c Container, d Driver) error {
	running, err := d.Running(ctx, c)
	if err != nil || running || !c.Started || c.Target != "" {
		return err
	}
	m.Say("starting " + c.Name)
	return d.Start(ctx, c)
}

// Snapshot stores the root file system of a container under a name. A running container is stopped meanwhile.
func (m Manager) Snapshot(ctx context.Context, name, id string) error {
	if err := CheckName(id); err != nil {
		return err
	}
	return m.change(name, func(c Container, d Driver) error {
		if err := complete(c); err != nil {
			return err
		}
		list, err := d.Snapshots(ctx, c)
		if err == nil && slices.Contains(list, id) {
			err = errors.Join(fault.New(fault.Refused, "", "%s has a snapshot %s already", name, id), m.again(ctx, c, d))
		}
		if err != nil {
			return err
		}
		return m.paused(ctx, &c, d, func() error { return d.Snapshot(ctx, c, id) })
	})
}

// Restore restores a snapshot. A running container is stopped meanwhile.
func (m Manager) Restore(ctx context.Context, name, id string) error {
	return m.snapshots(ctx, name, id, func(c Container, d Driver) error {
		return m.paused(ctx, &c, d, func() error { return d.Restore(ctx, c, id) })
	})
}

// Forget removes a snapshot.
func (m Manager) Forget(ctx context.Context, name, id string) error {
	return m.snapshots(ctx, name, id, func(c Container, d Driver) error { return d.Forget(ctx, c, id) })
}

// snapshots calls do for an existing snapshot.
func (m Manager) snapshots(ctx context.Context, name, id string, do func(Container, Driver) error) error {
	return m.change(name, func(c Container, d Driver) error {
		list, err := d.Snapshots(ctx, c)
		if err == nil && !slices.Contains(list, id) {
			err = fault.New(fault.Refused, "", "%s has no snapshot %q", name, id).WithHint("corpus-git container show %s", name)
		}
		if err != nil {
			return err
		}
		return do(c, d)
	})
}

// Destroy shuts a container down and removes it with everything that it holds. Its published ports are closed. before is called first, under its lock; nil does nothing. With the
// last container of this machine its network goes. What an interrupted call left is removed by the next one.
func (m Manager) Destroy(ctx context.Context, name string, before func() error) error {
	if _, err := m.Store.Get(name); fault.KindOf(err) == fault.Refused {
		unlock, lerr := m.Store.Lock(name)
		if lerr != nil {
			return lerr
		}
		defer unlock()
		if rest, rerr := vfs.Exists(m.Store.FS, m.trash(name)); rerr != nil || !rest {
			return errors.Join(rerr, err)
		}
		return errors.Join(vfs.RemoveAll(m.Store.FS, m.trash(name)), m.network())
	}
	return m.change(name, func(c Container, d Driver) error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		if c.Target == "" {
			if _, err := m.ports(func(n *network.Network) error {
				n.Ports = slices.DeleteFunc(n.Ports, func(p network.Port) bool { return p.Container == name })
				return nil
			}); err != nil {
				return err
			}
			if err := d.Stop(ctx, c); err != nil {
				return err
			}
		}
		if err := d.Destroy(ctx, c); err != nil {
			return err
		}
		return errors.Join(m.forget(name), m.network())
	})
}

// trash returns the name of a container's folder while it is removed.
func (m Manager) trash(name string) string { return m.Store.Folder(name) + ".trash" }

// forget removes a container's folder, its record first.
func (m Manager) forget(name string) error {
	if ok, err := vfs.Exists(m.Store.FS, m.Store.Folder(name)); err != nil || !ok {
		return err
	}
	if err := vfs.RemoveAll(m.Store.FS, m.trash(name)); err != nil {
		return err
	}
	return errors.Join(vfs.RenameDurable(m.Store.FS, m.Store.Folder(name), m.trash(name)), vfs.RemoveAll(m.Store.FS, m.trash(name)))
}
