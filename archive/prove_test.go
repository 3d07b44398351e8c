package archive_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

// damages are the ways in which the tree of an archive can have changed since it was made, and the text of the error for each.
func damages() map[string]struct {
	path, what string
	do         func(t *testing.T, at func(string) string)
} {
	type damage = struct {
		path, what string
		do         func(t *testing.T, at func(string) string)
	}
	ok := func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }
	return map[string]damage{
		"content of another length": {"project/a", "size", func(t *testing.T, at func(string) string) {
			ok(t, os.WriteFile(at("a"), []byte("longer than it was"), 0o644))
		}},
		"content, with size and times as before": {"project/a", "content", func(t *testing.T, at func(string) string) {
			st, err := os.Stat(at("a"))
			ok(t, err)
			ok(t, os.WriteFile(at("a"), []byte("OLD"), 0o644))
			ok(t, os.Chtimes(at("a"), st.ModTime(), st.ModTime()))
		}},
		"missing": {"project/sub/b", "missing", func(t *testing.T, at func(string) string) {
			st, err := os.Stat(at("sub"))
			ok(t, err)
			ok(t, os.Remove(at("sub/b")))
			ok(t, os.Chtimes(at("sub"), st.ModTime(), st.ModTime()))
		}},
		"a mode": {"project/sub/b", "mode", func(t *testing.T, at func(string) string) { ok(t, os.Chmod(at("sub/b"), 0o666)) }},
		"one more file": {"project/sub/c", "extra", func(t *testing.T, at func(string) string) {
			st, err := os.Stat(at("sub"))
			ok(t, err)
			ok(t, os.WriteFile(at("sub/c"), nil, 0o644))
			ok(t, os.Chtimes(at("sub"), st.ModTime(), st.ModTime()))
		}},
		"a link to elsewhere": {"project/link", "target", func(t *testing.T, at func(string) string) {
			ok(t, os.Remove(at("link")))
			ok(t, os.Symlink("/etc/passwd", at("link")))
		}},
		"another kind of file": {"project/a", "type", func(t *testing.T, at func(string) string) {
			ok(t, os.Remove(at("a")))
			ok(t, os.Symlink("/etc/passwd", at("a")))
		}},
		"a folder for a link": {"project/sub", "type", func(t *testing.T, at func(string) string) {
			ok(t, os.RemoveAll(at("sub")))
			ok(t, os.Symlink(t.TempDir(), at("sub")))
		}},
	}
}

func plainSite(t *testing.T) (s *site, a archive.Archive) {
	t.Helper()
	s = newSite(t)
	s.write("a", "old")
	s.write("sub/b", "old")
	require.NoError(t, os.Symlink("a", s.live("link")))
	a = s.good()
	s.write("a", "new")
	s.write("more", "new")
	return s, a
}

func requireDamage(t *testing.T, err error, path, what string) {
	t.Helper()
	require.ErrorIs(t, err, archive.ErrNotWhole)
	var d *archive.DamageError
	require.True(t, errors.As(err, &d), "%v", err)
	require.Contains(t, d.Proof.Differences, tree.Difference{Path: path, What: what})
	require.Contains(t, err.Error(), what+": "+path)
}

// A tree that an archive no longer holds as it was archived does not go live, by a rollback or by a restore, and the tree that was
// live stays.
func TestADamagedArchiveNeverGoesLive(t *testing.T) {
	for says, d := range damages() {
		t.Run(says, func(t *testing.T) {
			s, a := plainSite(t)
			d.do(t, func(p string) string { return filepath.Join(a.Path, "project", p) })
			before := snapshot(t, s.p.Live())
			_, err := s.s.Restore(context.Background(), a.ID, nil)
			requireDamage(t, err, d.path, d.what)
			requireSame(t, before, snapshot(t, s.p.Live()))
			_, err = s.s.Rollback(context.Background(), a.ID)
			requireDamage(t, err, d.path, d.what)
			requireSame(t, before, snapshot(t, s.p.Live()))
			require.NoError(t, s.s.Wait())
			s.requireNoLeftovers()
		})
	}
}

// A whole tree that is missing from an archive is detected before the other one is exchanged.
func TestAMissingTreeStopsARollback(t *testing.T) {
	s := newSite(t)
	s.write("a", "old")
	require.NoError(t, os.MkdirAll(s.p.Pillar(), 0o755))
	a := s.good()
	s.write("a", "new")
	require.NoError(t, os.RemoveAll(filepath.Join(a.Path, "project")))
	before := snapshot(t, s.p.Live())
	_, err := s.s.Rollback(context.Background(), a.ID)
	require.ErrorIs(t, err, archive.ErrNotWhole)
	requireSame(t, before, snapshot(t, s.p.Live()))
	require.NoDirExists(t, filepath.Join(a.Path, "pillar.failed"), "nothing was exchanged")
}

// A touched file is verified by its content if that is known; one flipped bit on a failing disk, with every time
// unchanged, stops a restore.
func TestContentIsProvedWhereItIsKnown(t *testing.T) {
	s, _, _ := packedSite(t)
	all, err := s.s.List()
	require.NoError(t, err)
	a := all[0]
	plain := filepath.Join(a.Path, "project/big")
	st, err := os.Stat(plain)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(plain, st.ModTime(), st.ModTime()), "touched, and as it was")
	_, err = s.s.Restore(context.Background(), a.ID, nil)
	require.NoError(t, err)

	b, err := os.ReadFile(plain)
	require.NoError(t, err)
	b[7] ^= 1
	require.NoError(t, os.WriteFile(plain, b, st.Mode()))
	require.NoError(t, os.Chtimes(plain, st.ModTime(), st.ModTime()))
	for range 2 {
		_, err = s.s.Restore(context.Background(), a.ID, nil)
		requireDamage(t, err, "project/big", "content")
	}
	_, err = s.s.Rollback(context.Background(), a.ID)
	requireDamage(t, err, "project/big", "content")
}

// A running program writes to the tree as soon as it is live again: that is reported, and is not damage.
func TestWhatIsWrittenSinceIsNoDamage(t *testing.T) {
	s, a := plainSite(t)
	s.use(archive.Config{Reserve: noReserve, FS: &writesAfterExchange{live: s.live("a")}})
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.Equal(t, []tree.Difference{{Path: "project/a", What: "size"}}, res.Proof.Differences)
}

// writesAfterExchange is a disk on which a program writes to a file once trees are exchanged.
type writesAfterExchange struct {
	vfs.OS
	live string
}

func (w *writesAfterExchange) Exchange(a, b string) error {
	if err := w.OS.Exchange(a, b); err != nil {
		return err
	}
	return os.WriteFile(w.live, []byte("written by a program that still runs"), 0o644)
}
