package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Hub is the hub of an agent, as stored in the agent's file.
type Hub struct {
	// Address is HOST:PORT of the ssh server, HostKey its key, Node the name of this machine there.
	Address string `json:"address"`
	HostKey string `json:"host_key"`
	Node    string `json:"node"`
	// Next is the key that will replace HostKey, which the hub has announced; "" if none was.
	Next string `json:"next_host_key,omitempty"`
	// Others are the addresses of further hubs with the same state and the same key; the hub tells them.
	Others []string `json:"others,omitempty"`
	// NATS is the hub's NATS server; nil where the agent connects by ssh.
	NATS *NATS `json:"nats,omitempty"`
	// Joined is the fingerprint of the token that was used; "" if an older release joined.
	Joined string `json:"joined,omitempty"`
}

// Agent keeps connections to a hub.
type Agent struct {
	Hub Hub
	Key ssh.Signer
	// Serve serves one session of the hub, until in ends.
	Serve func(ctx context.Context, in io.Reader, out io.Writer) error
	Log   zerolog.Logger
	// Hello is sent to the hub at each connection, as JSON. Connected is called when the hub has received it.
	Hello     func() any
	Connected func() error
	// Learned makes durable what the hub says of where it is reached; it may be nil.
	Learned func(Hub) error

	// Replaced is called when the hub has another key than old from now on, after that is durable; it may be nil.
	Replaced func(old string) error

	// learning is held while Hub changes, and taken before mu.
	learning sync.Mutex
	mu       sync.Mutex
	conn     *ssh.Client
	gone     <-chan struct{} // closed when conn has ended
	nats     *nats.Conn

	// unfit are the addresses of hubs that respond, and did not take this agent, in a row: others are tried first. Run alone uses it.
	unfit []string
}

const (
	dialLimit = 20 * time.Second
	// links is the number of sessions that the hub can have at a time.
	links = 4
	// alive is the interval of keepalives to the hub, and how long it may take to answer one.
	alive = 15 * time.Second
	// again and longest limit the pause before a lost connection is reestablished.
	again   = time.Second
	longest = time.Minute
	user    = "agent"
)

// dialAny connects to the first of the hubs that responds, of those in not only if all are.
func (a *Agent) dialAny(ctx context.Context, not []string) (c *ssh.Client, at string, err error) {
	all := append([]string{a.hub().Address}, a.hub().Others...)
	left := slices.DeleteFunc(slices.Clone(all), func(at string) bool { return slices.Contains(not, at) })
	if len(left) == 0 {
		left = all
	}
	for _, at := range left {
		hub := a.hub()
		hub.Address = at
		var one error
		var by string
		if c, by, one = dial(ctx, hub, a.Key); one == nil {
			if err := a.proven(by); err != nil {
				return nil, "", errors.Join(err, c.Close())
			}
			a.Log.Info().Str("hub", at).Str("node", hub.Node).Msg("connected to the hub")
			return c, at, nil
		}
		err = errors.Join(err, one)
		if fault.KindOf(one) == fault.Refused || ctx.Err() != nil {
			break // one that responds speaks for all
		}
	}
	return nil, "", err
}

// Dial connects to the ssh server of a hub; only the hub's keys are accepted. An error is fault.Busy if the hub does not respond, or ends the connection without
// a word, fault.Refused if it has another key, or does not know this one.
func Dial(ctx context.Context, hub Hub, key ssh.Signer) (*ssh.Client, error) {
	c, _, err := dial(ctx, hub, key)
	return c, err
}

// dial is Dial, and returns the line of hub with which the hub has proven itself.
func dial(ctx context.Context, hub Hub, key ssh.Signer) (_ *ssh.Client, by string, err error) {
	want, err := hub.keys()
	if err != nil {
		return nil, "", err
	}
	var other ssh.PublicKey
	cfg := &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyAlgorithms: []string{want[0].key.Type()}, Timeout: dialLimit,
		HostKeyCallback: func(_ string, _ net.Addr, has ssh.PublicKey) error {
			for _, k := range want {
				if bytes.Equal(k.key.Marshal(), has.Marshal()) {
					by = k.line
					return nil
				}
			}
			other = has
			return errors.New("ssh: host key mismatch")
		},
	}
	nc, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", hub.Address)
	if err != nil {
		return nil, "", fault.New(fault.Busy, "", "the hub is not reached: %w", err)
	}
	late := time.AfterFunc(dialLimit, func() { _ = nc.Close() })
	defer late.Stop()
	c, chans, reqs, err := ssh.NewClientConn(nc, hub.Address, cfg)
	if err != nil {
		_ = nc.Close()
		if other != nil {
			return nil, "", hub.replaced(want[0].key, other)
		}
		kind := fault.Refused
		if network := (net.Error)(nil); errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			kind = fault.Busy
		}
		return nil, "", fault.New(kind, "", "the hub %s: %w", hub.Address, err)
	}
	return ssh.NewClient(c, chans, reqs), by, nil
}

