package vfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

// A held lock is waited for until the caller gives up; a free one is taken even by a caller who has.
func TestFlockBefore(t *testing.T) {
	open := func() *os.File {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		return f
	}
	first := open()
	second, err := os.OpenFile(first.Name(), os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer second.Close()
	ctx, end := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	require.NoError(t, vfs.FlockBefore(ctx, first))
	done := make(chan error, 1)
	go func() { done <- vfs.FlockBefore(t.Context(), second) }()
	end(enough)
	third, err := os.OpenFile(first.Name(), os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer third.Close()
	require.ErrorIs(t, vfs.FlockBefore(ctx, third), enough)
	require.NoError(t, first.Close())
	require.NoError(t, <-done)
	require.ErrorIs(t, vfs.FlockBefore(ctx, third), enough, "the second has it")
	require.NoError(t, second.Close())
	require.NoError(t, vfs.FlockBefore(ctx, third), "it is free")
}
