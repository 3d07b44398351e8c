package tree

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestDescribeAndCompare(t *testing.T) {
	r, objs := newStore(t)
	r.Write("a", "1")
	one := r.Commit("one\nline\n\nbody")
	f, err := Describe(objs, one)
	require.NoError(t, err)
	require.Equal(t, "one line", f.Subject)
	require.Equal(t, "Ann Author", f.Author.Name)
	require.Equal(t, "ann@example.org", f.Author.Email)
	require.Equal(t, "2023-11-14T23:43:20+01:30", f.Author.When.Format(time.RFC3339))
	require.Equal(t, "Carl", f.Committer.Name)
	r.Git("tag", "-a", "-m", "t", "v1")
	tagged, err := Describe(objs, plumbing.NewHash(r.Git("rev-parse", "v1")))
	require.NoError(t, err)
	require.Equal(t, f, tagged)

	var last plumbing.Hash
	for range 5 {
		last = r.Commit("more")
	}
	r.Git("checkout", "-q", "-b", "side", one.String())
	r.Write("side", "s")
	side := r.Commit("side")
	r.Git("merge", "-q", "-m", "merge", "master")
	merged := plumbing.NewHash(r.Git("rev-parse", "HEAD"))
	r.Git("checkout", "-q", "--orphan", "alone")
	alone := r.Commit("alone")
	for _, c := range []struct {
		name      string
		old, next plumbing.Hash
		want      Advance
	}{
		{"new", plumbing.ZeroHash, last, Advance{Commits: 6, FastForward: true}},
		{"same", last, last, Advance{FastForward: true}},
		{"forward", one, last, Advance{Commits: 5, FastForward: true}},
		{"back", last, one, Advance{Lost: 5}},
		{"aside", last, side, Advance{Commits: 1, Lost: 5}},
		{"merge", last, merged, Advance{Commits: 2, FastForward: true}},
		{"merge of the other", side, merged, Advance{Commits: 6, FastForward: true}},
		{"unrelated", last, alone, Advance{Commits: 1, Lost: 6}},
	} {
		got, err := Compare(context.Background(), objs, c.old, c.next)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	_, err = Compare(context.Background(), objs, one, plumbing.NewHash(strings.Repeat("1", 40)))
	require.Error(t, err)
}
