package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

func (s *site) compact(p archive.Policy) archive.Compacted {
	s.t.Helper()
	c, err := s.s.Compact(context.Background(), p)
	require.NoError(s.t, err)
	require.NoError(s.t, s.s.Wait())
	require.Empty(s.t, c.Refused)
	return c
}

func (s *site) show(id string) archive.Archive {
	s.t.Helper()
	a, err := s.s.Show(id)
	require.NoError(s.t, err)
	return a
}

// packedSite returns a site with an exotic tree in a packed archive, and a later plain one of another tree.
func packedSite(t *testing.T) (s *site, old map[string]string, a archive.Archive) {
	s = newSite(t)
	exotic(t, s.live(""))
	require.NoError(t, os.MkdirAll(filepath.Join(s.p.Pillar(), "sub"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(s.p.Pillar(), "sub/init.sls"), []byte("a: 1\n"), 0o600))
	require.NoError(t, os.Link(s.live("hard1"), filepath.Join(s.p.Pillar(), "sub/across")))
	acl := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\xd2\x04\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	_ = unix.Setxattr(s.live("plain"), "system.posix_acl_access", acl, 0) // if the file system supports it
	_ = unix.Setxattr(s.live("dir"), "system.posix_acl_default", acl, 0)
	_ = unix.Setxattr(s.live("plain"), "user.empty", nil, 0)
	_ = unix.Setxattr(s.live("plain"), "user.bytes", []byte("\x00\xff\n="), 0)
	settle()
	old = snapshot(t, s.p.Live())
	a = s.good()
	s.write("plain", "newer")
	s.write("added", "x")
	s.good()
	c := s.compact(archive.Policy{Keep: 3})
	require.Len(t, c.Packed, 1)
	a = s.show(a.ID)
	require.NotNil(t, a.Packed)
	require.True(t, a.Whole)
	require.NoDirExists(t, filepath.Join(a.Path, "project"))
	require.NoDirExists(t, filepath.Join(a.Path, "pillar"))
	return s, old, a
}

func TestCompactPacksAllButTheNewest(t *testing.T) {
	s, _, a := packedSite(t)
	s.requireNoLeftovers()
	require.DirExists(t, filepath.Join(s.p.Archives(), ".spare/project"))
	all, err := s.s.List()
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Nil(t, all[0].Packed)
	require.DirExists(t, filepath.Join(all[0].Path, "project"))
	for name, f := range a.Packed.Trees {
		out, err := exec.Command("sha256sum", filepath.Join(a.Path, name+".tar.zst")).Output()
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(out), f.SHA256))
	}
	require.Empty(t, s.compact(archive.Policy{Keep: 3}).Packed, "a second time changes nothing")
	got, err := s.s.Pin(a.ID)
	require.NoError(t, err)
	require.True(t, got.Pinned)
	require.NotNil(t, got.Packed)
	require.NoError(t, s.s.Sweep())
	require.Equal(t, got, s.show(a.ID), "a sweep leaves it")

	// What remains of the old tree is used for the next archive.
	settle()
	next := s.make()
	s.requireExact(next)
	require.Less(t, next.Made.Copied, int64(8), "only what differs from the first")
	require.NotZero(t, next.Made.Kept)
}

func TestStandardTarReadsAPackedArchive(t *testing.T) {
	if err := exec.Command("tar", "--zstd", "--version").Run(); err != nil {
		t.Skip("no tar with zstd")
	}
	s, old, a := packedSite(t)
	for _, from := range []string{"packed", "export"} {
		out := t.TempDir()
		files := []string{filepath.Join(a.Path, "project.tar.zst")}
		if from == "export" {
			var b bytes.Buffer
			x, err := s.s.Export(context.Background(), a.ID, &b)
			require.NoError(t, err)
			require.Equal(t, int64(b.Len()), x.Written)
			files[0] = filepath.Join(t.TempDir(), "x.tar.zst")
			require.NoError(t, os.WriteFile(files[0], b.Bytes(), 0o600))
		}
		for _, f := range files {
			cmd := exec.Command("tar", "--zstd", "--xattrs", "--acls", "-xpf", f, "-C", out)
			cmd.Env = append(os.Environ(), "LC_ALL=C")
			msg, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", msg)
		}
		got := snapshot(t, filepath.Join(out, "project"))
		require.NoError(t, os.Chmod(filepath.Join(out, "project/closed"), 0o755)) // TempDir removes it
		want, have := sortedLinks(old), sortedLinks(got)
		requireSame(t, want, have)
	}
}

