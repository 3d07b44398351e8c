package receive_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive"
)

// Live returns the same as Deployed and Get, also from packed-refs, and does not change the repository: not even what a crash left
// is removed.
func TestLive(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	dir := w.clone("a", "app/project.git")
	ref, c, err := w.repos.Open("app", project.Code).Live(ctx)
	require.NoError(t, err)
	require.Empty(t, ref+string(c), "nothing deploys before the first push")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	head := project.Commit(w.git(dir, "rev-parse", "HEAD"))

	for _, packed := range []bool{false, true} {
		if packed {
			w.git(w.repos.Open("app", project.Code).Dir(), "pack-refs", "--all")
		}
		other := &receive.Repositories{Root: w.repos.Root} // as after a start: nothing is open
		lock := filepath.Join(other.Open("app", project.Code).Dir(), "refs", "heads", "x.lock")
		require.NoError(t, os.WriteFile(lock, nil, 0o600))
		for _, r := range []*receive.Repositories{w.repos, other} {
			ref, c, err = r.Open("app", project.Code).Live(ctx)
			require.NoError(t, err)
			require.Equal(t, "refs/heads/main", ref)
			require.Equal(t, head, c)
		}
		require.FileExists(t, lock)
		_, err = other.Open("app", project.Code).Deployed(ctx)
		require.NoError(t, err)
		require.NoFileExists(t, lock, "the first use sweeps")
		require.NoError(t, other.Close())
	}

	_, _, err = w.repos.Open("nothing", project.Code).Live(ctx)
	require.ErrorContains(t, err, "there is no repository project.git of nothing")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, _, err = w.repos.Open("../app", project.Code).Live(ctx)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.repos.Open("app", project.Code).Dir(), "HEAD"), []byte("nonsense\n"), 0o600))
	_, _, err = w.repos.Open("app", project.Code).Live(ctx)
	require.ErrorContains(t, err, "corrupt")
}
