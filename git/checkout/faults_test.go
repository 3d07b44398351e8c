package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/testutil/gittest"
	"corpus-git/internal/trap"
)

// mountAt mounts a small file system at dir, if the machine allows it.
func mountAt(t *testing.T, dir, options string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if err := unix.Mount("corpus", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// The disk fails a checkout in one of the real ways. The checkout reports it, what is not part of the commit stays, no file is half
// written under its name, and the same checkout completes once the disk works.
func TestRealFaults(t *testing.T) {
	for _, c := range []struct {
		name, options string
		breakIt, fix  func(t *testing.T, dir string)
		errno         unix.Errno
		says          string
	}{
		{
			name: "no bytes", options: "size=1m", errno: unix.ENOSPC, says: "no space left on device",
			breakIt: func(*testing.T, string) {},
			fix: func(t *testing.T, dir string) {
				require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"))
			},
		},
		{
			name: "no inodes", options: "size=64m,nr_inodes=80", errno: unix.ENOSPC, says: "no space left on device",
			breakIt: func(t *testing.T, dir string) {
				require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
				for i := range 80 {
					if os.WriteFile(filepath.Join(dir, "data", fmt.Sprint(i)), nil, 0o600) != nil {
						return
					}
				}
			},
			fix: func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "data"))) },
		},
		{
			name: "read-only", options: "size=64m", errno: unix.EROFS, says: "read-only file system",
			breakIt: func(t *testing.T, dir string) {
				require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			},
			fix: func(t *testing.T, dir string) { require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "")) },
		},
		{
			name: "a mount in the way", options: "size=64m", errno: unix.EBUSY, says: "busy",
			breakIt: func(t *testing.T, dir string) { mountAt(t, filepath.Join(dir, "cache"), "size=1m") },
			fix:     func(t *testing.T, dir string) { require.NoError(t, unix.Unmount(filepath.Join(dir, "cache"), 0)) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t)
			r.dir = filepath.Join(t.TempDir(), "disk", "project")
			mountAt(t, filepath.Dir(r.dir), c.options)
			two := twoCommits(r)
			c.breakIt(t, mounted(c.name, r.dir))
			_, err := Sync(context.Background(), r.request(two))
			require.ErrorIs(t, err, c.errno)
			require.ErrorContains(t, err, c.says)
			requireEither(t, r.dir)
			c.fix(t, mounted(c.name, r.dir))
			r.sync(two)
			require.NoError(t, os.Remove(filepath.Join(r.dir, "upload")))
			r.clean(two)
		})
	}
}

// A disk with a journal that is full to the last block, at the start of a checkout and in the middle of it: the checkout reports it, no
// file is half written under its name, what is not part of the commit stays, and once there is room the same checkout completes and is durable.
func TestCheckoutOnAFullExt4(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts file systems")
	}
	for _, c := range []struct {
		name   string
		Places int64 // bytes left free
	}{{"not a block", 0}, {"for half of it", 1 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			disk, err := trap.NewDisk(t.TempDir(), 24)
			if err != nil {
				t.Skipf("no loop mounts here: %v", err)
			}
			t.Cleanup(func() { require.NoError(t, disk.Close()) })
			r := newRepo(t)
			r.dir, r.durable = filepath.Join(disk.Dir, "project"), true
			two := twoCommits(r)
			filler := filepath.Join(disk.Dir, "filler")
			require.NoError(t, trap.Fill(filler, c.Places))

			req := r.request(two)
			_, err = Sync(context.Background(), req)
			require.ErrorIs(t, err, unix.ENOSPC)
			require.ErrorContains(t, err, "no space left on device")
			requireEither(t, r.dir)
			big, err := filepath.Glob(filepath.Join(r.dir, "big", "[0-9]*"))
			require.NoError(t, err)
			for _, name := range big {
				st, err := os.Stat(name)
				require.NoError(t, err)
				require.Equal(t, int64(200<<10), st.Size(), name)
			}

			require.NoError(t, os.Remove(filler))
			r.sync(two)
			require.NoError(t, os.Remove(filepath.Join(r.dir, "upload")))
			r.clean(two)
		})
	}
}

// twoCommits makes two commits, deploys the first, and puts a file beside it that is in neither. They differ in 2.4 MB of files.
func twoCommits(r *repo) (two plumbing.Hash) {
	r.Write("same", "same")
	r.Write("a", "one")
	one := r.Commit("one")
	for i := range 12 {
		r.Write(fmt.Sprintf("big/%d", i), strings.Repeat("x", 200<<10))
	}
	r.Write("a", "two")
	r.Write("cache", "a file where the machine has a folder")
	two = r.Commit("two")
	r.sync(one)
	gittest.WriteFile(r.T, filepath.Join(r.dir, "upload"), "the user's")
	return two
}

// requireEither checks that each file is as in one of the two commits, and the user's unchanged.
func requireEither(t *testing.T, dir string) {
	t.Helper()
	for name, either := range map[string][]string{"same": {"same"}, "a": {"one", "two"}, "upload": {"the user's"}} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, either, string(got), name)
	}
}

// mounted is the folder that a fault affects: the file system, or, for what is in the way, the working copy.
func mounted(name, dir string) string {
	if name == "a mount in the way" {
		return dir
	}
	return filepath.Dir(dir)
}
