package registry

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"corpus-git/project"
)

// Destroyed says what Destroy did.
type Destroyed struct {
	// Kept is the folder of the data that was kept, "" if there is none.
	Kept string
	// Trash is where the rest stays until EmptyTrash deletes it.
	Trash string
	// Unlinked lists what was removed from Salt's trees.
	Unlinked []string
}

// Destroy removes a project: it is unknown from the start, then it is removed from Salt's trees, its folder is moved to the trash, and
// its row is deleted. data/ stays where it is unless data is true. A project with a running or waiting deployment is fault.Busy and is
// kept. Destroying a partly destroyed project completes the removal.
func (r *Registry) Destroy(ctx context.Context, name project.Name, data bool) (Destroyed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resume, err := r.destroying(ctx, name)
	if err != nil {
		return Destroyed{}, err
	}
	if !resume {
		if _, err := r.Get(ctx, name); err != nil {
			return Destroyed{}, err
		}
		if err := r.mark(ctx, name, 1); err != nil {
			return Destroyed{}, err
		}
	}
	release, err := r.Deployments.Exclusive(ctx, name, "project destroy", project.Pusher{Key: "project destroy", From: "local"})
	if err != nil {
		if !resume {
			err = errors.Join(err, r.mark(context.WithoutCancel(ctx), name, 0))
		}
		return Destroyed{}, err
	}
	defer release()
	unlinked, err := r.Linker.Unlink(ctx, name)
	if err != nil {
		return Destroyed{}, err
	}
	out, err := r.discard(name, data)
	out.Unlinked = unlinked
	if err != nil {
		return out, cannot("project destroy", err)
	}
	if err := r.Deployments.Forget(ctx, name); err != nil {
		return out, cannot("project destroy", err)
	}
	_, err = r.db.ExecContext(ctx, `DELETE FROM projects WHERE name = ?`, string(name))
	return out, err
}

func (r *Registry) mark(ctx context.Context, name project.Name, v int) error {
	res, err := r.db.ExecContext(ctx, `UPDATE projects SET destroying = ? WHERE name = ?`, v, string(name))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, sql.ErrNoRows)
	}
	return nil
}

// discard moves the folder, or all of it except data/, into the trash.
func (r *Registry) discard(name project.Name, data bool) (Destroyed, error) {
	l := r.Root.Project(string(name))
	entries, err := os.ReadDir(l.Dir())
	if errors.Is(err, os.ErrNotExist) {
		return Destroyed{}, nil
	}
	if err != nil {
		return Destroyed{}, err
	}
	trash, err := r.trash(name)
	if err != nil {
		return Destroyed{}, err
	}
	out := Destroyed{Trash: trash}
	if full, err := notEmpty(l.Data()); err != nil {
		return out, err
	} else if full && !data {
		out.Kept = l.Data()
	}
	for _, e := range entries {
		from := filepath.Join(l.Dir(), e.Name())
		if from == out.Kept {
			continue
		}
		if err := os.Rename(from, filepath.Join(trash, e.Name())); err != nil {
			return out, err
		}
	}
	if out.Kept == "" {
		if err := os.Remove(l.Dir()); err != nil {
			return out, err
		}
		return out, syncDir(r.Root.Projects(), trash)
	}
	return out, syncDir(l.Dir(), trash)
}

// trash makes a folder to move a project to: in the state directory, or beside the projects if nothing can be renamed to there. rename(2) crosses neither file systems nor mounts of the
// same one, and systemd mounts the state directory of a sandboxed service by itself.
func (r *Registry) trash(name project.Name) (string, error) {
	dir, err := makeTrash(r.State.Trash(), name)
	if err != nil {
		return "", err
	}
	probe, err := os.MkdirTemp(r.Root.Project(string(name)).Dir(), ".trash-")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(probe))
	err = os.Rename(probe, to)
	if err == nil {
		return dir, os.Remove(to)
	}
	if err := errors.Join(os.Remove(probe), os.Remove(dir)); err != nil {
		return "", err
	}
	if !errors.Is(err, unix.EXDEV) {
		return "", err
	}
	return makeTrash(r.besides(), name)
}

func makeTrash(parent string, name project.Name) (string, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, string(name)+"-")
}

func (r *Registry) besides() string { return filepath.Join(r.Root.Projects(), ".trash") }

func notEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 0, err
}

// EmptyTrash deletes what is in the trash. It may take a long time; after an interruption a second call completes it.
func (r *Registry) EmptyTrash(ctx context.Context) error {
	var errs []error
	for _, dir := range []string{r.State.Trash(), r.besides()} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, err)
		for _, e := range entries {
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
