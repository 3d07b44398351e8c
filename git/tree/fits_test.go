package tree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// Fits refuses what Sync would, and accepts what Sync accepts.
func TestFits(t *testing.T) {
	r, objs := newStore(t)
	r.Write("a", "a")
	for i := range 20 {
		r.Write(fmt.Sprintf("dir/%d/f", i), "x")
	}
	one := r.Commit("one")
	r.Write("dir/3/g", "y")
	two := r.Commit("two")
	ctx := context.Background()
	fits := func(old, new plumbing.Hash, most int) error { return Fits(ctx, objs, old, new, most) }
	require.NoError(t, fits(plumbing.ZeroHash, one, 0))
	require.NoError(t, fits(one, two, 0))
	require.NoError(t, fits(one, two, 1), "what is live counts nothing")
	require.NoError(t, fits(two, two, 1))
	// a, dir, 20 folders, 21 files.
	require.NoError(t, fits(plumbing.ZeroHash, two, 43))
	err := fits(plumbing.ZeroHash, two, 42)
	require.ErrorContains(t, err, "more than 42 files and folders")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.Contains(t, fault.HintOf(err), "limits.max_files")
	require.NoError(t, fits(plumbing.NewHash(strings.Repeat("ab", 20)), two, 43), "a commit that is gone is none")

	// A path of 4,095 bytes is the longest that Linux accepts, including the folder of the working copy: 38 folders and a file.
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 99)+"/", 38), "/")
	for length, ok := range map[int]bool{maxCommitPath: true, maxCommitPath + 1: false} {
		name := long + "/" + strings.Repeat("f", length-len(long)-1)
		r.Git("read-tree", "--empty")
		blob := strings.TrimSpace(r.Git("hash-object", "-w", filepath.Join(r.Dir, "a")))
		r.Git("update-index", "--add", "--cacheinfo", "100644,"+blob+","+name)
		tree := strings.TrimSpace(r.Git("write-tree"))
		c := plumbing.NewHash(strings.TrimSpace(r.Git("commit-tree", "-m", "x", tree)))
		err := Fits(ctx, objs, one, c, 0)
		require.Equal(t, ok, err == nil, "%d: %v", length, err)
	}
	// Symbolic links that no file system can hold.
	for to, why := range map[string]string{
		"a": "", "../../nowhere": "", strings.Repeat("a", 4095): "", strings.Repeat("a", 4096): "4096 bytes", strings.Repeat("a", 1<<20): "bytes", "": "nothing", "a\x00b": "NUL",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir, "target"), []byte(to), 0o644))
		blob := strings.TrimSpace(r.Git("hash-object", "-w", filepath.Join(r.Dir, "target")))
		r.Git("read-tree", "--empty")
		r.Git("update-index", "--add", "--cacheinfo", "120000,"+blob+",dir/link")
		tree := strings.TrimSpace(r.Git("write-tree"))
		c := plumbing.NewHash(strings.TrimSpace(r.Git("commit-tree", "-m", "x", tree)))
		below := func() error { // as a submodule
			_, err := Files(ctx, objs, c, len("vendor/lib/"), 100)
			return err
		}
		for _, err := range []error{Fits(ctx, objs, plumbing.ZeroHash, c, 0), Fits(ctx, objs, one, c, 0), below()} {
			if why == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "symbolic link that cannot be made: link points to")
			require.ErrorContains(t, err, why)
			require.Equal(t, fault.Refused, fault.KindOf(err))
		}
		// A stored or live commit of that kind does not prevent another one from being deployed.
		require.NoError(t, Fits(ctx, objs, c, two, 0))
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, Fits(cancelled, objs, plumbing.ZeroHash, one, 0), context.Canceled)
}
