package slstest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/slstest"
)

var updatePage = flag.Bool("update-page", false, "write docs/salt-compatibility.md")

// TestPage holds docs/salt-compatibility.md to the trees and to the built-in runner.
func TestPage(t *testing.T) {
	want, err := slstest.Markdown()
	require.NoError(t, err)
	page := filepath.Join("..", "..", "docs", "salt-compatibility.md")
	if *updatePage {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go test ./sls/slstest -run TestPage -update-page")
	for _, l := range strings.Split(want, "\n") {
		require.False(t, strings.HasPrefix(l, "| `") && strings.HasSuffix(l, "|  |"), "no tree has %s, and no reason is told", l)
	}
	pins, err := os.ReadFile(filepath.Join("..", "..", ".ci", "salt.txt"))
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(pins), "\n"), "salt=="+slstest.Release, "the trees were recorded with another release than CI installs")
}
