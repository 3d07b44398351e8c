package procedures

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/hooks"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// Archive archives the project as it was before the deployment. If there is too little space it runs the low-space hooks, then removes
// archives that retention allows to remove, then refuses with figures.
type Archive struct{}

// Name implements Procedure.
func (Archive) Name() string { return NameArchive }

// Run implements Procedure.
func (Archive) Run(ctx context.Context, env *Env) error {
	env.Tools.known.BeginBeside(env.Paths) // while the hooks are looked for
	if err := env.runHooks(ctx, hooks.PreArchive, nil); err != nil {
		return err
	}
	_ = diskfull.KeepReserve(env.Tools.State.ReserveFile()) // the estimate below says what is short
	if _, err := EnsureDirs(env.Tools.FS, env.Paths, !env.RemoteLess); err != nil {
		return fault.New(fault.Internal, NameArchive, "%w", err)
	}
	a, err := env.makeArchive(ctx)
	if err != nil {
		return err
	}
	env.scan, env.archived, env.first = a.Scan, true, a.Sizes.Files == 0
	if env.first {
		env.Tools.known.Close() // everything will be new
	}
	if env.Publish != nil {
		if err := env.Publish(ctx); err != nil {
			return err
		}
	}
	if err := env.runHooks(ctx, hooks.PostArchive, nil); err != nil {
		return err
	}
	if env.first {
		env.Summarize(nil, "nothing to archive yet")
		return nil
	}
	text := humanize.Plural(a.Sizes.Files, "file")
	if a.Made.Changed >= 0 {
		text += fmt.Sprintf(", %s changed since the last archive", humanize.Count(a.Made.Changed))
	}
	env.Summarize(archiveNotes(a.Made.Notes), "%s, %s", text, humanize.Bytes(a.Sizes.Bytes))
	return nil
}

// progress reports a long copy every two seconds.
func (e *Env) progress() func(tree.Progress) {
	last := e.Tools.Now()
	return func(p tree.Progress) {
		if now := e.Tools.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			e.Note("archive: %s of %s", humanize.Count(p.Files), humanize.Plural(p.TotalFiles, "file"))
		}
	}
}

func archiveNotes(n tree.Notes) []string {
	var out []string
	if n.Unstable > 0 {
		out = append(out, fmt.Sprintf("%s changed while being read, such as %s", humanize.Plural(n.Unstable, "file"), n.UnstableNames[0]))
	}
	if n.Skipped > 0 {
		out = append(out, fmt.Sprintf("%s not archived (sockets, devices), such as %s", humanize.Count(n.Skipped), n.SkippedNames[0]))
	}
	if n.Owners > 0 {
		out = append(out, fmt.Sprintf("the owners of %s could not be kept: not root", humanize.Plural(n.Owners, "file")))
	}
	if n.Xattrs > 0 {
		out = append(out, fmt.Sprintf("the extended attributes of %s could not be kept", humanize.Plural(n.Xattrs, "file")))
	}
	return out
}

// RetentionPolicy converts retention to a policy of package archive.
func RetentionPolicy(r project.Retention) archive.Policy {
	p := archive.Policy{Keep: r.Keep, KeepFailed: r.KeepFailed, MaxBytes: r.MaxBytes, MaxAge: r.MaxAge, MaxFailedAge: r.FailedMaxAge}
	if p.KeepFailed <= 0 {
		p.KeepFailed = -1 // none, where zero is the default
	}
	return p
}

// policy returns what rotation keeps during the deployment: also the archive to be restored.
func (e *Env) policy() archive.Policy {
	keep := e.Tools.retention()
	if e.Prepared != nil && e.Prepared.Cfg != nil {
		keep = e.Prepared.Cfg.Retention()
	}
	p := RetentionPolicy(keep)
	if restored := string(e.Deployment.Restore); restored != "" {
		p.Protect = func(a archive.Archive) bool { return a.ID == restored }
	}
	return p
}

// Retain records the deployment's result in its archive, and rotates by number and age, on failure too. Limits on size are left to
// package upkeep, which measures sizes.
func (e *Env) Retain(state project.State) error {
	settle, err := e.RetainSoon(state)
	return errors.Join(err, settle())
}

// StageVerdict records, if there is an archive, that the deployment went live: Settle makes it durable with everything else, so
// RetainSoon need not.
func (e *Env) StageVerdict() {
	e.staged = e.Tools.Archives(e.Deployment.Project).StageVerdict(e.Deployment.At, string(e.Deployment.ID), archive.Good)
}

// DropVerdict removes what StageVerdict wrote.
func (e *Env) DropVerdict() {
	e.Tools.Archives(e.Deployment.Project).Abandon(e.staged)
	e.staged = archive.StagedVerdict{}
}

// RetainSoon is like Retain, but its names become durable only when settle returns; settle is called once, also after an error.
func (e *Env) RetainSoon(state project.State) (settle func() error, err error) {
	store := e.Tools.Archives(e.Deployment.Project)
	verdict := archive.Failed
	switch state {
	case project.Live:
		verdict = archive.Good
	case project.RolledBack, project.Refused:
		verdict = archive.RolledBack
	}
	policy := e.policy()
	policy.Protect, policy.MaxBytes = nil, 0
	if e.full || e.diskFull(nil) {
		// A failed tree is only for inspection; on a full disk the space is needed more.
		policy.Squeeze = true
		e.Note("the disk is full: no failed tree is kept")
	}
	staged := e.staged
	e.staged = archive.StagedVerdict{}
	return store.Conclude(string(e.Deployment.ID), verdict, staged, policy)
}

// Held is a tree that an archive holds completely.
type Held struct {
	// ID is the deployment that made the archive, Name the archive's folder.
	ID   project.ID
	Name string
	// Code and Pillar are the commits that were live in the tree.
	Code, Pillar project.Commit
}

// HeldTrees returns the trees that can be restored, newest first.
func HeldTrees(t *Tools, name project.Name) ([]Held, error) {
	all, err := t.Archives(name).List()
	if err != nil {
		return nil, err
	}
	var out []Held
	for _, a := range all {
		if a.Whole && a.Held.Code != "" {
			out = append(out, Held{ID: project.ID(a.ID), Name: filepath.Base(a.Path), Code: project.Commit(a.Held.Code), Pillar: project.Commit(a.Held.Pillar)})
		}
	}
	return out, nil
}
