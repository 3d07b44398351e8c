package archive

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// DamageError describes how an archive differs from what was recorded. A damaged archive never goes live.
type DamageError struct {
	Archive string // the folder's name
	Proof   tree.Proof
}

// damageNames is how many paths the text of a DamageError lists.
const damageNames = 20

// Error returns a line with the counts, and a line for each of the first paths.
func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d entries of %s differ from what was archived", ErrNotWhole.Error(), e.Proof.Different, e.Proof.Entries, e.Archive)
	for i, d := range e.Proof.Differences {
		if i == damageNames {
			fmt.Fprintf(&b, "\nand %d more", e.Proof.Different-damageNames)
			break
		}
		b.WriteString("\n" + d.String())
	}
	return b.String()
}

// Unwrap makes it an ErrNotWhole.
func (e *DamageError) Unwrap() error { return ErrNotWhole }

func damaged(a Archive, p tree.Proof) error {
	if p.Exact() {
		return nil
	}
	return &DamageError{Archive: filepath.Base(a.Path), Proof: p}
}

// proveHeld compares the plain trees named names in an archive with its manifest, before any of them goes live: every entry exists with its
// attributes, and nothing else does. A file touched since it was archived must have the content whose checksum is known; an unknown
// checksum also counts as damage. With all, every known checksum is compared, otherwise only those of touched files.
func (s *Store) proveHeld(ctx context.Context, a Archive, m *tree.Manifest, names []string, all bool) error {
	got, err := tree.Describe(ctx, s.fs, a.Path, false, names...)
	if err != nil {
		return err
	}
	want := &tree.Manifest{}
	for _, e := range m.Entries {
		top, _, _ := strings.Cut(e.Path, "/")
		for _, n := range names {
			if n == top {
				want.Entries = append(want.Entries, e)
			}
		}
	}
	p := tree.Compare(want, got)
	check := &tree.Manifest{} // files whose content is compared
	for _, e := range touched(want, got, all) {
		if !e.Sum.Known() {
			p.Differ(e.Path, "content")
			continue
		}
		check.Entries = append(check.Entries, e)
	}
	if err := s.proveContent(ctx, a, check, &p); err != nil {
		return err
	}
	return damaged(a, p)
}

// heldTrees returns the trees that the archive still holds, for a rollback to make live. Those that an interrupted rollback made live were
// compared then. A tree that is neither in the archive nor live is damage.
func (s *Store) heldTrees(a Archive, m *tree.Manifest) (names []string, err error) {
	here, err := s.fs.Lstat(a.Path)
	if err != nil {
		return nil, err
	}
	for _, name := range trees() {
		root := m.Find(name)
		if root == nil {
			continue
		}
		is := func(st vfs.Stat, ok bool) bool { return ok && st.Ino == root.Copy.Ino && st.Dev == here.Dev }
		lst, isLive, err := s.stat(filepath.Join(s.project.Dir(), name))
		if err != nil {
			return nil, err
		}
		hst, isHeld, err := s.stat(a.treePath(name))
		if err != nil {
			return nil, err
		}
		switch {
		case is(hst, isHeld):
			names = append(names, name)
		case is(lst, isLive): // exchanged before
		default:
			return nil, fmt.Errorf("%w: %s is not the tree that its manifest describes", ErrNotWhole, a.treePath(name))
		}
	}
	return names, nil
}

// untouched reports whether a file of an archive is the very file that was created there, not written to since. Its device number may have
// changed since the machine started.
func untouched(e *tree.Entry, now tree.Ident) bool {
	return now.Ino == e.Copy.Ino && now.Ctime == e.Copy.Ctime
}

// touched returns the regular files, equal in size and times in both lists, that are not untouched; with all, also those whose checksum is
// known.
func touched(want, got *tree.Manifest, all bool) (out []tree.Entry) {
	j := 0
	for i := range want.Entries {
		w := &want.Entries[i]
		for j < len(got.Entries) && got.Entries[j].Path < w.Path {
			j++
		}
		if j == len(got.Entries) || got.Entries[j].Path != w.Path {
			continue
		}
		g := &got.Entries[j]
		if !w.IsRegular() || !g.IsRegular() || w.Size != g.Size || w.Mtime != g.Mtime || w.Flags&tree.FlagSkipped != 0 {
			continue
		}
		if !untouched(w, g.Live) || all && w.Sum.Known() {
			out = append(out, *w)
		}
	}
	return out
}

// proveCopy compares what was copied out of an archive with its entries, before it goes live.
func (s *Store) proveCopy(ctx context.Context, a Archive, dir string, entries []tree.Entry) error {
	got, err := tree.Describe(ctx, s.fs, dir, false, a.Trees...)
	if err != nil {
		return err
	}
	return damaged(a, tree.Compare(&tree.Manifest{Entries: entries}, got))
}
