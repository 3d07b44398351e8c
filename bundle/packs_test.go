package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/project"
)

// counted counts the packs that are made, and fails the first ones.
type counted struct {
	*repository
	made  atomic.Int32
	fails int32
}

func (c *counted) WritePack(ctx context.Context, w io.Writer, want project.Commit, have []project.Commit) (int, error) {
	if c.made.Add(1) <= c.fails {
		return 0, errors.New("the disk is full")
	}
	return c.repository.WritePack(ctx, w, want, have)
}

func TestPacks(t *testing.T) {
	from, _ := pair()
	from[project.Code].has[code], from[project.PillarRepo].has[pillar] = "the code", "the pillar"
	c := &counted{repository: from[project.Code], fails: 1}
	open := func(r project.Repo) bundle.Repository {
		if r == project.Code {
			return c
		}
		return from[r]
	}
	var packs bundle.Packs
	write := func(have ...project.Commit) ([]byte, error) {
		var b bytes.Buffer
		_, err := bundle.Make(t.Context(), &b, manifest(), open, bundle.Tips{Code: have}, &packs, signer(t), t.TempDir())
		return b.Bytes(), err
	}
	_, err := write()
	require.ErrorContains(t, err, "the disk is full", "a pack that fails is not kept")

	// Many machines that lack the same: one pack.
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			data, err := write("aa", "bb")
			if err == nil {
				var to map[project.Repo]*repository
				to, _, err = take(data)
				if err == nil && (to[project.Code].has[code] != "the code" || to[project.PillarRepo].has[pillar] != "the pillar") {
					err = errors.New("not what was sent")
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, int32(2), c.made.Load())
	_, err = write("bb", "aa", "bb") // in another order
	require.NoError(t, err)
	require.Equal(t, int32(2), c.made.Load())

	// Another pack for a machine that lacks something else, none for one that has everything.
	_, err = write("cc")
	require.NoError(t, err)
	require.Equal(t, int32(3), c.made.Load())
	data, err := write(code)
	require.NoError(t, err)
	require.Equal(t, int32(3), c.made.Load())
	require.NotContains(t, string(data), "the code")

	require.NoError(t, packs.Close())
	_, err = write("cc")
	require.NoError(t, err, "they are made again")
	require.Equal(t, int32(4), c.made.Load())
	require.NoError(t, packs.Close())
}
