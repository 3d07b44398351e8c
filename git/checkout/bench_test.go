package checkout

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/git/tree"
	"corpus-git/internal/testutil/gittest"
)

// BenchmarkSync checks out the repository that CORPUS_BENCH_REPO names (a bare one): all of it, one commit further, nothing new.
func BenchmarkSync(b *testing.B) {
	bare := os.Getenv("CORPUS_BENCH_REPO")
	if bare == "" {
		b.Skip("CORPUS_BENCH_REPO names no repository")
	}
	db, err := store.Open(bare, store.Options{})
	require.NoError(b, err)
	defer db.Close()
	last := plumbing.NewHash(gittest.Git(b, bare, "rev-parse", "HEAD"))
	before := plumbing.NewHash(gittest.Git(b, bare, "rev-parse", "HEAD~1"))
	dir := filepath.Join(b.TempDir(), "copy")
	sync := func(c plumbing.Hash) {
		_, err := Sync(context.Background(), Request{Objects: db, Repo: bare, Commit: c, Dir: dir, NoSync: true})
		require.NoError(b, err)
	}
	b.Run("first", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			require.NoError(b, os.RemoveAll(dir))
			b.StartTimer()
			sync(last)
		}
	})
	b.Run("fits, first", func(b *testing.B) {
		for range b.N {
			require.NoError(b, tree.Fits(context.Background(), db, plumbing.ZeroHash, last, 0))
		}
	})
	b.Run("fits, one commit", func(b *testing.B) {
		for range b.N {
			require.NoError(b, tree.Fits(context.Background(), db, before, last, 0))
		}
	})
	b.Run("one commit", func(b *testing.B) {
		for i := range b.N {
			sync([]plumbing.Hash{before, last}[i%2])
		}
	})
	b.Run("one commit, with a snapshot", func(b *testing.B) {
		for i := range b.N {
			b.StopTimer()
			c := []plumbing.Hash{before, last}[i%2]
			req := Request{Objects: db, Repo: bare, Commit: c, Dir: dir, NoSync: true, Snapshot: snapshotOf(b, dir)}
			b.StartTimer()
			_, err := Sync(context.Background(), req)
			require.NoError(b, err)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		sync(last)
		b.ResetTimer()
		for range b.N {
			sync(last)
		}
	})
}
