package mirror

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // the trailers of git's packs
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/git/refs"
	"corpus-git/internal/fault"
	"corpus-git/receive"
	"corpus-git/receive/submodule"
)

// Verify reads every copy, and compares it with its pin: packs and indexes with their checksums, refs with the lock and with the objects that
// they need, files with their SHA-256. done is called for each entry, with "unchanged" or "failed". The error is about the lock.
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
			err = verifyRepository(ctx, m.repositoryDir(r.Path), old)
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

func verifyRepository(ctx context.Context, dir string, old LockedRepository) (err error) {
	defer func() {
		if err != nil {
			err = fault.New(fault.Failed, "", "%w", err).WithHint("remove it, and copy it again:  rm -r %s ; corpus-git mirror sync", dir)
		}
	}()
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return err
	}
	if err := checksums(dir); err != nil {
		return err
	}
	object, err := (&refs.Store{Dir: dir}).Get(cmp.Or(old.Ref, submodule.Pinned))
	if err != nil {
		return err
	}
	if object.String() != old.Object {
		return fmt.Errorf("no ref of %s leads to the pinned %s", dir, old.Object[:12])
	}
	broken, err := receive.BrokenRefs(ctx, dir)
	if err != nil || len(broken) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", broken[0].Name, broken[0].Err)
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
