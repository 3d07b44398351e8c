package procedures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/undo"
)

// LiveLog is the undo log of a deployment that went live.
type LiveLog struct {
	ID  project.ID
	Dir string
	// seq counts the logs of a project; a newer one has a higher number.
	seq int
}

// LiveUndo are the undo logs of a project's deployments that went live, the newest first.
func (t *Tools) LiveUndo(name project.Name) ([]LiveLog, error) {
	parent := t.State.LiveUndo(name.String())
	names, err := t.FS.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []LiveLog
	for _, n := range names {
		number, id, ok := strings.Cut(n, "-")
		if seq, nerr := strconv.Atoi(number); ok && nerr == nil {
			out = append(out, LiveLog{ID: project.ID(id), Dir: filepath.Join(parent, n), seq: seq})
		}
	}
	slices.SortFunc(out, func(a, b LiveLog) int { return cmp.Compare(b.seq, a.seq) })
	return out, err
}

// liveLogs are the folders of LiveUndo, of those that since names; all of them where it is nil.
func (t *Tools) liveLogs(name project.Name, since []project.ID) (dirs []string, err error) {
	logs, err := t.LiveUndo(name)
	for _, l := range logs {
		if since == nil || slices.Contains(since, l.ID) {
			dirs = append(dirs, l.Dir)
		}
	}
	return dirs, err
}

// droppedUndo names the file with the deployment whose undo log was removed last because of a limit.
const droppedUndo = "dropped"

// PruneLiveUndo removes the oldest logs of LiveUndo until there are most, and counts them. A later rollback over those deployments reports
// it. Nothing of the project may run meanwhile. Durable on return; it can be run again.
func (t *Tools) PruneLiveUndo(name project.Name, most int) (removed int, err error) {
	logs, err := t.LiveUndo(name)
	if err != nil || len(logs) <= most {
		return 0, err
	}
	// The record first: a log that is recorded as removed may still exist, never the other way round.
	path := filepath.Join(t.State.LiveUndo(name.String()), droppedUndo)
	if err := vfs.WriteFileAtomic(t.FS, path, []byte(string(logs[most].ID)+"\n"), 0o600); err != nil {
		return 0, err
	}
	for _, l := range slices.Backward(logs[most:]) {
		if err := undo.Drop(t.FS, l.Dir); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// dropped is the newest deployment whose undo log was removed; "" is none.
func (t *Tools) dropped(name project.Name) (project.ID, error) {
	text, err := vfs.ReadFile(t.FS, filepath.Join(t.State.LiveUndo(name.String()), droppedUndo))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return project.ID(strings.TrimSpace(string(text))), err
}

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
	parent := e.Tools.State.LiveUndo(e.Deployment.Project.String())
	if err := vfs.MkdirAll(e.Tools.FS, parent, 0o700); err != nil {
		return err
	}
	logs, err := e.Tools.LiveUndo(e.Deployment.Project)
	if err != nil {
		return err
	}
	last := 0
	if len(logs) > 0 {
		last = logs[0].seq
	}
	return vfs.RenameDurable(e.Tools.FS, dir, filepath.Join(parent, fmt.Sprintf("%08d-%s", last+1, e.Deployment.ID)))
}

// DropLiveUndo removes the undo logs of all deployments of a project.
func DropLiveUndo(f vfs.FS, s layout.State, name project.Name) error {
	return vfs.RemoveAll(f, s.LiveUndo(name.String()))
}

// Reverse undoes what the deployments Env.Since that went live changed outside of the trees, the newest first; all of them where All is
// set, whose logs are removed as each is undone. It can be run again. Otherwise the logs stay, and the undoing is recorded as a change of
// this deployment, in its own log.
type Reverse struct{ All bool }

// Name implements Procedure.
func (Reverse) Name() string { return NameUndo }

func (r Reverse) logs(e *Env) ([]string, error) {
	if r.All {
		return e.Tools.liveLogs(e.Deployment.Project, nil)
	}
	if len(e.Since) == 0 {
		return nil, nil
	}
	return e.Tools.liveLogs(e.Deployment.Project, e.Since)
}

// Needed reports whether there is anything to undo.
func (r Reverse) Needed(e *Env) bool {
	dirs, err := r.logs(e)
	return len(dirs) > 0 || err != nil || r.unknown(e) != ""
}

// unknown is the newest reverted deployment whose undo log was removed.
func (r Reverse) unknown(e *Env) project.ID {
	id, err := e.Tools.dropped(e.Deployment.Project)
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
		env.Note("what deployment %s and those before it changed outside of the tree is no longer known (history.max_undo_logs): it stays", id.Short())
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
			WithHint("what was there before is in %s", env.Tools.State.LiveUndo(env.Deployment.Project.String()))
	}
	env.Summarize(lines, "%s", undoText(all))
	return nil
}

// RestartReversed restarts or reloads the services that ran before the deployments Env.Since restarted or reloaded them, each once.
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

// Run implements Procedure. The error, of kind Failed, names those that could not be restarted.
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
