package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"corpus-git/internal/vfs"
)

// restore restores a path. It is durable on return.
func (u *undoing) restore(ctx context.Context, path string, was, now Node) error {
	dir, err := u.parent(ctx, path, was.Type != absent)
	if errors.Is(err, fs.ErrNotExist) && was.Type == absent {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	switch was.Type {
	case absent:
		err = dir.Remove(name)
		if errors.Is(err, syscall.ENOTEMPTY) {
			err = removeSwept(dir, name)
		}
	case file:
		err = u.file(ctx, dir, name, was, now)
	case folder:
		if now.Type != folder {
			err = removed(dir, name)
			if err == nil {
				err = dir.Mkdir(name, 0o700)
			}
		}
		if err == nil {
			err = attributes(dir, name, was)
		}
		if err == nil {
			err = vfs.SyncDir(dir, name)
		}
	case link:
		err = put(dir, name, now, func(tmp string) error {
			if err := dir.Symlink(string(was.Target), tmp); err != nil {
				return err
			}
			return owned(dir, tmp, was)
		})
	default:
		err = put(dir, name, now, func(tmp string) error {
			if err := dir.Mknod(tmp, was.Mode, was.Dev); err != nil {
				return err
			}
			return attributes(dir, tmp, was)
		})
	}
	if err != nil {
		return err
	}
	return vfs.SyncDir(dir, ".")
}

// above restores the folders above a path that a state removed or replaced. Failures are added to the report.
func (u *undoing) above(ctx context.Context, path string) {
	full := ""
	for name := range strings.SplitSeq(strings.Trim(filepath.Dir(path), "/"), "/") {
		full += "/" + name
		if c := u.folders[full]; c != nil && !c.early {
			if st, err := u.fs.Lstat(full); err != nil || !st.IsDir() {
				c.early = true
				u.path(ctx, c)
			}
		}
	}
}

// parent opens the folder above a path, through no link. To restore something, the folders above it that a state removed or replaced are
// restored first; one that is missing and not in the log is created.
func (u *undoing) parent(ctx context.Context, path string, wanted bool) (vfs.Dir, error) {
	at, err := u.fs.OpenDir("/")
	if err != nil {
		return nil, err
	}
	full := ""
	for name := range strings.SplitSeq(strings.Trim(filepath.Dir(path), "/"), "/") {
		if name == "" {
			continue
		}
		full += "/" + name
		next, err := at.OpenDir(name)
		if err != nil && wanted {
			if c := u.folders[full]; c != nil && !c.early {
				c.early = true
				u.path(ctx, c)
			} else if errors.Is(err, fs.ErrNotExist) {
				if err := at.Mkdir(name, 0o700); err != nil {
					return nil, errors.Join(err, at.Close())
				}
			}
			next, err = at.OpenDir(name)
		}
		if cerr := at.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// removeSwept removes a folder that contains only temporary files of a killed process.
func removeSwept(dir vfs.Dir, name string) error {
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	err = vfs.SweepTemps(sub, ".")
	if cerr := sub.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return dir.Remove(name)
}

// tempName returns a temporary name that is derived from the final one, so that a later undo of the same path, or of the change that recorded
// it, finds what a killed process left.
func tempName(name string) string {
	sum := sha256.Sum256([]byte("undo " + name))
	return filepath.Join(filepath.Dir(name), ".tmp-"+hex.EncodeToString(sum[:8]))
}

// sweep removes what a killed undo left beside a path. What can't be removed stays.
func (u *undoing) sweep(path string) {
	dir, err := openDir(u.fs, filepath.Dir(path))
	if err != nil {
		return
	}
	defer dir.Close()
	tmp := tempName(filepath.Base(path))
	if st, err := dir.Lstat(tmp); err == nil && !st.IsDir() {
		_ = dir.Remove(tmp)
	}
}

// put creates something under a temporary name and renames it at once. An existing folder must be empty.
func put(dir vfs.Dir, name string, now Node, make func(tmp string) error) error {
	tmp := tempName(name)
	err := make(tmp)
	if errors.Is(err, fs.ErrExist) { // left by a killed process since sweep, or put there on purpose
		tmp = vfs.TempName(name)
		err = make(tmp)
	}
	if err == nil && now.Type == folder {
		err = removeSwept(dir, name)
	}
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp)
	}
	return err
}

// syncFile makes a file's attributes durable.
func syncFile(dir vfs.Dir, name string) error {
	h, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	err = h.Sync()
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

func removed(dir vfs.Dir, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// file restores content and attributes; only attributes if the content is still the same.
func (u *undoing) file(ctx context.Context, dir vfs.Dir, name string, was, now Node) error {
	if now.Type == file && (was.Saved == "" || now.Sum != "" && now.Sum == was.Sum) {
		if err := attributes(dir, name, was); err != nil {
			return err
		}
		return syncFile(dir, name)
	}
	if was.Saved == "" {
		return errors.New("its content was not kept: only its attributes were to be changed")
	}
	return put(dir, name, now, func(tmp string) error {
		src, err := u.saved(ctx, was)
		if err != nil {
			return err
		}
		if src != nil {
			defer src.Close()
		}
		dst, err := dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if src != nil {
			_, err = dst.CopyFrom(ctx, src)
		} else {
			_, err = dst.Write(was.Content)
		}
		if err == nil {
			err = attributes(dir, tmp, was)
		}
		if err == nil {
			err = dst.Sync()
		}
		if cerr := dst.Close(); err == nil {
			err = cerr
		}
		return err
	})
}

// saved opens the copy of a file's content once it is verified; nil if the content is in the record.
func (u *undoing) saved(ctx context.Context, was Node) (vfs.File, error) {
	damaged := errors.New("the copy in the undo log is damaged")
	if was.Saved == inJournal {
		sum, err := sumOf(bytes.NewReader(was.Content))
		if err == nil && sum != was.Sum {
			err = damaged
		}
		return nil, err
	}
	src, err := u.fs.OpenFile(filepath.Join(u.dir, filesDir, was.Saved), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(vfs.WithContext(ctx, src))
	if err == nil && sum != was.Sum {
		err = damaged
	}
	if err == nil {
		_, err = src.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// owned sets the owner of a name; a process that is not root leaves a correct one.
func owned(dir vfs.Dir, name string, was Node) error {
	st, err := dir.Lstat(name)
	if err != nil || st.UID == was.UID && st.GID == was.GID {
		return err
	}
	return dir.Lchown(name, int(was.UID), int(was.GID))
}

// attributes gives a name its owner, mode, extended attributes and times: the owner first, because changing it clears modes.
func attributes(dir vfs.Dir, name string, was Node) error {
	if err := owned(dir, name, was); err != nil {
		return err
	}
	if err := dir.Chmod(name, was.Mode&0o7777); err != nil {
		return err
	}
	have, err := dir.Xattrs(name)
	if err != nil {
		return err
	}
	for _, x := range have {
		if !slices.ContainsFunc(was.Xattrs, func(w vfs.Xattr) bool { return w.Name == x.Name }) {
			if err := dir.SetXattr(name, vfs.Xattr{Name: x.Name}); err != nil {
				return err
			}
		}
	}
	for _, x := range was.Xattrs {
		if x.Value == nil {
			x.Value = []byte{}
		}
		if err := dir.SetXattr(name, x); err != nil {
			return err
		}
	}
	return dir.Lutimes(name, was.Mtime)
}
