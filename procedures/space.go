package procedures

import (
	"context"
	"errors"
	"os"
	"path"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/room"
	"corpus-git/project"
)

// makeArchive makes the archive, and frees space for it and for the checkout if needed: the low-space hooks run, then archives that retention
// allows to remove are removed, then the deployment is refused with figures. Nothing is written before there is enough space for all of it.
func (e *Env) makeArchive(ctx context.Context) (archive.Archive, error) {
	store := e.Tools.Archives(e.Deployment.Project)
	req := archive.MakeRequest{Begin: func() { e.Tools.known.Begin(e.Paths) }, Facts: archive.Facts{
		ID: string(e.Deployment.ID), Project: e.Deployment.Project.String(), At: e.Deployment.At,
		Held:     archive.Commits{Code: string(e.Deployment.LiveCode), Pillar: string(e.Deployment.LivePillar)},
		Incoming: archive.Commits{Code: string(e.Deployment.Code), Pillar: string(e.Deployment.Pillar)},
		By:       e.Deployment.Pusher.Key, Trigger: string(e.Deployment.Trigger),
	}, Progress: e.progress(), Beside: e.Beside, Named: e.Named, Folder: func() bool { return e.readsArchive(ctx) }}
	if b := e.Brings; b != nil && !e.RemoteLess {
		req.Later = later(*b)
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
	if could, err := room.Droppable(store, policy, short); err != nil || !could {
		return err
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
	name := e.Deployment.Project
	return room.Refused(e.Tools.Archives(name), name, NameArchive, leastPolicy(), err)
}

// leastPolicy keeps the least that a person may ask for.
func leastPolicy() archive.Policy { return RetentionPolicy(project.Retention{Keep: 1}) }

// Room returns the error with which a deployment to this machine would be refused for a lack of space, or what it would do first to have enough, "" for nothing. It changes
// nothing.
func (t *Tools) Room(ctx context.Context, name project.Name, brings project.Description) (first string, err error) {
	policy := RetentionPolicy(t.retention())
	policy.KeepFailed = -1
	return room.Question{
		Archives: t.Archives(name), Project: name, Step: NameArchive, Policy: policy, Least: leastPolicy(), Later: later(brings),
		Hooks: func() (bool, error) {
			list, err := t.Hooks.List(hooks.LowSpace, nil)
			own, _ := hooks.Executables(vfs.Files(t.Root.Project(name.String()).Salt()), path.Join(layout.HooksDir, string(hooks.LowSpace)+".d"))
			return len(list)+len(own) > 0, err
		},
	}.Ask(ctx)
}

// later is what a checkout will write.
func later(b project.Description) archive.Later {
	return archive.Later{Bytes: uint64(max(b.Bytes, 0)), Inodes: uint64(max(b.Files, 0))}
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
	if e.first && e.Tools.Ahead != nil {
		e.Tools.Ahead(e.Deployment.Project)
	}
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
