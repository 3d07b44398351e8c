package receive_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// Many bots push with go-git. This tests push, refusal, failure, clone, shallow clone and fetch, over ssh with its own
// client.
func TestGoGitClient(t *testing.T) {
	w := newWorld(t)
	auth := &gitssh.PublicKeys{User: "deploy", Signer: w.signer("marie")}
	auth.HostKeyCallback = ssh.FixedHostKey(w.hostKey.PublicKey())
	url := w.url("app/project.git")
	dir := w.path("a")
	repo, err := gogit.PlainInitWithOptions(dir, &gogit.PlainInitOptions{InitOptions: gogit.InitOptions{DefaultBranch: "refs/heads/main"}})
	require.NoError(t, err)
	_, err = repo.CreateRemote(&config.RemoteConfig{Name: "prod", URLs: []string{url}})
	require.NoError(t, err)
	commit := func(file, text string) plumbing.Hash {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		tree, err := repo.Worktree()
		require.NoError(t, err)
		_, err = tree.Add(file)
		require.NoError(t, err)
		h, err := tree.Commit("Change "+file, &gogit.CommitOptions{Author: &object.Signature{Name: "Marie", Email: "marie@example.org", When: time.Unix(1767323045, 0)}})
		require.NoError(t, err)
		return h
	}
	push := func(specs ...config.RefSpec) (string, error) {
		var said strings.Builder
		err := repo.Push(&gogit.PushOptions{RemoteName: "prod", RefSpecs: specs, Auth: auth, Progress: &said})
		return said.String(), err
	}
	commit("README", "one\n")
	said, err := push("refs/heads/main:refs/heads/main")
	require.NoError(t, err)
	require.Contains(t, said, "=====> live")
	for _, f := range []string{"dir/a", "dir/b", "dir/sub/c"} {
		commit(f, strings.Repeat(f+"\n", 100))
	}
	head := commit("README", "two\n")
	_, err = repo.CreateTag("v1", head, &gogit.CreateTagOptions{Tagger: &object.Signature{Name: "Marie", Email: "marie@example.org"}, Message: "A tag"})
	require.NoError(t, err)
	_, err = push("refs/heads/main:refs/heads/main", "refs/tags/v1:refs/tags/v1")
	require.NoError(t, err)
	_, err = push("refs/heads/main:refs/heads/main")
	require.ErrorIs(t, err, gogit.NoErrAlreadyUpToDate)
	_, err = push("refs/heads/main:refs/heads/topic")
	require.ErrorContains(t, err, "is not the deployed branch")
	require.Equal(t, head.String(), w.remoteRefs(dir)["refs/heads/main"])

	var clone *gogit.Repository
	require.NoError(t, unlessClosing(func() (err error) {
		clone, err = gogit.PlainClone(w.path("b"), false, &gogit.CloneOptions{URL: url, Auth: auth})
		return err
	}))
	at, err := clone.Head()
	require.NoError(t, err)
	require.Equal(t, plumbing.NewHashReference("refs/heads/main", head), at)
	same := func(other string) {
		t.Helper()
		w.git(other, "fsck", "--full", "--strict")
		require.Equal(t, w.git(dir, "rev-list", "--objects", head.String()), w.git(other, "rev-list", "--objects", head.String()))
	}
	same(w.path("b"))
	same(w.repos.Open("app", "project").Dir())
	require.NoError(t, unlessClosing(func() error {
		_, err := gogit.PlainClone(w.path("shallow"), false, &gogit.CloneOptions{URL: url, Auth: auth, Depth: 1})
		return err
	}))
	require.Equal(t, "1", w.git(w.path("shallow"), "rev-list", "--count", "HEAD"))

	head = commit("dir/a", "three\n")
	_, err = push("refs/heads/main:refs/heads/main")
	require.NoError(t, err)
	require.NoError(t, unlessClosing(func() error { return clone.Fetch(&gogit.FetchOptions{Auth: auth}) }))
	same(w.path("b"))

	w.deployer.set(broken)
	commit("dir/a", "four\n")
	said, err = push("refs/heads/main:refs/heads/main")
	require.ErrorContains(t, err, "failed in 0100_build")
	require.Contains(t, said, "rolled back")
	require.Equal(t, head.String(), w.remoteRefs(dir)["refs/heads/main"])
}

// unlessClosing fetches again, a few times, if go-git closed its side after the server had ended the session normally,
// which it reports as a failure with any server.
func unlessClosing(fetch func() error) error {
	err := fetch()
	for n := 0; n < 5 && err != nil && strings.Contains(err.Error(), "closing input: EOF"); n++ {
		err = fetch()
	}
	return err
}
