package outfile_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/procedures/outfile"
)

// A step's file is read as it is; what a step put in its place is never waited for nor followed.
func TestOpen(t *testing.T) {
	for name, c := range map[string]struct {
		make func(file string) error
		err  string
	}{
		"a file":     {func(file string) error { return os.WriteFile(file, []byte("a=1\n"), 0o600) }, ""},
		"removed":    {func(string) error { return nil }, "the step removed the file"},
		"a folder":   {func(file string) error { return os.Mkdir(file, 0o700) }, "something else in the place"},
		"a link":     {func(file string) error { return os.Symlink("/etc/passwd", file) }, "something else in the place"},
		"a fifo":     {func(file string) error { return syscall.Mkfifo(file, 0o600) }, "something else in the place"},
		"a dead end": {func(file string) error { return os.Symlink(file, file) }, "something else in the place"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "outputs")
			require.NoError(t, c.make(file))
			f, err := outfile.Open(file)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, fault.Failed, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			defer f.Close()
			text, err := io.ReadAll(f)
			require.NoError(t, err)
			require.Equal(t, "a=1\n", string(text))
		})
	}
}
