package lint

import (
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/redact"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Report is what was found.
type Report struct {
	root     string // root of the server that checked, which no longer exists
	Project  project.Name
	Linted   *procedures.Linted
	Problems []error
	Warnings []recipe.Warning
	Notes    []string
	hide     *redact.Redactor
}

// Redact returns a text without secrets, and with the usual root instead of the temporary one.
func (r *Report) Redact(text string) string {
	return strings.ReplaceAll(r.hide.String(text), r.root, "/srv")
}

// Counts returns the numbers of steps, tasks and checks, in words.
func (r *Report) Counts() string {
	var parts []string
	if p := r.Linted.Prepared; p != nil {
		parts = append(parts, humanize.Plural(len(p.Steps), "step"), humanize.Plural(r.Linted.Tasks, "task"), humanize.Plural(len(p.Cfg.Checks()), "check"))
	}
	return strings.Join(parts, ", ")
}

// Error returns an error of Problems without secrets; as in a push, the text is the position and only the cause.
func (r *Report) Error(err error) (text, hint string, hidden error) {
	text = r.Redact(fault.Cause(err))
	hidden = r.hide.Error(err)
	if at, ok := fault.PosOf(hidden); ok {
		text = at.String() + ": " + text
	}
	return text, r.Redact(fault.HintOf(hidden)), hidden
}

// Document returns the report as JSON has it.
func (r *Report) Document() status.Lint {
	out := status.Lint{Version: status.Version, Project: r.Project, Problems: []status.LintProblem{}, Warnings: []status.LintWarning{}, Notes: []string{}}
	for _, err := range r.Problems {
		out.Problems = append(out.Problems, r.Problem(err))
	}
	for _, x := range r.Warnings {
		out.Warnings = append(out.Warnings, status.LintWarning{File: x.File, Text: r.Redact(x.Text)})
	}
	for _, n := range r.Notes {
		out.Notes = append(out.Notes, r.Redact(n))
	}
	if p := r.Linted.Prepared; p != nil {
		for _, s := range p.Steps {
			out.Steps = append(out.Steps, s.Name)
		}
		for _, ch := range p.Cfg.Checks() {
			out.Checks = append(out.Checks, ch.Name)
		}
	}
	return out
}

// Problem describes an error.
func (r *Report) Problem(err error) status.LintProblem {
	p := status.LintProblem{Error: r.Redact(fault.Cause(err)), Kind: fault.KindOf(err).String(), Hint: r.Redact(fault.HintOf(err))}
	if at, ok := fault.PosOf(err); ok {
		p.File, p.Line, p.Col = at.File, at.Line, at.Col
	}
	return p
}
