package examined

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
)

// What was begun beside has ended when Close returns: no watch is left, which later deployments would lack.
func TestBeginBeside(t *testing.T) {
	New(nil).BeginBeside(layout.Project{}) // knows nothing
	New(nil).Close()
	at := layout.Root(t.TempDir()).Project("app")
	require.NoError(t, os.MkdirAll(at.Live(), 0o755))
	n := changed.New(1)
	for range 200 {
		k := New(n)
		k.BeginBeside(at)
		k.BeginBeside(at)
		k.Begin(at)
		k.Close()
		require.Nil(t, k.Changed(nil))
	}
	_, err := n.Begin(t.TempDir())
	if err != nil {
		require.NotContains(t, err.Error(), "watches already")
	}
}
