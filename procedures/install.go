package procedures

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/procedures/late"
	"corpus-git/procedures/plantext"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
)

// Install applies the steps of the recipe, one after the other; the first that fails stops it.
type Install struct{}

// Name implements Procedure.
func (Install) Name() string { return NameInstall }

// Failure is the error of a step that failed: which step, and which state of it.
type Failure struct {
	Step    string
	StateID string
	// Err is the error of a step that failed before its states ran; nil if a state failed.
	Err error
}

// Error implements error.
func (f *Failure) Error() string {
	switch {
	case f.StateID != "":
		return fmt.Sprintf("failed in %s, state %s", f.Step, f.StateID)
	case f.Err != nil:
		return fmt.Sprintf("failed in %s: %v", f.Step, f.Err)
	}
	return "failed in " + f.Step
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Run implements Procedure.
func (Install) Run(ctx context.Context, env *Env) error {
	steps := env.Prepared.Steps
	if len(steps) == 0 {
		env.Summarize(nil, "no steps")
		return nil
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name
	}
	text := humanize.Plural(len(steps), "step")
	if d := env.Usual[NameInstall].Median; d >= time.Second {
		text += ", about " + humanize.Rough(d) + " by past deployments"
	}
	env.Report.Append(event.Event{Kind: event.ProcedureStart, Procedure: NameInstall, Text: text, Lines: names, Of: len(steps)})
	begun := env.Tools.Now()
	if env.paused != nil {
		begun = env.installing
	}
	env.installing = begun
	env.series().Prepare(env.writers()) // if there was no checkout
	defer func() {
		env.files.Close()
		env.Tools.Configs.Hurry() // the end of the deployment waits for it
	}()
	for i, s := range steps {
		if err := env.asked(); err != nil {
			return err
		}
		if env.keep(NameInstall, s, i+1, len(steps)) {
			continue
		}
		if err := env.step(ctx, NameInstall, s, i+1, len(steps), names[i+1:]); err != nil {
			return err
		}
	}
	env.Timings = append(env.Timings, project.Timing{Name: NameInstall, Duration: env.Tools.Now().Sub(begun)})
	return nil
}

// Reinstall applies the steps of the release that a rollback restored. It ends at the limit that this release sets, or when Env.Hurry is closed.
type Reinstall struct {
	// Limit is a shorter limit than the release's; 0 means none.
	Limit time.Duration
}

// Name implements Procedure.
func (Reinstall) Name() string { return NameInstall }

// Run implements Procedure; errors are those of Install.
func (r Reinstall) Run(ctx context.Context, env *Env) error {
	limit := env.Prepared.Cfg.RollbackTimeout()
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	ctx, end := env.aside(ctx, limit)
	defer end()
	err := Install{}.Run(ctx, env)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		var f *Failure
		if errors.As(err, &f) {
			return &Failure{Step: f.Step, Err: cause}
		}
	}
	return err
}

// step applies one step and reports it. A failure is reported in full, and returned as a *Failure.
func (e *Env) step(ctx context.Context, procedure string, s recipe.Step, n, of int, rest []string) error {
	e.Report.Append(event.Event{Kind: event.StepStart, Procedure: procedure, Step: s.Name, N: n, Of: of, Duration: e.Usual[timingName(s.Name, "")].Median})
	sink := &stepSink{outputs: e.outputs(procedure)}
	sink.step = s.Name
	begun := e.Tools.Now()
	was := e.takeUp(s)
	if was != nil {
		begun = was.Begun
	}
	e.running = running{procedure: procedure, step: s, begun: begun, was: was}
	stop := e.watchLate(s)
	res, err := e.apply(ctx, e.Prepared.Recipe, s, e.Prepared.input(e, e.Prepared.Recipe, s, sls.Live), sink, n < of)
	stop()
	sink.close()
	if err != nil && e.suspended(ctx) {
		return err
	}
	took := e.Tools.Now().Sub(begun)
	if res != nil {
		e.differs(s.Name, res.States)
	}
	e.Timings = append(e.Timings, project.Timing{Name: timingName(s.Name, ""), Duration: took})
	for _, x := range sink.slow {
		e.Timings = append(e.Timings, project.Timing{Name: timingName(s.Name, x.id), Duration: x.d})
	}
	if err == nil && res.OK() {
		_, changed, _ := res.Counts()
		if s.Script {
			changed = 0 // it does not report a number
		}
		e.Report.Append(event.Event{
			Kind: event.StepDone, Status: event.OK, Procedure: procedure, Step: s.Name, N: n, Of: of, Duration: took, Changed: changed,
			Text: plantext.Counted(res, s), Lines: res.Warnings,
		})
		return nil
	}
	fail := &Failure{Step: s.Name, Err: err}
	ev := event.Event{Kind: event.Failure, Status: event.Bad, Procedure: procedure, Step: s.Name, N: n, Of: of, Duration: took}
	if of > 1 || procedure == NameInstall {
		ev.Text = fmt.Sprintf("%d/%d %s  failed after %s", n, of, s.Name, humanize.Rough(took))
	} else {
		ev.Text = fmt.Sprintf("%s  failed after %s", s.Name, humanize.Rough(took))
	}
	switch {
	case err != nil:
		ev.Lines = ErrorLines(err)
	default:
		ev.Lines, fail.StateID = e.states().Failed(res)
		ev.State = fail.StateID
		ev.Lines = append(ev.Lines, e.wrote.wrong...)
	}
	if len(rest) > 0 {
		ev.Lines = append(ev.Lines, "steps not run: "+strings.Join(rest, ", "))
	}
	e.Report.Append(ev)
	return fail
}

// watchLate reports once if a step runs longer than it usually does, until stop is called.
func (e *Env) watchLate(s recipe.Step) (stop func()) {
	usual, ok := e.Usual[timingName(s.Name, "")]
	if !ok {
		return func() {}
	}
	return late.Watch(s.Name, usual, func(text string) { e.Note("%s", text) })
}

// ErrorLines formats an error for people: place, the line's text with a caret, the cause, the hint. If the position is known, the operation is
// omitted.
func ErrorLines(err error) []string {
	var lines []string
	if at, ok := fault.PosOf(err); ok {
		lines = append(lines, at.String())
		if at.Text != "" {
			src := strings.ReplaceAll(at.Text, "\t", " ")
			lines = append(lines, "    "+src)
			if at.Col > 0 && at.Col <= len([]rune(src))+1 {
				lines = append(lines, "    "+printable.Caret(src, at.Col))
			}
		}
	}
	var checks *CheckFailure
	if errors.As(err, &checks) {
		lines = append(lines, checks.Lines...)
	} else {
		lines = append(lines, strings.Split(fault.Cause(err), "\n")...)
	}
	if h := fault.HintOf(err); h != "" {
		lines = append(lines, "hint: "+h)
	}
	return lines
}

// Task applies one task by hand: an SLS file named task_*.sls, of the live recipe.
func (e *Env) Task(ctx context.Context, s recipe.Step) error {
	begun := e.Tools.Now()
	err := e.step(ctx, "task", s, 1, 1, nil)
	e.Timings = append(e.Timings, project.Timing{Name: "task", Duration: e.Tools.Now().Sub(begun)})
	return err
}