// Join exchanges a token for the agent's own key at the hub. It returns the first of keys with which the token has joined: if it had joined with one of them before,
// and the answer was lost, that is not an error. Otherwise the token joins with the first one.
func Join(ctx context.Context, t Token, keys ...ssh.Signer) (Hub, ssh.Signer, error) {
	hub := Hub{Address: t.Hub, HostKey: t.HostKey, Node: t.Node, NATS: t.NATS}
	signer, err := t.Signer()
	if err != nil {
		return hub, nil, err
	}
	hub.Joined = ssh.FingerprintSHA256(signer.PublicKey())
	c, err := Dial(ctx, hub, signer)
	if err != nil {
		for _, key := range keys {
			if own, oerr := Dial(ctx, hub, key); oerr == nil {
				return hub, key, own.Close()
			}
		}
		if fault.KindOf(err) == fault.Refused {
			return hub, nil, fault.New(fault.Refused, "", "%w", err).WithHint("a token can be used once, and expires; an administrator makes another one:  corpus-git node token %s", t.Node)
		}
		return hub, nil, err
	}
	key := keys[0]
	defer c.Close()
	s, err := session(c, ctx.Done())
	if err != nil {
		return hub, nil, err
	}
	var said bytes.Buffer
	s.Stderr = &said
	if err := s.Run("node join " + t.Node + " '" + PublicLine(key) + "'"); err != nil {
		return hub, nil, fault.New(fault.Refused, "", "the hub does not take it: %s", printable.Text(firstLine(said.String(), err)))
	}
	return hub, key, nil
}

func firstLine(said string, err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(said, "error: "), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}

// Run keeps the connections until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	wait, connect, at := again, a.connect, a.hub().Address
	if a.hub().NATS != nil {
		connect, at = a.connectNATS, a.hub().NATS.URL
	}
	for ctx.Err() == nil {
		connected, err := connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if connected && fault.KindOf(err) != fault.Refused {
			wait = again
		}
		warn := a.Log.Warn().Err(err)
		if hint := fault.HintOf(err); hint != "" {
			warn = warn.Str("hint", hint)
		}
		warn.Str("hub", at).Stringer("again", wait).Msg("connection to the hub lost")
		select {
		case <-time.After(wait/2 + rand.N(wait/2)): // not all agents of a hub at once
		case <-ctx.Done():
		}
		wait = min(2*wait, longest)
	}
}

// connect serves one connection to its end; connected reports that the hub accepted it. The error is fault.Refused if the hub accepts no streams.
func (a *Agent) connect(ctx context.Context) (connected bool, err error) {
	c, at, err := a.dialAny(ctx, a.unfit)
	if err != nil {
		a.unfit = nil
		return false, err
	}
	if slices.Contains(a.unfit, at) { // all of them
		a.unfit = nil
	}
	a.unfit = append(a.unfit, at)
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	go func() {
		_ = c.Wait() // the user of the session reports the reason
		end()
	}()
	a.keep(c, ctx.Done())
	defer a.keep(nil, nil)
	go a.keepalive(ctx, c)
	opened := c.HandleChannelOpen(streamChannel) // before the hub knows that they are accepted
	accept, err := a.publish(c, ctx.Done())
	switch {
	case err != nil:
		return false, err
	case accept:
		err = a.accept(ctx, c, opened)
	default:
		err = a.offer(ctx, end, c)
	}
	if fault.KindOf(err) != fault.Refused {
		a.unfit = nil
	}
	return true, err
}

