package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
)

// here is this machine with an environment that is known.
func here(t *testing.T) *Host {
	h := New(execx.OS{})
	h.Environ = []string{"PATH=" + Path, "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8", "NOTIFY_SOCKET=/run/x"}
	return h
}

func TestRunShell(t *testing.T) {
	h := here(t)
	home := strings.TrimPrefix(h.Environ[1], "HOME=")
	dir := t.TempDir()
	umask := 0o027
	for _, tt := range []struct {
		name   string
		s      Shell
		stdout string
		stderr string
		code   int
		dir    string
	}{
		{"a line", Shell{Line: "echo a; echo b >&2; exit 3", Dir: dir}, "a", "b", 3, dir},
		{"white space at the end", Shell{Line: `printf 'a \n\n'`, Dir: dir}, "a", "", 0, dir},
		{"kept", Shell{Line: `printf 'a \n\n'`, Dir: dir, KeepEnd: true}, "a \n\n", "", 0, dir},
		{"merged", Shell{Line: "echo a; echo b >&2", Dir: dir, Merge: true}, "a\nb", "", 0, dir},
		{"a program", Shell{Argv: []string{"printf", "%s", "$HOME"}, Dir: dir}, "$HOME", "", 0, dir},
		{"home", Shell{Line: "pwd -P"}, home, "", 0, home},
		{"standard input", Shell{Line: "cat", Stdin: "in", Dir: dir}, "in", "", 0, dir},
		{"no standard input", Shell{Line: "cat; echo end", Dir: dir}, "end", "", 0, dir},
		{"decoded", Shell{Line: "echo a", Dir: dir, Decode: strings.ToUpper}, "A", "", 0, dir},
		{"another shell", Shell{Line: "echo $0", Path: "/bin/bash", Dir: dir}, "/bin/bash", "", 0, dir},
		{"umask", Shell{Line: "umask", Umask: &umask, Dir: dir}, "0027", "", 0, dir},
		{"variables", Shell{Line: `echo "$A $LC_TIME $NOTIFY_SOCKET"`, Env: map[string]string{"A": "1"}, Dir: dir}, "1 C", "", 0, dir},
		{"the locale kept", Shell{Line: `echo "[$LC_TIME]"`, KeepLocale: true, Dir: dir}, "[]", "", 0, dir},
		{"a clean environment", Shell{Line: `echo "[$HOME]"`, CleanEnv: true, Dir: dir}, "[]", "", 0, dir},
		{"in front of PATH", Shell{Line: `echo "$PATH"`, Prepend: "/x", Dir: dir}, "/x:" + Path, "", 0, dir},
		{"no PATH", Shell{Line: `echo "$PATH"`, Prepend: "/x", CleanEnv: true, Dir: dir}, "/x", "", 0, dir},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := h.RunShell(t.Context(), tt.s)
			require.NoError(t, err)
			require.Equal(t, ShellResult{Retcode: tt.code, Stdout: tt.stdout, Stderr: tt.stderr, Dir: tt.dir}, res)
		})
	}
}

// What cannot be started is an error in Salt's words, and nothing ran.
func TestRunShellRefuses(t *testing.T) {
	h := here(t)
	h.Users = accounts(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		s    Shell
		want string
	}{
		{Shell{Line: "true", RunAs: "nobody-here"}, "User 'nobody-here' is not available"},
		{Shell{Line: "true", Group: "nothing-here"}, "Group 'nothing-here' is not available"},
		{Shell{Line: "true", Dir: "relative"}, "Specified cwd 'relative' either not absolute or does not exist"},
		{Shell{Line: "true", Dir: file}, "Specified cwd '" + file + "' either not absolute or does not exist"},
		{Shell{Line: "true", Dir: dir, Path: "/bin/none"}, "The shell /bin/none is not available"},
		{Shell{Line: "true", Dir: dir, Path: file}, "The shell " + file + " is not available"},
	} {
		_, err := h.RunShell(t.Context(), tt.s)
		require.EqualError(t, err, tt.want)
	}
	_, err := h.RunShell(t.Context(), Shell{Argv: []string{"no-such-program"}, Dir: dir})
	require.ErrorContains(t, err, "no-such-program")
}

// A plan runs the machine's own tools, and no command that a file names.
func TestAPlanRunsNoCommand(t *testing.T) {
	h := here(t)
	n := 0
	h.Refused = &n
	for _, s := range []Shell{{Line: "true"}, {Argv: []string{"/bin/true"}}, {Argv: []string{"true"}, Prepend: "/tmp"}} {
		_, err := h.RunShell(t.Context(), s)
		require.ErrorIs(t, err, ErrRefused)
	}
	require.Equal(t, 3, n)
	res, err := h.RunShell(t.Context(), Shell{Argv: []string{"true"}})
	require.NoError(t, err)
	require.Zero(t, res.Retcode)
	require.Equal(t, 3, n)
}

func TestRunShellEnds(t *testing.T) {
	h := here(t)
	res, err := h.RunShell(t.Context(), Shell{Line: "echo before; sleep 600", Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	require.True(t, res.TimedOut)
	require.Equal(t, 1, res.Retcode)

	cause := errors.New("cancelled by ann")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = h.RunShell(ctx, Shell{Line: "echo started; sleep 600", OnLine: func(bool, string) { cancel(cause) }})
	require.ErrorIs(t, err, cause)
}

func TestLinesComeAsTheyAreWritten(t *testing.T) {
	var lines []string
	_, err := here(t).RunShell(t.Context(), Shell{Line: `printf 'a\r\nb'; echo c >&2`, Decode: strings.ToUpper, OnLine: func(stderr bool, l string) {
		if !stderr {
			lines = append(lines, l)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"A", "B"}, lines)
}

func TestLastLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"", 2, ""}, {"a\n", 2, "a"}, {"a\nb\nc\n\n", 2, "b\nc"}, {"a\nb", 2, "a\nb"}} {
		require.Equal(t, tt.want, LastLines(tt.text, tt.n))
	}
}
