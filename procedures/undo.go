package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/project"
	"corpus-git/sls/host"
	"corpus-git/undo"
)

// NameUndo is the name of the procedure that undoes what steps changed outside the archived trees.
const NameUndo = "undo"

// Undo undoes what the steps of a failed deployment changed outside the archived trees. It can be run again, also after a crash, with
// the same result.
type Undo struct{}

// Name implements Procedure.
func (Undo) Name() string { return NameUndo }

// keptMark is the name of a file in an undo log that is kept because not everything could be undone. It contains the project's name.
const keptMark = "kept"

// OpenUndo opens the undo log of a deployment, or continues that of an earlier process; nothing is written before a state changes something.
func (e *Env) OpenUndo() error {
	var err error
	e.Undo, err = undo.Reopen(e.machine(context.Background()), e.Tools.State.Undo(string(e.Deployment.ID)), e.Paths.Live(), e.Paths.Pillar())
	if err == nil && e.Prepared.Cfg.UndoPackages() {
		e.Undo.UndoPackages()
	}
	return err
}

func (e *Env) machine(ctx context.Context) undo.Machine {
	return undo.Machine{FS: e.Tools.FS, Boot: e.Tools.Host.Boot, Run: func(ctx context.Context, argv []string, stdin string) (int, string, error) {
		res, err := e.Tools.Host.RunShell(ctx, host.Shell{Argv: argv, Dir: "/", Stdin: stdin, Merge: true, KeepEnd: true})
		return res.Retcode, res.Stdout, err
	}}
}

// HasUndo reports whether steps of the deployment recorded a change outside the archived trees.
func (e *Env) HasUndo() bool {
	if len(e.Undo.Listed()) > 0 {
		return true
	}
	there, err := vfs.Exists(e.Tools.FS, e.Tools.State.Undo(string(e.Deployment.ID)))
	return there || err != nil
}

// Run implements Procedure. The error, of kind Failed, names what could not be undone; the log is then kept.
func (Undo) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, asideLimit)
	defer end()
	dir := env.Tools.State.Undo(string(env.Deployment.ID))
	rep := undo.Report{Manual: env.Undo.Listed()}
	err := env.Undo.Close()
	if err == nil && len(rep.Manual) == 0 {
		rep, err = undo.Undo(ctx, env.machine(ctx), dir)
	}
	if err != nil || !rep.Whole() {
		if kerr := env.keepUndo(); kerr != nil {
			env.Note("cannot mark the undo log: %v", kerr)
		}
	}
	if err != nil {
		return fault.New(fault.Internal, "", "%w", err)
	}
	lines := env.undoLines(rep)
	if len(rep.Failed) > 0 {
		return fault.New(fault.Failed, "", "%s outside of the tree could not be undone:\n%s", humanize.Plural(len(rep.Failed), "change"), strings.Join(lines, "\n")).
			WithHint("the previous contents are in %s", dir)
	}
	env.Summarize(lines, "%s", undoText(rep))
	return nil
}

// NameServices is the name of the procedure that restarts what ran before a failed deployment.
const NameServices = "services"

// Services restarts or reloads the services that a failed deployment restarted or reloaded, so that they use what is live again. It can be run again.
type Services struct{}

// Name implements Procedure.
func (Services) Name() string { return NameServices }

// Run implements Procedure. The error, of kind Failed, names the services that could not be restarted.
func (Services) Run(ctx context.Context, env *Env) error {
	ctx, end := env.aside(ctx, asideLimit)
	defer end()
	rep, err := undo.Last(ctx, env.machine(ctx), env.Tools.State.Undo(string(env.Deployment.ID)))
	if err != nil || len(rep.Failed) > 0 {
		if kerr := env.keepUndo(); kerr != nil {
			env.Note("cannot mark the undo log: %v", kerr)
		}
	}
	return env.restarted(rep, err)
}

// restarted reports which services were restarted.
func (e *Env) restarted(rep undo.Report, err error) error {
	switch {
	case err != nil:
		return fault.New(fault.Internal, "", "%w", err)
	case len(rep.Failed) > 0:
		return fault.New(fault.Failed, "", "%s could not be restarted:\n%s", humanize.Plural(len(rep.Failed), "service"), strings.Join(e.undoLines(rep), "\n"))
	}
	var names []string
	for _, i := range rep.Undone {
		names = append(names, e.Hide(i.Name))
	}
	text := "nothing to restart"
	if len(names) > 0 {
		text = "restarted " + strings.Join(names, ", ")
	}
	e.Summarize(nil, "%s", text)
	return nil
}

