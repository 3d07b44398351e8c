package archive

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// Measured is the disk space that a folder took, and the state of the folder when that was measured.
type Measured struct {
	Ino   uint64 `json:"ino"`
	Mtime int64  `json:"mtime"`
	Disk  int64  `json:"disk"`
}

// Measure determines the disk space of failed trees and dumps, for archives for which it is unknown, and records it for List. A folder that was
// measured is not walked again. A size that can't be recorded, on a full disk, is measured again the next time.
func (s *Store) Measure(ctx context.Context) error { return s.measure(ctx, ctx.Err) }

func (s *Store) measure(ctx context.Context, pause func() error) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.Estimated {
			continue
		}
		found, err := s.measureOne(a, pause)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return explain("measure archives", err)
		}
		if _, err := s.update(a.ID, "measure archives", func(r *Record) error { r.Measured = found; return nil }); err != nil {
			if errors.Is(err, ErrNotFound) {
				continue
			}
			return err
		}
	}
	return ctx.Err()
}

func (s *Store) measureOne(a Archive, pause func() error) (map[string]Measured, error) {
	d, err := s.fs.OpenDir(a.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.ReadDir(".")
	if err != nil {
		return nil, err
	}
	out := map[string]Measured{}
	for _, n := range names {
		st, err := d.Lstat(n)
		if err != nil {
			return nil, tree.Named(a.Path, err)
		}
		if !st.IsDir() || slices.Contains(a.Trees, n) {
			continue
		}
		seen := map[uint64]bool{}
		disk, err := usage(d, n, seen, pause)
		if err != nil {
			return nil, tree.Named(filepath.Clean(a.Path), err)
		}
		out[n] = Measured{Ino: st.Ino, Mtime: st.Mtime, Disk: disk}
	}
	return out, nil
}

// usage returns the allocated bytes of a folder and everything below it, each inode counted once.
func usage(parent vfs.Dir, name string, seen map[uint64]bool, pause func() error) (int64, error) {
	if err := pause(); err != nil {
		return 0, err
	}
	d, err := parent.OpenDir(name)
	if tree.Vanished(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }()
	st, err := d.Lstat(".")
	if err != nil {
		return 0, tree.Named(name, err)
	}
	total := st.Allocated()
	names, err := d.ReadDir(".")
	if err != nil {
		return 0, tree.Named(name, err)
	}
	for _, n := range names {
		st, err := d.Lstat(n)
		if tree.Vanished(err) {
			continue
		}
		if err != nil {
			return 0, tree.Named(name, err)
		}
		switch {
		case st.IsDir():
			below, err := usage(d, n, seen, pause)
			if err != nil {
				return 0, tree.Named(name, err)
			}
			total += below
		case st.Nlink > 1 && seen[st.Ino]:
		default:
			seen[st.Ino] = st.Nlink > 1
			total += st.Allocated()
		}
	}
	return total, nil
}
