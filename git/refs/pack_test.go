package refs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// Packed refs are the same to git and to us as before; hidden and symbolic ones stay files; deleted ones do not reappear.
func TestPack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r.git")
	gittest.Git(t, t.TempDir(), "init", "-q", "--bare", "-b", "master", dir)
	tree := strings.TrimSpace(gittest.Git(t, dir, "hash-object", "-t", "tree", "-w", "/dev/null"))
	commit := strings.TrimSpace(gittest.Git(t, dir, "commit-tree", "-m", "x", tree))
	s := &Store{Dir: dir}
	h := plumbing.NewHash(commit)
	for _, n := range []string{"refs/heads/master", "refs/heads/a/b", "refs/tags/light", "refs/corpus/deployments/x"} {
		require.NoError(t, s.CompareAndSwap(n, plumbing.ZeroHash, h))
	}
	gittest.Git(t, dir, "tag", "-a", "-m", "t", "note", commit)
	gittest.Git(t, dir, "symbolic-ref", "refs/heads/alias", "refs/heads/master")
	before, said := gittest.Git(t, dir, "for-each-ref"), gittest.Git(t, dir, "show-ref", "-d")
	p := Packing{Hidden: "refs/corpus/", Peel: func(g plumbing.Hash) (plumbing.Hash, error) {
		if g == h {
			return plumbing.ZeroHash, nil
		}
		return h, nil
	}}
	p.More = 4
	n, err := s.Pack(p)
	require.NoError(t, err)
	require.Zero(t, n, "too few to be worth it")
	p.More, p.DryRun = 3, true
	n, err = s.Pack(p)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.NoFileExists(t, filepath.Join(dir, "packed-refs"))
	p.DryRun = false
	n, err = s.Pack(p)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, before, gittest.Git(t, dir, "for-each-ref"))
	require.Equal(t, said, gittest.Git(t, dir, "show-ref", "-d"))
	require.NoFileExists(t, filepath.Join(dir, "refs/tags/light"))
	require.NoDirExists(t, filepath.Join(dir, "refs/heads/a"))
	require.FileExists(t, filepath.Join(dir, "refs/corpus/deployments/x"))
	require.FileExists(t, filepath.Join(dir, "refs/heads/alias"))
	list, err := s.List("refs/tags/")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, h, list[1].Peeled)

	// A locked ref keeps its file and its newer value.
	require.NoError(t, s.CompareAndSwap("refs/tags/light", h, list[1].Hash))
	require.NoError(t, s.CompareAndSwap("refs/tags/light", list[1].Hash, h))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "refs/tags/new.lock"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "refs/tags/new"), []byte(commit+"\n"), 0o644))
	p.More = 0
	_, err = s.Pack(p)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "refs/tags/new"))
	require.NoError(t, os.Remove(filepath.Join(dir, "refs/tags/new.lock")))
	require.NoError(t, s.CompareAndSwap("refs/tags/new", h, plumbing.ZeroHash))
	got, err := s.Get("refs/tags/new")
	require.NoError(t, err)
	require.True(t, got.IsZero())
}

// Refs are created, moved and deleted while others pack them: none reappears, none is lost.
func TestPackWhileRefsChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r.git")
	gittest.Git(t, t.TempDir(), "init", "-q", "--bare", dir)
	s := &Store{Dir: dir}
	a, b := plumbing.NewHash(strings.Repeat("1a", 20)), plumbing.NewHash(strings.Repeat("2b", 20))
	p := Packing{Peel: func(plumbing.Hash) (plumbing.Hash, error) { return plumbing.ZeroHash, nil }}
	stop := make(chan struct{})
	var packers sync.WaitGroup
	packers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Pack(p); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var workers sync.WaitGroup
	for w := range 3 {
		workers.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("refs/tags/w%d/n%d", w, i%4)
				for _, c := range [][2]plumbing.Hash{{{}, a}, {a, b}, {b, {}}} {
					if err := s.CompareAndSwap(name, c[0], c[1]); err != nil {
						t.Error(err)
						return
					}
					if got, err := s.Get(name); err != nil || got != c[1] {
						t.Errorf("%s is at %s, not at %s (%v)", name, got, c[1], err)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	packers.Wait()
	list, err := s.List("refs/")
	require.NoError(t, err)
	require.Empty(t, list)
}