// sortedLinks removes which name of a file came first: a tar may list the names in another order.
func sortedLinks(in map[string]string) map[string]string {
	out := map[string]string{}
	for p, d := range in {
		if i := strings.Index(d, " ="); i >= 0 {
			j := strings.IndexByte(d[i+1:], ' ')
			if j < 0 {
				d = d[:i]
			} else {
				d = d[:i] + d[i+1+j:]
			}
		}
		out[p] = d
	}
	return out
}

func TestRestoreFromAPackedArchive(t *testing.T) {
	s, old, a := packedSite(t)
	pillar := snapshot(t, s.p.Pillar())
	require.NoError(t, os.WriteFile(filepath.Join(s.p.Pillar(), "sub/init.sls"), []byte("a: 2\n"), 0o600))
	res, err := s.s.Restore(context.Background(), a.ID, nil)
	require.NoError(t, err)
	require.NoError(t, s.s.Wait())
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
	requireSame(t, old, snapshot(t, s.p.Live()))
	requireSame(t, pillar, snapshot(t, s.p.Pillar()))
	one, err := os.Stat(s.live("hard1"))
	require.NoError(t, err)
	two, err := os.Stat(filepath.Join(s.p.Pillar(), "sub/across"))
	require.NoError(t, err)
	require.True(t, os.SameFile(one, two), "a file in both trees")
	st, err := vfs.OS{}.Lstat(s.live("sparse"))
	require.NoError(t, err)
	require.Less(t, st.Allocated(), st.Size, "holes are holes again")
	require.NotNil(t, s.show(a.ID).Packed, "the archive stays")
	s.requireNoLeftovers()
}

func TestRollbackToAPackedArchive(t *testing.T) {
	s, old, a := packedSite(t)
	res, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
	require.True(t, res.FailedKept)
	requireSame(t, old, snapshot(t, s.p.Live()))
	require.NoError(t, s.s.Wait())
	a = s.show(a.ID)
	require.Nil(t, a.Packed)
	require.False(t, a.Whole)
	require.NoFileExists(t, filepath.Join(a.Path, "project.tar.zst"))
	again, err := s.s.Rollback(context.Background(), a.ID)
	require.NoError(t, err)
	require.True(t, again.Already)
}

