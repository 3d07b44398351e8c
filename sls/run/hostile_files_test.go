package run

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The project's user puts a fifo, or a sparse file of terabytes, where a step of the server reads a file: the step fails. It neither waits for
// the fifo nor reads the file.
func TestStatesReadRegularFilesOfABoundedSize(t *testing.T) {
	for kind, put := range map[string]func(string) error{
		"fifo": func(p string) error { return syscall.Mkfifo(p, 0o644) },
		"sparse": func(p string) error {
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(p, 3<<40)
		},
	} {
		dir := t.TempDir()
		bad, good := filepath.Join(dir, "bad"), filepath.Join(dir, "good")
		require.NoError(t, put(bad))
		for name, text := range map[string]string{
			"append":         "x:\n  file.append:\n    - name: %[1]s\n    - text: x\n",
			"replace":        "x:\n  file.replace:\n    - name: %[1]s\n    - pattern: a\n    - repl: b\n",
			"copy":           "x:\n  file.copy:\n    - name: %[2]s\n    - source: %[1]s\n",
			"managed source": "x:\n  file.managed:\n    - name: %[2]s\n    - source: %[1]s\n",
		} {
			res, _ := apply(t, input(t, map[string]string{"app.sls": fmt.Sprintf(text, bad, good)}))
			require.NotNil(t, res.Failed(), "%s of a %s: %+v", name, kind, res.States)
			require.NoFileExists(t, good)
		}
	}
}
