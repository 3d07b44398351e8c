package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/layout"
)

// Whoever reaches the socket of a process finds its addresses: they are written before. A process that cannot write them answers nobody, and one that ends before it answers leaves none.
func TestAddressesComeBeforeTheSocket(t *testing.T) {
	cfg, err := settings{env: env(t.TempDir()), flags: map[string]string{"listen": "127.0.0.1:0"}}.load()
	require.NoError(t, err)
	state := layout.State(cfg.StateDir)
	require.NoError(t, os.MkdirAll(state.Path(), 0o700))
	require.NoError(t, os.WriteFile(state.Socket(), []byte("old"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(state.Addresses(), "x"), 0o700))
	_, err = start(t.Context(), cfg, nil, zerolog.Nop(), &serverlog.Level{}, nil)
	require.ErrorContains(t, err, "addr.json")
	text, err := os.ReadFile(state.Socket())
	require.NoError(t, err)
	require.Equal(t, "old", string(text))

	require.NoError(t, os.RemoveAll(state.Addresses()))
	require.NoError(t, os.Remove(state.Socket()))
	require.NoError(t, os.MkdirAll(filepath.Join(state.Socket(), "x"), 0o700))
	_, err = start(t.Context(), cfg, nil, zerolog.Nop(), &serverlog.Level{}, nil)
	require.ErrorContains(t, err, "control.sock")
	require.NoFileExists(t, state.Addresses())
}