// One bit of a file, in a folder or in a tar, with every time and size unchanged.
func TestVerifyFindsBitRot(t *testing.T) {
	s, _, a := packedSite(t)
	all, err := s.s.List()
	require.NoError(t, err)
	plain := all[0]
	for _, x := range all {
		p, err := s.s.Verify(context.Background(), x.ID)
		require.NoError(t, err)
		require.True(t, p.Exact(), "%v", p.Differences)
		require.Greater(t, p.Hashed, int64(8))
	}
	flip := func(p string, off int64) {
		st, err := os.Stat(p)
		require.NoError(t, err)
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		b[off] ^= 1
		require.NoError(t, os.WriteFile(p, b, st.Mode()))
		require.NoError(t, os.Chtimes(p, st.ModTime(), st.ModTime()))
	}
	flip(filepath.Join(plain.Path, "project/big"), 100_000)
	p, err := s.s.Verify(context.Background(), plain.ID)
	require.NoError(t, err)
	require.Equal(t, []tree.Difference{{Path: "project/big", What: "content"}}, p.Differences)
	_, err = s.s.Export(context.Background(), plain.ID, &bytes.Buffer{})
	require.ErrorIs(t, err, archive.ErrNotWhole)

	tarball := filepath.Join(a.Path, "project.tar.zst")
	whole, err := os.ReadFile(tarball)
	require.NoError(t, err)
	before := snapshot(t, s.p.Live())
	for off := int64(0); off < int64(len(whole)); off += int64(len(whole)/23 + 1) {
		require.NoError(t, os.WriteFile(tarball, whole, 0o600))
		flip(tarball, off)
		p, err := s.s.Verify(context.Background(), a.ID)
		require.True(t, err != nil || !p.Exact(), "a bit at %d", off)
		if err != nil {
			require.ErrorIs(t, err, archive.ErrNotWhole)
		}
		if _, err = s.s.Export(context.Background(), a.ID, io.Discard); err != nil { // a few bits mean nothing
			require.ErrorIs(t, err, archive.ErrNotWhole)
			_, err = s.s.Restore(context.Background(), a.ID, nil)
			require.ErrorIs(t, err, archive.ErrNotWhole)
		}
	}
	require.NoError(t, os.WriteFile(tarball, whole[:len(whole)/2], 0o600))
	_, err = s.s.Restore(context.Background(), a.ID, nil)
	require.ErrorIs(t, err, archive.ErrNotWhole)
	require.NoError(t, s.s.Wait())
	requireSame(t, before, snapshot(t, s.p.Live()))
}

// Somebody replaced a packed tree by another tar: nothing is written outside of the folder, nothing goes live.
func TestRestoreTakesOnlyWhatTheManifestLists(t *testing.T) {
	s, _, a := packedSite(t)
	before := snapshot(t, s.p.Live())
	outside := t.TempDir()
	file := func(name string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 1}
	}
	for says, entries := range map[string][]*tar.Header{
		"a name that climbs":   {file("project/../../../evil")},
		"an absolute name":     {file(filepath.Join(outside, "evil"))},
		"another tree's name":  {file("pillar/sub/init.sls")},
		"a link for a folder":  {{Typeflag: tar.TypeSymlink, Name: "project/dir", Linkname: outside}, file("project/dir/secret")},
		"a link for a file":    {{Typeflag: tar.TypeSymlink, Name: "project/plain", Linkname: filepath.Join(outside, "evil")}, file("project/plain")},
		"a hard link outwards": {{Typeflag: tar.TypeLink, Name: "project/hard1", Linkname: "/etc/passwd"}},
		"nothing at all":       {},
	} {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		require.NoError(t, err)
		w := tar.NewWriter(z)
		for _, h := range entries {
			require.NoError(t, w.WriteHeader(h))
			if h.Size > 0 {
				_, err := w.Write([]byte("x"))
				require.NoError(t, err)
			}
		}
		require.NoError(t, w.Close())
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(filepath.Join(a.Path, "project.tar.zst"), b.Bytes(), 0o600))
		_, err = s.s.Restore(context.Background(), a.ID, nil)
		require.ErrorIs(t, err, archive.ErrNotWhole, says)
		p, err := s.s.Verify(context.Background(), a.ID)
		require.True(t, err != nil || !p.Exact(), says)
		names, err := os.ReadDir(outside)
		require.NoError(t, err)
		require.Empty(t, names, says)
		requireSame(t, before, snapshot(t, s.p.Live()))
	}
	require.NoError(t, s.s.Wait())
	s.requireNoLeftovers()
}

