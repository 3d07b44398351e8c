package app

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/agents"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/cmd/corpus-git/hostkeys"
	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/cmd/corpus-git/limits"
	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/systemd"
	"corpus-git/cmd/corpus-git/verbs"
	hubverbs "corpus-git/cmd/corpus-git/verbs/hubs"
	"corpus-git/fleet/broker"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/memory"
	"corpus-git/layout"
	"corpus-git/pipeline/recent"
	"corpus-git/pipeline/retention"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/status"
	"corpus-git/receive"
	"corpus-git/receive/sshd"
	"corpus-git/signals"
	"corpus-git/web"
	"corpus-git/web/api"
	"corpus-git/web/pages"
	"corpus-git/web/traces"
)

// server is a running server.
type server struct {
	*core
	load    func() (*config.Config, error) // reads the configuration again
	level   *serverlog.Level
	service atomic.Pointer[receive.Service]
	ssh     *sshd.Server
	control *control.Server
	web     *web.Server
	sshAddr net.Listener
	webAddr net.Listener
	broker  *broker.Broker // of agents over NATS; nil if there is none

	counters *web.Metrics
	traces   *traces.Exporter
	serving  sync.WaitGroup
	// stop ends requests over the socket.
	stop context.CancelFunc
}

// Serve handles one ssh session, with the service of the current configuration.
func (s *server) Serve(ctx context.Context, sess *sshd.Session) int {
	return s.service.Load().Serve(ctx, sess)
}

// Run implements receive.Commands with the verbs.
func (s *server) Run(ctx context.Context, who access.Identity, argv []string, stdin io.Reader, stdout, stderr io.Writer, term sshd.Terminal) int {
	defer s.lead.ShareAfter(argv)
	return verbs.Run(ctx, s.backend(nil), verbs.Caller{Identity: who, Remote: true, Term: verbs.Terminal{Colour: term.Colour, Width: term.Columns}, Screen: term.Screen}, argv, stdin, stdout, stderr)
}

// apiRequest runs a verb for an HTTP request.
func (s *server) apiRequest(ctx context.Context, who access.Identity, argv []string, check func() error, stdin io.Reader, stdout, stderr io.Writer) int {
	defer s.lead.ShareAfter(argv)
	return verbs.Run(ctx, s.backend(check), verbs.Caller{Identity: who, Remote: true, Program: true}, argv, stdin, stdout, stderr)
}

// request runs a verb for a user of this machine, over the socket.
func (s *server) request(ctx context.Context, p control.Peer, q control.Request, stdin io.Reader, stdout, stderr io.Writer) int {
	if q.Receive != "" {
		return s.service.Load().ReceiveAt(ctx, access.Local(p.User), q.Receive, q.Check, stdin, stdout, stderr)
	}
	defer s.lead.ShareAfter(q.Argv)
	return verbs.Run(ctx, s.backend(nil), verbs.Caller{Identity: access.Local(p.User), Term: verbs.Terminal{Colour: q.Colour, Width: q.Width}, Screen: q.Screen(stdin, stdout)}, q.Argv, stdin, stdout, stderr)
}

// start starts a server: the state, recovery, then the listeners; unfinished deployments are ended in the background. After an error nothing is left running.
func start(ctx context.Context, cfg *config.Config, env []string, log zerolog.Logger, level *serverlog.Level, load func() (*config.Config, error)) (*server, error) {
	return startWith(ctx, cfg, env, log, level, load, testHooks{})
}

// testHooks are hooks for tests; see Process.
type testHooks struct {
	boundary func(point string)
	boot     string
	sockets  systemd.Sockets
	lead     *hubs.Lead
	// agent: nothing listens but the control socket.
	agent bool
}

