package outfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures/outfile"
	"corpus-git/sls/host"
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

// Each step of a series finds an empty file at the same path, whatever the step before did to it and still does, and nothing is left behind.
func TestSeries(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, did := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"removed": func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		"replaced": func(t *testing.T, dir string) {
			require.NoError(t, errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)))
		},
		"reports": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tests", "a.xml"), []byte("<a/>"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := layout.State(t.TempDir())
			s := outfile.Series{File: outfile.Path(state, "one"), Machine: &host.Host{EUID: 1}}
			dir := filepath.Dir(s.File)
			for _, x := range []string{dir, dir + ".old", dir + ".next"} { // by a crash
				require.NoError(t, errors.Join(os.MkdirAll(x, 0o700), os.WriteFile(filepath.Join(x, "outputs"), []byte("a=1\n"), 0o600)))
			}
			var before []*os.File
			s.Prepare(nil)
			for i := range 4 {
				require.NoError(t, s.Begin(nil, i < 3))
				for _, f := range before { // what still runs of earlier steps
					_, err := f.WriteString("late=1\n")
					require.NoError(t, err)
				}
				text, err := os.ReadFile(s.File)
				require.NoError(t, err)
				require.Empty(t, text)
				reports, err := os.ReadDir(outfile.Reports(s.File))
				require.NoError(t, err)
				require.Empty(t, reports)
				fi, err := os.Stat(dir)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())
				f, err := os.OpenFile(s.File, os.O_WRONLY|os.O_APPEND, 0)
				require.NoError(t, err)
				defer f.Close()
				before = append(before, f)
				did(t, dir)
				s.End(true)
			}
			require.NoError(t, outfile.Drop(state, "one"))
			left, err := filepath.Glob(dir + "*")
			require.NoError(t, err)
			require.Empty(t, left)
			// The step that was to follow does not; a step fails.
			require.NoError(t, s.Begin(nil, true))
			s.End(true)
			s.Close()
			s.Close()
			require.NoError(t, s.Begin(nil, true))
			s.End(false)
			s.Close()
			left, err = filepath.Glob(dir + "*")
			require.NoError(t, err)
			require.Empty(t, left)
			// No step begins; it may have been made twice.
			s.Prepare(nil)
			s.Prepare(nil)
			s.Close()
			left, err = filepath.Glob(dir + "*")
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// What a step left as it found it is passed on to the next one; anything else is not.
func TestSeriesPassesOnWhatIsUntouched(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, c := range map[string]struct {
		did    func(t *testing.T, dir string)
		passed bool
	}{
		"nothing": {func(*testing.T, string) {}, true},
		"read": {func(t *testing.T, dir string) {
			_, err := os.ReadFile(filepath.Join(dir, "outputs"))
			require.NoError(t, err)
		}, true},
		"written": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "outputs"), []byte("a=1\n"), 0o600))
		}, false},
		"another mode": {func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "outputs"), 0o644)) }, false},
		"another name": {func(t *testing.T, dir string) {
			require.NoError(t, os.Link(filepath.Join(dir, "outputs"), filepath.Join(t.TempDir(), "it")))
		}, false},
		"a file beside it": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "more"), nil, 0o600))
		}, false},
		"an empty report": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tests", "a.xml"), nil, 0o600))
		}, false},
		"the folder for reports replaced": {func(t *testing.T, dir string) {
			tests := filepath.Join(dir, "tests")
			require.NoError(t, errors.Join(os.Remove(tests), os.Symlink(t.TempDir(), tests)))
		}, false},
		"open for writing": {func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "outputs"), os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := layout.State(t.TempDir())
			s := outfile.Series{File: outfile.Path(state, "one"), Machine: &host.Host{EUID: 1}}
			dir := filepath.Dir(s.File)
			s.Prepare(nil)
			require.NoError(t, s.Begin(nil, true))
			kept, err := os.Open(dir) // so that its inode's number is not used again
			require.NoError(t, err)
			defer kept.Close()
			was, err := kept.Stat()
			require.NoError(t, err)
			c.did(t, dir)
			s.End(true)
			require.NoError(t, s.Begin(nil, false))
			is, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, c.passed, os.SameFile(was, is))
			s.End(true)
			s.Close()
			require.NoError(t, outfile.Drop(state, "one"))
			left, err := filepath.Glob(dir + "*")
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Members of the project's group may write, a group that was created meanwhile included.
func TestSeriesOfAGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to a group")
	}
	t.Setenv("TMPDIR", t.TempDir())
	s := outfile.Series{File: outfile.Path(layout.State(t.TempDir()), "one"), Machine: &host.Host{}}
	for i, gid := range []int{0, 65534, 65534, 65533} {
		var group *host.Group
		if gid != 0 {
			group = &host.Group{GID: gid}
		}
		require.NoError(t, s.Begin(group, i < 3))
		for path, mode := range map[string]os.FileMode{s.File: 0o660, outfile.Reports(s.File): 0o770, filepath.Dir(s.File): 0o710} {
			fi, err := os.Stat(path)
			require.NoError(t, err)
			if group == nil {
				mode &= 0o700
			}
			require.Equal(t, mode, fi.Mode().Perm(), path)
			require.EqualValues(t, gid, fi.Sys().(*syscall.Stat_t).Gid, path)
		}
		s.End(true)
	}
}
