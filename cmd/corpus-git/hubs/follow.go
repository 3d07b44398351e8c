package hubs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/cluster"
	"corpus-git/cluster/member"
	"corpus-git/cluster/relay"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/systemd"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project/config"
	"corpus-git/project/status"
)

// Config configures Follow.
type Config struct {
	Config  *config.Config
	Sockets systemd.Sockets
	// Signals are those of the process: SIGHUP calls Reopen, others end Follow.
	Signals <-chan os.Signal
	Reopen  func() error
	// Following is called once connections are accepted.
	Following func(ssh, http net.Listener) error
	// Answer runs a command of the control socket that can be answered while this hub follows; ok is false for others. c is nil while the log can't be opened, for the reason trouble.
	Answer func(ctx context.Context, c *cluster.Cluster, trouble string, argv []string, out, errw io.Writer) (code int, ok bool)
	// Schemas returns how many statements of each room's tables this program knows (db.Schemas), for which it may make a database.
	Schemas func(ctx context.Context) (map[string]int, error)
	Release string
	Log     zerolog.Logger
}

// ErrStopped is the error of Follow after a signal that ends the process.
var ErrStopped = errors.New("stopped while following")

// Follow follows until this hub leads. It returns nil, with the sockets that listen, if this server is not one of several hubs, or serves alone as long as the others could not begin (errAlone).
func Follow(c Config) (*Lead, systemd.Sockets, error) {
	state := layout.State(c.Config.StateDir)
	m, err := load(state)
	if err != nil || !m.Active {
		return nil, c.Sockets, err
	}
	lock, err := statedir.Take(state, "a corpus-git server that follows another hub", 0)
	if err != nil {
		return nil, c.Sockets, err
	}
	// A process that led and was replaced left what its deployments had started.
	if _, err := execx.Reap("/proc", state.Processes()); err != nil {
		c.Log.Warn().Err(err).Msg("end left-over processes")
	}
	if m.Founder && m.Begun {
		if err := member.Founded(state); err != nil {
			return nil, c.Sockets, errors.Join(err, lock.Release())
		}
		m.Founder = false
	}
	f := &follower{Config: c, member: m, state: state, given: c.Sockets != systemd.Sockets{}}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	ended := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() { f.listen(stop, ended) })
	out, err := f.run(ctx)
	close(ended)
	listening.Wait()
	if errors.Is(context.Cause(ctx), ErrStopped) {
		err = ErrStopped
		if out != nil {
			err = errors.Join(err, out.Close(context.Background()))
		}
	}
	return out, f.Sockets, errors.Join(err, lock.Release())
}

// listen handles the signals of the process.
func (f *follower) listen(stop context.CancelCauseFunc, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case sig := <-f.Signals:
			if sig != syscall.SIGHUP {
				f.Log.Info().Str("signal", sig.String()).Msg("stopping")
				stop(ErrStopped)
				return
			}
			if err := f.Reopen(); err != nil {
				f.Log.Error().Err(err).Msg("open the log again")
			}
		}
	}
}

// Alone returns fault.Refused if the state belongs to one of several hubs: a command that changed it without the server would make it differ from the others.
func Alone(state layout.State) error {
	m, err := load(state)
	if err == nil && m.Active {
		err = fault.New(fault.Refused, "", "this machine is a hub of several, and its server does not run").WithHint("start it:  corpus-git serve ; or use another hub:  %s", others(m))
	}
	return err
}

type follower struct {
	Config
	member membership
	state  layout.State
	given  bool
	mu     sync.Mutex
	log    *cluster.Cluster
	// trouble is why the log is not open.
	trouble string
	// known is what Schemas returned. The goroutine that follows alone uses it.
	known map[string]int
}

// opened returns the connection to the log, nil while there is none, and why.
func (f *follower) opened() (c *cluster.Cluster, trouble string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log, f.trouble
}

