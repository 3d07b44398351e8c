package receive_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

func TestRepositories(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	dir := w.clone("a", "app/project.git")
	one := project.Commit(w.git(dir, "rev-parse", "HEAD"))

	made, err := w.repos.Open("app", project.Code).Create(ctx)
	require.NoError(t, err)
	require.False(t, made, "it was there")
	ref, err := w.repos.Open("app", project.Code).Deployed(ctx)
	require.NoError(t, err)
	require.Empty(t, ref, "nothing deploys before the first push")

	// Before it is published, what was pushed is visible only through its Incoming.
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		return live(d, log)
	})
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	ref, err = w.repos.Open("app", project.Code).Deployed(ctx)
	require.NoError(t, err)
	require.Equal(t, "refs/heads/main", ref)
	got, err := w.repos.Open("app", project.Code).Get(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, one, got)

	w.commit(dir, "bin/run", "#!/bin/sh\n")
	two := project.Commit(w.commit(dir, "README", "two\n"))
	w.git(dir, "tag", "v2")
	require.Zero(t, w.push("marie", dir, "prod", "main", "v2").exit)

	tctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tree, err := w.repos.Open("app", project.Code).Tree(tctx, two, nil)
	require.NoError(t, err)
	text, err := fs.ReadFile(tree, "README")
	require.NoError(t, err)
	require.Equal(t, "two\n", string(text))

	d, err := w.repos.Open("app", project.Code).Describe(ctx, one, two, nil)
	require.NoError(t, err)
	require.Equal(t, "Change README", d.Subject)
	require.Equal(t, "Marie", d.Author)
	require.Equal(t, 2, d.Commits)
	require.Equal(t, 2, d.Files)
	require.Equal(t, []string{"README", "bin/run"}, d.Paths)
	require.False(t, d.Forced)
	d, err = w.repos.Open("app", project.Code).Describe(ctx, two, one, nil)
	require.NoError(t, err)
	require.True(t, d.Forced)
	d, err = w.repos.Open("app", project.Code).Describe(ctx, "", two, nil)
	require.NoError(t, err)
	require.Equal(t, 3, d.Commits)

	live := w.path("live")
	st, err := w.repos.Open("app", project.Code).Checkout(ctx, project.Checkout{Commit: two, Dir: live, Submodules: project.Submodules{Fetch: true}})
	require.NoError(t, err)
	require.Equal(t, 2, st.Written)
	require.Equal(t, string(two), w.git(live, "rev-parse", "HEAD"))
	require.Equal(t, "main", w.git(live, "branch", "--show-current"))
	require.Equal(t, string(two), w.git(live, "rev-parse", "v2^{commit}"))
	require.Empty(t, w.git(live, "status", "--porcelain"))

	err = w.repos.Open("app", project.Code).CompareAndSwap(ctx, project.Change{Ref: "refs/heads/main", Old: one, New: two})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	pin := project.Change{Ref: "refs/corpus/deployments/x", New: two}
	require.NoError(t, w.repos.Open("app", project.Code).CompareAndSwap(ctx, pin))
	list, err := w.repos.Open("app", project.Code).List(ctx, "refs/corpus/")
	require.NoError(t, err)
	require.Equal(t, map[string]project.Commit{pin.Ref: two}, list)
	require.NotContains(t, w.remoteRefs(dir), pin.Ref, "hidden from clients")
	o := w.push("marie", dir, "prod", "HEAD:"+pin.Ref)
	require.Equal(t, 1, o.exit)
	require.Contains(t, o.err, "reserved for the server")
	local := w.git(w.dir, "ls-remote", w.repos.Open("app", project.Code).Dir())
	require.NotContains(t, local, pin.Ref, "hidden from git on the machine too")

	_, err = w.repos.Open("nothing", project.Code).Get(ctx, "refs/heads/main")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, err = w.repos.Open("../app", project.Code).Get(ctx, "refs/heads/main")
	require.Equal(t, fault.Usage, fault.KindOf(err))
}

func TestCrashIsSwept(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	repo := w.repos.Open("app", project.Code).Dir()
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "objects", "incoming-dead", "pack"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "objects", "incoming-dead", "pack", "tmp_pack_x"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "refs", "heads", "main.lock"), nil, 0o600))
	o := w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	require.Empty(t, w.quarantines("app", project.Code))
}

func TestRepositoriesAreClosedAndForgotten(t *testing.T) {
	w := newWorld(t, func(w *world) { w.repos.MaxOpen = 2 })
	ctx := context.Background()
	for i := range 8 {
		name := project.Name("p" + strconv.Itoa(i))
		w.addProject(name)
		for range 2 {
			_, err := w.repos.Open(name, project.Code).Deployed(ctx)
			require.NoError(t, err)
		}
	}
	// A project that is destroyed and created again has a different repository.
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	require.NoError(t, os.RemoveAll(w.repos.Open("app", project.Code).Dir()))
	_, err := w.repos.Open("app", project.Code).Get(ctx, "refs/heads/main")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	w.repos.Forget("app")
	made, err := w.repos.Open("app", project.Code).Create(ctx)
	require.NoError(t, err)
	require.True(t, made)
	c, err := w.repos.Open("app", project.Code).Get(ctx, "refs/heads/main")
	require.NoError(t, err)
	require.Empty(t, c)
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
}

func TestCreateMends(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	repo := w.repos.Open("app", project.PillarRepo).Dir()
	st, err := os.Stat(repo)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm(), "the pillar is private")
	require.NoError(t, os.RemoveAll(filepath.Join(repo, "refs")))
	require.NoError(t, os.Remove(filepath.Join(repo, "config")))
	_, err = w.repos.Open("app", project.PillarRepo).Create(ctx)
	require.NoError(t, err)
	require.Equal(t, "true", w.git(repo, "rev-parse", "--is-bare-repository"))
	_, err = w.repos.Open("../x", project.Code).Create(ctx)
	require.Equal(t, fault.Usage, fault.KindOf(err))
}

func TestRefreshAfterFixperms(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	dir := w.clone("a", "app/project.git")
	head := project.Commit(w.git(dir, "rev-parse", "HEAD"))
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	live := w.path("live")
	_, err := w.repos.Open("app", project.Code).Checkout(ctx, project.Checkout{Commit: head, Dir: live, Submodules: project.Submodules{Fetch: true}})
	require.NoError(t, err)
	before, err := os.ReadFile(filepath.Join(live, ".git", "index"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Join(live, "README"), 0o640))
	require.NoError(t, w.repos.Open("app", project.Code).Refresh(ctx, live))
	after, err := os.ReadFile(filepath.Join(live, ".git", "index"))
	require.NoError(t, err)
	require.NotEqual(t, before, after, "the index knows the new change time")
	require.Empty(t, w.git(live, "-c", "core.checkStat=default", "diff-files"), "git need not read the file")
	require.Error(t, w.repos.Open("../app", project.Code).Refresh(ctx, live))
}
