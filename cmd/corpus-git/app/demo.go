package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/demo"
	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/project/config"
)

func (c *command) demoCommand() *cobra.Command {
	var exit bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show it all on this machine: serve, create a project, push, fail, roll back",
		Long: "Serves on a free port of 127.0.0.1 under ./srv/demo (or --root), makes a key, creates a project and\n" +
			"pushes a sample to it with the real git and ssh: once so that it goes live, once to its pillar, and once\n" +
			"so that it fails and is rolled back. Then it stays, until Ctrl-C, for pushes of your own.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.demo(exit) },
	}
	cmd.Flags().BoolVar(&exit, "exit", false, "end when all was shown, with status 0 only if everything worked")
	return cmd
}

func (c *command) demo(exit bool) (err error) {
	if err := demo.Missing(); err != nil {
		return err
	}
	say := c.say
	root := c.root
	switch {
	case root == "" && exit:
		// Without a terminal the demo ends at once.
		if root, err = os.MkdirTemp("", "corpus-git-demo-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(root) }()
	case root == "":
		root = filepath.Join("srv", "demo")
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	flags := map[string]string{"root": root, "listen": "127.0.0.1:0", "http-listen": "127.0.0.1:0", "accounts": "off"}
	load := func() (*config.Config, error) {
		return config.Load(config.Sources{DefaultRoot: root, Flags: flags})
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	cfg.Log.Level = "warn"
	log, level, file, err := serverlog.Open(cfg, c.Stderr, false)
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, stop := untilInterrupted()
	defer stop()
	say("serving under %s", root)
	s, err := start(ctx, cfg, c.Environment.Env, log, level, load)
	if err != nil {
		return err
	}
	defer func() {
		if serr := s.shutdown(context.Background(), cfg.Grace); serr != nil && err == nil {
			err = serr
		}
	}()
	statedir.Announce(c.Stdout, s.sshAddr, s.webAddr)
	clone, err := demo.Server{
		Root: s.root, State: s.state, Port: s.port.Load(), Access: s.access, Registry: s.registry, Remotes: s.remotes,
		Verb: func(ctx context.Context, argv ...string) int {
			return verbs.Run(ctx, s.backend(nil), c.caller(), argv, strings.NewReader(""), c.Stdout, c.Stderr)
		},
		By: c.caller().Identity, Dir: filepath.Join(root, "demo"), Env: c.Environment.Env, Out: c.Stdout,
	}.Show(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if exit {
		say("everything worked")
		return nil
	}
	if err := c.printNextSteps(ctx, s, root, clone); err != nil {
		return err
	}
	<-ctx.Done()
	say("stopping")
	return nil
}

func (c *command) say(format string, args ...any) { fmt.Fprintf(c.Stdout, format+"\n", args...) }

// printNextSteps prints what the reader can do with the demo's server.
func (c *command) printNextSteps(ctx context.Context, s *server, root, clone string) error {
	say := c.say
	say("")
	say("Your turn: change src/ or .salt/ in this working copy, commit, and push:")
	say("")
	say("  cd %s", demo.ShellQuote(clone))
	say("  git push prod HEAD:master")
	say("")
	link, err := s.webLogin(ctx, c.caller().Identity)
	if err != nil {
		return err
	}
	program := programName() + " --root " + demo.ShellQuote(root)
	say("See it:  %s   (once; another link:  %s web login )", link, program)
	say("   and:  %s report", program)
	say("Serving until Ctrl-C.")
	return nil
}

// programName returns how the reader can start this program: make demo builds one that is not in PATH.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return "corpus-git"
	}
	found, err := exec.LookPath("corpus-git")
	if err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil && found == self {
			return "corpus-git"
		}
	}
	return demo.ShellQuote(self)
}
