package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/agents"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/cmd/corpus-git/doctor"
	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/cmd/corpus-git/resetperms"
	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/systemd"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/cmd/corpus-git/verbs/diagnose"
	hubverbs "corpus-git/cmd/corpus-git/verbs/hubs"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/config"
)

// Process is the program as the operating system started it.
type Process struct {
	Args           []string // without the program's name
	Environment    Environment
	Stdin          *os.File
	Stdout, Stderr *os.File
	// Boundary is called right after each entry of a journal (pipeline.Config.Boundary), with "upkeep …" by upkeep.Scheduler, and with "told" when background
	// work has been notified of the end of a deployment. The program leaves it nil; tests kill the process there, or wait for it. It must be safe for
	// concurrent use.
	Boundary func(point string)
	// Boot is an ID that differs after each boot of the machine; "" asks the kernel. Tests that simulate a power cut set it.
	Boot string
}

// Main runs the program and returns its exit status.
func Main(p Process) int {
	c := &command{Process: p, term: terminal(p.Stdout, p.Environment)}
	root := c.tree()
	root.SetArgs(p.Args)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.Execute()
	if err == nil {
		return c.exit
	}
	verbs.Report(p.Stderr, terminal(p.Stderr, p.Environment), err.Error(), fault.HintOf(err), err)
	return fault.ExitCode(err)
}

// terminal describes the terminal behind f.
func terminal(f *os.File, e Environment) verbs.Terminal {
	switch e.get("CORPUS_COLOR") {
	case "1", "always", "true", "yes", "on":
		return verbs.Terminal{Colour: true}
	}
	fd := int(f.Fd()) //nolint:gosec // a descriptor fits
	if !term.IsTerminal(fd) {
		return verbs.Terminal{}
	}
	w, _, err := term.GetSize(fd)
	if err != nil {
		w = 80
	}
	return verbs.Terminal{Width: w, Colour: e.get("NO_COLOR") == "" && e.get("TERM") != "dumb"}
}

// command is one run of the program.
type command struct {
	Process
	term verbs.Terminal
	exit int
	root string
	file string
}

// tree returns the verbs, which run here or in the server, and the commands that exist only on the machine.
func (c *command) tree() *cobra.Command {
	root := verbs.Describe()
	root.PersistentFlags().StringVar(&c.root, "root", "", "directory that holds projects/, salt/ and pillar/ (default: /srv for root, ./srv for others)")
	root.PersistentFlags().StringVar(&c.file, "config", "", "configuration file (default: "+DefaultConfig+" if it is there)")
	for _, sub := range root.Commands() {
		c.adopt(sub)
	}
	if b, _, err := root.Find([]string{"backup"}); err == nil {
		b.AddCommand(c.verifyCommand())
	}
	if n, _, err := root.Find([]string{"node"}); err == nil {
		n.AddCommand(c.nodeInitCommand())
	}
	if h, _, err := root.Find([]string{"hub"}); err == nil {
		h.AddCommand(c.hubJoinCommand(), c.hubAloneCommand())
	}
	root.CompletionOptions.DisableDefaultCmd = false
	root.AddCommand(c.serveCommand(), c.agentCommand(), c.remoteCommand(), c.demoCommand(), c.lintCommand(), c.importCommand(), c.initCommand(), c.skeletonsCommand(), c.mirrorCommand(), agents.NATSCommand(c.state, c.Stdout), c.containerCommand(), c.dnsCommand(), c.hookCommand(), c.restoreCommand(), docsCommand(), resetperms.Command(c.Stdout, untilInterrupted))
	return root
}

// adopt makes every verb run where the state is.
func (c *command) adopt(cmd *cobra.Command) {
	subs := cmd.Commands()
	for _, sub := range subs {
		c.adopt(sub)
	}
	if _, group := cmd.Annotations[verbs.Stateless]; len(subs) == 0 || !group { // host-key also runs itself
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.verb(cmd, args) }
		c.completes(cmd)
	}
}

