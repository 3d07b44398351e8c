package slstest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls"
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
	for _, r := range sls.Requisites() {
		require.NotContains(t, want, "| `"+r+"` |  |", "no tree has this requisite")
	}
	for _, l := range strings.Split(want, "\n") {
		if !strings.HasPrefix(l, "| `") || !strings.HasSuffix(l, "|  |") {
			continue
		}
		name := strings.Trim(strings.SplitN(l, "|", 3)[1], " `")
		for _, m := range []string{"file.", "cmd.", "test.", "git.", "archive.", "cron.", "ssh_auth.", "module.", "sysctl."} {
			require.False(t, strings.HasPrefix(name, m), "no tree has %s", name)
		}
	}
}
