package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// Fits refuses what Sync would, and takes what it takes.
func TestFits(t *testing.T) {
	r := newRepo(t)
	r.write("a", "a")
	for i := range 20 {
		r.write(fmt.Sprintf("dir/%d/f", i), "x")
	}
	one := r.commit("one")
	r.write("dir/3/g", "y")
	two := r.commit("two")
	ctx := context.Background()
	req := r.request(two)
	fits := func(old, new plumbing.Hash, most int) error { return Fits(ctx, req.Objects, old, new, most) }
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

	// A path of 4,095 bytes is the longest that Linux takes: forty folders and a file.
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 99)+"/", 40), "/")
	for length, ok := range map[int]bool{maxPath: true, maxPath + 1: false} {
		name := long + "/" + strings.Repeat("f", length-len(long)-1)
		git(t, r.src, "read-tree", "--empty")
		blob := strings.TrimSpace(git(t, r.src, "hash-object", "-w", filepath.Join(r.src, "a")))
		git(t, r.src, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name)
		tree := strings.TrimSpace(git(t, r.src, "write-tree"))
		c := plumbing.NewHash(strings.TrimSpace(git(t, r.src, "commit-tree", "-m", "x", tree)))
		err := Fits(ctx, r.request(c).Objects, one, c, 0)
		require.Equal(t, ok, err == nil, "%d: %v", length, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, Fits(cancelled, req.Objects, plumbing.ZeroHash, one, 0), context.Canceled)
}