// offer offers the hub one stream at a time, until ctx ends: a stream costs the hub memory. When a session begins on it the next one is offered, up to links at once.
func (a *Agent) offer(ctx context.Context, end context.CancelFunc, c *ssh.Client) error {
	var wg sync.WaitGroup
	errs := make(chan error, links)
	slots := make(chan struct{}, links)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		used, use := context.WithCancel(ctx)
		wg.Go(func() {
			defer func() { <-slots }()
			defer use()
			if err := a.link(ctx, c, use); err != nil {
				select {
				case errs <- err:
				default: // another session has reported the reason
				}
				end()
			}
		})
		<-used.Done()
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// keep stores the current connection.
func (a *Agent) keep(c *ssh.Client, gone <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn, a.gone = c, gone
}

// session opens a session. It does not wait for the library once the connection is gone: in it, opening a session while the connection ends blocks forever
// (x/crypto/ssh, mux.openChannel).
func session(c *ssh.Client, gone <-chan struct{}) (*ssh.Session, error) {
	type opened struct {
		s   *ssh.Session
		err error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := c.NewSession()
		done <- opened{s, err}
	}()
	select {
	case o := <-done:
		return o.s, o.err
	case <-gone:
		return nil, fault.New(fault.Busy, "", "the connection to the hub has ended")
	}
}

// publish tells the hub about this machine; accept reports that the hub opens streams by itself. A hub of an older release does not accept it.
func (a *Agent) publish(c *ssh.Client, gone <-chan struct{}) (accept bool, err error) {
	answer, err := callHub(c, gone, "node publish "+a.hub().Node, a.Hello())
	var refused *ssh.ExitError
	switch {
	case errors.As(err, &refused) && refused.ExitStatus() == fault.Busy.ExitCode():
		return false, fault.New(fault.Busy, "", "%w", err)
	case errors.As(err, &refused):
		a.Log.Warn().Str("hub", a.hub().Address).Err(err).Msg("the hub does not take what this machine says of itself")
	case err != nil:
		return false, err
	default:
		var said Published
		if json.Unmarshal(answer, &said) != nil {
			break // one of an older release says nothing
		}
		accept = said.Accept
		if err := a.learnHubs(said.Hubs); err != nil {
			return false, err
		}
	}
	return accept, a.Connected()
}

// Call runs a verb of the hub, with a document as its input. An error is one of the connection, or the hub's answer.
func (a *Agent) Call(verb string, doc any) error {
	a.mu.Lock()
	c, gone, over, at := a.conn, a.gone, a.nats, a.Hub.Address
	a.mu.Unlock()
	if over != nil {
		return callNATS(over, strings.Fields(verb), doc)
	}
	if c == nil {
		return fault.New(fault.Busy, "", "the hub %s is not connected", at)
	}
	_, err := callHub(c, gone, verb, doc)
	return err
}

// Published is what a hub answers to node publish over ssh.
type Published struct {
	// Hubs are the addresses of the ssh servers of all hubs that share the state; empty with one hub.
	Hubs []string `json:"hubs"`
	// Accept: the hub opens streams by itself, once  node attach NAME --accept  was run over a connection.
	Accept bool `json:"accept,omitempty"`
}

// maxHubs limits how many addresses of hubs an agent keeps.
const maxHubs = 16

// learnHubs keeps at which other addresses the hub is reached, none where it says none.
func (a *Agent) learnHubs(hubs []string) error {
	if a.Learned == nil || len(hubs) == 0 || len(hubs) > maxHubs {
		return nil
	}
	var others []string
	for _, at := range hubs {
		if _, _, err := net.SplitHostPort(at); err == nil && at != a.hub().Address {
			others = append(others, at)
		}
	}
	if slices.Equal(others, a.hub().Others) {
		return nil
	}
	if err := a.change(func(hub *Hub) { hub.Others = others }); err != nil {
		return err
	}
	a.Log.Info().Strs("hubs", others).Msg("the addresses of the hub have changed")
	return nil
}

// maxAnswer limits what is kept of a hub's answer.
const maxAnswer = 64 << 10

// callHub runs a verb of the hub, with doc as its input: none for nil, as a verb has it that reads nothing, which may end before it was sent.
func callHub(c *ssh.Client, gone <-chan struct{}, verb string, doc any) (answer []byte, err error) {
	var in io.Reader
	if doc != nil {
		text, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	s, err := session(c, gone)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var said, out bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = in, &out, &said
	if err := s.Run(verb); err != nil {
		return nil, fmt.Errorf("the hub: %s: %w", printable.Text(firstLine(said.String(), err)), err)
	}
	return out.Bytes()[:min(out.Len(), maxAnswer)], nil
}

// keepalive closes a connection whose hub no longer answers.
func (a *Agent) keepalive(ctx context.Context, c *ssh.Client) {
	tick := time.NewTicker(alive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		late := time.AfterFunc(alive, func() { _ = c.Close() })
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			_ = c.Close()
			return
		}
	}
}

// link offers one session to the hub, and serves it. used is called when the session begins.
func (a *Agent) link(ctx context.Context, c *ssh.Client, used func()) error {
	s, err := session(c, ctx.Done())
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := s.StdinPipe()
	if err != nil {
		return err
	}
	in, err := s.StdoutPipe()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	s.Stderr = &said
	if err := s.Start("node attach " + a.hub().Node); err != nil {
		return err
	}
	if err := a.Serve(ctx, &first{in, sync.OnceFunc(used)}, out); err != nil && ctx.Err() == nil {
		a.Log.Debug().Err(err).Msg("session of the hub")
	}
	_ = out.Close()
	if err := s.Wait(); err != nil && said.Len() > 0 {
		return fault.New(fault.Refused, "", "the hub: %s", printable.Text(firstLine(said.String(), err)))
	}
	return nil
}

// first calls a function when something was read.
type first struct {
	io.Reader
	call func()
}

func (f *first) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if n > 0 {
		f.call()
	}
	return n, err
}
