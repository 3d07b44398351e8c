package mirror

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the trailers of git's packs
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/receive"
	"corpus-git/receive/submodule"
)

// Verify reads every copy, and compares it with its pin: packs and indexes with their checksums, refs with the lock and with the objects that
// they need, every object with its hash, files with their SHA-256. done is called for each entry, with "unchanged" or "failed". The error is about the lock.
func (m *Mirror) Verify(ctx context.Context, done func(Outcome)) error {
	lock, err := ReadLock(m.LockFile)
	if err != nil {
		return err
	}
	report := func(kind, p, at string, err error) {
		out := Outcome{Kind: kind, Path: p, Change: unchanged, At: at}
		if err != nil {
			out.Change, out.Error, out.Hint = failed, err.Error(), fault.HintOf(err)
		}
		done(out)
	}
	notYet := func() error {
		return fault.New(fault.Failed, "", "it is not pinned").WithHint("copy it:  corpus-git mirror sync %s", m.List.name)
	}
	for _, r := range m.List.Repositories {
		old, ok := lock.Repositories[r.Path]
		err := ctx.Err()
		if err == nil && !ok {
			err = notYet()
		}
		if err == nil {
			err = verifyRepository(ctx, m.List.name, m.repositoryDir(r.Path), old)
		}
		report("git", r.Path, old.Commit, err)
	}
	for _, f := range m.List.Files {
		old, ok := lock.Files[f.Path]
		err := ctx.Err()
		if err == nil && !ok {
			err = notYet()
		}
		if err == nil {
			err = m.verifyFile(f.Path, old)
		}
		report("files", f.Path, old.SHA256, err)
	}
	for _, p := range m.List.Packages {
		old, ok := lock.Packages[p.Path]
		err := ctx.Err()
		if err == nil && !ok {
			err = notYet()
		}
		if err == nil {
			err = m.verifyPackages(ctx, p, old)
		}
		report("packages", p.Path, old.Release, err)
	}
	return ctx.Err()
}

func (m *Mirror) verifyFile(p string, old LockedFile) error {
	name := m.filePath(p)
	sum, _, err := sumOf(name)
	if err == nil && sum != old.SHA256 {
		err = fmt.Errorf("%s has the SHA-256 %s…, and is pinned to %s…", name, sum[:12], old.SHA256[:12])
	}
	if err != nil {
		return fault.New(fault.Failed, "", "%w", err).WithHint("the next  corpus-git mirror sync  fetches it again")
	}
	return nil
}

// verifyRepository reads a copy whole. list is the name of the list.
func verifyRepository(ctx context.Context, list, dir string, old LockedRepository) (err error) {
	defer func() {
		if err != nil && fault.HintOf(err) == "" {
			err = fault.New(fault.Failed, "", "%w", err).WithHint("remove it, and copy it again:  rm -r %s ; corpus-git mirror sync %s", dir, list)
		}
	}()
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return err
	}
	if err := checksums(dir); err != nil {
		return err
	}
	db, err := store.Open(dir, store.Options{KeepQuarantine: func(string) bool { return true }}) // a sync may be using it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	commit, _, err := object.Peel(db, plumbing.NewHash(old.Object))
	if err == nil {
		err = old.is(commit)
	}
	if err != nil {
		return err
	}
	if err := old.shows(dir); err != nil {
		return fault.New(fault.Failed, "", "%w", err).WithHint("the next  corpus-git mirror sync %s  corrects it", list)
	}
	broken, err := receive.BrokenRefs(ctx, dir)
	if err != nil {
		return err
	}
	if len(broken) > 0 {
		return fmt.Errorf("%s: %w", broken[0].Name, broken[0].Err)
	}
	return db.Rehash(ctx)
}

// shows reports, as an error, how what a copy shows its clients differs from the pin: its refs and HEAD.
func (r LockedRepository) shows(dir string) error {
	rs := &refs.Store{Dir: dir}
	list, err := rs.List("refs/")
	if err != nil {
		return err
	}
	want := map[string]string{submodule.Pinned: r.Commit}
	if r.Ref != "" {
		want[r.Ref] = r.Object
	}
	for _, x := range list {
		pin, ok := want[x.Name]
		if !ok {
			return fmt.Errorf("%s has %s, which is not pinned", dir, printable.Clip(x.Name, 200))
		}
		if x.Hash.String() != pin {
			return fmt.Errorf("%s of %s is %s, and pinned to %s", printable.Clip(x.Name, 200), dir, x.Hash.String()[:12], pin[:12])
		}
		delete(want, x.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		return fmt.Errorf("%s has no %s, which is pinned to %s", dir, printable.Clip(name, 200), want[name][:12])
	}
	if head, err := rs.Head(); err != nil || head != submodule.Pinned {
		return errors.Join(fmt.Errorf("HEAD of %s does not name %s", dir, submodule.Pinned), err)
	}
	return nil
}

// is refuses a lock whose commit is not the one that its object leads to.
func (r LockedRepository) is(commit plumbing.Hash) error {
	if commit.String() == r.Commit {
		return nil
	}
	return fault.New(fault.Refused, "", "the lock has the commit %s for %s, whose commit is %s", r.Commit[:12], r.Object[:12], commit.String()[:12]).
		WithHint("the lock was changed: take it back from where the list is versioned")
}

// checksums compares each pack and each index with the SHA-1 at its end. Source: gitformat-pack(5).
func checksums(dir string) error {
	packs := filepath.Join(dir, "objects", "pack")
	list, err := os.ReadDir(packs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if ext := filepath.Ext(e.Name()); err == nil && (ext == ".pack" || ext == ".idx") {
			err = trailer(filepath.Join(packs, e.Name()))
		}
	}
	return err
}

func trailer(name string) error {
	f, err := os.Open(name) //nolint:gosec // below the mirror's folder
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() < sha1.Size {
		return fmt.Errorf("%s is cut off", name)
	}
	h := sha1.New() //nolint:gosec // git's
	if _, err := io.CopyN(h, f, st.Size()-sha1.Size); err != nil {
		return err
	}
	end, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(end, h.Sum(nil)) {
		err = fmt.Errorf("%s is damaged: it has not the checksum at its end", name)
	}
	return err
}
