package procedures

import (
	"context"
	"errors"
	"slices"

	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
)

// Linted is what Lint found.
type Linted struct {
	// Prepared is what could be prepared; nil if the configuration is wrong.
	Prepared *Prepared
	// Tasks is the number of tasks.
	Tasks int
	// Files are the steps and the tasks, in this order.
	Files []LintedFile
	// Problems are errors for which a push is refused or, in a task, running it is refused.
	Problems []error
	// Warnings are about files that look like steps or hooks and are not, which a push reports in its notes; and about what Salt ignores in steps, tasks and
	// procedures, each once, which a push reports after they have run.
	Warnings []recipe.Warning
}

// LintedFile is a step or a task. Checked and Err are nil for an executable.
type LintedFile struct {
	Step    recipe.Step
	Task    bool
	Checked *sls.Checked
	Err     error
}

// Lint does what Prepare does, and continues after the first error: every step is compiled, and every task too. It changes nothing outside
// src.Private. An error is the machine's fault or ours, or that of ctx; errors in the project are in Problems.
func Lint(ctx context.Context, t *Tools, d project.Deployment, src Sources, hide *redact.Redactor) (*Linted, error) {
	out := &Linted{}
	keep := func(err error) error {
		if ctx.Err() != nil || fault.KindOf(err) == fault.Internal {
			return err
		}
		out.Problems = append(out.Problems, err)
		return nil
	}
	src.alone = true
	p, err := configure(ctx, t, d, src, true, hide)
	if wrong := (project.InputErrors{}); errors.As(err, &wrong) {
		for _, e := range wrong {
			_ = keep(e)
		}
		return out, nil
	}
	if err != nil {
		return out, keep(err)
	}
	out.Prepared = p
	for _, name := range p.Cfg.EmptyInputs() {
		p.Notes = append(p.Notes, "the input "+name+" has no value without a pillar: the steps are checked with an empty one")
	}
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
	tasks, err := recipe.Tasks(p.recipe)
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
	groups, err := t.Groups()
	if err != nil {
		return out, err
	}
	files, err := recipe.Warnings(p.recipe, groups...)
	out.Warnings = append(p.Unread, files...)
	for _, w := range p.ignored {
		one := recipe.Warning{File: w.At.String(), Text: w.Text}
		if !slices.Contains(out.Warnings, one) { // of a file that several files include
			out.Warnings = append(out.Warnings, one)
		}
	}
	return out, err
}
