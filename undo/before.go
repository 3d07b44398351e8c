package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/vfs"
)

// Before records what is at a path, with its content, before a state changes it; missing folders above it are recorded as missing. It is
// durable on return. If it fails, as it does when ctx ends, the state must not continue. A path that is already recorded is not recorded
// again.
func (l *Log) Before(ctx context.Context, path string) error {
	return l.note(ctx, path, recording{content: true})
}

// BeforeTree is Before for a path and everything below it.
func (l *Log) BeforeTree(ctx context.Context, path string) error {
	return l.note(ctx, path, recording{content: true, tree: true})
}

// BeforeWhole is Before for a folder that is missing or empty and whose future content belongs entirely to the state: a clone, a virtual
// environment. It reports whether the folder was recorded this way; a folder that is not empty can't be.
func (l *Log) BeforeWhole(ctx context.Context, path string) (whole bool, err error) {
	err = l.note(ctx, path, recording{content: true, whole: &whole})
	return whole, err
}

// recording defines what of a path is recorded: its content, or only owner, mode, times and attributes; and whether everything below it is,
// too.
type recording struct {
	content, tree bool
	whole         *bool // set if it is recorded as a folder whose content belongs to the state; otherwise nothing is recorded
}

// note finds what is at a path, and records it.
func (l *Log) note(ctx context.Context, path string, what recording) error {
	return l.locked(ctx, path, what, func() (vfs.Dir, string, error) {
		real, err := resolveParent(l.fs, path)
		if err != nil || l.isInside(real) {
			return nil, real, err
		}
		dir, err := openDir(l.fs, filepath.Dir(real))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, real, nil
		}
		return dir, real, err
	})
}

