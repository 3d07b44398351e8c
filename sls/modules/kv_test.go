package modules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
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

// A default hides that a key is missing, and must not hide that it can never be read.
func TestForeignKeys(t *testing.T) {
	c := &call{Env: &Env{Cfg: py.NewDict("name", "app")}}
	for _, key := range []string{"projects/app/size", "shared/a", "services/db/db1", "nodes/web1/facts/os", "", "projects/", "shared"} {
		require.NoError(t, c.foreign(key), key)
	}
	for _, key := range []string{"projects/other/size", "projects/app2/size", "colour", "share/colour"} {
		require.ErrorContains(t, c.foreign(key), key+" is no key that steps of app can read", key)
	}
	require.NoError(t, (&call{Env: &Env{Cfg: py.NewDict()}}).foreign("colour"))
}
