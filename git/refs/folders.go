package refs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"corpus-git/internal/vfs"
)

// maxFolders is how many folders a Store remembers as durable; beyond it, it starts over.
const maxFolders = 4096

// folders records which folders of refs have durable names, including all above them: a ref in such a folder needs one fsync, of the folder
// itself. It starts empty, because a killed process may have left folders that were not synced. The zero value is ready.
type folders struct {
	mu      sync.Mutex
	durable map[string]bool
	// changes counts created and removed folders: what was synced meanwhile may be another folder of the same name.
	changes uint64
}

// toSync returns the folders to sync after a ref was written in dir, from dir upward, and the state that learn needs.
func (f *folders) toSync(dir, top string) (up []string, at uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := dir; ; d = filepath.Dir(d) {
		up = append(up, d)
		if d == top || f.durable[d] {
			return up, f.changes
		}
	}
}

// learn records that the folders of toSync were synced, unless one was created or removed since.
func (f *folders) learn(dirs []string, at uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes != at {
		return
	}
	if f.durable == nil || len(f.durable)+len(dirs) > maxFolders {
		f.durable = map[string]bool{}
	}
	for _, d := range dirs {
		f.durable[d] = true
	}
}

// change creates or removes dir with do, and atomically forgets what is recorded of it and everything below it.
func (f *folders) change(dir string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	f.changes++
	for d := range f.durable {
		if d == dir || strings.HasPrefix(d, dir+string(filepath.Separator)) {
			delete(f.durable, d)
		}
	}
	return nil
}

// mkdir makes one folder of refs.
func (s *Store) mkdir(dir string) error {
	return s.folders.change(dir, func() error { return s.fs().Mkdir(dir, 0o777) })
}

// rmdir removes one empty folder of refs. Call it with places held.
func (s *Store) rmdir(dir string) error {
	return s.folders.change(dir, func() error { return s.fs().Remove(dir) })
}

// syncNames makes the names of written refs durable, with those of their folders, and the removals in the folders of removed; covered as in Settle.
func (s *Store) syncNames(written []string, removed map[string]bool, covered uint64) error {
	top := s.path("refs")
	var fresh []string
	var at uint64
	for i, name := range written {
		up, now := s.folders.toSync(filepath.Dir(s.path(name)), top)
		if i == 0 {
			at = now
		}
		fresh = append(fresh, up...)
	}
	dirs := map[string]bool{}
	for _, d := range fresh {
		dirs[d] = true
	}
	for d := range removed {
		dirs[d] = true
	}
	gone := false
	for d := range dirs {
		err := vfs.SyncDirUnlessCovered(s.fs(), d, covered)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			gone = true // by another change, or the place is a ref's now
		case err != nil:
			return err
		}
	}
	if !gone {
		s.folders.learn(fresh, at)
	}
	return nil
}
