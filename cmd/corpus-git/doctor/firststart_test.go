package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/layout"
)

// A server whose first start ended before the first migration leaves a database without tables.
func TestDatabaseWithoutTables(t *testing.T) {
	state := layout.State(t.TempDir())
	base, err := db.Open(t.Context(), state.Database())
	require.NoError(t, err)
	require.NoError(t, base.Close())
	var said []Finding
	Doctor{}.database(t.Context(), adderTo(&said), state)
	require.Len(t, said, 2)
	require.Equal(t, "ok", said[0].Status, said[0].Text)
	require.Equal(t, "skipped", said[1].Status, said[1].Text)
	require.Contains(t, said[1].Text, "no tables yet")
}