func (c *command) settings(cmd *cobra.Command) settings {
	flags := config.GivenFlags(cmd.Flags())
	return settings{env: c.Environment, file: c.file, flags: flags}
}

// state returns the configured state directory.
func (c *command) state() (layout.State, error) {
	cfg, err := c.stateSettings().load()
	if err != nil {
		return "", err
	}
	return layout.State(cfg.StateDir), nil
}

// stateSettings returns the settings of a verb: of its flags only --root applies.
func (c *command) stateSettings() settings {
	flags := map[string]string{}
	if c.root != "" {
		flags["root"] = c.root
	}
	return settings{env: c.Environment, file: c.file, flags: flags}
}

// verb runs one verb: in the server that owns the state, or else in this process.
func (c *command) verb(cmd *cobra.Command, args []string) error {
	cfg, err := c.stateSettings().load()
	if err != nil {
		return err
	}
	argv, files, err := c.words(cmd, args)
	if err != nil {
		return err
	}
	defer files.close()
	ctx, stop := untilInterrupted()
	defer stop()
	c.exit, err = c.run(ctx, cmd, cfg, argv, files)
	return errors.Join(err, files.keep(c.exit == 0 && err == nil))
}

func (c *command) run(ctx context.Context, cmd *cobra.Command, cfg *config.Config, argv []string, f *streams) (int, error) {
	return c.runWith(ctx, cmd, cfg, argv, f, c.Stderr)
}

// runWith is run with another standard error.
func (c *command) runWith(ctx context.Context, cmd *cobra.Command, cfg *config.Config, argv []string, f *streams, errw io.Writer) (int, error) {
	state := layout.State(cfg.StateDir)
	if cmd.Annotations[verbs.Stateless] != "" {
		d := doctor.Doctor{Config: cfg, Env: c.Environment.Env, Addresses: listens}
		look := diagnose.Doctor{Inspect: d.Run, Relay: func(ctx context.Context, argv []string, out, errw io.Writer) (int, error) {
			server, err := control.Dial(state.Socket())
			if errors.Is(err, control.ErrNoServer) {
				return 0, fault.New(fault.Refused, "", "no server is running")
			} else if err != nil {
				return 0, statedir.Error(state, err)
			}
			defer server.Close()
			return server.Do(ctx, control.Request{Argv: argv, Colour: c.term.Colour, Width: c.term.Width}, strings.NewReader(""), out, errw)
		}}
		return verbs.Run(ctx, &verbs.Backend{Build: Build(), Doctor: look}, c.caller(), argv, f.in, f.out, errw), nil
	}
	server, err := control.Dial(state.Socket())
	switch {
	case err == nil:
		defer server.Close()
		screen, restore, err := c.screen(cmd)
		if err != nil {
			return 0, err
		}
		defer restore()
		q := control.Request{Argv: argv, Colour: c.term.Colour, Width: c.term.Width}
		if screen != nil {
			q.Terminal, q.Term, q.Sizes = &screen.Size, screen.Name, screen.sizes
		}
		code, err := server.Do(ctx, q, f.in, f.out, errw)
		if err != nil {
			return code, fault.New(fault.Internal, "", "%w", err).
				WithHint("its log is %s ; its next start recovers what was interrupted", state.ServerLog())
		}
		return code, nil
	case !errors.Is(err, control.ErrNoServer):
		return 0, statedir.Error(state, err)
	}
	if err := hubs.Alone(state); err != nil {
		return 0, err
	}
	if _, err := os.Stat(state.Path()); errors.Is(err, os.ErrNotExist) && cmd.Annotations[verbs.Creates] == "" {
		return 0, fault.New(fault.Refused, "", "%s does not exist yet", cfg.Root).
			WithHint("give the correct directory with --root, or create a first project:  corpus-git project create NAME")
	}
	core, err := openCore(ctx, options{cfg: cfg, log: quietLog(errw), env: c.Environment.Env, who: "the command  " + strings.Join(argv, " "), wait: lockWait, onEnd: func(project.Record) {}})
	if err != nil {
		return 0, err
	}
	who := c.caller()
	screen, restore, err := c.screen(cmd)
	if err == nil {
		if screen != nil {
			who.Screen = &screen.Terminal
		}
		defer restore()
	}
	code := fault.Internal.ExitCode()
	if err == nil {
		code = verbs.Run(ctx, core.backend(false), who, argv, f.in, f.out, errw)
	}
	if serr := core.pipeline.Shutdown(context.Background()); serr != nil {
		return code, errors.Join(err, serr)
	}
	return code, errors.Join(err, core.close())
}

