package vfs_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

func TestBoundedReadsNoLargerFile(t *testing.T) {
	b := vfs.Bounded{FS: fstest.MapFS{"a/f": {Data: []byte("inside")}}, Max: 6}
	data, err := fs.ReadFile(b, "a/f")
	require.NoError(t, err)
	require.Equal(t, "inside", string(data))
	b.Max = 5
	_, err = fs.ReadFile(b, "a/f")
	require.ErrorIs(t, err, vfs.ErrTooLarge)
	_, err = fs.ReadFile(b, "a")
	require.ErrorIs(t, err, vfs.ErrNotRegular)
	_, err = fs.ReadFile(b, "missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