// HasServices reports whether Services has anything to do; true if the log can't be read.
func (e *Env) HasServices() bool {
	some, err := undo.HasLast(e.machine(context.Background()), e.Tools.State.Undo(string(e.Deployment.ID)))
	return some || err != nil
}

// undoText returns 7 changes outside of the tree undone: 3 files, 1 crontab.
func undoText(rep undo.Report) string {
	if len(rep.Undone) == 0 {
		return "nothing outside of the tree to undo"
	}
	var nouns []string
	counts := map[string]int{}
	for _, i := range rep.Undone {
		if counts[i.Noun] == 0 {
			nouns = append(nouns, i.Noun)
		}
		counts[i.Noun]++
	}
	slices.Sort(nouns)
	var parts []string
	for _, n := range nouns {
		parts = append(parts, humanize.Plural(counts[n], n, plurals()[n]...))
	}
	return fmt.Sprintf("undid %s outside of the tree: %s", humanize.Plural(len(rep.Undone), "change"), strings.Join(parts, ", "))
}

// plurals returns the plurals that are not formed with an s.
func plurals() map[string][]string {
	return map[string][]string{"set of packages": {"sets of packages"}}
}

// maxUndoLines is the maximum number of things of one kind that are named.
const maxUndoLines = 10

// undoLines returns lines that name what was not undone.
func (e *Env) undoLines(rep undo.Report) []string {
	var lines []string
	add := func(items []undo.Item, line func(undo.Item) string) {
		for n, i := range items {
			if n == maxUndoLines {
				lines = append(lines, fmt.Sprintf("and %d more", len(items)-n))
				return
			}
			l, _, more := strings.Cut(e.Hide(line(i)), "\n")
			if more {
				l += " …"
			}
			if i.State.Step != "" {
				l += fmt.Sprintf("  (%s, %s)", i.State.Step, e.Hide(i.State.ID))
			}
			lines = append(lines, l)
		}
	}
	add(rep.Failed, func(i undo.Item) string { return fmt.Sprintf("%s %s: %s", i.Noun, i.Name, i.Why) })
	add(rep.Left, func(i undo.Item) string { return fmt.Sprintf("not changed: %s %s: %s", i.Noun, i.Name, i.Why) })
	add(rep.Manual, func(i undo.Item) string { return "not undone: " + printable.Shorten(i.Name, 100) })
	return lines
}

// DropUndo removes the undo log of a deployment that has ended. The log of a deployment that went live is kept, for a manual rollback and an
// undeploy, if it has a change that can be undone. A log that may still be needed is kept until the next deployment of the project has gone live: not
// everything could be undone, or the rollback failed.
func (e *Env) DropUndo(state project.State) error {
	if err := e.Undo.Close(); err != nil {
		return err
	}
	dir := e.Tools.State.Undo(string(e.Deployment.ID))
	there, err := vfs.Exists(e.Tools.FS, dir)
	if err != nil || !there && state != project.Live {
		return err
	}
	switch {
	case state == project.Live && !there:
		return e.dropKept()
	case state == project.Live:
		return errors.Join(e.dropKept(), e.keepLive())
	case state == project.Failed && !e.Prepared.Dev():
		return e.keepUndo()
	}
	if kept, err := vfs.Exists(e.Tools.FS, filepath.Join(dir, keptMark)); kept || err != nil {
		return err
	}
	return undo.Drop(e.Tools.FS, dir)
}

// keepUndo marks the log as one to keep.
func (e *Env) keepUndo() error {
	return vfs.WriteFileAtomic(e.Tools.FS, filepath.Join(e.Tools.State.Undo(string(e.Deployment.ID)), keptMark), []byte(e.Deployment.Project), 0o600)
}

// dropKept removes the logs that earlier deployments of the project kept.
func (e *Env) dropKept() error {
	all := filepath.Dir(e.Tools.State.Undo("x"))
	names, err := e.Tools.FS.ReadDir(all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		of, rerr := vfs.ReadFile(e.Tools.FS, filepath.Join(all, n, keptMark))
		if rerr == nil && string(of) == e.Deployment.Project.String() {
			err = errors.Join(err, undo.Drop(e.Tools.FS, filepath.Join(all, n)))
		}
	}
	return err
}