func (c *command) caller() verbs.Caller {
	return verbs.Caller{Identity: access.Local(control.UserName(c.Environment.UID)), Term: c.term}
}

// words returns the command line for the server: files that it names are opened here, as their names are meaningless elsewhere, and become standard input or
// output.
func (c *command) words(cmd *cobra.Command, args []string) (argv []string, f *streams, err error) {
	f = &streams{out: c.Stdout, in: strings.NewReader("")}
	if cmd.Annotations[verbs.ReadsStdin] != "" {
		f.in = c.Stdin
		if file, from := cmd.Flags().Lookup("file"), cmd.Flags().Lookup("from"); file != nil && !file.Changed && (from == nil || !from.Changed) && term.IsTerminal(int(c.Stdin.Fd())) { //nolint:gosec // a descriptor fits
			fmt.Fprintln(c.Stderr, "paste the public key, then press Ctrl-D")
		}
	}
	argv = strings.Fields(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
	var ferr error
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		value := fl.Value.String()
		if list, ok := fl.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		switch {
		case fl.Name == "root" || fl.Name == "config":
			return
		case fl.Name == "file" && value != "-":
			value, ferr = "-", f.open(value)
		case fl.Name == verbs.ExportFlag && value != "-":
			value, ferr = "-", f.create(value)
		}
		argv = append(argv, "--"+fl.Name+"="+value)
	})
	if ferr != nil {
		return nil, nil, ferr
	}
	if cmd.Annotations[verbs.WritesFile] != "" && len(args) == 1 {
		if args[0] == "-" {
			err = c.toTerminal()
		} else {
			args, err = []string{"-"}, f.create(args[0])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return append(append(argv, "--"), args...), f, nil
}

// streams returns standard input and output, or the files that replace them.
type streams struct {
	in     io.Reader
	out    io.Writer
	opened *os.File
	made   *os.File
	name   string
}

func (f *streams) open(name string) (err error) {
	if f.opened, err = os.Open(name); err != nil {
		return fault.New(fault.Usage, "", "%w", err)
	}
	f.in = f.opened
	return nil
}

// create creates a file next to name, which replaces it on success.
func (f *streams) create(name string) (err error) {
	f.name = name
	if f.made, err = os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*"); err != nil {
		return fault.New(fault.Usage, "", "%w", err)
	}
	f.out = f.made
	return nil
}

func (f *streams) close() {
	if f.opened != nil {
		_ = f.opened.Close()
	}
}

// keep completes a written file.
func (f *streams) keep(good bool) error {
	if f.made == nil {
		return nil
	}
	err := errors.Join(f.made.Sync(), f.made.Close())
	if good && err == nil {
		return vfs.RenameDurable(vfs.OS{}, f.made.Name(), f.name)
	}
	return errors.Join(err, os.Remove(f.made.Name()))
}

// lockWait is how long a command waits for another one that holds the state.
const lockWait = 3 * time.Second

// untilInterrupted returns a context that ends with SIGINT or SIGTERM; stop restores the default handling.
func untilInterrupted() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

func quietLog(w io.Writer) zerolog.Logger {
	return zerolog.New(zerolog.ConsoleWriter{Out: w, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}}).Level(zerolog.WarnLevel)
}

