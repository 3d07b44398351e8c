package procedures

import (
	"context"
	"fmt"

	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/sls"
	"corpus-git/undo"
)

// Drift reports what applying the steps and permissions of the live release again would change, as Plan does, into Env.Changed and
// Env.Drift. Conditions of states are evaluated and templates may read the machine, as in a test run of Salt. What runs each time, an executable or
// a command without a condition, says nothing about the machine and does not count. Edited files in the trees count.
func Drift(ctx context.Context, env *Env) error {
	if err := env.Edited(ctx, true); err != nil {
		return err
	}
	if _, skip := env.Prepared.Skips(NameFixperms); !skip {
		if _, err := env.planFixperms(ctx); err != nil {
			return err
		}
	}
	if _, skip := env.Prepared.Skips(NameInstall); skip {
		return nil
	}
	for i, s := range env.Prepared.Steps {
		if err := env.asked(); err != nil {
			return err
		}
		if _, err := env.planStep(ctx, i, s); err != nil {
			return err
		}
	}
	return nil
}

// asked calls Yield and returns its error.
func (e *Env) asked() error {
	if e.Yield == nil {
		return nil
	}
	return e.Yield()
}

// maxDrift is how many things that a converge changed, or would change, are named; driftLine is the maximum length of a line.
const (
	maxDrift  = 20
	driftLine = 200
)

// differ records differences from the live release.
func (e *Env) differ(n int, format string, args ...any) {
	e.Changed += n
	if len(e.Drift) < maxDrift {
		e.Drift = append(e.Drift, printable.Shorten(e.Hide(fmt.Sprintf(format, args...)), driftLine))
	}
}

// differs records the states of a step that changed something, or would.
func (e *Env) differs(step string, states []sls.StateResult) {
	for _, st := range states {
		switch {
		case st.Always, st.Outcome == sls.FailedState, st.Outcome != sls.WouldChange && !st.Changed:
		case st.ID == st.Name || st.Name == "":
			e.differ(1, "%s: %s %s", step, st.Function, st.ID)
		default:
			e.differ(1, "%s: %s %s (%s)", step, st.Function, st.ID, st.Name)
		}
	}
}

// KeepConverged keeps the undo log of a converge, for later rollbacks. If the live release had made the same changes before, the log is removed.
func (e *Env) KeepConverged() error {
	if err := e.Undo.Close(); err != nil {
		return err
	}
	t := e.Tools
	dir := t.State.Undo(string(e.Deployment.ID))
	if there, err := vfs.Exists(t.FS, dir); err != nil || !there {
		return err
	}
	older, err := t.UndoLogs().Since(e.Deployment.Project, nil)
	if err != nil {
		return err
	}
	repaired, err := undo.Repaired(e.machine(context.Background()), dir, older)
	if err != nil {
		return err
	}
	if repaired {
		return undo.Drop(t.FS, dir)
	}
	return e.keepLive()
}
