package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

// plan is what a function says of arguments in a test run.
func plan(t *testing.T, fun, path string, args ...any) core.Return {
	t.Helper()
	f, ok := All().Lookup(fun)
	require.True(t, ok, fun)
	c := statetest.CallFor(t, "", fun, path, args...)
	c.Test = true
	return f.Run(c)
}

// An argument of a wrong type fails the state with a comment that names it.
func TestWrongArgumentTypesFailTheState(t *testing.T) {
	mapping, list := py.NewDict("a", int64(1)), py.NewList(int64(1), py.NewDict())
	for _, tt := range []struct {
		fun, arg string
		value    any
		more     []any
		comment  string
	}{
		{"file.managed", "mode", "rw-r--r--", nil, `The argument "mode" must be an octal mode such as '0644'`},
		{"file.managed", "mode", mapping, nil, `The argument "mode" must be a string, not a dict`},
		{"file.managed", "source_hash", mapping, []any{"source", "/none"}, `The argument "source_hash" must be a string, not a dict`},
		{"file.directory", "max_depth", list, nil, `The argument "max_depth" must be a number, not a list`},
		{"file.replace", "pattern", mapping, []any{"repl", "x"}, `expected str, bytes, or bytearray not <class 'dict'>`},
		{"file.replace", "count", "many", []any{"pattern", "x", "repl", "y"}, `The argument "count" must be a number, not a str`},
		{"file.blockreplace", "marker_start", list, nil, `The argument "marker_start" must be a string, not a list`},
		{"file.line", "mode", mapping, nil, `The argument "mode" must be a string, not a dict`},
		{"file.symlink", "target", list, nil, `The argument "target" must be a string, not a list`},
		{"cmd.run", "cwd", mapping, nil, `The argument "cwd" must be a string, not a dict`},
		{"test.configurable_test_state", "comment", list, nil, `The argument "comment" must be a string, not a list`},
	} {
		file := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o600))
		path := file
		if tt.fun == "file.directory" {
			path = filepath.Dir(file)
		}
		ret := plan(t, tt.fun, path, append([]any{tt.arg, tt.value}, tt.more...)...)
		require.Equal(t, core.False, ret.Result, "%s %s: %s", tt.fun, tt.arg, ret.Comment)
		require.Equal(t, tt.comment, ret.Comment, "%s %s", tt.fun, tt.arg)
	}
}

// No argument of any type makes a function panic, or a test run write.
func TestArgumentsOfAnyTypeDoNotPanic(t *testing.T) {
	failed := 0
	for _, name := range All().Names() {
		if !strings.HasPrefix(name, "file.") && !strings.HasPrefix(name, "test.") && !strings.HasPrefix(name, "cmd.") {
			continue // those would run tools
		}
		f, _ := All().Lookup(name)
		for _, v := range []any{py.NewDict("a", int64(1)), py.NewList(int64(1), py.NewDict()), int64(-1), nil, "x"} {
			args := []any{}
			for _, p := range f.Params {
				if p != "name" && p != "timeout" {
					args = append(args, p, v)
				}
			}
			path := filepath.Join(t.TempDir(), "x")
			var ret core.Return
			require.NotPanics(t, func() { ret = plan(t, name, path, args...) }, "%s with %T", name, v)
			require.NoFileExists(t, path, "%s with %T", name, v)
			if ret.Result == core.False && strings.HasPrefix(ret.Comment, "The argument ") {
				failed++
			}
		}
	}
	require.Greater(t, failed, 20, "functions no longer say which argument is wrong")
}

// No function both takes an argument and lacks it.
func TestArgumentsAreTakenOrLacking(t *testing.T) {
	for _, n := range All().Names() {
		f, _ := All().Lookup(n)
		for l := range f.Unsupported {
			require.False(t, f.HasParam(l), "%s both takes and lacks %s", n, l)
		}
	}
}
