package fleet_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
)

// Nodes are listed in the order in which people count them.
func TestListInOrder(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	s, err := fleet.Open(t.Context(), d)
	require.NoError(t, err)
	for _, name := range []string{"web10", "db1", "web2", "web1"} {
		require.NoError(t, s.Add(t.Context(), fleet.Node{Name: name, Target: "root@" + name}))
	}
	list, err := s.List(t.Context())
	require.NoError(t, err)
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	require.Equal(t, []string{"db1", "web1", "web2", "web10"}, names)
}

// A line names the first of many nodes, and how many more there are.
func TestShortened(t *testing.T) {
	require.Equal(t, "a, b", fleet.Shortened([]string{"a", "b"}))
	require.Equal(t, "x, x, x, x, x, x, x, x, x, x, x, x and 288 more", fleet.Shortened(slices.Repeat([]string{"x"}, 300)))
}