// startWith is start with testHooks.
func startWith(ctx context.Context, cfg *config.Config, env []string, log zerolog.Logger, level *serverlog.Level, load func() (*config.Config, error), with testHooks) (s *server, err error) {
	counters := web.NewMetrics()
	c, err := openCore(ctx, options{cfg: cfg, log: log, env: env, who: "a corpus-git server", onEnd: func(r project.Record) { counters.Ended(r); s.traces.Ended(r) }, boundary: with.boundary, boot: with.boot, lead: with.lead})
	if err != nil {
		return nil, err
	}
	c.serves, c.nodes.Started = true, time.Now()
	s = &server{core: c, load: load, level: level, counters: counters}
	s.traces = s.newTraces()
	begun := s
	defer func() {
		if err != nil {
			begun.abandon() // s is nil by now
		}
	}()
	for _, w := range cfg.Warnings {
		log.Warn().Msg(w)
	}
	keys, err := hostKeys(c.state, log)
	if err != nil {
		return nil, err
	}
	if err := c.syncAdmins(ctx, cfg.AdminKeys); err != nil {
		return nil, err
	}
	if err := c.access.SetTrust(cfg.CAKeys, cfg.RevokedKeys); err != nil {
		return nil, err
	}
	if err := c.setDirectory(cfg.LDAP); err != nil {
		return nil, err
	}
	if err := c.checkOut(ctx); err != nil {
		return nil, err
	}
	left, err := c.takeUp(ctx)
	if err != nil {
		log.Error().Err(err).Msg("recovery could not begin")
	}
	if !with.agent {
		if s.sshAddr, err = systemd.Listen(with.sockets.SSH, "listen", cfg.Listen); err != nil {
			return nil, err
		}
		s.sshAddr = c.lead.Accepting(s.sshAddr)
		if a, ok := s.sshAddr.Addr().(*net.TCPAddr); ok {
			c.port.Store(int64(a.Port))
		}
	}
	s.service.Store(s.newService(cfg))
	s.ssh = s.newSSH(cfg, keys)
	if !with.agent && (cfg.HTTP != "" || with.sockets.HTTP != nil) {
		if err := s.openWeb(with.sockets.HTTP, cfg, counters); err != nil {
			return nil, err
		}
	}
	if !with.agent {
		c.tools.Signals = addresses{c.signals, s}
	}
	// Whoever reaches the socket may read the file.
	if err := statedir.WriteAddresses(s.state, s.sshAddr, s.webAddr); err != nil {
		return nil, err
	}
	if s.control, err = control.Listen(c.state.Socket(), s.request, log); err != nil {
		return nil, statedir.Error(c.state, err)
	}
	if !with.agent {
		if s.broker, err = agents.Broker(cfg, s.state, s.access, s.ssh, s.Run, log); err != nil {
			return nil, err
		}
	}
	s.finishLater(left)
	s.open()
	s.upkeep.Start()
	s.converge.Start()
	s.keys.Start()
	s.register.Start()
	if err := s.watch.Start(ctx); err != nil {
		log.Error().Err(err).Msg("periodic checks do not run")
	}
	return s, nil
}

// newSSH creates the SSH server, which uses the service of the current configuration.
func (s *server) newSSH(cfg *config.Config, keys sshd.HostKeys) *sshd.Server {
	out := &sshd.Server{
		HostKeys: keys.Current, Keys: s.access, Handler: s, Version: Build().Release, Log: s.log.With().Str("part", "ssh").Logger(),
		Refuse: func(sess *sshd.Session, err error) int { return s.service.Load().Refuse(sess, err) },
		Limits: limits.SSH(cfg.Limits),
		RefusedLogin: func(from, user, fp string) {
			s.counters.RefusedLogin()
			s.service.Load().RefusedLogin(from, user, fp)
		},
		LoggedIn: func(id access.Identity) {
			s.counters.Session()
			s.service.Load().LoggedIn(id)
		},
	}
	out.SetHostKeys(keys.Current, keys.Next)
	s.hostKeys.Serve = out.SetHostKeys
	return out
}

// hostKeys reads the server's host keys, and generates missing ones.
func hostKeys(state layout.State, log zerolog.Logger) (sshd.HostKeys, error) {
	keys, made, err := hostkeys.Files(state).Load()
	for _, path := range made {
		at := slices.Index([]string{state.HostKey(), state.HostKeyECDSA()}, path)
		log.Info().Str("file", path).Str("fingerprint", access.Fingerprint(keys.Current[at].PublicKey())).Msg("created an SSH host key")
	}
	return keys, err
}

// auditCounter is the audit log; it counts refusals.
type auditCounter struct {
	*audit.Log
	counters *web.Metrics
}

// RecordAll implements receive.Audit.
func (a auditCounter) RecordAll(ctx context.Context, all []audit.Entry) error {
	for _, e := range all {
		a.counters.Audited(e)
	}
	return a.Log.RecordAll(ctx, all)
}

