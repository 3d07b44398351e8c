package vfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

func TestWriteFileAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, path, []byte("one"), 0o640))
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, path, []byte("two"), 0o640))
	b, err := vfs.ReadFile(vfs.OS{}, path)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
	st, err := vfs.OS{}.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, uint32(0o640), st.Perm())

	// Fail every call in turn: the old content or the new, never another, and the error is seen.
	probe := vfstest.New(vfs.OS{}, nil)
	require.NoError(t, vfs.WriteFileAtomic(probe, path, []byte("two"), 0o640))
	require.NotZero(t, probe.Count())
	for n := 1; n <= probe.Count(); n++ {
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		f := vfstest.New(vfs.OS{}, vfstest.FailNth("", n, syscall.EIO))
		err := vfs.WriteFileAtomic(f, path, []byte("new"), 0o640)
		require.ErrorIs(t, err, syscall.EIO, "call %d: %v", n, f.Ops())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, []string{"old", "new"}, string(b))
		names, err := vfs.OS{}.ReadDir(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"state"}, names, "call %d leaves a temporary file", n)
	}
}

// An order that syncs the name before the content would pass every test that does not crash: check the order itself.
func TestWriteFileAtomicOrder(t *testing.T) {
	f := vfstest.New(vfs.OS{}, nil)
	require.NoError(t, vfs.WriteFileAtomic(f, filepath.Join(t.TempDir(), "x"), []byte("x"), 0o600))
	var names []string
	for _, op := range f.Ops() {
		names = append(names, op.Name)
	}
	require.Equal(t, "open write fchmod fsync close rename open fsync close", strings.Join(names, " "))
}

func TestDirRefusesLinksAndLeaving(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "in/a"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "out"), 0o755))
	require.NoError(t, os.Symlink("../out", filepath.Join(root, "in/l")))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "in/m")))
	d, err := vfs.OS{}.OpenDir(filepath.Join(root, "in"))
	require.NoError(t, err)
	defer d.Close()
	for _, p := range []string{"l", "m", "..", "a/../../out", "m/."} {
		_, err := d.OpenDir(p)
		require.Error(t, err, p)
	}
	for _, p := range []string{".", "a"} {
		s, err := d.OpenDir(p)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	_, err = d.OpenFile("l", os.O_RDONLY, 0)
	require.ErrorIs(t, err, syscall.ELOOP)
}

// Paths longer than PATH_MAX are reached element by element, and are also removed.
func TestDeepPath(t *testing.T) {
	root := t.TempDir()
	d, err := vfs.OS{}.OpenDir(root)
	require.NoError(t, err)
	el := strings.Repeat("d", 250)
	var parts []string
	cur := d
	for range 20 {
		require.NoError(t, cur.Mkdir(el, 0o755))
		parts = append(parts, el)
		next, err := cur.OpenDir(el)
		require.NoError(t, err)
		require.NoError(t, cur.Close())
		cur = next
	}
	require.NoError(t, cur.Close())
	d, err = vfs.OS{}.OpenDir(root)
	require.NoError(t, err)
	deep, err := d.OpenDir(strings.Join(parts, "/"))
	require.NoError(t, err)
	require.NoError(t, deep.Mkdir("x", 0o755))
	require.NoError(t, deep.Close())
	require.NoError(t, d.Close())
	require.NoError(t, vfs.RemoveAll(vfs.OS{}, filepath.Join(root, el)))
	ok, err := vfs.Exists(vfs.OS{}, filepath.Join(root, el))
	require.NoError(t, err)
	require.False(t, ok)
}

func TestChmodNeverFollows(t *testing.T) {
	root := t.TempDir()
	victim := filepath.Join(root, "victim")
	require.NoError(t, os.WriteFile(victim, nil, 0o600))
	require.NoError(t, os.Symlink("victim", filepath.Join(root, "l")))
	require.Error(t, vfs.OS{}.Chmod(filepath.Join(root, "l"), 0o777))
	require.NoError(t, vfs.OS{}.Chmod(victim, 0o4711))
	st, err := vfs.OS{}.Lstat(victim)
	require.NoError(t, err)
	require.Equal(t, uint32(0o4711), st.Perm())
}

