package procedures

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/checks"
	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/quantity"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// NameChecks is the name of the procedure that runs the project's checks. No file of a project replaces it, since a step may have that
// name.
const NameChecks = "checks"

// Checks runs the project's checks, from the key checks of its configuration. It changes nothing and can be run again.
type Checks struct {
	// On is the occasion; "" runs every check.
	On project.CheckOccasion
}

// Name implements Procedure.
func (Checks) Name() string { return NameChecks }

// CheckFailure is the error of failed checks.
type CheckFailure struct {
	// Names are the checks, in the order of the configuration.
	Names []string
	// Lines describe each: target, reason, and the first lines of the last answer.
	Lines []string
}

// Error returns the names of the checks.
func (f *CheckFailure) Error() string {
	if len(f.Names) == 1 {
		return "check " + f.Names[0] + " failed"
	}
	return "checks " + strings.Join(f.Names, ", ") + " failed"
}

// HasChecks reports whether there are checks for an occasion.
func (p *Prepared) HasChecks(on project.CheckOccasion) bool { return len(p.checksOn(on)) > 0 }

// Checks returns the checks of the configuration; those of a project with nodes run on the nodes.
func (p *Prepared) Checks() []project.Check {
	if p.Rollout != nil {
		return nil
	}
	return p.Cfg.Checks()
}

func (p *Prepared) checksOn(on project.CheckOccasion) []project.Check {
	list := p.Checks()
	if on == "" {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c project.Check) bool { return !c.Runs(on) })
}

// Run implements Procedure. If a check fails, the error wraps a *CheckFailure and is of kind Failed.
func (c Checks) Run(ctx context.Context, env *Env) error {
	if c.On == project.OnRollback {
		var end func()
		ctx, end = env.aside(ctx, asideLimit)
		defer end()
	}
	list := env.Prepared.checksOn(c.On)
	results, err := env.checker().Run(ctx, list)
	if err != nil {
		return err
	}
	var good []string
	failure := &CheckFailure{}
	for _, r := range results {
		if r.Good {
			good = append(good, env.goodCheck(r))
			continue
		}
		if len(failure.Names) > 0 {
			failure.Lines = append(failure.Lines, "")
		}
		failure.Names = append(failure.Names, r.Check.Name)
		failure.Lines = append(failure.Lines, env.failedCheck(r)...)
	}
	if len(failure.Names) == 0 {
		env.Summarize(good, "%s succeeded", humanize.Plural(len(results), "check"))
		return nil
	}
	return fault.New(fault.Failed, "", "%w", failure)
}

// AskAll runs every check of what is live, and reports the results. Errors are those of Run.
func (e *Env) AskAll(ctx context.Context) error {
	begun := e.Tools.Now()
	err := Checks{}.Run(ctx, e)
	took := e.Tools.Now().Sub(begun)
	e.Timings = append(e.Timings, project.Timing{Name: NameChecks, Duration: took})
	if text, lines := e.TakeSummary(); err == nil {
		e.Report.Append(event.Event{Kind: event.ProcedureDone, Status: event.OK, Procedure: NameChecks, Duration: took, Text: text, Lines: lines})
	}
	return err
}

// checker runs the checks of a deployment. It regularly reports what it is waiting for.
func (e *Env) checker() checks.Runner {
	var mu sync.Mutex
	begun := map[string]time.Time{}
	return checks.Runner{
		Command: e.askByCommand,
		Hide:    e.Hide,
		Progress: func(r checks.Result) {
			mu.Lock()
			defer mu.Unlock()
			last, told := begun[r.Check.Name]
			if !told {
				last = e.Tools.Now().Add(-r.Took)
			}
			if e.Tools.Now().Sub(last) < checkNoteEvery {
				return
			}
			begun[r.Check.Name] = e.Tools.Now()
			e.Note("check %s: attempt %d of %d: %s", r.Check.Name, r.Attempts, r.Check.Attempts, e.Hide(r.Reason))
		},
	}
}

// askByCommand runs the command line of a check in the live tree, as the check's user, or by default the project's.
func (e *Env) askByCommand(ctx context.Context, c project.Check, argv []string) (int, string, error) {
	return e.Tools.askAs(ctx, e.Prepared, e.describe(NameChecks), c, argv)
}

// Checker runs checks of what is live outside a deployment; d represents what is live.
func (t *Tools) Checker(p *Prepared, d project.Deployment) checks.Runner {
	told := hooks.Describe(d, t.Root.Project(d.Project.String()), p.Environment(), NameChecks)
	return checks.Runner{Command: func(ctx context.Context, c project.Check, argv []string) (int, string, error) {
		return t.askAs(ctx, p, told, c, argv)
	}}
}

func (t *Tools) askAs(ctx context.Context, p *Prepared, told hooks.Description, c project.Check, argv []string) (int, string, error) {
	shell := host.Shell{Line: c.Target, Argv: argv, Dir: told.ProjectRoot, RunAs: c.User, KeepLocale: true, Merge: true, Env: p.environ(told)}
	if argv != nil {
		shell.Dir = "/"
	} else if c.User == "" {
		shell.RunAs = t.ProjectUser(p)
	}
	res, err := t.Host.RunShell(ctx, shell)
	return res.Retcode, res.Stdout, err
}

// checkNoteEvery is the interval of notes about one check that is waited for.
const checkNoteEvery = 5 * time.Second

func (e *Env) goodCheck(r checks.Result) string {
	line := fmt.Sprintf("%s  %s", r.Check.Name, e.checkTarget(r.Check))
	if r.Attempts > 1 && r.Check.AlsoAfter == 0 {
		line += fmt.Sprintf("  at attempt %d, after %s", r.Attempts, humanize.Rough(r.Took))
	}
	if r.Check.AlsoAfter > 0 {
		line += "  repeated for " + quantity.FormatDuration(r.Check.AlsoAfter)
	}
	return line
}

// checkTarget returns the URL, command or unit of a check, shortened and redacted.
func (e *Env) checkTarget(c project.Check) string {
	what := printable.Shorten(e.Hide(c.Target), 80)
	if c.Kind == project.CheckHTTP || c.Kind == project.CheckCommand {
		return what // the target already contains its kind
	}
	return string(c.Kind) + " " + what
}

func (e *Env) failedCheck(r checks.Result) []string {
	how := fmt.Sprintf("%s after %s", humanize.Plural(r.Attempts, "attempt"), humanize.Rough(r.Took))
	if r.Watched {
		how = "it succeeded, then failed " + humanize.Rough(r.Took) + " after the start"
	}
	lines := []string{fmt.Sprintf("%s  %s", r.Check.Name, e.checkTarget(r.Check)), fmt.Sprintf("%s  (%s)", e.Hide(r.Reason), how)}
	for _, l := range r.Answer {
		lines = append(lines, "| "+e.Hide(l))
	}
	return lines
}