func (s *server) openWeb(given net.Listener, cfg *config.Config, m *web.Metrics) (err error) {
	if s.webAddr, err = systemd.Listen(given, "http_listen", cfg.HTTP); err != nil {
		return err
	}
	token, err := s.webToken()
	if err != nil {
		return err
	}
	sessions, err := web.OpenSessions(context.Background(), s.db, time.Now)
	if err != nil {
		return err
	}
	var certificate *web.Certificate
	if cfg.HTTPCert != "" || cfg.HTTPKey != "" {
		if certificate, err = web.LoadCertificate(cfg.HTTPCert, cfg.HTTPKey); err != nil {
			return fault.New(fault.Usage, "http_tls_cert", "%w", err)
		}
	}
	source := s.status()
	source.Remember, source.Now = 30*time.Second, time.Now
	rest, err := api.Open(context.Background(), api.Config{Run: s.apiRequest, DB: s.db, Rate: float64(cfg.HTTPRate), Release: Build().Release, Now: time.Now,
		Log: s.log.With().Str("part", "api").Logger()})
	if err != nil {
		return err
	}
	authority, err := s.openACME(cfg)
	if err != nil {
		return err
	}
	var others func(context.Context) (status.Hubs, error)
	if s.hubs.Cluster != nil {
		others = func(ctx context.Context) (status.Hubs, error) {
			return hubverbs.Document(ctx, s.state, s.hubs.Cluster, "", time.Now())
		}
	}
	s.web = &web.Server{
		Hubs:      others,
		Passwords: s.access, Certificate: certificate, ACME: authority, Metrics: m, Outbox: s.deliveries, Token: token, Shared: func() { s.lead.Share() }, Sessions: sessions, OpenMetrics: cfg.OpenMetrics, Signals: s.changes.Signals(s.signals), Audit: s.audit, Proxies: networks(cfg.HTTPProxies), Forwarded: cfg.HTTPHeader == "forwarded",
		Config: pages.Config{
			Status: source, Runs: s.pipeline, Recent: recent.Table{DB: s.db}, Units: s.units().Shown, Checks: s.watch, Access: s.access, API: rest, Run: s.apiRequest, Approvals: s.pipeline.Approvals,
			Events: s.core.backend(true).Events, Disks: []string{string(s.root), string(s.state)}, Build: Build(), Host: s.hostName(), Now: time.Now, Log: s.log.With().Str("part", "http").Logger(),
			Subjects: func(ctx context.Context, name project.Name, repo project.Repo, commits []project.Commit) (map[project.Commit]project.Subject, error) {
				out, err := s.repos.Open(name, repo).Subjects(ctx, commits)
				hide := s.pipeline.Redactor(ctx, name)
				for c, said := range out {
					out[c] = project.Subject{Text: hide.String(said.Text), Author: hide.String(said.Author)}
				}
				return out, err
			},
			Tasks: func(name project.Name) ([]string, error) {
				return recipe.TaskNames(os.DirFS(filepath.Join(s.root.Project(name.String()).Live(), layout.SaltDir)))
			},
		},
	}
	return nil
}

// webLogin creates a link that logs a browser in once.
func (s *server) webLogin(ctx context.Context, who access.Identity) (string, error) {
	if s.web == nil {
		return "", fault.New(fault.Refused, "web login", "the web pages are turned off").WithHint("set  http_listen: 127.0.0.1:8080  in its configuration, and restart it")
	}
	ticket, err := s.web.Sessions.Ticket(ctx, who)
	return s.webURL(s.webAddr.Addr().String()) + "/login?ticket=" + ticket, err
}

// addresses creates the addresses of signals.
type addresses struct {
	*signals.Store
	server *server
}

// Address implements waiting.Signals.
func (a addresses) Address(id project.ID, wait, name string) (url, secret string) {
	if a.server.web != nil {
		url = a.server.webURL(a.server.webAddr.Addr().String()) + a.Path(id, wait, name)
	}
	return url, a.Secret(id, wait, name)
}

// backend returns the backend of core with what only a server can do. check is the condition of the request's changes, nil for none.
func (s *server) backend(check func() error) *verbs.Backend {
	b := s.changes.Backend(s.core.backend(true), check)
	b.WebLogin = s.webLogin
	if s.broker != nil {
		b.NATS = s.broker.Address()
	}
	return b
}