// run listens, and follows.
func (f *follower) run(ctx context.Context) (out *Lead, err error) {
	var opened []net.Listener
	defer func() {
		if err != nil {
			for _, l := range opened {
				_ = l.Close()
			}
		}
	}()
	for _, x := range []struct {
		at        *net.Listener
		key, addr string
	}{{&f.Sockets.SSH, "listen", f.Config.Config.Listen}, {&f.Sockets.HTTP, "http_listen", f.Config.Config.HTTP}} {
		if *x.at != nil || x.addr == "" {
			continue
		}
		if *x.at, err = systemd.Listen(nil, x.key, x.addr); err != nil {
			return nil, err
		}
		opened = append(opened, *x.at)
	}
	inner, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	end := func() {
		stop()
		serving.Wait()
	}
	defer end()
	for _, r := range []*relay.Relay{
		{Listener: f.Sockets.SSH, Header: true, Leader: f.leader(func(h cluster.Hub) string { return h.SSH }), Refuse: refuseSSH(f.state), Log: f.Log},
		{Listener: f.Sockets.HTTP, Leader: f.leader(func(h cluster.Hub) string { return h.HTTP }), Refuse: refuseHTTP(f.Config.Config), Log: f.Log},
	} {
		if r.Listener != nil {
			serving.Go(func() { r.Run(inner) })
		}
	}
	server, err := control.Listen(f.state.Socket(), f.answer, f.Log)
	if err != nil {
		return nil, statedir.Error(f.state, err)
	}
	serving.Go(func() {
		if err := server.Serve(inner); err != nil {
			f.Log.Error().Err(err).Msg("control socket")
		}
	})
	defer func() { _ = server.Close() }()
	if err := f.Following(f.Sockets.SSH, f.Sockets.HTTP); err != nil {
		return nil, err
	}
	serving.Go(func() { f.refresh(inner) })
	l, err := f.follow(inner)
	if errors.Is(err, errAlone) {
		f.Log.Warn().Str("hub", f.member.Self.Name).Err(err).Msg("this hub serves alone, as before the others joined; start the NATS servers of all hubs, here again, and then restart this hub")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f.Log.Info().Str("hub", f.member.Self.Name).Uint64("epoch", l.leader.Epoch()).Msg("this hub leads")
	return l, nil
}

// refreshEvery is how often a follower looks whether the list of hubs has changed.
const refreshEvery = 2 * time.Second

// refresh gives the NATS server beside this hub its new configuration when a hub was added or removed.
func (f *follower) refresh(ctx context.Context) {
	for said := ""; ; {
		text := ""
		if _, err := member.Refresh(ctx, f.state); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != said && text != "" {
			f.Log.Warn().Str("error", text).Msg("the NATS server beside this hub does not have the current list of hubs; restart it")
		}
		said = text
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshEvery):
		}
	}
}

// follow returns when this hub leads.
func (f *follower) follow(ctx context.Context) (_ *Lead, err error) {
	m := f.member
	c, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.log = c
	f.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if _, err = c.Follow(ctx); err != nil {
		return nil, err
	}
	if err = member.Founded(f.state); err != nil {
		return nil, err
	}
	leader, err := c.Lead(ctx)
	if err != nil {
		return nil, err
	}
	return &Lead{log: c, leader: leader, member: m, state: f.state, given: f.given, logger: f.Log}, nil
}

const (
	// openRetry is the pause between attempts to reach the NATS servers, and openTime limits one.
	openRetry, openTime = time.Second, 8 * time.Second
	// founding is how long the hub whose state is the first one waits for NATS servers that form a cluster, before it serves alone.
	founding = 30 * time.Second
)

// errAlone means that the hubs never had a state in common: the others have joined, and this one has not led yet. Until it leads it can serve alone, since no other hub can lead before one has copied
// this one's state.
var errAlone = errors.New("the NATS servers of the hubs do not form a cluster")

// alone returns errAlone if this hub need not wait for the NATS servers, because of what.
func (f *follower) alone(waited time.Duration, what error) error {
	m := f.member
	if !m.Founder || m.Begun {
		return nil
	}
	if clustered, err := member.Clustered(f.state); err == nil && !clustered {
		return fmt.Errorf("%w: the one beside this hub runs with the configuration for one hub", errAlone)
	}
	if waited > founding && what != nil {
		return fmt.Errorf("%w: %w", errAlone, what)
	}
	return nil
}

