package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
)

// The real tar unpacks an export to the same tree, including times to the nanosecond.
func TestExportIsReadByTar(t *testing.T) {
	if err := exec.Command("tar", "--zstd", "--version").Run(); err != nil {
		t.Skip("no tar with zstd")
	}
	s := newSite(t)
	exotic(t, s.live(""))
	acl := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\xd2\x04\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	_ = unix.Setxattr(s.live("dir/run"), "system.posix_acl_access", acl, 0) // if the file system supports it
	listen(t, s.live("sock"))
	before := snapshot(t, s.p.Live())
	delete(before, "sock")
	a := s.make()
	require.Equal(t, 1, a.Made.Notes.Skipped)

	out := t.TempDir()
	file := filepath.Join(out, "x.tar.zst")
	f, err := os.Create(file)
	require.NoError(t, err)
	x, err := s.s.Export(context.Background(), a.ID, f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, st.Size(), x.Written)

	cmd := exec.Command("tar", "--zstd", "--xattrs", "--acls", "-xpf", file, "-C", out)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	msg, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", msg)
	got := snapshot(t, filepath.Join(out, "project"))
	require.NoError(t, os.Chmod(filepath.Join(out, "project/closed"), 0o755)) // TempDir removes it
	requireSame(t, before, got)
}

type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

var errDisk = errors.New("no space left on this writer")

// However late the output fails, even in the last flush, the export fails.
func TestExportReportsEveryWriteError(t *testing.T) {
	s := newSite(t)
	s.write("a", "content of a")
	a := s.make()
	var whole bytes.Buffer
	_, err := s.s.Export(context.Background(), a.ID, &whole)
	require.NoError(t, err)
	for n := 0; n < whole.Len(); n = min(n+41, max(n+1, whole.Len()-1)) {
		_, err := s.s.Export(context.Background(), a.ID, &brokenWriter{left: n})
		require.ErrorIs(t, err, errDisk, "after %d bytes", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.s.Export(ctx, a.ID, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
}

// Somebody wrote into the archive: shrunk, grown, another time.
func TestExportComparesWithTheManifest(t *testing.T) {
	for name, spoil := range map[string]func(p string) error{
		"shrunk": func(p string) error { return os.Truncate(p, 3) },
		"grown":  func(p string) error { return os.WriteFile(p, []byte("much longer than before"), 0o644) },
		"gone":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write("a", "content of a")
			a := s.make()
			require.NoError(t, spoil(filepath.Join(a.Path, "project/a")))
			_, err := s.s.Export(context.Background(), a.ID, io.Discard)
			require.Error(t, err)
			proof, err := s.s.Verify(context.Background(), a.ID)
			require.NoError(t, err)
			require.NotZero(t, proof.Different, "Verify sees it too: %v", proof)
			require.Equal(t, "project/a", proof.Differences[len(proof.Differences)-1].Path)
		})
	}
}

func TestExportHoldsTheRecordFirst(t *testing.T) {
	s := newSite(t)
	s.write("a", "x")
	a := s.make()
	var b bytes.Buffer
	_, err := s.s.Export(context.Background(), a.ID, &b)
	require.NoError(t, err)
	z, err := zstd.NewReader(&b)
	require.NoError(t, err)
	defer z.Close()
	r := tar.NewReader(z)
	var names []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"deployment.json", "project/", "project/a"}, names)
	_, err = s.s.Export(context.Background(), "none", io.Discard)
	require.ErrorIs(t, err, archive.ErrNotFound)
}
