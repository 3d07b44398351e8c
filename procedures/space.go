package procedures

import (
	"context"
	"errors"
	"fmt"
	"os"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// makeArchive makes the archive, and frees space for it and for the checkout if needed: the low-space hooks run, then archives that retention
// allows to remove are removed, then the deployment is refused with figures. Nothing is written before there is enough space for all of it.
func (e *Env) makeArchive(ctx context.Context) (archive.Archive, error) {
	store := e.Tools.Archives(e.Deployment.Project)
	req := archive.MakeRequest{Facts: archive.Facts{
		ID: string(e.Deployment.ID), Project: e.Deployment.Project.String(), At: e.Deployment.At,
		Held:     archive.Commits{Code: string(e.Deployment.LiveCode), Pillar: string(e.Deployment.LivePillar)},
		Incoming: archive.Commits{Code: string(e.Deployment.Code), Pillar: string(e.Deployment.Pillar)},
		By:       e.Deployment.Pusher.Key, Trigger: string(e.Deployment.Trigger),
	}, Progress: e.progress(), Beside: e.Beside, Folder: func() bool { return e.readsArchive(ctx) }}
	if b := e.Brings; b != nil && !e.RemoteLess {
		req.Later = archive.Later{Bytes: uint64(max(b.Bytes, 0)), Inodes: uint64(max(b.Files, 0))}
	}
	a, err := store.Make(ctx, req)
	for _, relief := range []func(context.Context, *archive.SpaceError) error{e.callLowSpace, e.dropOld} {
		var short *archive.SpaceError
		if !errors.As(err, &short) {
			return a, err
		}
		if err := relief(ctx, short); err != nil {
			return a, err
		}
		a, err = store.Make(ctx, req)
	}
	return a, e.refused(err)
}

// readsArchive reports whether the archived trees may be read by path while the deployment runs: by a hook, by the project's own procedures,
// or by a recipe that names their folder (cfg.current_archive_dir, CORPUS_ARCHIVE_DIR, archives/).
func (e *Env) readsArchive(ctx context.Context) bool {
	for _, p := range hooks.Points() {
		if list, err := e.Tools.Hooks.List(p, nil); err != nil || len(list) > 0 {
			return true
		}
	}
	if live, err := e.liveRecipe(ctx); err != nil || live != nil && e.LiveTree != nil {
		return true
	}
	return recipe.ReadsArchive(e.Prepared.recipe)
}

// callLowSpace runs the operator's hooks that free space.
func (e *Env) callLowSpace(ctx context.Context, short *archive.SpaceError) error {
	e.Note("%s", short.Error())
	e.Short = &project.Shortage{NeedBytes: int64(short.Need), FreeBytes: int64(short.Usable())}
	err := e.runHooks(ctx, hooks.LowSpace, func(d *hooks.Description) {
		d.NeedBytes, d.FreeBytes = int64(short.Need), int64(short.Usable())
	})
	if err != nil {
		e.Note("%v", err) // what it freed so far may be enough
	}
	return context.Cause(ctx)
}

// dropOld removes early what retention does not keep: failed trees. If that would not be enough, it removes nothing. The spare tree is kept,
// since without it the archive would take that much more space.
func (e *Env) dropOld(_ context.Context, short *archive.SpaceError) error {
	store := e.Tools.Archives(e.Deployment.Project)
	policy := e.policy()
	policy.KeepFailed = -1
	could, err := store.Preview(policy)
	if err != nil {
		return err
	}
	if freed := could.Freed; len(could.Removed) == 0 || uint64(freed) < short.Missing() {
		return nil
	}
	r, err := store.Rotate(policy)
	if err == nil {
		err = store.Wait()
	}
	if err != nil {
		return err
	}
	e.Note("removed %s to free space: about %s", humanize.Plural(len(r.Removed), "archive of failed deployments"), humanize.Bytes(r.Freed))
	return nil
}

// refused adds to an error about a lack of space what could be done about it.
func (e *Env) refused(err error) error {
	var short *archive.SpaceError
	if !errors.As(err, &short) {
		return err
	}
	name := e.Deployment.Project
	missing := humanize.Bytes(int64(min(short.Missing(), 1<<62)))
	var could int64
	if r, perr := e.Tools.Archives(name).Preview(RetentionPolicy(project.Retention{Keep: 1})); perr == nil {
		could = r.Freed
	}
	hint := fmt.Sprintf("free %s on the disk; no archive of %s can be removed", missing, name)
	switch {
	case short.Missing() == 0:
		hint = "free inodes on the disk: remove directories with many small files"
	case could > 0:
		hint = fmt.Sprintf("free %s on the disk; about %s of it with  corpus-git archives prune %s --keep 1", missing, humanize.Bytes(could), name)
	}
	return fault.New(fault.Busy, NameArchive, "%w", short).WithHint("%s", hint)
}

// ShortOfSpace reports whether err is a lack of space, before or while something was written.
func ShortOfSpace(err error) bool {
	var short *archive.SpaceError
	return errors.As(err, &short) || diskfull.Is(err)
}

// diskFull reports whether cause is a full disk, or the disk is full now.
func (e *Env) diskFull(cause error) bool {
	if ShortOfSpace(cause) {
		return true
	}
	sp, err := e.Tools.FS.StatFS(e.Paths.Dir())
	return err == nil && (sp.Free < diskfull.Enough || (sp.Files > 0 && sp.Inodes == 0))
}

// FreeSpace frees space for a rollback and its records if the disk is full: the reserve file, then what retention does not keep. A second
// call reports nothing.
func (e *Env) FreeSpace(cause error) {
	if !e.diskFull(cause) {
		return
	}
	again := e.full
	e.full = true
	_ = os.Remove(e.Tools.State.ReserveFile()) // if it does not exist it was used before
	policy := e.policy()
	policy.Squeeze = true
	if _, err := e.Tools.Archives(e.Deployment.Project).Rotate(policy); err != nil {
		e.Note("cannot free space: %v", err)
		return
	}
	if again {
		return
	}
	e.Note("the disk is full: removed expendable files so that the old tree can be restored")
}

// SyncWritten makes everything durable that the deployment wrote to the project's file system, by one syncfs(2). It returns the device number of
// that file system.
func (e *Env) SyncWritten() (covered uint64, err error) {
	d, err := e.Tools.FS.OpenDir(e.Paths.Dir())
	if err == nil {
		if st, err := d.Lstat("."); err == nil {
			covered = st.Dev
		}
		err = d.SyncFS(".")
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return 0, fault.New(fault.Internal, "make the new tree durable", "%w", err)
	}
	e.staged.Covered = covered
	return covered, nil
}
