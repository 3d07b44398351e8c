package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/fleet/agent"
	"corpus-git/fleet/natslink"
	"corpus-git/internal/fault"
)

// Config configures a Broker.
type Config struct {
	// URL is that of the NATS server: tls://HOST:PORT; of several, separated by commas, the first that responds is used.
	URL         string
	Credentials Credentials
	// Identify returns who has a key.
	Identify func(ctx context.Context, o access.Offer) (access.Identity, bool, error)
	// LoggedIn and RefusedLogin are called after a login; they may be nil.
	LoggedIn     func(who access.Identity)
	RefusedLogin func(from, user, fingerprint string)
	// Run runs a verb.
	Run func(ctx context.Context, who access.Identity, argv []string, in io.Reader, out, errw io.Writer) int
	// Connections limits the agents.
	Connections int
	Log         zerolog.Logger
}

// Broker has the connections of a hub to NATS. Its methods are safe for concurrent use.
type Broker struct {
	cfg    Config
	issuer nkeys.KeyPair
	// hub talks to agents, system is told about their connections.
	hub, system *nats.Conn
	ctx         context.Context //nolint:containedctx // ends all verbs at Close
	stop        context.CancelFunc
	work        sync.WaitGroup
	slots       chan struct{}

	mu     sync.Mutex
	closed bool
	agents map[string]*connection
}

const (
	answerTime = 10 * time.Second
	// links is the number of sessions with an agent at a time, as over ssh.
	links = 4
	// calls limits the verbs and logins of agents that run at a time.
	calls = 32
	// account is the account of agents in the configuration of the NATS server.
	account = "AGENTS"
	retry   = 250 * time.Millisecond
	// hubName and systemName are the names of the hub's own connections.
	hubName, systemName = "hub", "system"
	// appear is how long an agent that was let in may take to report itself.
	appear = time.Minute
)

// Start connects to the NATS server, now or as soon as it is there. The caller closes the Broker.
func Start(cfg Config) (*Broker, error) {
	all, err := Addresses(cfg.URL)
	if err != nil {
		return nil, err
	}
	cfg.URL = strings.Join(all, ",")
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(cfg.Credentials.CA) {
		return nil, fault.New(fault.Refused, "nats_url", "%s contains no certificate", authorityFile)
	}
	issuer, err := nkeys.FromSeed([]byte(cfg.Credentials.Issuer))
	if err != nil {
		return nil, fault.New(fault.Refused, "nats_url", "%s: %w", credentialsFile, err)
	}
	b := &Broker{cfg: cfg, issuer: issuer, agents: map[string]*connection{}, slots: make(chan struct{}, calls)}
	b.ctx, b.stop = context.WithCancel(context.Background())
	security := nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool})
	if b.system, err = b.connect(systemName, cfg.Credentials.System, security); err == nil {
		hub, herr := b.connect(hubName, cfg.Credentials.Hub, security)
		b.mu.Lock()
		b.hub, err = hub, herr
		b.mu.Unlock()
	}
	if err == nil {
		_, err = b.system.Subscribe("$SYS.ACCOUNT."+account+".DISCONNECT", b.disconnected)
	}
	if err == nil {
		_, err = b.hub.Subscribe("$SYS.REQ.USER.AUTH", b.inBackground(b.login))
	}
	if err == nil {
		_, err = b.hub.Subscribe(natslink.AnyCall, b.inBackground(b.call))
	}
	if err != nil {
		b.Close()
		return nil, fault.New(fault.Internal, "nats_url", "%w", err)
	}
	return b, nil
}

// connect connects with a key. What was missed while a connection was lost is made up for by dropping all agents, which connect again.
func (b *Broker) connect(name, seed string, security nats.Option) (*nats.Conn, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	log := b.cfg.Log.With().Str("connection", name).Logger()
	ready := func(c *nats.Conn) {
		log.Info().Str("server", c.ConnectedUrlRedacted()).Msg("connected to the NATS server")
		b.dropAll(c)
	}
	return nats.Connect(b.cfg.URL, nats.DontRandomize(), nats.Nkey(public, pair.Sign), security, nats.Name(name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(retry), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), nats.ConnectHandler(ready), nats.ReconnectHandler(ready),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn().Err(err).Msg("the connection to the NATS server is lost")
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { log.Debug().Err(err).Msg("the NATS server is not reached") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn().Err(err).Msg("NATS") }))
}

// dropAll ends what runs over connections, and has all agents connect again.
func (b *Broker) dropAll(c *nats.Conn) {
	b.mu.Lock()
	all, hub := b.agents, b.hub
	b.agents = map[string]*connection{}
	b.mu.Unlock()
	for _, a := range all {
		a.end(errors.New("the connection to the NATS server was lost"))
	}
	if c.Opts.Name == hubName {
		hub = c
	}
	if hub != nil {
		_ = hub.Publish(natslink.Again, nil) // where it is not connected it does this when it is; an agent that misses it finds out by its next request
	}
}

// Address returns where agents connect. Those that are connected keep it.
func (b *Broker) Address() *agent.NATS {
	return &agent.NATS{URL: b.cfg.URL, CA: string(b.cfg.Credentials.CA)}
}

// Close ends all sessions. Idempotent.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	for _, c := range []*nats.Conn{b.hub, b.system} {
		if c != nil {
			c.Close()
		}
	}
	b.work.Wait()
}

// inBackground returns a handler that runs f for each message, a limited number at a time.
func (b *Broker) inBackground(f func(m *nats.Msg)) nats.MsgHandler {
	return func(m *nats.Msg) {
		select {
		case b.slots <- struct{}{}:
		case <-b.ctx.Done():
			return
		}
		if !b.begin(func() {
			defer func() { <-b.slots }()
			f(m)
		}) {
			<-b.slots
		}
	}
}

// begin runs f in the background, unless the broker is closed.
func (b *Broker) begin(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.work.Go(f)
	}
	return !b.closed
}

// call runs a verb for an agent, and answers. An agent that has reported its machine is offered to the fleet.
func (b *Broker) call(m *nats.Msg) {
	var q natslink.Request
	if json.Unmarshal(m.Data, &q) != nil {
		return
	}
	c := b.connection(m.Subject)
	var said bytes.Buffer
	answer := natslink.Answer{Unknown: c == nil}
	if c != nil {
		c.here.Store(true)
	}
	published := false
	if c != nil && len(q.Argv) > 0 {
		answer.Exit = b.cfg.Run(c.ctx, c.who, q.Argv, bytes.NewReader(q.Input), io.Discard, &said)
		answer.Said = said.String()
		published = answer.Exit == 0 && len(q.Argv) == 3 && q.Argv[0] == "node" && q.Argv[1] == "publish"
	}
	if published {
		answer.URL, answer.CA = b.cfg.URL, string(b.cfg.Credentials.CA)
	}
	text, err := json.Marshal(answer)
	if err == nil {
		err = m.Respond(text)
	}
	if err != nil {
		b.cfg.Log.Debug().Err(err).Msg("answer an agent")
	}
	if published {
		c.offered.Do(func() { b.begin(func() { b.offer(c, q.Argv[2]) }) })
	}
}

// disconnected ends what runs over a connection that has ended.
func (b *Broker) disconnected(m *nats.Msg) {
	var e struct {
		Client struct {
			Name string `json:"name"`
		} `json:"client"`
	}
	if err := json.Unmarshal(m.Data, &e); err != nil {
		return
	}
	b.mu.Lock()
	c := b.agents[e.Client.Name]
	delete(b.agents, e.Client.Name)
	b.mu.Unlock()
	if c != nil {
		c.end(errors.New("the agent has disconnected"))
	}
}