// A tree that was damaged before it was packed stays a folder: the evidence is not lost.
func TestCompactRefusesWhatIsNotAsRecorded(t *testing.T) {
	s := newSite(t)
	s.write("a", "content of a")
	s.write("b", "content of b")
	a := s.good()
	s.good()
	require.NoError(t, os.WriteFile(filepath.Join(a.Path, "project/a"), []byte("shorter"), 0o644))
	c, err := s.s.Compact(context.Background(), archive.Policy{Keep: 3})
	require.NoError(t, err)
	require.NoError(t, s.s.Wait())
	require.Len(t, c.Refused, 1)
	require.ErrorIs(t, c.Refused[0].Err, archive.ErrNotWhole)
	require.FileExists(t, filepath.Join(a.Path, "project/b"))
	require.Nil(t, s.show(a.ID).Packed)
	s.requireNoLeftovers()
}

func TestCompactMakesASpareTreeWhereThereIsNone(t *testing.T) {
	s := newSite(t)
	exotic(t, s.live(""))
	settle()
	s.good()
	c := s.compact(archive.Policy{Keep: 3})
	require.True(t, c.Spared)
	require.NotZero(t, c.Sealed)
	require.Empty(t, c.Packed)
	s.write("new", "n")
	settle()
	b := s.make()
	s.requireExact(b)
	require.Equal(t, int64(1), b.Made.Copied)
	p, err := s.s.Verify(context.Background(), b.ID)
	require.NoError(t, err)
	require.NotZero(t, p.Hashed, "sums come along")
}

func TestCompactStandsStillWhilePaused(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	a := s.good()
	s.good()
	resume := s.s.Pause()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := s.s.Compact(ctx, archive.Policy{Keep: 3})
		done <- err
	}()
	require.Never(t, func() bool { return s.show(a.ID).Packed != nil }, 100*time.Millisecond, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	go func() {
		_, err := s.s.Compact(context.Background(), archive.Policy{Keep: 3})
		done <- err
	}()
	resume()
	resume()
	require.NoError(t, <-done)
	require.NotNil(t, s.show(a.ID).Packed)
}

// Two stores that share the slot work one after the other; a paused one releases it to the other.
func TestPausedCompactionLetsOthersWork(t *testing.T) {
	slot := archive.NewBackground()
	one, two := newSite(t), newSite(t)
	for _, s := range []*site{one, two} {
		s.use(archive.Config{Reserve: noReserve, Background: slot})
		s.write("a", "1")
		s.good()
		s.good()
	}
	resume := one.s.Pause()
	done := make(chan error, 1)
	go func() {
		_, err := one.s.Compact(context.Background(), archive.Policy{Keep: 3})
		done <- err
	}()
	require.Len(t, two.compact(archive.Policy{Keep: 3}).Packed, 1)
	resume()
	require.NoError(t, <-done)
}

func TestCompactBesideDeployments(t *testing.T) {
	s := newSite(t)
	for i := range 40 {
		s.write("d"+string(rune('a'+i%7))+"/f"+string(rune('a'+i%26)), strings.Repeat("x", i*1000))
	}
	stop := make(chan struct{})
	done := make(chan error, 1)
	store := s.s
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := store.Compact(context.Background(), archive.Policy{Keep: 2}); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 12 {
		s.write("changing", strings.Repeat("y", i))
		a := s.good()
		if i%4 == 3 {
			s.write("changing", "broken")
			res, err := s.s.Rollback(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, res.Proof.Exact(), "%v", res.Proof.Differences)
			require.NoError(t, s.s.SetVerdict(a.ID, archive.RolledBack))
		}
		_, err := s.s.Rotate(archive.Policy{Keep: 2})
		require.NoError(t, err)
	}
	close(stop)
	require.NoError(t, <-done)
	require.NoError(t, s.s.Wait())
	require.NoError(t, s.s.Sweep())
	s.requireNoLeftovers()
	all, err := s.s.List()
	require.NoError(t, err)
	for _, a := range all {
		if a.Whole {
			p, err := s.s.Verify(context.Background(), a.ID)
			require.NoError(t, err)
			require.True(t, p.Exact(), "%v", p.Differences)
		}
	}
}

