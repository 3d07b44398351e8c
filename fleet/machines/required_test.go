package machines

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
)

// A project without nodes is refused where each must have some, but only when it is deployed.
func TestNodeOf(t *testing.T) {
	f := newFleet(t)
	for _, required := range []bool{false, true} {
		f.Required = required
		_, err := f.NodeOf(t.Context(), "app", false)
		require.NoError(t, err)
		_, err = f.NodeOf(t.Context(), "app", true)
		if !required {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, fault.Refused, fault.KindOf(err))
		require.Contains(t, fault.HintOf(err), "corpus-git node assign NODE app")
	}
	_, err := f.Assign(t.Context(), "app", "web1")
	require.NoError(t, err)
	node, err := f.NodeOf(t.Context(), "app", true)
	require.NoError(t, err)
	require.Equal(t, "web1", node)
}
