package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/receive"
)

// linting is one run of lint.
type linting struct {
	*command
	dir, pillar, name, env string
	json                   bool
}

func (c *command) lintCommand() *cobra.Command {
	l := &linting{command: c}
	cmd := &cobra.Command{
		Use: "lint [DIR]", Short: "Check a working tree as a push would, without a server",
		Long: "Reads the configuration, compiles every step, task and procedure of DIR/.salt, and looks at what a checkout would\n" +
			"write, as a push of all files that git would add does. Nothing is run and nothing is changed: neither the working\n" +
			"tree, nor its index, nor this machine. Facts of the machine (grains) are those of this one.\n" +
			"The exit status is 1 when something is wrong.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l.dir = "."
			if len(args) == 1 {
				l.dir = args[0]
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return l.run(ctx)
		},
	}
	cmd.Flags().StringVar(&l.pillar, "pillar", "", "folder of the project's pillar, with its init.sls (default: PILLAR.sample alone)")
	cmd.Flags().StringVar(&l.name, "project", "", "name of the project (default: that of the folder)")
	cmd.Flags().StringVar(&l.env, "env", "", "environment, as of  project create --env")
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON document")
	return cmd
}

// noName is what a project's name cannot have.
var noName = regexp.MustCompile(`[^a-z0-9-]+`)

// folderName is the project's name by its folder's.
func folderName(dir string) project.Name {
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if _, err := project.ParseName(name); err != nil {
		return "app"
	}
	return project.Name(name)
}

func (l *linting) run(ctx context.Context) error {
	doc, err := l.find(ctx)
	if err != nil {
		return err
	}
	if len(doc.problems) > 0 {
		l.exit = fault.Failed.ExitCode()
	}
	if l.json {
		return doc.writeJSON(l.Stdout)
	}
	return doc.write(l.Stdout, l.term)
}