// open starts accepting connections.
func (s *server) open() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	if s.sshAddr != nil {
		s.serving.Go(func() {
			if err := s.ssh.Serve(s.sshAddr); err != nil && !errors.Is(err, sshd.ErrClosed) {
				s.log.Error().Err(err).Msg("ssh server")
			}
		})
	}
	s.serving.Go(func() {
		if err := s.control.Serve(ctx); err != nil {
			s.log.Error().Err(err).Msg("control socket")
		}
	})
	if s.web != nil {
		s.serving.Go(func() {
			if err := s.web.Serve(s.webAddr); err != nil {
				s.log.Error().Err(err).Msg("http server")
			}
		})
	}
	s.trash.Go(func() { s.emptyTrash(ctx) })
	s.serving.Go(func() { s.maintainer.Run(ctx) })
	s.serving.Go(func() { s.notifier.Run(ctx) })
	s.serving.Go(func() { s.traces.Run(ctx) })
	s.serving.Go(func() { memory.Return(ctx) })
	s.serving.Go(func() {
		retention.Pruner{Limits: func() config.History { return s.cfg.Load().History }, Projects: s.everyProject, Prune: s.pipeline.PruneHistory, Audit: s.audit.Prune, Notifications: s.outbox.Prune, Now: time.Now, Log: s.log}.Run(ctx)
	})
}

// newTraces returns the exporter of traces of deployments, if the configuration sets one.
func (s *server) newTraces() *traces.Exporter {
	return traces.New(traces.Config{
		Settings: func() config.Traces { return s.cfg.Load().Traces }, Events: s.core.backend(true).Events, Host: s.hostName(), Release: Build().Release,
		Log: s.log.With().Str("part", "traces").Logger(),
	})
}

// abandon undoes a start that failed.
func (s *server) abandon() {
	for _, l := range []net.Listener{s.sshAddr, s.webAddr} {
		if l != nil {
			_ = l.Close()
		}
	}
	if s.control != nil {
		_ = s.control.Close()
	}
	if s.web != nil {
		_ = s.web.Close()
	}
	_ = os.Remove(s.state.Addresses()) // what is left is replaced by the next start
	_ = s.core.close()
}

// newService creates the service for sessions from a configuration.
func (s *server) newService(cfg *config.Config) *receive.Service {
	l := cfg.Limits
	return &receive.Service{
		Root: s.root, Repos: s.repos, Access: s.access, Projects: s.changes.Lookup(lookup{s.core}), Deployer: s.changes.Deployer(s.pipeline), Commands: s, Audit: auditCounter{s.audit, s.counters},
		Find: func(ctx context.Context, name project.Name, prefix string) (project.ID, error) {
			r, err := s.pipeline.Find(ctx, name, prefix)
			return r.ID, err
		},
		Expect:       func(ctx context.Context, n project.Name) func() { return s.archive(n).Look(ctx, false) },
		Waiting:      s.pipeline.Requested,
		Prefix:       s.sshCommand,
		Signatures:   s.verifier(),
		CreateOnPush: cfg.CreateOnPush, Visible: s.visible, Version: Build().Release, NewID: project.NewID, Now: time.Now, Log: s.log.With().Str("part", "receive").Logger(),
		Limits: limits.Push(l), UploadLimits: limits.Upload(l), PackLimits: limits.Pack(l, s.memory),
		ProgressAfter: cfg.Progress, Shared: func(n project.Name) { s.lead.Share(n) },
	}
}

// shutdown refuses new deployments, waits up to grace for running ones, and then closes the listeners. When now ends, so does the grace period.
func (s *server) shutdown(now context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(now, grace)
	defer cancel()
	var errs []error
	s.log.Info().Stringer("grace", grace).Msg("shutting down: running deployments may finish, new ones are refused")
	s.converge.Stop()
	s.keys.Stop()
	s.register.Stop()
	// The listeners stay open meanwhile, so followers see the end, and pushes are told to try again.
	if err := s.pipeline.Shutdown(ctx); err != nil {
		s.log.Warn().Msg("running deployments were cancelled and rolled back: shutdown_grace expired, or a second signal was received")
	}
	if s.pipeline.Suspended() {
		s.clean.Store(false) // the next start continues what waits for signals
	}
	s.nodes.Detach()
	if s.broker != nil {
		s.broker.Close()
	}
	errs = append(errs, os.Remove(s.state.Addresses()), s.control.Close())
	last, cancel2 := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel2()
	if s.ssh.Shutdown(last) != nil {
		s.clean.Store(false) // a session was cut off, and may have left objects that it was receiving
	}
	s.stop()
	if s.web != nil {
		errs = append(errs, s.web.Close())
	}
	s.serving.Wait()
	return errors.Join(append(errs, s.core.close())...)
}
