package upload

import (
	"os"
	"strconv"
	"testing"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/stretchr/testify/require"
)

// go-git is what bots use; it speaks protocol 0.
func TestGoGitClient(t *testing.T) {
	p := sample(t, 0)
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(helperEnv, "1")
	client.InstallProtocol("uploadtest", file.NewClient(self, self))
	t.Cleanup(func() { client.InstallProtocol("uploadtest", nil) })

	r, err := gogit.Clone(memory.NewStorage(), nil, &gogit.CloneOptions{URL: "uploadtest://" + p.bare(), NoCheckout: true})
	require.NoError(t, err)
	head, err := r.Head()
	require.NoError(t, err)
	require.Equal(t, p.git(p.src, "rev-parse", "main"), head.Hash().String())
	it, err := r.Log(&gogit.LogOptions{})
	require.NoError(t, err)
	n := 0
	require.NoError(t, it.ForEach(func(*object.Commit) error { n++; return nil }))
	require.Equal(t, p.git(p.src, "rev-list", "--count", "main"), strconv.Itoa(n))
	last := p.commit(8, "a")
	require.NoError(t, r.Fetch(&gogit.FetchOptions{}))
	ref, err := r.Reference("refs/remotes/origin/main", true)
	require.NoError(t, err)
	require.Equal(t, last, ref.Hash().String())
	require.ErrorIs(t, r.Fetch(&gogit.FetchOptions{}), gogit.NoErrAlreadyUpToDate)
	shallow, err := gogit.Clone(memory.NewStorage(), nil, &gogit.CloneOptions{URL: "uploadtest://" + p.bare(), Depth: 1, NoCheckout: true})
	require.NoError(t, err)
	_, err = shallow.Head()
	require.NoError(t, err)
}
