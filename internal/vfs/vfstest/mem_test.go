package vfstest_test

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

func create(t *testing.T, f vfs.FS, path, content string, sync bool) {
	t.Helper()
	h, err := f.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	require.NoError(t, err)
	_, err = h.Write([]byte(content))
	require.NoError(t, err)
	if sync {
		require.NoError(t, h.Sync())
	}
	require.NoError(t, h.Close())
}

func read(f vfs.FS, path string) string {
	b, err := vfs.ReadFile(f, path)
	if err != nil {
		return "-"
	}
	return string(b)
}

func TestMemForgetsWhatWasNotSynced(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1e9, 0))
	f := m.FS()
	create(t, f, "/a", "a", true) // content durable, name not
	require.Equal(t, "-", read(m.Crash(nil).FS(), "/a"))

	m = vfstest.NewMem(time.Unix(1e9, 0))
	f = m.FS()
	create(t, f, "/a", "a", false)
	require.NoError(t, vfs.SyncDir(f, "/")) // name durable, content not
	require.Equal(t, "", read(m.Crash(nil).FS(), "/a"))

	m = vfstest.NewMem(time.Unix(1e9, 0))
	f = m.FS()
	create(t, f, "/a", "a", true)
	require.NoError(t, vfs.SyncDir(f, "/"))
	create(t, f, "/a", "later", false)
	require.NoError(t, f.Rename("/a", "/b"))
	require.Equal(t, "later", read(f, "/b"))
	back := m.Crash(nil).FS()
	require.Equal(t, "a", read(back, "/a"))
	require.Equal(t, "-", read(back, "/b"))

	m = vfstest.NewMem(time.Unix(1e9, 0))
	f = m.FS()
	require.NoError(t, f.Mkdir("/d", 0o755))
	create(t, f, "/d/a", "a", false)
	require.NoError(t, f.SyncFS("/d"))
	require.Equal(t, "a", read(m.Crash(nil).FS(), "/d/a"))
}

// The whole promise of WriteFileAtomic: the power fails after each call, and with each draw the file has the old content or
// the new; once it has returned, the new.
func TestWriteFileAtomicSurvivesAnyCrash(t *testing.T) {
	for n := 0; ; n++ {
		done := false
		for seed := range uint64(20) {
			m := vfstest.NewMem(time.Unix(1e9, 0))
			require.NoError(t, vfs.WriteFileAtomic(m.FS(), "/x", []byte("old"), 0o644))
			err := vfs.WriteFileAtomic(vfstest.New(m.FS(), vfstest.CrashAt(n)), "/x", []byte("new"), 0o600)
			var draw *rand.Rand
			if seed > 0 {
				draw = rand.New(rand.NewPCG(seed, uint64(n)))
			}
			got := read(m.Crash(draw).FS(), "/x")
			if done = err == nil; done {
				require.Equal(t, "new", got)
			} else {
				require.Contains(t, []string{"old", "new"}, got, "crash after %d calls, seed %d", n, seed)
			}
		}
		if done {
			return
		}
	}
}

func TestMemActsLikeTheRealOne(t *testing.T) {
	for name, f := range map[string]struct {
		fs   vfs.FS
		root string
	}{"os": {vfs.OS{}, t.TempDir()}, "mem": {vfstest.NewMem(time.Unix(1e9, 0)).FS(), ""}} {
		t.Run(name, func(t *testing.T) {
			at := func(p string) string { return f.root + "/" + p }
			f := f.fs
			require.NoError(t, f.Mkdir(at("d"), 0o755))
			require.ErrorIs(t, f.Mkdir(at("d"), 0o755), fs.ErrExist)
			require.ErrorIs(t, f.Mkdir(at("no/d"), 0o755), fs.ErrNotExist)
			create(t, f, at("d/a"), "hello", true)
			require.NoError(t, f.Link(at("d/a"), at("d/b")))
			st, err := f.Lstat(at("d/b"))
			require.NoError(t, err)
			require.Equal(t, uint64(2), st.Nlink)
			require.Equal(t, int64(5), st.Size)
			require.NoError(t, f.Symlink("a", at("d/l")))
			l, err := f.Readlink(at("d/l"))
			require.NoError(t, err)
			require.Equal(t, "a", l)
			_, err = f.OpenFile(at("d/l"), os.O_RDONLY, 0)
			require.ErrorIs(t, err, syscall.ELOOP)
			require.ErrorIs(t, f.Chmod(at("d/l"), 0o600), syscall.EOPNOTSUPP)
			require.NoError(t, f.Chmod(at("d/a"), 0o4750))
			require.NoError(t, f.Lutimes(at("d/a"), 42))
			st, err = f.Lstat(at("d/b"))
			require.NoError(t, err)
			require.Equal(t, uint32(0o4750), st.Perm())
			require.Equal(t, int64(42), st.Mtime)
			require.ErrorIs(t, f.Remove(at("d")), syscall.ENOTEMPTY)
			require.ErrorIs(t, f.Rename(at("d/a"), at("d2/x")), fs.ErrNotExist)
			require.NoError(t, f.Mknod(at("d/p"), syscall.S_IFIFO|0o600, 0))
			names, err := f.ReadDir(at("d"))
			require.NoError(t, err)
			require.Equal(t, "a b l p", strings.Join(names, " "))
			create(t, f, at("e"), "e", false)
			require.NoError(t, f.Exchange(at("d"), at("e")))
			require.Equal(t, "e", read(f, at("d")))
			d, err := f.OpenDir(at("e"))
			require.NoError(t, err)
			require.Equal(t, "hello", read(d, "a"))
			_, err = d.OpenDir("l")
			require.Error(t, err)
			require.NoError(t, f.Rename(at("e"), at("moved")))
			require.Equal(t, "hello", read(d, "b"), "a Dir stays with its folder")
			require.NoError(t, d.Close())
			h, err := f.OpenFile(at("moved/a"), os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = h.Seek(4, io.SeekStart)
			require.NoError(t, err)
			_, err = h.Write([]byte("!!"))
			require.NoError(t, err)
			require.NoError(t, h.Close())
			require.Equal(t, "hell!!", read(f, at("moved/b")))
			require.NoError(t, vfs.RemoveAll(f, at("moved")))
			names, err = f.ReadDir(at("."))
			require.NoError(t, err)
			require.Equal(t, []string{"d"}, names)
		})
	}
}

func TestMemFillsUp(t *testing.T) {
	m := vfstest.NewMem(time.Unix(1e9, 0))
	m.Limit(10)
	f := m.FS()
	create(t, f, "/a", "12345678", false)
	require.ErrorIs(t, vfs.WriteFileAtomic(f, "/b", []byte("123"), 0o600), syscall.ENOSPC)
	require.NoError(t, f.Remove("/a"))
	require.NoError(t, vfs.WriteFileAtomic(f, "/b", []byte("123"), 0o600))
	require.Equal(t, int64(3), m.Used())
}