// locked records what find opens; if find returns no folder, the path is missing together with folders above it. Errors name the path named.
func (l *Log) locked(ctx context.Context, named string, what recording, find func() (vfs.Dir, string, error)) error {
	if l == nil {
		if what.whole != nil {
			*what.whole = true
		}
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	dir, path, err := find()
	if err == nil {
		err = l.in(ctx, dir, path, what)
	}
	if err != nil {
		return fmt.Errorf("note %s for the undo log: %w", named, err)
	}
	return nil
}

// in records what is at a path whose folder is open, and closes the folder.
func (l *Log) in(ctx context.Context, dir vfs.Dir, path string, what recording) (err error) {
	if dir != nil {
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	if what.whole != nil {
		*what.whole = true
	}
	if l.isInside(path) {
		return nil
	}
	if what.whole != nil && dir != nil {
		if *what.whole, err = missingOrEmpty(dir, filepath.Base(path)); err != nil || !*what.whole {
			return err
		}
	}
	recs, err := l.collect(ctx, dir, path, what)
	if n := len(recs) - 1; err == nil && what.whole != nil && n >= 0 && recs[n].Path == text(path) && recs[n].Node != nil {
		recs[n].Node.Whole = true
	}
	if err == nil {
		err = l.append(recs, true)
	}
	if err != nil {
		l.forget(recs)
	}
	return err
}

// missingOrEmpty reports whether a name in a folder is missing, or an empty folder.
func missingOrEmpty(dir vfs.Dir, name string) (bool, error) {
	st, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !st.IsDir() {
		return false, err
	}
	names, err := dir.ReadDir(name)
	return len(names) == 0, err
}

// Inside reports whether changes at a path are not recorded, because the tree is restored by other means; on a nil *Log all paths are inside.
func (l *Log) Inside(path string) bool {
	if l == nil {
		return true
	}
	path, err := resolveParent(l.fs, path)
	return err == nil && l.isInside(path)
}

func (l *Log) isInside(path string) bool {
	return slices.ContainsFunc(l.inside, func(in string) bool { return path == in || strings.HasPrefix(path, in+"/") })
}

// collect returns the records of a path, of the missing folders above it if dir is nil, and of what is below it.
func (l *Log) collect(ctx context.Context, dir vfs.Dir, path string, what recording) ([]record, error) {
	if dir != nil {
		return l.walk(ctx, nil, dir, filepath.Base(path), path, what)
	}
	missing := []string{path}
	for above := filepath.Dir(path); above != "/"; above = filepath.Dir(above) {
		there, err := vfs.Exists(l.fs, above)
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
		missing = append(missing, above)
	}
	slices.Reverse(missing)
	var recs []record
	for _, p := range missing {
		l.touched = append(l.touched, p)
		if l.noted[p] == nil {
			recs = append(recs, l.record(p, Node{Type: absent}))
		}
		recs = l.again(recs, p)
	}
	return recs, nil
}

// walk adds the records of a name in an open folder.
func (l *Log) walk(ctx context.Context, recs []record, dir vfs.Dir, name, path string, what recording) ([]record, error) {
	n, err := inspect(dir, name, false)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return recs, err
	}
	old := l.noted[path]
	if old == nil || what.content && !old.saved && n.Type == file {
		if what.content && n.Type == file {
			if n, err = l.save(ctx, dir, name, n); err != nil {
				return recs, err
			}
		}
		recs = append(recs, l.record(path, n))
	}
	l.touched = append(l.touched, path)
	recs = l.again(recs, path)
	if !what.tree || n.Type != folder {
		return recs, nil
	}
	sub, err := dir.OpenDir(name)
	if err != nil {
		return recs, err
	}
	defer sub.Close()
	names, err := sub.ReadDir(".")
	if err != nil {
		return recs, err
	}
	for _, c := range names {
		if p := filepath.Join(path, c); !l.isInside(p) {
			if recs, err = l.walk(ctx, recs, sub, c, p, what); err != nil {
				return recs, err
			}
		}
	}
	return recs, nil
}

// record numbers a node.
func (l *Log) record(path string, n Node) record {
	l.seq++
	if old := l.noted[path]; old == nil {
		l.noted[path] = &note{seq: l.seq, saved: n.Saved != "" || n.Type != file}
	} else {
		old.saved = true
	}
	return record{Seq: l.seq, Kind: kindBefore, State: l.state, Path: text(path), Node: &n}
}

// forget removes records that were not written to the journal, so that the next state records them again.
func (l *Log) forget(recs []record) {
	for _, r := range recs {
		if r.Kind != kindBefore {
			continue
		}
		switch n := l.noted[string(r.Path)]; {
		case n == nil:
		case n.seq == r.Seq:
			delete(l.noted, string(r.Path))
		default: // its attributes are already recorded
			n.saved = false
		}
	}
	l.touched = slices.DeleteFunc(l.touched, func(p string) bool { return l.noted[p] == nil })
}

// again records that a path which an earlier state left is about to be changed again.
func (l *Log) again(recs []record, path string) []record {
	n := l.noted[path]
	if !n.after {
		return recs
	}
	n.after = false
	l.seq++
	return append(recs, record{Seq: l.seq, Kind: kindAgain, Of: n.seq})
}

// maxHoles limits the sparse part of a saved file, in bytes: it is read like the rest, and its owner could otherwise make it terabytes
// long.
const maxHoles = 8 << 30

// A file of at most maxInJournal bytes is saved in the journal: its record then costs one sync, while a copy needs three. Once the journal
// is larger than maxSmall, in bytes, all are copied.
const (
	maxInJournal = 4 << 10
	maxSmall     = 64 << 20
)

// save saves a file's content in the log: a small one in its record, others as copies, with shared extents if the file system supports them.
func (l *Log) save(ctx context.Context, dir vfs.Dir, name string, n Node) (Node, error) {
	src, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return n, err
	}
	defer src.Close()
	// The folder may be another user's: make sure that the file whose content is saved is the one that was inspected.
	if st, err := src.Stat(); err != nil || !st.IsRegular() || st.Ino != n.Ino || st.UID != n.UID || st.GID != n.GID || st.Mode != n.Mode {
		return n, errors.Join(errors.New("it was replaced while it was read"), err)
	}
	if st, err := src.Stat(); err != nil || st.Size-st.Blocks*512 > maxHoles {
		return n, errors.Join(fmt.Errorf("%d bytes of it are holes, which are too many to be kept", st.Size-st.Blocks*512), err)
	}
	if n.Size <= maxInJournal && l.size <= maxSmall {
		content, err := io.ReadAll(io.LimitReader(src, maxInJournal+1))
		if err != nil {
			return n, err
		}
		if len(content) <= maxInJournal {
			sum := sha256.Sum256(content)
			n.Saved, n.Content, n.Sum, n.Size = inJournal, content, hex.EncodeToString(sum[:]), int64(len(content))
			return n, nil
		}
		if _, err := src.Seek(0, io.SeekStart); err != nil { // it grew
			return n, err
		}
	}
	if l.journal == nil {
		if err := l.create(); err != nil {
			return n, err
		}
	}
	n.Saved = strconv.Itoa(l.seq + 1)
	to := filepath.Join(l.dir, filesDir, n.Saved)
	dst, err := l.fs.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return n, err
	}
	n.Size, err = dst.CopyFrom(ctx, src)
	if err == nil {
		_, err = dst.Seek(0, 0)
	}
	if err == nil {
		n.Sum, err = sumOf(vfs.WithContext(ctx, dst))
	}
	if err == nil {
		err = dst.Sync()
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = vfs.SyncDir(l.fs, filepath.Join(l.dir, filesDir))
	}
	return n, err
}
