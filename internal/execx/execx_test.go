package execx_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
)

var env = []string{"PATH=/usr/bin:/bin"}

func TestRunReportsStatusAndOutput(t *testing.T) {
	var out, errs bytes.Buffer
	st, err := execx.OS{}.Run(t.Context(), execx.Cmd{
		Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, Env: env, Stdout: &out, Stderr: &errs, Dir: t.TempDir(),
	})
	require.NoError(t, err)
	require.Equal(t, 7, st.Exit)
	require.Equal(t, "out\n", out.String())
	require.Equal(t, "err\n", errs.String())
}

func TestRunSetsUmask(t *testing.T) {
	mask := 0o027
	var out bytes.Buffer
	st, err := execx.OS{}.Run(t.Context(), execx.Cmd{Argv: []string{"sh", "-c", "umask; echo $1", "x", "a b"}, Env: env, Stdout: &out, Umask: &mask})
	require.NoError(t, err)
	require.Zero(t, st.Exit)
	require.Equal(t, "0027\na b\n", out.String())
}

func TestRunNamesWhatIsMissing(t *testing.T) {
	_, err := execx.OS{}.Run(t.Context(), execx.Cmd{Argv: []string{"no-such-program-here"}, Env: env})
	require.ErrorContains(t, err, "no-such-program-here")
	_, err = execx.OS{}.Run(t.Context(), execx.Cmd{Argv: []string{"true"}, Env: env, Dir: "/no/such/dir"})
	require.ErrorContains(t, err, "/no/such/dir")
}

func TestCancelEndsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	pidfile := filepath.Join(dir, "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled by marie")
	go func() {
		for {
			if data, err := os.ReadFile(pidfile); err == nil && len(data) > 0 && data[len(data)-1] == '\n' {
				cancel(why)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	// The grandchild ignores SIGTERM and would live on.
	_, err := execx.OS{}.Run(ctx, execx.Cmd{
		Argv:  []string{"sh", "-c", `(trap '' TERM; while :; do sleep 0.05; done) & echo $! > "$1"; wait`, "x", pidfile},
		Env:   env,
		Grace: 50 * time.Millisecond,
	})
	require.ErrorIs(t, err, why)
	data, err := os.ReadFile(pidfile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 5*time.Millisecond)
}

// gone: no such process, or a zombie that nobody has waited for yet.
func gone(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	return bytes.Contains(data, []byte(") Z "))
}

func TestReapEndsStepsAndSparesDaemons(t *testing.T) {
	dir := t.TempDir()
	id := "/state:" + dir
	step, daemon := filepath.Join(dir, "step"), filepath.Join(dir, "daemon")
	_, err := execx.OS{Mark: execx.Marker(id)}.Run(t.Context(), execx.Cmd{
		Argv: []string{"sh", "-c", `sleep 300 >/dev/null 2>&1 & echo $! > "$1"; setsid sh -c 'echo $$ > "$1"; exec sleep 300' x "$2" >/dev/null 2>&1 & while ! test -s "$2"; do sleep 0.01; done`, "x", step, daemon},
		Env:  env,
	})
	require.NoError(t, err)
	pids := map[string]int{}
	for _, f := range []string{step, daemon} {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		pids[f], err = strconv.Atoi(strings.TrimSpace(string(data)))
		require.NoError(t, err)
	}
	defer func() { _ = syscall.Kill(pids[daemon], syscall.SIGKILL) }()
	n, err := execx.Reap("/proc", id)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Eventually(t, func() bool { return gone(pids[step]) }, 10*time.Second, 5*time.Millisecond)
	require.False(t, gone(pids[daemon]))
}

func TestLines(t *testing.T) {
	var got []string
	l := execx.NewLines(func(s string) { got = append(got, s) })
	for _, p := range []string{"a", "b\nc", "\n\nd"} {
		_, _ = l.Write([]byte(p))
	}
	require.NoError(t, l.Close())
	require.Equal(t, []string{"ab", "c", "", "d"}, got)
}

func TestTailKeepsWholeLines(t *testing.T) {
	tail := &execx.Tail{Max: 8}
	_, _ = tail.Write([]byte("first line\nab\ncd\n"))
	require.Equal(t, "ab\ncd\n", tail.String())
}
