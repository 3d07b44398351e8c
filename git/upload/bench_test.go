package upload

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/refs"
	"corpus-git/git/store"
)

// BenchmarkClone serves a clone of HEAD of the repository that CORPUS_BENCH_REPO names (a bare one).
func BenchmarkClone(b *testing.B) {
	bare := os.Getenv("CORPUS_BENCH_REPO")
	if bare == "" {
		b.Skip("CORPUS_BENCH_REPO names no repository")
	}
	db, err := store.Open(bare, store.Options{})
	require.NoError(b, err)
	defer db.Close()
	r := &refs.Store{Dir: bare}
	head, err := r.Get("HEAD")
	require.NoError(b, err)
	in := script("command=fetch", "0001", "want "+head.String(), "ofs-delta", "no-progress", "done", "0000", "0000")
	for range b.N {
		require.NoError(b, Serve(context.Background(), Request{Objects: db, Refs: r, Version: 2}, bytes.NewReader(in), io.Discard))
	}
}