func TestLimits(t *testing.T) {
	s := newSite(t)
	s.write("a", strings.Repeat("x", 1<<20))
	for range 4 {
		s.good()
	}
	one := s.show("00000004").Own
	require.Greater(t, one, int64(1<<20))
	require.Less(t, one, int64(2<<20))
	require.Empty(t, s.rotate(archive.Policy{Keep: 9, MaxBytes: 4 * one}).Removed)
	s.rotate(archive.Policy{Keep: 9, MaxBytes: 3*one + one/2})
	require.Equal(t, []string{"04", "03", "02"}, s.list())
	failed := s.make()
	require.NoError(t, s.s.SetVerdict(failed.ID, archive.Failed))
	s.rotate(archive.Policy{Keep: 9, MaxBytes: 3*one + one/2})
	require.Equal(t, []string{"04", "03", "02"}, s.list(), "a failed one goes first")
	_, err := s.s.Pin("00000002")
	require.NoError(t, err)
	s.rotate(archive.Policy{Keep: 9, MaxBytes: 1})
	require.Equal(t, []string{"04", "03", "02"}, s.list(), "pinned, newest good and the one before stay")
	preview, err := s.s.Preview(archive.Policy{Keep: 1, MaxBytes: 1})
	require.NoError(t, err)
	require.Len(t, preview.Removed, 1)
	require.Equal(t, []string{"04", "03", "02"}, s.list(), "a preview removes nothing")
	require.Equal(t, preview.Removed, s.rotate(archive.Policy{Keep: 1, MaxBytes: 1}).Removed)
	require.Equal(t, []string{"04", "02"}, s.list(), "one is kept: pinned and newest good stay")

	s.use(archive.Config{Reserve: noReserve, Now: func() time.Time { return time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC) }})
	s.good()
	failed = s.make()
	require.NoError(t, s.s.SetVerdict(failed.ID, archive.Failed))
	require.Empty(t, s.rotate(archive.Policy{Keep: 9, MaxAge: time.Hour, MaxFailedAge: time.Hour}).Removed)
	s.rotate(archive.Policy{Keep: 9, MaxFailedAge: time.Minute})
	require.Equal(t, []string{"06", "04", "02"}, s.list(), "failures expire by themselves")
	s.rotate(archive.Policy{Keep: 9, MaxAge: time.Minute})
	require.Equal(t, []string{"06", "04", "02"}, s.list(), "no age ends the newest two good ones")
	s.rotate(archive.Policy{Keep: 1, MaxAge: time.Minute})
	require.Equal(t, []string{"06", "02"}, s.list())
}

// Own is what du reports, whatever state an archive is in.
func TestOwnIsWhatTheDiskSays(t *testing.T) {
	s, _, _ := packedSite(t)
	failed := s.make()
	s.write("dir/large", strings.Repeat("x", 3<<20))
	_, err := s.s.Rollback(context.Background(), failed.ID)
	require.NoError(t, err)
	require.NoError(t, s.s.SetVerdict(failed.ID, archive.RolledBack))
	require.NoError(t, os.MkdirAll(filepath.Join(failed.Path, "dumps"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(failed.Path, "dumps/db"), make([]byte, 1<<20), 0o600))
	require.True(t, s.show(failed.ID).Estimated)
	unix.Sync()
	require.NoError(t, s.s.Measure(context.Background()))
	all, err := s.s.List()
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, a := range all {
		require.False(t, a.Estimated)
		du := int64(0)
		require.NoError(t, filepath.Walk(a.Path, func(p string, _ os.FileInfo, err error) error {
			if err != nil || p == a.Path {
				return err
			}
			st, err := vfs.OS{}.Lstat(p)
			if st.Nlink == 1 || st.IsDir() {
				du += st.Allocated()
			}
			return err
		}))
		require.InDelta(t, du, a.Own, 96<<10, "%s: folders' own blocks and hard links apart", a.Path)
		require.Zero(t, a.Shared)
	}
}