func TestCopyFrom(t *testing.T) {
	root := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for name, write := range map[string]func(*os.File){
		"empty": func(*os.File) {},
		"small": func(f *os.File) { _, _ = f.WriteString("hello") },
		"big":   func(f *os.File) { _, _ = f.Write(big) },
		"sparse": func(f *os.File) {
			_, _ = f.WriteAt([]byte("a"), 0)
			_, _ = f.WriteAt([]byte("b"), 5<<20)
			_ = f.Truncate(9 << 20)
		},
		"hole": func(f *os.File) { _ = f.Truncate(3 << 20) },
	} {
		t.Run(name, func(t *testing.T) {
			src := filepath.Join(root, name)
			f, err := os.Create(src)
			require.NoError(t, err)
			write(f)
			require.NoError(t, f.Close())
			in, err := vfs.OS{}.OpenFile(src, os.O_RDONLY, 0)
			require.NoError(t, err)
			defer in.Close()
			out, err := vfs.OS{}.OpenFile(src+".copy", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			require.NoError(t, err)
			n, err := out.CopyFrom(context.Background(), in)
			require.NoError(t, err)
			require.NoError(t, out.Close())
			want, err := os.ReadFile(src)
			require.NoError(t, err)
			got, err := os.ReadFile(src + ".copy")
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			require.Equal(t, int64(len(want)), n)
			a, err := vfs.OS{}.Lstat(src)
			require.NoError(t, err)
			b, err := vfs.OS{}.Lstat(src + ".copy")
			require.NoError(t, err)
			if a.Allocated() < a.Size {
				require.Less(t, b.Allocated(), b.Size, "holes are kept")
			}
		})
	}
}

func TestExchange(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	require.NoError(t, os.Mkdir(a, 0o755))
	require.NoError(t, os.WriteFile(b, []byte("b"), 0o600))
	require.NoError(t, vfs.OS{}.Exchange(a, b))
	st, err := vfs.OS{}.Lstat(b)
	require.NoError(t, err)
	require.True(t, st.IsDir())
	var le *os.LinkError
	require.True(t, errors.As(vfs.OS{}.Exchange(a, filepath.Join(root, "none")), &le))
	require.ErrorIs(t, le, fs.ErrNotExist)
}

func TestMkdirAll(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, vfs.MkdirAll(vfs.OS{}, filepath.Join(root, "a/b/c"), 0o755))
	require.NoError(t, vfs.MkdirAll(vfs.OS{}, filepath.Join(root, "a/b/c"), 0o755))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "l")))
	require.NoError(t, vfs.MkdirAll(vfs.OS{}, filepath.Join(root, "l"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "f"), nil, 0o600))
	require.ErrorIs(t, vfs.MkdirAll(vfs.OS{}, filepath.Join(root, "f"), 0o755), syscall.ENOTDIR)
	require.Error(t, vfs.MkdirAll(vfs.OS{}, filepath.Join(root, "f/x"), 0o755))
}

func TestRemoveAllAndReaper(t *testing.T) {
	root := t.TempDir()
	tree := filepath.Join(root, "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "closed/x"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "outside"), nil, 0o600))
	require.NoError(t, os.Symlink(root, filepath.Join(tree, "link")))
	require.NoError(t, os.Chmod(filepath.Join(tree, "closed"), 0o500))
	r := &vfs.Reaper{FS: vfs.OS{}}
	require.NoError(t, r.Remove(tree))
	require.NoError(t, r.Remove(tree), "a second time is not an error")
	require.NoError(t, r.Wait())
	names, err := vfs.OS{}.ReadDir(root)
	require.NoError(t, err)
	require.Equal(t, []string{"outside"}, names)

	require.NoError(t, os.Mkdir(filepath.Join(root, vfs.TrashPrefix+"old"), 0o755))
	require.NoError(t, r.Sweep(root))
	require.NoError(t, r.Wait())
	require.NoError(t, r.Sweep(filepath.Join(root, "none")))
	names, err = vfs.OS{}.ReadDir(root)
	require.NoError(t, err)
	require.Equal(t, []string{"outside"}, names)

	bad := &vfs.Reaper{FS: vfstest.New(vfs.OS{}, vfstest.FailFrom("remove", 1, syscall.EIO))}
	require.NoError(t, bad.Remove(filepath.Join(root, "outside")))
	require.ErrorIs(t, bad.Wait(), syscall.EIO)
	require.NoError(t, bad.Wait())
}

func TestXattrsAndSpace(t *testing.T) {
	f := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(f, []byte("x"), 0o600))
	x := vfs.Xattr{Name: "user.corpus", Value: bytes.Repeat([]byte{0, 1}, 400)}
	err := vfs.OS{}.SetXattr(f, x)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip("no user xattrs on this file system")
	}
	require.NoError(t, err)
	got, err := vfs.OS{}.Xattrs(f)
	require.NoError(t, err)
	require.Contains(t, got, x)
	d, err := vfs.OS{}.OpenDir(filepath.Dir(f))
	require.NoError(t, err)
	defer d.Close()
	got, err = d.Xattrs("f")
	require.NoError(t, err)
	require.Contains(t, got, x)
	sp, err := vfs.OS{}.StatFS(f)
	require.NoError(t, err)
	require.NotZero(t, sp.Total)
	require.LessOrEqual(t, sp.Free, sp.Total)
	require.NoError(t, vfs.OS{}.SyncFS(f))
}

func TestFileMethods(t *testing.T) {
	p := filepath.Join(t.TempDir(), "f")
	h, err := vfs.OS{}.OpenFile(p, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = h.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, h.Truncate(4))
	_, err = h.Seek(1, io.SeekStart)
	require.NoError(t, err)
	b, err := io.ReadAll(h)
	require.NoError(t, err)
	require.Equal(t, "ell", string(b))
	require.NoError(t, h.Utimes(1_234_567_890_123_456_789))
	require.NoError(t, h.Chown(-1, -1))
	st, err := h.Stat()
	require.NoError(t, err)
	require.Equal(t, int64(1_234_567_890_123_456_789), st.Mtime)
	require.Equal(t, int64(4), st.Size)
	require.NoError(t, h.Close())
	require.ErrorIs(t, h.Close(), os.ErrClosed)
}
