package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/layout"
)

// Connect returns what connects to the account of the log on the NATS server of any hub, the own one first. The connection has the name of this hub.
func Connect(state layout.State) (func(opts ...nats.Option) (*nats.Conn, error), error) {
	l, err := Load(state)
	if err != nil {
		return nil, err
	}
	self, _, err := LoadSelf(state)
	if err != nil {
		return nil, err
	}
	c, err := broker.Load(state.NATS())
	if err != nil {
		return nil, err
	}
	return connector(self.Name, c.Log, c.CA, l.Addresses(self.Name))
}

func connector(name, seed string, ca []byte, at []string) (func(opts ...nats.Option) (*nats.Conn, error), error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fault.New(fault.Refused, "", "this machine has no key for the log of the hubs")
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fault.New(fault.Refused, "", "the certificate of the hubs' authority is not valid")
	}
	return func(opts ...nats.Option) (*nats.Conn, error) {
		own := []nats.Option{nats.Name(name), nats.DontRandomize(), nats.Nkey(public, pair.Sign), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool})}
		return nats.Connect(strings.Join(at, ","), append(own, opts...)...)
	}, nil
}

// refusing limits how long it may take to find out whether a NATS server refuses this hub.
const refusing = time.Second

// RefusedBy returns the other hubs whose NATS servers are there and refuse this one: its key is not one of theirs, or their certificate is of another authority. Servers that are not reached, and what goes
// wrong otherwise, do not count.
func RefusedBy(ctx context.Context, state layout.State) (names []string) {
	l, err := Load(state)
	if err != nil {
		return nil
	}
	self, there, err := LoadSelf(state)
	if err != nil || !there {
		return nil
	}
	own, err := broker.Load(state.NATS())
	if err != nil {
		return nil
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, m := range l.Hubs {
		if m.Name == self.Name || !m.Joined || ctx.Err() != nil {
			continue
		}
		all.Go(func() {
			dial, err := connector(self.Name, own.Log, own.CA, []string{m.NATS})
			if err != nil {
				return
			}
			c, err := dial(nats.Timeout(refusing), nats.IgnoreDiscoveredServers())
			if err == nil {
				c.Close()
			}
			var foreign x509.UnknownAuthorityError
			if errors.Is(err, nats.ErrAuthorization) || errors.As(err, &foreign) {
				mu.Lock()
				defer mu.Unlock()
				names = append(names, m.Name)
			}
		})
	}
	all.Wait()
	slices.Sort(names)
	return names
}

// answerTime is how long a NATS server may take to answer.
const answerTime = 5 * time.Second

// system calls f with a connection of the system account to the NATS server beside this hub.
func system(state layout.State, f func(c *nats.Conn) error) error {
	l, err := Load(state)
	if err != nil {
		return err
	}
	self, _, err := LoadSelf(state)
	if err != nil {
		return err
	}
	own, err := broker.Load(state.NATS())
	if err != nil {
		return err
	}
	at := l.Find(self.Name)
	if at < 0 {
		return fault.New(fault.Refused, "", "this hub was removed from the others")
	}
	dial, err := connector(self.Name, own.System, own.CA, []string{l.Hubs[at].NATS})
	if err != nil {
		return err
	}
	c, err := dial(nats.Timeout(answerTime), nats.IgnoreDiscoveredServers())
	if err != nil {
		return fault.New(fault.Busy, "", "the NATS server %s is not reached: %w", l.Hubs[at].NATS, err)
	}
	defer c.Close()
	return f(c)
}

// Clustered reports whether the NATS server beside this hub runs with the configuration for several hubs. An error means that it does not answer.
func Clustered(state layout.State) (ok bool, err error) {
	err = system(state, func(c *nats.Conn) error {
		ok = c.ConnectedClusterName() != ""
		return nil
	})
	return ok, err
}

// Refresh writes the configuration of the NATS server beside this hub again, if the list of hubs has changed, and has the server read it. fault.Busy means that the server could not: it has to be
// restarted.
func Refresh(ctx context.Context, state layout.State) (changed bool, err error) {
	_, changed, err = Configure(state)
	if err != nil || !changed {
		return changed, err
	}
	return true, Reload(ctx, state)
}

// Reload has the NATS server beside this hub read its configuration; see Refresh.
func Reload(ctx context.Context, state layout.State) error {
	path, _, err := Configure(state)
	if err != nil || path == "" {
		return err
	}
	return system(state, func(c *nats.Conn) error {
		return ask(ctx, c, "$SYS.REQ.SERVER."+c.ConnectedServerId()+".RELOAD", nil, path)
	})
}

// notMember is the code of nats-server for "server is not a member of the cluster".
const notMember = 10044

// Forget has the NATS servers forget that of a hub that was removed: its part of the log is given to another one. One that never was one of them has no part.
func Forget(ctx context.Context, state layout.State, name string) error {
	return system(state, func(c *nats.Conn) error {
		return ask(ctx, c, "$JS.API.SERVER.REMOVE", map[string]string{"peer": name}, "", notMember)
	})
}

// ask sends a request to a NATS server (docs.nats.io, "System Events", "JetStream API Reference"). Errors with one of the accepted codes are none.
func ask(ctx context.Context, c *nats.Conn, subject string, q any, file string, accepted ...int) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	m, err := c.RequestWithContext(ctx, subject, text)
	if err != nil {
		return fault.New(fault.Busy, "", "the NATS server does not answer: %w", err)
	}
	var got struct {
		Error *struct {
			Description string `json:"description"`
			Code        int    `json:"err_code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return err
	}
	if got.Error != nil && !slices.Contains(accepted, got.Error.Code) {
		what, _, _ := strings.Cut(got.Error.Description, ": old=") // what follows are parts of its configuration
		f := fault.New(fault.Busy, "", "the NATS server: %.200s", what)
		if file != "" {
			f = f.WithHint("restart it:  nats-server -c %s", file)
		}
		return f
	}
	return nil
}