// find looks at the working tree.
func (l *linting) find(ctx context.Context) (_ *lintDocument, err error) {
	if l.dir, err = filepath.Abs(l.dir); err != nil {
		return nil, err
	}
	if l.pillar != "" {
		if l.pillar, err = filepath.Abs(l.pillar); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{l.dir, l.pillar} {
		if dir == "" {
			continue
		}
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			return nil, fault.New(fault.Usage, "", "%s is not a folder", dir)
		}
	}
	name := folderName(l.dir)
	if l.name != "" {
		if name, err = project.ParseName(l.name); err != nil {
			return nil, err
		}
	}
	tmp, err := os.MkdirTemp("", "corpus-git-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	return l.look(ctx, tmp, name)
}

// look deploys the working tree to a server of its own below tmp, as far as nothing changes the machine.
func (l *linting) look(ctx context.Context, tmp string, name project.Name) (_ *lintDocument, err error) {
	root := filepath.Join(tmp, "srv")
	cfg, err := config.Load(config.Sources{DefaultRoot: root, Flags: map[string]string{"root": root, "accounts": "off"}})
	if err != nil {
		return nil, err
	}
	core, err := openCore(ctx, options{cfg: cfg, log: quietLog(l.Stderr), env: l.Environment.Env, who: "lint", onEnd: func(project.Record) {}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := core.close(); err == nil {
			err = cerr
		}
	}()
	if _, err := core.registry.Create(ctx, name, registry.Settings{Env: l.env}); err != nil {
		return nil, err
	}
	d := project.Deployment{ID: project.NewID(), Project: name, Trigger: project.TriggerPlan, At: time.Now(), Repo: project.Code}
	src := procedures.Sources{Environment: l.env, Private: core.state.Recipe(string(d.ID), "lint")}
	repo := core.repos.Open(name, project.Code)
	code := worktree{dir: l.dir, tmp: filepath.Join(tmp, "code"), env: l.Environment.Env, check: checkPack(ctx, core, repo)}
	if d.Code, err = code.commitTo(ctx, repo.Dir()); err != nil {
		return nil, err
	}
	if src.Code, err = repo.Tree(ctx, d.Code, nil); err != nil {
		return nil, err
	}
	if l.pillar != "" {
		repo := core.repos.Open(name, project.PillarRepo)
		pillar := worktree{dir: l.pillar, tmp: filepath.Join(tmp, "pillar"), env: l.Environment.Env, check: checkPack(ctx, core, repo)}
		if d.Pillar, err = pillar.commitTo(ctx, repo.Dir()); err != nil {
			return nil, err
		}
		if src.Pillar, err = repo.Tree(ctx, d.Pillar, nil); err != nil {
			return nil, err
		}
		code.refused = errors.Join(code.refused, pillar.refused)
	}
	hide := redact.New(nil)
	found, err := procedures.Lint(ctx, core.tools, d, src, hide)
	if err != nil {
		return nil, err
	}
	doc := &lintDocument{root: root, project: name, linted: found, problems: found.Problems, warnings: found.Warnings, hide: hide}
	if code.refused != nil {
		doc.problems = append(doc.problems, code.refused)
	}
	if p := found.Prepared; p != nil {
		doc.notes = p.Notes
		if p.Cfg.RefusesLFS() {
			if err := repo.RefuseLFS(ctx, d.Code, nil); err != nil {
				doc.problems = append(doc.problems, err)
			}
		}
	}
	st, err := repo.Checkout(ctx, project.Checkout{Commit: d.Code, Dir: core.root.Project(name.String()).Live()})
	switch {
	case err == nil:
		doc.notes = append(doc.notes, st.Notes...)
	case ctx.Err() != nil || fault.KindOf(err) == fault.Internal:
		return nil, err
	default:
		doc.problems = append(doc.problems, err)
	}
	for _, file := range code.untracked {
		doc.warnings = append(doc.warnings, recipe.Warning{File: file, Text: "git does not track it: a push leaves it out until it is added and committed"})
	}
	return doc, nil
}

// checkPack looks at a pack as a server with the default limits does.
func checkPack(ctx context.Context, core *core, repo *receive.Repository) func(io.Reader) error {
	return func(pack io.Reader) error {
		return repo.CheckPack(ctx, pack, packLimits(core.cfg.Load().Limits, core.memory))
	}
}

// lintDocument is what lint tells.
type lintDocument struct {
	root     string // of the server that looked, which is gone
	project  project.Name
	linted   *procedures.Linted
	problems []error
	warnings []recipe.Warning
	notes    []string
	hide     *redact.Redactor
}

// said is a text without secrets, and with the root that most servers have for the one that looked.
func (doc *lintDocument) said(text string) string {
	return strings.ReplaceAll(doc.hide.String(text), doc.root, "/srv")
}

// counts is the last line.
func (doc *lintDocument) counts() string {
	var parts []string
	if p := doc.linted.Prepared; p != nil {
		parts = append(parts, humanize.Plural(len(p.Steps), "step"), humanize.Plural(doc.linted.Tasks, "task"), humanize.Plural(len(p.Cfg.Checks()), "check"))
	}
	return strings.Join(parts, ", ")
}

func (doc *lintDocument) write(w *os.File, t verbs.Terminal) error {
	for _, err := range doc.problems {
		text := doc.said(procedures.Cause(err))
		err = doc.hide.Error(err)
		if at, ok := fault.PosOf(err); ok { // as a push has them: the place, and the cause alone
			text = at.String() + ": " + text
		}
		verbs.Report(w, t, text, doc.said(fault.HintOf(err)), err)
	}
	for _, x := range doc.warnings {
		fmt.Fprintf(w, "warning: %s: %s\n", printable.Text(x.File), doc.said(x.Text))
	}
	for _, n := range doc.notes {
		fmt.Fprintf(w, "note: %s\n", printable.Text(doc.said(n)))
	}
	counts := doc.counts()
	if counts != "" {
		counts += ": "
	}
	verdict := "no errors"
	if n := len(doc.problems); n > 0 {
		verdict = humanize.Plural(n, "error")
	}
	if n := len(doc.warnings); n > 0 {
		verdict += ", " + humanize.Plural(n, "warning")
	}
	_, err := fmt.Fprintf(w, "%s%s\n", counts, verdict)
	return err
}

func (doc *lintDocument) writeJSON(w *os.File) error {
	out := status.Lint{Version: status.Version, Project: doc.project, Problems: []status.LintProblem{}, Warnings: []status.LintWarning{}, Notes: []string{}}
	for _, err := range doc.problems {
		out.Problems = append(out.Problems, doc.problem(err))
	}
	for _, x := range doc.warnings {
		out.Warnings = append(out.Warnings, status.LintWarning{File: x.File, Text: doc.said(x.Text)})
	}
	for _, n := range doc.notes {
		out.Notes = append(out.Notes, doc.said(n))
	}
	if p := doc.linted.Prepared; p != nil {
		for _, s := range p.Steps {
			out.Steps = append(out.Steps, s.Name)
		}
		for _, ch := range p.Cfg.Checks() {
			out.Checks = append(out.Checks, ch.Name)
		}
	}
	return verbs.WriteDocument(w, out)
}

// problem describes an error.
func (doc *lintDocument) problem(err error) status.LintProblem {
	p := status.LintProblem{Error: doc.said(procedures.Cause(err)), Kind: fault.KindOf(err).String(), Hint: doc.said(fault.HintOf(err))}
	if at, ok := fault.PosOf(err); ok {
		p.File, p.Line, p.Col = at.File, at.Line, at.Col
	}
	return p
}

// saltFolder is where a recipe lies, as a pathspec.
const saltFolder = layout.SaltDir + "/"
