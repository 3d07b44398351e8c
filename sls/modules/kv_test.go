package modules

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Facts that are too long to be sent are not absent: what reads them gets the reason.
func TestHiddenFacts(t *testing.T) {
	all := map[string]string{"shared/a": "1", "nodes/": "too long"}
	for _, key := range []string{"nodes/web1/facts/os", "nodes/", "no", ""} {
		require.Equal(t, "too long", hidden(all, key), key)
	}
	require.Empty(t, hidden(all, "shared/a"))
	require.Empty(t, hidden(map[string]string{"nodes/web1/facts/os": "Debian"}, "nodes/web1/facts/os"))
}
