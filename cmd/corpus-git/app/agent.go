package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/agents"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project/config"
	"corpus-git/remote"
)

// agentIdle is how long an idle agent keeps running.
const agentIdle = 10 * time.Minute

// agentStart is the timeout for the start of an agent, which includes recovery after a crash.
const agentStart = time.Minute

func (c *command) agentCommand() *cobra.Command {
	var detach, session, look bool
	var join agents.Joining
	idle := agentIdle
	cmd := &cobra.Command{
		Use: "agent", Short: "Run deployments without listening for connections",
		Long: "A server without listeners: it owns the state, recovers from crashes, and runs deployments for commands on this machine, such as\n" +
			"bundle apply , independently of their connections. It exits after --idle without a\n" +
			"request or a deployment. --detach starts one in the background, unless a server or an agent is already running, and returns when it is ready;\n" +
			"its log is agent.log in state_dir.\n\n" +
			"With --join and a token from  node token , it joins that hub with its own key. Now and at each later start it keeps a connection to the hub,\n" +
			"over which the hub deploys; it does not exit when idle then. It does not listen on the network.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set := c.stateSettings()
			cfg, err := set.load()
			if err != nil {
				return err
			}
			if state := layout.State(cfg.StateDir); session && look && !made(state) {
				return json.NewEncoder(c.Stdout).Encode(remote.Frame{Hello: agents.New(Build().Release)})
			}
			if (detach || session) && join.Given() {
				err = join.First(context.Background(), layout.State(cfg.StateDir), session, owned, c.Stdout)
			}
			if (detach || session) && err == nil {
				err = c.detachAgent(cfg, idle)
			}
			if session && err == nil {
				err = c.session(cfg)
			}
			if detach || session || err != nil {
				return err
			}
			state := layout.State(cfg.StateDir)
			run := func(up *agents.Upgrading) (<-chan os.Signal, error) { return c.agent(cfg, set.load, idle, join, up) }
			if !join.Dials(state) {
				_, err := run(&agents.Upgrading{})
				return err
			}
			return agents.Dialling(state.AgentPrograms(), c.Args, c.Environment.Env, c.Stdout, c.Stderr, run)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "start it in the background")
	cmd.Flags().BoolVar(&session, "session", false, "start it in the background, and serve requests of another corpus-git on standard input")
	cmd.Flags().BoolVar(&look, "look", false, "with --session: end at once where nothing was deployed yet, and make nothing there")
	cmd.Flags().StringVar(&join.Token, "join", "", "join a hub as a node with this `TOKEN`, and connect to it from now on")
	cmd.Flags().StringVar(&join.File, "join-file", "", "the same, with the token in `FILE`, as other users can see arguments")
	cmd.Flags().DurationVar(&idle, "idle", idle, "exit after being idle for this long; 0 means never")
	return cmd
}

// agent runs an agent until it is idle, stopped, or replaced. Signals are passed on to callers that ask for them.
func (c *command) agent(cfg *config.Config, load func() (*config.Config, error), idle time.Duration, join agents.Joining, up *agents.Upgrading) (<-chan os.Signal, error) {
	state := layout.State(cfg.StateDir)
	hub, key, err := join.Hub(context.Background(), state, owned)
	if err != nil {
		if fault.KindOf(err) == fault.Internal {
			err = statedir.Error(state, err)
		}
		return nil, err
	}
	log, level, file, err := serverlog.Open(cfg, c.Stderr, false)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGHUP) // the connection that started it has ended
	s, err := startWith(context.Background(), cfg, c.Environment.Env, log, level, load, testHooks{boundary: c.Boundary, boot: c.Boot, agent: true})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.Stdout, "answering on %s\n", s.state.Socket())
	log.Info().Str("root", cfg.Root).Str("release", Build().Release).Stringer("idle", idle).Msg("agent started")
	dialling, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	if hub != nil {
		idle = 0 // the hub may call at any time
		if err := s.dialIn(dialling, c, hub, key, up); err != nil {
			hangUp()
			return nil, errors.Join(err, s.shutdown(context.Background(), cfg.Grace))
		}
		fmt.Fprintf(c.Stdout, "joined %s as %s\n", hub.Address, hub.Node)
	}
	since := time.Now()
	var tick <-chan time.Time
	if idle > 0 {
		t := time.NewTicker(max(min(idle/10, time.Second), 10*time.Millisecond))
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case sig := <-signals:
			log.Info().Str("signal", sig.String()).Msg("stopping")
			now, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				<-signals
				cancel()
			}()
			hangUp()
			return signals, s.shutdown(now, cfg.Grace)
		case <-up.Taken:
			hangUp()
			return signals, s.shutdown(context.Background(), cfg.Grace)
		case <-tick:
			switch {
			case s.pipeline.Busy() > 0 || s.control.Active() > 0:
				since = time.Now()
			case time.Since(since) >= idle:
				log.Info().Msg("idle: stopping")
				return signals, s.shutdown(context.Background(), cfg.Grace)
			}
		}
	}
}

// session connects standard input and output to the owner of the state.
func (c *command) session(cfg *config.Config) error {
	argv := []string{"bundle", "session"}
	cmd, _, err := verbs.Describe().Find(argv)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted()
	defer stop()
	c.exit, err = c.runWith(ctx, cmd, cfg, argv, &streams{in: c.Stdin, out: c.Stdout}, c.Stderr)
	return err
}

// detachAgent starts an agent in the background if nothing owns the state.
func (c *command) detachAgent(cfg *config.Config, idle time.Duration) error {
	state := layout.State(cfg.StateDir)
	if owned(state) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.Root, 0o755); err != nil {
		return fault.New(fault.Internal, "make the root", "%w", err)
	}
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return statedir.Error(state, err)
	}
	path := filepath.Join(state.Path(), "agent.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return statedir.Error(state, err)
	}
	defer log.Close()
	args := []string{"agent", "--root=" + cfg.Root, "--idle=" + idle.String()}
	if c.file != "" {
		args = append(args, "--config="+c.file)
	}
	p := exec.Command(program, args...)
	p.Env, p.Dir, p.Stdout, p.Stderr = c.Environment.Env, "/", log, log
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	limit := time.After(agentStart)
	for {
		select {
		case err := <-ended:
			if owned(state) {
				return nil // another one was faster
			}
			return fault.New(fault.Failed, "agent", "it exited immediately: %s", said(path, err)).WithHint("its log is %s", path)
		case <-limit:
			return fault.New(fault.Busy, "agent", "no response after %s", agentStart).WithHint("its log is %s", path)
		case <-time.After(20 * time.Millisecond):
			if owned(state) {
				return nil
			}
		}
	}
}

// made reports whether there is a state: something was deployed on this machine, or a server was started.
func made(state layout.State) bool {
	_, err := os.Stat(state.Path())
	return err == nil
}

// owned reports whether a server or an agent owns the state.
func owned(state layout.State) bool {
	server, err := control.Dial(state.Socket())
	if err == nil {
		_ = server.Close()
	}
	return err == nil
}

// maxSaid is the number of bytes of a log that are read for a message.
const maxSaid = 4 << 10

// said returns the first line of a log, or the error.
func said(path string, err error) string {
	f, oerr := os.Open(path)
	if oerr == nil {
		defer f.Close()
		text, rerr := io.ReadAll(io.LimitReader(f, maxSaid))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if rerr == nil && lines[0] != "" {
			return strings.TrimPrefix(lines[0], "error: ")
		}
	}
	return errors.Join(err, oerr).Error()
}
