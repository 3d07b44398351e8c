package fleet_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
)

// A key that nodes.yaml has not is named with its line, in words for people.
func TestUnknownKeysOfNodes(t *testing.T) {
	_, _, err := fleet.ReadNodes(fstest.MapFS{fleet.NodesFile: {Data: []byte("db1: {roles: [db]}\nnodes: {}\nweb1: {}\n")}})
	require.ErrorContains(t, err, "line 1: unknown key db1; line 3: unknown key web1")
	require.NotContains(t, err.Error(), "fleet.")
}
