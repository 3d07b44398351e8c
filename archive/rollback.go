package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

const (
	methodExchange = "exchange"
	methodInPlace  = "in place"
	failedTmp      = tmpPrefix + "failed"
)

// Restored is the result of a rollback or a restore.
type Restored struct {
	// Already reports that an earlier call had restored the trees and nothing was changed.
	Already bool `json:"already,omitempty"`
	// Method is "exchange" or "in place".
	Method string `json:"method"`
	// Proof compares the live tree, as it is now, with the manifest.
	Proof tree.Proof `json:"proof"`
	// FailedKept reports whether the tree that was live is kept in the archive, as project.failed.
	FailedKept bool `json:"failed_kept,omitempty"`
	// Back is the time until the trees were live again and durable; Took includes the comparison.
	Back time.Duration `json:"back_ns"`
	Took time.Duration `json:"took_ns"`
}

// Rollback makes the trees of an archive live again; the live ones become project.failed and pillar.failed in the archive. Names are
// exchanged, so live is never absent and never a mix of both. If names can't be exchanged (a mount point, another file system), the
// differences are copied back in place instead.
//
// The archived trees are compared with the manifest first: if they differ, nothing is exchanged, and the error is a DamageError. Proof
// compares the live trees afterwards. Differences there are not an error: a program that is still running has written to the tree since.
//
// The rollback is durable when it returns nil. It may be run again after any crash or error and continues from there; a further call does
// nothing and sets Already.
func (s *Store) Rollback(ctx context.Context, id string) (Restored, error) {
	const op = "roll back"
	s.work.Lock()
	defer s.work.Unlock()
	begun := s.cfg.Now()
	a, err := s.Show(id)
	if err != nil {
		return Restored{}, err
	}
	if r := a.Rollback; r != nil && !r.Done.IsZero() {
		return Restored{Already: true, Method: r.Method, Proof: r.Proof, FailedKept: r.FailedKept}, nil
	}
	m, err := s.manifest(a.Path)
	if err != nil {
		return Restored{}, fault.New(fault.Internal, op, "%w", err)
	}
	packed := a
	if m, err = s.unpacked(ctx, a, m); err != nil {
		return Restored{}, explain(op, err)
	}
	held, err := s.heldTrees(a, m)
	if err == nil {
		err = s.proveHeld(ctx, a, m, held, false)
	}
	if err != nil {
		return Restored{}, explain(op, err)
	}
	if a.Rollback == nil {
		now, err := s.noteRollback(a.ID, func(r *Record) { r.Rollback = &Rollback{Begun: begun} })
		switch {
		case err == nil:
			a = now
		case !vfs.IsFull(err): // an exchange of names needs no room, and can be continued after a crash
			return Restored{}, explain(op, err)
		}
	}
	res := Restored{Method: methodExchange}
	want := *m
	for _, name := range trees() {
		err := s.swap(a, m, name)
		if errors.Is(err, errInPlace) {
			res.Method = methodInPlace
			s.keepFailed(ctx, a, name)
			entries := want.Entries
			if want.Entries, err = s.copyBack(ctx, a.Path, entries, name); s.freedSpare(err) {
				want.Entries, err = s.copyBack(ctx, a.Path, entries, name)
			}
		}
		if err != nil {
			return Restored{}, explain(op, err)
		}
		kept, err := vfs.Exists(s.fs, a.failedPath(name))
		if err != nil {
			return Restored{}, explain(op, err)
		}
		res.FailedKept = res.FailedKept || kept
	}
	if err := s.sockets(a, m); err != nil {
		return Restored{}, explain(op, err)
	}
	res.Back = s.cfg.Now().Sub(begun)
	if res.Proof, err = s.proveLive(ctx, &want); err != nil {
		return Restored{}, explain(op, err)
	}
	res.Took = s.cfg.Now().Sub(begun)
	_, err = s.noteRollback(a.ID, func(r *Record) {
		if r.Rollback == nil {
			r.Rollback = &Rollback{Begun: begun}
		}
		r.Rollback.Done, r.Rollback.Method = s.cfg.Now(), res.Method
		r.Rollback.Proof, r.Rollback.FailedKept = res.Proof, res.FailedKept
		r.Packed = nil
	})
	if err != nil {
		return res, fault.New(fault.KindOf(err), "record the rollback", "the old tree is live: %w", explain(op, err))
	}
	s.dropPacked(packed)
	return res, nil
}

