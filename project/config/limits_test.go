package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"corpus-git/project/config"
)

// silent returns the limits that refuse nobody, and why.
func silentLimits() map[string]string {
	return map[string]string{
		"base_memory":        "what does not fit is made again",
		"unpack_limit":       "chooses how a push is stored",
		"keepalive_interval": "says how often a client is asked",
		"max_drain_bytes":    "bounds what is read of a push that was refused already, with its reason",
	}
}

// Every limit has a default, a line in the documentation, a message that names its key, and a test or a scenario that checks that the message
// contains the key.
func TestEveryLimitIsToldAndTested(t *testing.T) {
	root := filepath.Join("..", "..")
	docs, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	var said, looked strings.Builder
	for _, dir := range []string{"git", "receive", filepath.Join("cmd", "corpus-git"), filepath.Join("internal", "event")} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			to := &said
			switch ext := filepath.Ext(path); {
			case strings.HasSuffix(path, "_test.go"), ext == ".txtar":
				to = &looked
			case ext != ".go":
				return nil
			}
			text, err := os.ReadFile(path)
			to.Write(text)
			to.WriteByte('\n')
			return err
		}))
	}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(set)
	n := 0
	set.VisitAll(func(f *pflag.Flag) {
		name, ok := strings.CutPrefix(f.Name, "limits-")
		if !ok {
			return
		}
		n++
		name = strings.ReplaceAll(name, "-", "_")
		word := func(s string) *regexp.Regexp { return regexp.MustCompile(s + regexp.QuoteMeta(name) + `\b`) }
		require.Regexp(t, "(?m)^\\| `limits\\."+regexp.QuoteMeta(name)+"` \\| [a-z]+ \\| `[^`]+` \\| .+", string(docs), "%s: no default or no documentation", name)
		if why, ok := silentLimits()[name]; ok {
			require.NotEmpty(t, why)
			return
		}
		require.Regexp(t, word(`(limits\.|")`), said.String(), "no message names limits.%s", name)
		require.Regexp(t, word(`limits\\?\.`), looked.String(), "no test looks for limits.%s in what is said", name)
	})
	require.GreaterOrEqual(t, n, 30, "the limits were not found")
}
