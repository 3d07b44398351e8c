package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
)

// TrashPrefix starts the name of a tree that waits to be deleted.
const TrashPrefix = ".trash-"

// Reaper deletes trees without making the caller wait: it renames them, then deletes them in the background. The zero value with an FS is
// ready. Safe for concurrent use. A crash leaves folders that start with TrashPrefix: Sweep removes them.
type Reaper struct {
	FS FS
	// Begin, if set, is called before something is deleted, and the function that it returns afterwards: a crash between leaves something.
	// If it fails, Wait returns the error, and the tree is still deleted.
	Begin func() (end func(), err error)

	mu    sync.Mutex
	wg    sync.WaitGroup
	turn  sync.Mutex // one deletion at a time, because they compete for the same disk
	first error
}

// Remove renames path to a trash name in the same folder, durably, and deletes it in the background. A missing path is not an error.
func (r *Reaper) Remove(path string) error {
	trash := filepath.Join(filepath.Dir(path), TrashPrefix+strings.TrimPrefix(filepath.Base(TempName(path)), tempPrefix))
	err := r.FS.Rename(path, trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := SyncDir(r.FS, filepath.Dir(path)); err != nil {
		return err
	}
	r.Delete(trash)
	return nil
}

// Delete deletes a tree in the background, without the rename.
func (r *Reaper) Delete(path string) {
	end := func() {}
	if r.Begin != nil {
		over, err := r.Begin()
		if r.fail(err); err == nil {
			end = over
		}
	}
	r.wg.Go(func() {
		defer end()
		r.turn.Lock()
		err := RemoveAll(r.FS, path)
		r.turn.Unlock()
		r.fail(err)
	})
}

// fail keeps the first error.
func (r *Reaper) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = err
	}
}

// Sweep deletes, in the background, what an earlier process left in dir under TrashPrefix. A missing dir is not an error.
func (r *Reaper) Sweep(dir string) error {
	names, err := r.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if strings.HasPrefix(n, TrashPrefix) {
			r.Delete(filepath.Join(dir, n))
		}
	}
	return err
}

// Wait returns when nothing is left to delete, with the first error since the last Wait.
func (r *Reaper) Wait() error {
	r.wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.first
	r.first = nil
	return err
}