// unpacked turns packed trees of an archive into folders, of which it returns the manifest; on a full disk it removes the spare tree and tries once more.
func (s *Store) unpacked(ctx context.Context, a Archive, m *tree.Manifest) (*tree.Manifest, error) {
	if a.Packed == nil {
		return m, nil
	}
	plain, err := s.unpackHeld(ctx, a, m)
	if s.freedSpare(err) {
		plain, err = s.unpackHeld(ctx, a, m)
	}
	return plain, err
}

// noteRollback changes the record of an archive durably.
func (s *Store) noteRollback(id string, change func(*Record)) (Archive, error) {
	note := func(r *Record) error { change(r); return nil }
	a, err := s.update(id, "roll back", note)
	if s.freedSpare(err) {
		a, err = s.update(id, "roll back", note)
	}
	return a, err
}

// freedSpare removes the spare tree, which is optional, if an error shows that the disk is full. It reports whether another attempt may
// succeed.
func (s *Store) freedSpare(err error) bool {
	var short *SpaceError
	if !vfs.IsFull(err) && !errors.As(err, &short) {
		return false
	}
	there := false
	for _, p := range []string{s.sparePath(), s.nextPath()} {
		if ok, err := vfs.Exists(s.fs, p); err == nil && ok {
			there = true
		}
	}
	return there && s.dropSpare() == nil && s.reaper.Wait() == nil
}

// proveLive compares the live trees with a manifest.
func (s *Store) proveLive(ctx context.Context, want *tree.Manifest) (tree.Proof, error) {
	got, err := tree.Describe(ctx, s.fs, s.project.Dir(), false, trees()...)
	if err != nil {
		return tree.Proof{}, err
	}
	return tree.Compare(want, got), nil
}

// errInPlace reports that a tree could not be renamed and never can be here: it must be restored file by file.
var errInPlace = errors.New("the tree can't be exchanged")

// moved turns errors of a rename or an exchange that mean errInPlace into errInPlace. An error of syncing the folders afterwards must not be
// passed: the names are already changed by then.
func moved(err error) error {
	for _, e := range []error{syscall.EBUSY, syscall.EXDEV, syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errInPlace, err)
		}
	}
	return err
}

// exchange swaps two names durably.
func (s *Store) exchange(a, b string) error {
	if err := s.fs.Exchange(a, b); err != nil {
		return moved(err)
	}
	return vfs.SyncParents(s.fs, a, b)
}

// rename is vfs.RenameDurable for a tree.
func (s *Store) rename(from, to string) error {
	if err := s.fs.Rename(from, to); err != nil {
		return moved(err)
	}
	return vfs.SyncParents(s.fs, to, from)
}

func (s *Store) stat(p string) (st vfs.Stat, ok bool, err error) {
	st, err = s.fs.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return st, false, nil
	}
	return st, err == nil, err
}

// swap restores one tree by renames. The disk shows how far an earlier attempt got: the inode of the archived root, which the manifest
// records, is either in the archive or live. Each rename is atomic, and durable before the next.
func (s *Store) swap(a Archive, m *tree.Manifest, name string) error {
	live, held, failed := filepath.Join(s.project.Dir(), name), a.treePath(name), a.failedPath(name)
	lst, isLive, err := s.stat(live)
	if err != nil {
		return err
	}
	root := m.Find(name)
	if root == nil { // there was no such tree
		if !isLive {
			return nil
		}
		return s.rename(live, failed)
	}
	here, err := s.fs.Lstat(a.Path)
	if err != nil {
		return err
	}
	// The archived root was created in the archive. Its device number may have changed since the machine started.
	is := func(st vfs.Stat) bool { return st.Ino == root.Copy.Ino && st.Dev == here.Dev }
	hst, isHeld, err := s.stat(held)
	if err != nil {
		return err
	}
	switch {
	case isLive && is(lst): // exchanged before
	case !isHeld || !is(hst):
		return fault.New(fault.Internal, "roll back", "%w: %s is not the tree that its manifest describes", ErrNotWhole, held)
	case !isLive:
		return s.rename(held, live)
	default:
		for i := range m.Entries {
			if strings.HasPrefix(m.Entries[i].Path, name+"/") && m.Entries[i].Live.Dev != root.Live.Dev {
				return fmt.Errorf("%w: a file system is mounted inside, which would leave with the failed tree", errInPlace)
			}
		}
		if err := s.exchange(live, held); err != nil {
			return err
		}
		isHeld = true
	}
	if !isHeld {
		return vfs.SyncParents(s.fs, live, held)
	}
	return vfs.RenameDurable(s.fs, held, failed)
}

