package execx_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
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

func TestRunStartsWhereItsUserCannotGo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	dir := filepath.Join(t.TempDir(), "closed", "open")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o700))
	before, err := os.Getwd()
	require.NoError(t, err)
	for range 20 {
		var out bytes.Buffer
		st, err := execx.OS{}.Run(t.Context(), execx.Cmd{Argv: []string{"sh", "-c", "id -u; pwd"}, Env: env, Stdout: &out, Dir: dir,
			Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
		require.NoError(t, err)
		require.Zero(t, st.Exit)
		require.Equal(t, "65534\n"+dir+"\n", out.String())
	}
	after, err := os.Readlink("/proc/self/cwd")
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = execx.OS{}.Run(t.Context(), execx.Cmd{Argv: []string{"/no/such/program"}, Env: env, Dir: dir,
		Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	require.ErrorIs(t, err, os.ErrNotExist)
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
	// The grandchild ignores SIGTERM and would otherwise survive.
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

// A shell ends at SIGTERM at once; its children have the whole grace period to end.
func TestGraceIsForTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	script := `(trap 'sleep 0.3; echo ended > "$1/tidy"; exit' TERM; echo > "$1/ready"; while :; do sleep 0.02; done) >/dev/null 2>&1 &
		while ! test -e "$1/ready"; do sleep 0.01; done; echo > "$1/begun"; wait`
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancel(errors.New("cancelled"))
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := execx.OS{}.Run(ctx, execx.Cmd{Argv: []string{"sh", "-c", script, "x", dir}, Env: env, Grace: time.Minute})
	require.ErrorContains(t, err, "cancelled")
	require.FileExists(t, filepath.Join(dir, "tidy"))
}

// gone: no such process, or a zombie that nobody has waited for yet.
func gone(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	return bytes.Contains(data, []byte(") Z "))
}

// A command that is running when its server dies, with children without a mark: an empty environment, a separate process
// group, a parent that has ended. One created its own session.
func TestReapEndsStepsAndSparesDaemons(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, whose job control needs no terminal")
	}
	dir := t.TempDir()
	notes := filepath.Join(dir, "processes")
	script := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(script, []byte(`cd "$1"
sleep 300 & echo $! > child
env -i sleep 300 & echo $! > bare
(env -i sh -c 'sleep 300 & echo $! > "$1/orphan"' x "$1")
set -m
env -i sleep 300 & echo $! > group
setsid sh -c 'echo $$ > daemon; exec sleep 300' &
while ! test -s daemon || ! test -s orphan; do sleep 0.01; done
echo $$ > leader
wait
`), 0o600))
	done := make(chan execx.Status, 1)
	go func() {
		st, _ := execx.OS{Notes: notes}.Run(context.Background(), execx.Cmd{Argv: []string{"bash", script, dir}, Env: env})
		done <- st
	}()
	pids := map[string]int{}
	for _, name := range []string{"leader", "child", "bare", "orphan", "group", "daemon"} {
		require.Eventually(t, func() bool {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.HasSuffix(string(data), "\n") {
				return false
			}
			pids[name], err = strconv.Atoi(strings.TrimSpace(string(data)))
			return err == nil
		}, 30*time.Second, 5*time.Millisecond, name)
	}
	defer func() { _ = syscall.Kill(pids["daemon"], syscall.SIGKILL) }()
	n, err := execx.Reap("/proc", notes)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	for name, pid := range pids {
		if name != "daemon" {
			require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 5*time.Millisecond, name)
		}
	}
	require.False(t, gone(pids["daemon"]))
	require.Equal(t, 128+9, (<-done).Exit)
	left, err := os.ReadDir(notes)
	require.NoError(t, err)
	require.Empty(t, left)
	n, err = execx.Reap("/proc", notes)
	require.NoError(t, err)
	require.Zero(t, n)
}

// A command has a note while it runs, with and without a file to link.
func TestACommandIsNoted(t *testing.T) {
	for name, before := range map[string]func(notes string) error{
		"first":     func(string) error { return nil },
		"again":     func(notes string) error { return os.WriteFile(filepath.Join(notes, ".note"), nil, 0o600) },
		"no folder": os.Remove,
		"no link":   func(notes string) error { return os.Mkdir(filepath.Join(notes, ".note"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			notes := t.TempDir()
			require.NoError(t, before(notes))
			seen := map[string]bool{}
			for range 3 {
				var out strings.Builder
				c := execx.Cmd{Argv: []string{"sh", "-c", `echo $$ "$CORPUS_PROCESS"; ls "$1"`, "x", notes}, Env: env, Stdout: &out}
				_, err := execx.OS{Notes: notes}.Run(t.Context(), c)
				require.NoError(t, err)
				said := strings.Fields(out.String())
				require.Len(t, said, 3)
				require.False(t, seen[said[1]], "the same note again")
				seen[said[1]] = true
				require.Regexp(t, "^("+filepath.Base(said[1])+"|"+said[0]+"-[0-9]+-[0-9a-f]+)$", said[2])
				left, err := filepath.Glob(filepath.Join(notes, "[^.]*"))
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

// Processes left running by a command that has ended are not leftovers of a crash.
func TestReapSparesWhatACommandLeftRunning(t *testing.T) {
	dir := t.TempDir()
	notes, pidfile := filepath.Join(dir, "processes"), filepath.Join(dir, "pid")
	_, err := execx.OS{Notes: notes}.Run(t.Context(), execx.Cmd{Argv: []string{"sh", "-c", `sleep 300 >/dev/null 2>&1 & echo $! > "$1"`, "x", pidfile}, Env: env})
	require.NoError(t, err)
	data, err := os.ReadFile(pidfile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	n, err := execx.Reap("/proc", notes)
	require.NoError(t, err)
	require.Zero(t, n)
	require.False(t, gone(pid))
}

// A server that dies before the note has its process is found by the note's name in the environment; numbers from another
// boot of the machine mean nothing.
func TestReapReadsEveryKindOfNote(t *testing.T) {
	notes := t.TempDir()
	note := filepath.Join(notes, "starting-1")
	require.NoError(t, os.WriteFile(note, nil, 0o600))
	cmd := exec.CommandContext(t.Context(), "sleep", "300")
	cmd.Env = append(env, execx.Key+"="+note)
	require.NoError(t, cmd.Start())
	other := exec.CommandContext(t.Context(), "sleep", "300")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	for _, name := range []string{strconv.Itoa(other.Process.Pid) + "-1-deadbeef", "1-2", "x-y-z", "junk"} {
		require.NoError(t, os.WriteFile(filepath.Join(notes, name), nil, 0o600))
	}
	n, err := execx.Reap("/proc", notes)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Error(t, cmd.Wait())
	require.False(t, gone(other.Process.Pid))
	left, err := os.ReadDir(notes)
	require.NoError(t, err)
	require.Empty(t, left)
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

// TestDaemonsKeepWriting: a child that keeps running and holds the output open, as a daemon does, was ended by SIGPIPE at its next line.
func TestDaemonsKeepWriting(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	st, err := execx.OS{}.Run(t.Context(), execx.Cmd{Dir: dir, Env: env, Stdout: &out, Stderr: &out,
		Argv: []string{"sh", "-c", `(while ! test -e go; do sleep 0.01; done; echo late; echo late >&2; echo lived > lived) & echo early`}})
	require.NoError(t, err)
	require.Zero(t, st.Exit)
	require.Equal(t, "early\n", out.String())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "lived"))
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	require.Equal(t, "early\n", out.String(), "the writer is not used after Run")
}
