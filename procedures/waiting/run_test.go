package waiting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/procedures/waiting"
)

// On a node a state fails at once instead of waiting for a signal that goes to another server; a rollback there, which waits for nobody, passes.
func TestNothingWaitsOnANode(t *testing.T) {
	why := ""
	r := waiting.Run{Node: true, SkipReason: func() string { return why }}
	_, err := r.For(t.Context(), "010_a", "switch", py.NewDict("count", int64(1)), nil)
	require.ErrorContains(t, err, "switch")
	require.ErrorContains(t, err, "a project with nodes cannot wait for signals")
	why = "a rollback does not wait for signals"
	said, err := r.For(t.Context(), "010_a", "switch", py.NewDict(), nil)
	require.NoError(t, err)
	require.Equal(t, why, said)
	r.Node, why = false, ""
	_, err = r.For(t.Context(), "010_a", "switch", py.NewDict(), nil)
	require.ErrorContains(t, err, "signals need a running server")
}