// ErrNotWhole is wrapped if an archive does not hold its tree, or holds a tree other than the one it recorded.
var ErrNotWhole = errors.New("the archive is incomplete")

// sockets moves sockets of the failed tree, which may still have a listener, to their places in the live one.
func (s *Store) sockets(a Archive, m *tree.Manifest) error {
	var d vfs.Dir
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Type() != syscall.S_IFSOCK {
			continue
		}
		if d == nil {
			var err error
			if d, err = s.fs.OpenDir(s.project.Dir()); err != nil {
				return err
			}
			defer func() { _ = d.Close() }()
		}
		name, rest, _ := strings.Cut(e.Path, "/")
		from := filepath.Join(filepath.Base(s.dir()), filepath.Base(a.Path), name+failedSuffix) + "/" + rest
		st, err := d.Lstat(from)
		if err != nil || st.Ino != e.Live.Ino || st.Type() != syscall.S_IFSOCK {
			continue // its listener is gone
		}
		if _, err := d.Lstat(e.Path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.Rename(from, e.Path); err != nil {
			return err
		}
		if p := m.Find(path.Dir(e.Path)); p != nil {
			if err := d.Lutimes(p.Path, p.Mtime); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepFailed copies a live tree that can't be moved into the archive, as project.failed. The copy is only for inspection: its errors do not
// stop a rollback.
func (s *Store) keepFailed(ctx context.Context, a Archive, name string) {
	if ok, err := vfs.Exists(s.fs, a.failedPath(name)); ok || err != nil {
		return
	}
	tmp := filepath.Join(a.Path, failedTmp)
	if s.reaper.Remove(tmp) != nil {
		return
	}
	err := func() error {
		src, err := s.fs.OpenDir(s.project.Dir())
		if err != nil {
			return err
		}
		defer func() { _ = src.Close() }()
		t, err := tree.Scan(ctx, src, []string{name}, s.cfg.Workers)
		if err != nil {
			return err
		}
		if len(t.Entries) == 0 {
			return fs.ErrNotExist
		}
		p := tree.NewPlan(t.Entries, nil, nil, s.cfg.Now())
		if err := s.checkSpace(p); err != nil {
			return err
		}
		if err := s.fs.Mkdir(tmp, 0o700); err != nil {
			return err
		}
		dst, err := s.fs.OpenDir(tmp)
		if err != nil {
			return err
		}
		defer func() { _ = dst.Close() }()
		b := tree.NewCopier(tree.CopyOptions{Src: src, Dst: dst, Entries: t.Entries, Plan: p, Workers: s.cfg.Workers})
		if err := b.Run(ctx); err != nil {
			return err
		}
		if err := dst.SyncFS("."); err != nil {
			return err
		}
		return vfs.RenameDurable(s.fs, filepath.Join(tmp, name), a.failedPath(name))
	}()
	_ = s.reaper.Remove(tmp)
	_ = err
}

// copyBack makes one live tree equal to an archived one, file by file: files that the manifest proves untouched stay, others are copied to
// temporary files and renamed, and what is not in the archive is removed. It returns entries with the identities of the new files.
func (s *Store) copyBack(ctx context.Context, archive string, entries []tree.Entry, name string) ([]tree.Entry, error) {
	dst, err := s.fs.OpenDir(s.project.Dir())
	if err != nil {
		return nil, err
	}
	defer func() { _ = dst.Close() }()
	src, err := s.fs.OpenDir(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	t, err := tree.Scan(ctx, dst, []string{name}, s.cfg.Workers)
	if err != nil {
		return nil, err
	}
	var mine, others []tree.Entry
	for _, e := range entries {
		if e.Path == name || strings.HasPrefix(e.Path, name+"/") {
			mine = append(mine, e)
		} else {
			others = append(others, e)
		}
	}
	b := tree.NewCopier(tree.CopyOptions{Src: src, Dst: dst, Entries: mine, Plan: tree.PlanRestore(mine, t.Entries), Workers: s.cfg.Workers, InPlace: true, TrustAttrs: true})
	if err := b.Run(ctx); err != nil {
		return nil, err
	}
	if err := dst.SyncFS("."); err != nil {
		return nil, err
	}
	all := append(others, b.Entries...)
	slices.SortFunc(all, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}
