package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls"
)

// Linted is what Lint found.
type Linted struct {
	// Prepared is what could be prepared; nil where the configuration is wrong.
	Prepared *Prepared
	// Tasks is the number of tasks.
	Tasks int
	// Files are the steps and the tasks, in this order.
	Files []LintedFile
	// Problems refuse a push, or, in a task, running it.
	Problems []error
	// Warnings are files that look as if they would run, and do not; a push says nothing of them.
	Warnings []Warning
}

// LintedFile is a step or a task. Checked and Err are nil for an executable.
type LintedFile struct {
	Step    Step
	Task    bool
	Checked *sls.Checked
	Err     error
}

// Warning is a remark about a file of the commit.
type Warning struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Lint does what Prepare does, and goes on after the first thing that is wrong: every step is compiled, and every task too. It changes
// nothing outside of src.Private. An error is the machine's or ours, or ctx's; what is wrong with the project is in Problems.
func Lint(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Linted, error) {
	out := &Linted{}
	keep := func(err error) error {
		if ctx.Err() != nil || fault.KindOf(err) == fault.Internal {
			return err
		}
		out.Problems = append(out.Problems, err)
		return nil
	}
	p, err := configure(ctx, t, d, src, hide)
	if err != nil {
		return out, keep(err)
	}
	out.Prepared = p
	if err := p.checkAll(ctx, t, d, keep); err != nil {
		return out, err
	}
	if p.recipe == nil {
		return out, nil
	}
	for i, s := range p.Steps {
		if i < len(p.Checked) {
			out.Files = append(out.Files, LintedFile{Step: s, Checked: p.Checked[i], Err: p.refused[i]})
		}
	}
	tasks, err := ListTasks(p.recipe)
	if err != nil {
		return out, keep(err)
	}
	out.Tasks = len(tasks)
	for _, s := range tasks {
		p.checking = nil // a task runs alone
		c, err := p.checkStep(ctx, t, d, s)
		out.Files = append(out.Files, LintedFile{Step: s, Task: true, Checked: c, Err: err})
		if err != nil {
			if err = keep(err); err != nil {
				return out, err
			}
		}
	}
	out.Warnings, err = warnings(p.recipe)
	return out, err
}

// warnings finds executables that do not run: without the mode, or in a folder that no hook is called from.
func warnings(recipe fs.FS) ([]Warning, error) {
	var out []Warning
	warn := func(file, format string, args ...any) {
		out = append(out, Warning{File: path.Join(layout.SaltDir, file), Text: fmt.Sprintf(format, args...)})
	}
	entries, err := fs.ReadDir(recipe, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if fi, err := fs.Stat(recipe, e.Name()); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 == 0 && scriptForm.MatchString(e.Name()) {
			warn(e.Name(), "it is not executable, so it is not a step")
		}
	}
	points, err := fs.ReadDir(recipe, layout.HooksDir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range points {
		dir := path.Join(layout.HooksDir, e.Name())
		point, ok := strings.CutSuffix(e.Name(), ".d")
		if !ok || !slices.Contains(hooks.Points(), hooks.Point(point)) {
			warn(dir, "hooks are not called from here: a point's folder is one of %s", pointDirs())
			continue
		}
		files, err := fs.ReadDir(recipe, dir)
		if err != nil {
			return nil, err
		}
		run, err := hooks.Executables(recipe, dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !slices.Contains(run, f.Name()) && f.Name()[0] != '.' && !f.IsDir() {
				warn(path.Join(dir, f.Name()), "it is not executable, so it is not a hook")
			}
		}
	}
	return out, nil
}

func pointDirs() string {
	var out []string
	for _, p := range hooks.Points() {
		out = append(out, string(p)+".d")
	}
	return strings.Join(out, ", ")
}
