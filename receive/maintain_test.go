package receive_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/receive"
)

// A commit that no ref names any more is removed, but not while a deployment is running, nor while a working copy has it
// checked out.
func TestMaintainSparesWhatIsInUse(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result { return live(d, log) })
	dir := w.clone("a", "app/project.git")
	one := w.git(dir, "rev-parse", "HEAD")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	two := w.commit(dir, "README", "two\n")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	require.NoError(t, w.repos.Open("app", project.Code).CompareAndSwap(ctx, project.Change{Ref: "refs/heads/main", Old: project.Commit(two), New: project.Commit(one)}))
	here := func() bool {
		tctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := w.repos.Open("app", project.Code).Tree(tctx, project.Commit(two), nil)
		return err == nil
	}
	what := receive.Maintenance{All: true, Grace: 1}
	deploying := errors.New("a deployment goes on")
	what.Idle = func(context.Context) error { return deploying }
	_, err := w.repos.Open("app", project.Code).Maintain(ctx, what)
	require.ErrorIs(t, err, deploying)
	require.True(t, here())
	what.Idle = nil

	head := filepath.Join(w.repos.Root.Project("app").Live(), ".git", "HEAD")
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(head), "refs", "heads"), 0o755))
	for _, files := range []map[string]string{
		{"HEAD": two + "\n"},
		{"HEAD": "ref: refs/heads/main\n", "refs/heads/main": two + "\n"},
		{"HEAD": "ref: refs/heads/main\n", "packed-refs": "# pack-refs with: peeled\n" + two + " refs/heads/main\n"},
	} {
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(head), name), []byte(text), 0o644))
		}
		m, err := w.repos.Open("app", project.Code).Maintain(ctx, what)
		require.NoError(t, err)
		require.True(t, m.Searched)
		require.Zero(t, m.Pruned)
		require.True(t, here())
		for name := range files {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(head), name)))
		}
	}
	// What a project writes there instead does not keep any objects, and does not block.
	require.NoError(t, unix.Mkfifo(head, 0o644))
	m, err := w.repos.Open("app", project.Code).Maintain(ctx, receive.Maintenance{All: true, Grace: 1, DryRun: true})
	require.NoError(t, err)
	require.Positive(t, m.Pruned)
	require.NoError(t, os.Remove(head))
	require.NoError(t, os.Symlink(filepath.Join(dir, ".git", "HEAD"), head))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(head), "refs", "heads", "main"), []byte(strings.Repeat("x", 100)), 0o644))
	m, err = w.repos.Open("app", project.Code).Maintain(ctx, what)
	require.NoError(t, err)
	require.Positive(t, m.Pruned)
	require.False(t, here())
}
