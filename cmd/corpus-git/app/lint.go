package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/limits"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/git/pack"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/lint"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/registry"
	"corpus-git/receive"
)

// linting is one run of lint, or of import.
type linting struct {
	*command
	lint.Request
	name string
	json bool
}

// flags adds the common flags of lint and import.
func (l *linting) flags(cmd *cobra.Command) {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.Flags().StringVar(&l.Pillar, "pillar", "", "directory of the project's pillar, with init.sls (default: only PILLAR.sample)")
	cmd.Flags().StringVar(&l.name, "project", "", "name of the project (default: name of the directory)")
	cmd.Flags().StringVar(&l.Request.Environment, "env", "", "environment, as for  project create --env")
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON document")
}

// dir returns the argument DIR.
func dirArgument(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func (c *command) lintCommand() *cobra.Command {
	l := &linting{command: c}
	cmd := &cobra.Command{
		Use: "lint [DIR]", Short: "Check a working tree as a push would, without a server",
		Long: "Reads the configuration, compiles every step, task and procedure of DIR/.salt, and checks what a checkout would\n" +
			"write, like a push of all files that git would add. Nothing is run and nothing is changed: neither the working\n" +
			"tree, nor its index, nor this machine. Grains are those of this machine.\n" +
			"The exit status is 1 if there are errors.",
		RunE: func(_ *cobra.Command, args []string) error {
			l.Dir = dirArgument(args)
			ctx, stop := untilInterrupted()
			defer stop()
			return l.run(ctx)
		},
	}
	l.flags(cmd)
	return cmd
}

func (l *linting) run(ctx context.Context) error {
	r, err := l.check(ctx)
	if err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		l.exit = fault.Failed.ExitCode()
	}
	if l.json {
		return verbs.WriteDocument(l.Stdout, r.Document())
	}
	return l.print(r)
}

// lintRepository adapts a repository to package lint.
type lintRepository struct {
	*receive.Repository
	limits pack.Limits
}

// CheckPack implements lint.Repository.
func (r lintRepository) CheckPack(ctx context.Context, from io.Reader) error {
	return r.Repository.CheckPack(ctx, from, r.limits)
}

// check runs lint on the working tree, with a temporary state directory.
func (l *linting) check(ctx context.Context) (_ *lint.Report, err error) {
	if l.name != "" {
		if l.Project, err = project.ParseName(l.name); err != nil {
			return nil, err
		}
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "corpus-git-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	root := filepath.Join(tmp, "srv")
	cfg, err := config.Load(config.Sources{DefaultRoot: root, Flags: map[string]string{"root": root, "accounts": "off"}})
	if err != nil {
		return nil, err
	}
	core, err := openCore(ctx, options{cfg: cfg, log: quietLog(l.Stderr), env: l.command.Environment.Env, who: "lint", onEnd: func(project.Record) {}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := core.close(); err == nil {
			err = cerr
		}
	}()
	if _, err := core.registry.Create(ctx, l.Project, registry.Settings{Env: l.Request.Environment}); err != nil {
		return nil, err
	}
	return lint.Server{
		Tools: core.tools, Env: l.command.Environment.Env, Tmp: tmp,
		Repository: func(kind project.Repo) lint.Repository {
			return lintRepository{core.repos.Open(l.Project, kind), limits.Pack(cfg.Limits, core.memory)}
		},
	}.Run(ctx, l.Request)
}

func (l *linting) print(r *lint.Report) error {
	w := l.Stdout
	for _, err := range r.Problems {
		text, hint, hidden := r.Error(err)
		verbs.Report(w, l.term, text, hint, hidden)
	}
	for _, x := range r.Warnings {
		fmt.Fprintf(w, "warning: %s: %s\n", printable.Text(x.File), r.Redact(x.Text))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", printable.Text(r.Redact(n)))
	}
	counts := r.Counts()
	if counts != "" {
		counts += ": "
	}
	verdict := "no errors"
	if n := len(r.Problems); n > 0 {
		verdict = humanize.Plural(n, "error")
	}
	if n := len(r.Warnings); n > 0 {
		verdict += ", " + humanize.Plural(n, "warning")
	}
	_, err := fmt.Fprintf(w, "%s%s\n", counts, verdict)
	return err
}