// open opens the log, as soon as enough of the NATS servers respond.
func (f *follower) open(ctx context.Context) (*cluster.Cluster, error) {
	m := f.member
	if err := f.alone(0, nil); err != nil {
		return nil, err
	}
	begun := time.Now()
	for said := ""; ; {
		connect, err := member.Connect(f.state)
		if err != nil {
			return nil, err
		}
		attempt, cancel := context.WithTimeout(ctx, openTime)
		c, err := cluster.Open(attempt, cluster.Config{
			Release: f.Release, Self: m.Self, Hubs: func() ([]cluster.Hub, error) { return known(f.state) }, Founder: m.Founder, Root: layout.Root(f.Config.Config.Root), State: f.state, Log: f.Log.With().Str("part", "hubs").Logger(),
			Connect: connect, Free: f.logSpace, MayLead: f.mayLead,
		})
		cancel()
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		f.mu.Lock()
		f.trouble = strings.ReplaceAll(err.Error(), "\n", ": ")
		f.mu.Unlock()
		if alone := f.alone(time.Since(begun), err); alone != nil {
			return nil, alone
		}
		if kind := fault.KindOf(err); kind == fault.Usage || kind == fault.Refused {
			return nil, err
		}
		if err.Error() != said {
			said = err.Error()
			f.Log.Warn().Err(err).Msg("the NATS servers of the hubs are not reached; trying again")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(openRetry):
		}
	}
}

// logSpace returns how much space is left where the NATS server beside this hub stores the log, in bytes.
func (f *follower) logSpace() (int64, error) {
	if _, err := os.Stat(f.state.JetStream()); err != nil {
		return 0, err
	}
	return status.Free(f.state.JetStream())
}

// leader returns an address of the hub that leads.
func (f *follower) leader(address func(cluster.Hub) string) func() (string, error) {
	return func() (string, error) {
		c, _ := f.opened()
		if c == nil {
			return "", relay.ErrNone
		}
		h, _, ok := c.Leader()
		if !ok || h.Name == f.member.Self.Name {
			return "", relay.ErrNone
		}
		if address(h) == "" {
			return "", noAddress(h.Name)
		}
		return address(h), nil
	}
}

// answer runs a command over the control socket.
func (f *follower) answer(ctx context.Context, _ control.Peer, q control.Request, _ io.Reader, stdout, stderr io.Writer) int {
	c, trouble := f.opened()
	if f.Answer != nil {
		if code, ok := f.Answer(ctx, c, trouble, q.Argv, stdout, stderr); ok {
			return code
		}
	}
	e := fault.New(fault.Busy, "", "this hub follows, and no hub leads at the moment").WithHint("try again in a few seconds;  corpus-git hub list  shows the hubs")
	if c == nil {
		e = fault.New(fault.Busy, "", "this hub waits for the NATS servers of the hubs: %s", cmp.Or(trouble, "it has just started")).WithHint("two of the three have to run;  corpus-git hub list  shows more")
	} else if h, _, ok := c.Leader(); ok {
		e = fault.New(fault.Refused, "", "this hub follows %s", h.Name).WithHint("run it there, or over ssh:  ssh -p %s deploy@%s …", port(h.SSH), host(h.SSH))
	}
	_, _ = fmt.Fprintf(stderr, "error: %s\nhint: %s\n", e, fault.HintOf(e))
	return fault.ExitCode(e)
}

// others returns the ssh addresses of the other hubs.
func others(m membership) string {
	var out []string
	for _, h := range m.Hubs {
		if h.Name != m.Self.Name {
			out = append(out, h.SSH)
		}
	}
	return strings.Join(out, ", ")
}

func host(at string) string { h, _, _ := net.SplitHostPort(at); return h }
func port(at string) string { _, p, _ := net.SplitHostPort(at); return p }
