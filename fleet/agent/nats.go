package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/nats-io/nuid"
	"golang.org/x/crypto/ssh"

	"corpus-git/fleet/natslink"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

const (
	// answerLimit is how long the hub may take to run a verb.
	answerLimit = time.Minute
	// known is how often an agent asks whether the hub knows its connection.
	known = 30 * time.Second
)

// NATS is the NATS servers of a hub: the agent connects to any of them.
type NATS struct {
	// URL is tls://HOST:PORT, those of several separated by commas; CA is the PEM of what their certificates are verified by.
	URL string `json:"url"`
	CA  string `json:"ca"`
}

// dialNATS connects over NATS, with the agent's key as an NKey.
func (a *Agent) dialNATS(closed func()) (*nats.Conn, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(a.hub().NATS.CA)) {
		return nil, fault.New(fault.Refused, "", "the certificate of the NATS server's authority is not valid")
	}
	pub, ok := edKey(a.Key.PublicKey())
	if !ok {
		return nil, fault.New(fault.Refused, "", "the agent's key is not an ed25519 key, which NATS requires")
	}
	name, err := nkeys.Encode(nkeys.PrefixByteUser, pub)
	if err != nil {
		return nil, err
	}
	sign := func(nonce []byte) ([]byte, error) {
		s, err := a.Key.Sign(rand.Reader, nonce)
		if err != nil {
			return nil, err
		}
		return s.Blob, nil
	}
	own := nuid.Next()
	c, err := nats.Connect(a.hub().NATS.URL, nats.Nkey(string(name), sign), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}), nats.Name(own), nats.CustomInboxPrefix(natslink.Inbox(own)), nats.NoReconnect(),
		nats.Timeout(dialLimit), nats.PingInterval(alive), nats.MaxPingsOutstanding(1), nats.ClosedHandler(func(*nats.Conn) { closed() }), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { a.Log.Warn().Err(err).Msg("NATS") }))
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return nil, fault.New(fault.Refused, "", "the hub is not there, or does not know this agent's key: %s: %w", a.hub().NATS.URL, err)
	case err != nil:
		return nil, fault.New(fault.Busy, "", "%s is not reached: %w", a.hub().NATS.URL, err)
	}
	return c, nil
}

func edKey(k ssh.PublicKey) (ed25519.PublicKey, bool) {
	c, ok := k.(ssh.CryptoPublicKey)
	if !ok {
		return nil, false
	}
	pub, ok := c.CryptoPublicKey().(ed25519.PublicKey)
	return pub, ok
}

// connectNATS is connect over NATS.
func (a *Agent) connectNATS(ctx context.Context) (connected bool, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c, err := a.dialNATS(func() { end(fault.New(fault.Busy, "", "the connection to the hub has ended")) })
	if err != nil {
		return false, err
	}
	defer c.Close()
	a.Log.Info().Str("hub", a.hub().NATS.URL).Str("node", a.hub().Node).Msg("connected to the hub over NATS")
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer end(nil)
	slots := make(chan struct{}, links)
	name := c.Opts.Name
	if _, err := c.Subscribe(natslink.Begin(name), func(m *nats.Msg) {
		select {
		case slots <- struct{}{}:
		default:
			return // the hub opens no more than that at a time; it is told by its timeout
		}
		s, err := natslink.Open(c, natslink.ToAgent(name, string(m.Data)), natslink.ToHub(name, string(m.Data)))
		if err == nil {
			err = c.Flush() // the hub sends as soon as it has the answer
		}
		if err == nil {
			err = m.Respond(nil)
		}
		if err != nil {
			<-slots
			a.Log.Warn().Err(err).Msg("begin a session of the hub")
			return
		}
		sessions.Go(func() {
			defer func() { <-slots }()
			a.serveNATS(ctx, s)
		})
	}); err != nil {
		return false, err
	}
	if _, err := c.Subscribe(natslink.Again, func(*nats.Msg) { end(fault.New(fault.Busy, "", "the hub has lost its connections")) }); err != nil {
		return false, err
	}
	a.keepNATS(c)
	defer a.keepNATS(nil)
	if err := a.publishNATS(c); err != nil {
		return false, err
	}
	tick := time.NewTicker(known)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case <-tick.C:
			if err := callNATS(c, nil, nil); err != nil && ctx.Err() == nil {
				return true, err
			}
		}
	}
}

// serveNATS serves one session of the hub.
func (a *Agent) serveNATS(ctx context.Context, s *natslink.Stream) {
	stop := context.AfterFunc(ctx, func() { s.Fail(context.Cause(ctx)) })
	defer stop()
	err := a.Serve(ctx, s, s)
	if err != nil && ctx.Err() == nil {
		a.Log.Debug().Err(err).Msg("session of the hub")
	}
	_ = s.CloseWrite()
	_ = s.Close() // the hub has ended it, or reads the end
}

// publishNATS tells the hub about this machine.
func (a *Agent) publishNATS(c *nats.Conn) error {
	got, err := askNATS(c, []string{"node", "publish", a.hub().Node}, a.Hello())
	if err != nil {
		return err
	}
	if err := a.learn(NATS{URL: got.URL, CA: got.CA}); err != nil {
		return err
	}
	return a.Connected()
}

// learn keeps where the hub is reached from now on.
func (a *Agent) learn(said NATS) error {
	if said.URL == "" || said.CA == "" || a.Learned == nil || said == *a.hub().NATS {
		return nil
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(said.CA)) {
		return fault.New(fault.Refused, "", "the hub's answer contains no certificate")
	}
	if err := a.change(func(hub *Hub) { hub.NATS = &said }); err != nil {
		return err
	}
	a.Log.Info().Str("hub", said.URL).Msg("the addresses of the hub have changed")
	return nil
}

// callNATS runs a verb of the hub, with a document as its input.
func callNATS(c *nats.Conn, argv []string, doc any) error {
	_, err := askNATS(c, argv, doc)
	return err
}

// askNATS is callNATS, and returns the answer.
func askNATS(c *nats.Conn, argv []string, doc any) (got natslink.Answer, err error) {
	input, err := json.Marshal(doc)
	if err != nil {
		return got, err
	}
	text, err := json.Marshal(natslink.Request{Argv: argv, Input: input})
	if err != nil {
		return got, err
	}
	m, err := c.Request(natslink.Call(c.Opts.Name), text, answerLimit)
	if err != nil {
		return got, fault.New(fault.Busy, "", "the hub does not respond: %w", err)
	}
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return got, err
	}
	if got.Unknown {
		return got, fault.New(fault.Busy, "", "the hub does not know this connection any more")
	}
	if got.Exit != 0 {
		return got, fault.New(fault.Refused, "", "the hub: %s", printable.Text(firstLine(got.Said, fmt.Errorf("exit status %d", got.Exit))))
	}
	return got, nil
}

func (a *Agent) keepNATS(c *nats.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nats = c
}
