package procedures

import (
	"context"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/undologs"
	"corpus-git/project"
	"corpus-git/undo"
)

// UndoLogs returns the undo logs of deployments that went live.
func (t *Tools) UndoLogs() undologs.Logs { return undologs.Logs{FS: t.FS, State: t.State} }

// keepLive keeps the log of a deployment that went live, after existing ones.
func (e *Env) keepLive() error {
	dir := e.Tools.State.Undo(string(e.Deployment.ID))
	some, err := undo.Reversible(e.machine(context.Background()), dir)
	if err != nil {
		return err
	}
	if !some {
		return undo.Drop(e.Tools.FS, dir)
	}
	return e.Tools.UndoLogs().Keep(e.Deployment.Project, e.Deployment.ID, dir)
}

// Reverse undoes what the deployments Env.Since that went live changed outside the trees, the newest first. If All is set it undoes all
// deployments, and removes each log once it is undone. It can be run again. Otherwise the logs are kept, and the undo is recorded as a
// change of this deployment, in its own log.
type Reverse struct{ All bool }

// Name implements Procedure.
func (Reverse) Name() string { return NameUndo }

func (r Reverse) logs(e *Env) ([]string, error) {
	if r.All {
		return e.Tools.UndoLogs().Since(e.Deployment.Project, nil)
	}
	if len(e.Since) == 0 {
		return nil, nil
	}
	return e.Tools.UndoLogs().Since(e.Deployment.Project, e.Since)
}

// Needed reports whether there is anything to undo.
func (r Reverse) Needed(e *Env) bool {
	dirs, err := r.logs(e)
	return len(dirs) > 0 || err != nil || r.unknown(e) != ""
}

// unknown returns the newest reverted deployment whose undo log was removed.
func (r Reverse) unknown(e *Env) project.ID {
	id, err := e.Tools.UndoLogs().Dropped(e.Deployment.Project)
	if err != nil || id == "" || !r.All && !slices.Contains(e.Since, id) {
		return ""
	}
	return id
}

// Run implements Procedure. The error, of kind Failed, names what could not be undone.
func (r Reverse) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, asideLimit)
	defer end()
	if id := r.unknown(env); id != "" {
		env.Note("changes of deployment %s and earlier ones outside of the tree are kept: their undo logs were removed (history.max_undo_logs)", id.Short())
	}
	dirs, err := r.logs(env)
	var all undo.Report
	for _, dir := range dirs {
		if err != nil {
			break
		}
		var rep undo.Report
		rep, err = undo.Reverse(ctx, env.machine(ctx), dir, env.Undo)
		all.Undone, all.Left, all.Failed = append(all.Undone, rep.Undone...), append(all.Left, rep.Left...), append(all.Failed, rep.Failed...)
		if r.All {
			all.Manual = append(all.Manual, rep.Manual...)
			if err == nil && len(rep.Failed) == 0 {
				err = undo.Drop(env.Tools.FS, dir)
			}
		}
	}
	if err != nil {
		return fault.New(fault.Internal, "", "%w", err)
	}
	all = all.Once()
	lines := env.undoLines(all)
	if len(all.Failed) > 0 {
		return fault.New(fault.Failed, "", "%s outside of the tree could not be undone:\n%s", humanize.Plural(len(all.Failed), "change"), strings.Join(lines, "\n")).
			WithHint("the previous contents are in %s", env.Tools.State.LiveUndo(env.Deployment.Project.String()))
	}
	env.Summarize(lines, "%s", undoText(all))
	return nil
}

// RestartReversed restarts or reloads, once each, the services that were already running before the deployments Env.Since restarted or
// reloaded them.
type RestartReversed struct{}

// Name implements Procedure.
func (RestartReversed) Name() string { return NameServices }

// Needed reports whether there is a service to restart.
func (RestartReversed) Needed(e *Env) bool {
	dirs, err := Reverse{}.logs(e)
	for _, dir := range dirs {
		some, herr := undo.HasLast(e.machine(context.Background()), dir)
		if some || herr != nil {
			return true
		}
	}
	return err != nil
}

// Run implements Procedure. The error, of kind Failed, names the services that could not be restarted.
func (RestartReversed) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, asideLimit)
	defer end()
	dirs, err := Reverse{}.logs(env)
	if err != nil {
		return fault.New(fault.Internal, "", "%w", err)
	}
	rep, err := undo.Last(ctx, env.machine(ctx), dirs...)
	return env.restarted(rep, err)
}