func (c *command) serveCommand() *cobra.Command {
	var printConfig bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve pushes over SSH",
		Long: "Locks the state, recovers from a crash, and then listens. The line  listening on ADDRESS (ssh)  on\n" +
			"standard output means that it is ready; <state_dir>/addr.json contains the addresses. SIGTERM lets running\n" +
			"deployments finish within shutdown_grace, then cancels them and rolls back; a second SIGTERM ends the grace period.\nSIGHUP reloads the configuration and reopens the log file.\n" +
			"Supports sd_notify (ready, reloading, stopping, watchdog) and socket activation\n" +
			"(socket names: ssh, http).",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.New(fault.Usage, "", "unexpected argument %q", args[0]).WithHint("usage:  %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := c.settings(cmd)
			cfg, err := set.load()
			if err != nil {
				return err
			}
			if printConfig {
				_, err := io.WriteString(c.Stdout, cfg.Print())
				for _, w := range cfg.Warnings {
					fmt.Fprintln(c.Stderr, "warning: "+w)
				}
				return err
			}
			return c.serve(cfg, set.load)
		},
	}
	cmd.Flags().StringVar(&c.root, "root", "", "directory that holds projects/, salt/ and pillar/ (default: /srv for root, ./srv for others)")
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the configuration that results from file, environment and flags, with the source of each value")
	config.AddFlags(cmd.Flags())
	return cmd
}

// rollbackTime is how long cancelled deployments may take to roll back, after the grace period, before a service manager may kill the server.
const rollbackTime = 20 * time.Minute

// serve runs a server until it is told to stop.
func (c *command) serve(cfg *config.Config, load func() (*config.Config, error)) error {
	log, level, file, err := serverlog.Open(cfg, c.Stderr, terminal(c.Stderr, c.Environment).Colour)
	if err != nil {
		return err
	}
	defer file.Close()
	signals := make(chan os.Signal, 4)
	// Signals are caught until the process exits: a late second one must not turn a clean shutdown into a kill.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	given, err := systemd.Inherited()
	if err != nil {
		return err
	}
	service := systemd.Manager{Log: log}
	lead, sockets, err := hubs.Follow(hubs.Config{
		Config: cfg, Sockets: given, Signals: signals, Reopen: file.Reopen, Answer: hubverbs.Answer(layout.State(cfg.StateDir)), Release: Build().Release, Log: log, Schemas: schemas(cfg),
		Following: func(ssh, web net.Listener) error {
			statedir.Announce(c.Stdout, ssh, web)
			service.Ready("following; listening on " + ssh.Addr().String())
			return statedir.WriteAddresses(layout.State(cfg.StateDir), ssh, web)
		},
	})
	if errors.Is(err, hubs.ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := startWith(context.Background(), cfg, c.Environment.Env, log, level, load, testHooks{boundary: c.Boundary, boot: c.Boot, sockets: sockets, lead: lead})
	if err != nil {
		return err
	}
	statedir.Announce(c.Stdout, s.sshAddr, s.webAddr)
	service.Ready("listening on " + s.sshAddr.Addr().String())
	watched, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	go service.Watchdog(watched, s.state)
	log.Info().Str("root", cfg.Root).Str("state", cfg.StateDir).Str("release", Build().Release).Msg("serving")
	lead.UntilLost(s.ssh.End)
	for sig := range signals {
		if sig == syscall.SIGHUP {
			service.Reloading()
			if err := file.Reopen(); err != nil {
				log.Error().Err(err).Msg("open the log again")
			}
			s.reload(context.Background())
			service.Ready("listening on " + s.sshAddr.Addr().String())
			continue
		}
		service.Stopping(s.cfg.Load().Grace + rollbackTime)
		log.Info().Str("signal", sig.String()).Stringer("grace", s.cfg.Load().Grace).Msg("stopping: new deployments are refused, running ones can finish")
		break
	}
	now, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for sig := range signals {
			if sig != syscall.SIGHUP {
				cancel()
			}
		}
	}()
	err = s.shutdown(now, s.cfg.Load().Grace)
	log.Info().Msg("stopped")
	return err
}
