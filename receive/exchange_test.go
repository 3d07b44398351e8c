package receive_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/pack"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// One repository accepts what another packs: only what it lacks, and nothing of it is published
// before everything is checked.
func TestExchange(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	dir := w.clone("a", "app/project.git")
	one := project.Commit(w.git(dir, "rev-parse", "HEAD"))
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	two := project.Commit(w.commit(dir, "README", "two\n"))
	w.git(dir, "tag", "-am", "v2", "v2")
	require.Zero(t, w.push("marie", dir, "prod", "main", "v2").exit)
	from := w.repos.Open("app", project.Code)
	tips, err := from.Tips(ctx)
	require.NoError(t, err)
	require.Contains(t, tips, two)

	w.addProject("other")
	to := w.repos.Open("other", project.Code)
	var whole, thin bytes.Buffer
	n, err := from.WritePack(ctx, &whole, one, nil)
	require.NoError(t, err)
	require.Positive(t, n)
	n, err = from.WritePack(ctx, &thin, two, []project.Commit{one})
	require.NoError(t, err)
	require.Equal(t, 3, n)

	const ref = "refs/corpus/bundles/x"
	err = to.TakePack(ctx, bytes.NewReader(thin.Bytes()), pack.Limits{}, two, ref, nil)
	require.Equal(t, fault.Refused, fault.KindOf(err), "what it builds on is not there: %v", err)
	no := errors.New("no")
	err = to.TakePack(ctx, bytes.NewReader(whole.Bytes()), pack.Limits{}, one, ref, func() error { return no })
	require.ErrorIs(t, err, no)
	err = to.TakePack(ctx, bytes.NewReader(whole.Bytes()), pack.Limits{}, two, ref, nil)
	require.Equal(t, fault.Refused, fault.KindOf(err), "the commit is not in it: %v", err)
	err = to.TakePack(ctx, nil, pack.Limits{}, one, ref, nil)
	require.Equal(t, fault.Refused, fault.KindOf(err), "nothing was kept of what was refused: %v", err)
	require.Empty(t, w.quarantines("other", project.Code))
	tips, err = to.Tips(ctx)
	require.NoError(t, err)
	require.Empty(t, tips)

	for _, step := range []struct {
		commit project.Commit
		data   []byte
	}{{one, whole.Bytes()}, {two, thin.Bytes()}} {
		require.NoError(t, to.TakePack(ctx, bytes.NewReader(step.data), pack.Limits{}, step.commit, ref, nil))
		got, err := to.Get(ctx, ref)
		require.NoError(t, err)
		require.Equal(t, step.commit, got)
	}
	require.NoError(t, to.TakePack(ctx, nil, pack.Limits{}, one, ref, nil))
	w.git(dir, "--git-dir", to.Dir(), "fsck", "--full", "--strict")
}
