package trap_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/trap"
)

// TestMain is also the trapped program.
func TestMain(m *testing.M) {
	if err := trap.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if dir := os.Getenv("TRAPPED_IN"); dir != "" {
		if err := work(dir); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func work(dir string) error {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	err := os.WriteFile(a, []byte("hello"), 0o600)
	if err == nil {
		err = exec.Command("sh", "-c", "echo unseen > "+filepath.Join(dir, "c")).Run()
	}
	if err == nil {
		_, err = os.ReadFile(a)
	}
	if err == nil {
		err = os.Rename(a, b)
	}
	return err
}

// run starts the program, and returns its calls, its output and how it ended.
func run(t *testing.T, dir string, decide func(n int, c trap.Call) syscall.Errno, options ...trap.Option) (calls []string, out string, err error) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "TRAPPED_IN="+dir)
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, os.Stderr
	answered := make(chan string, 1000)
	n := 0
	var mu sync.Mutex
	require.NoError(t, trap.Start(cmd, func(c trap.Call) syscall.Errno {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(c.Path, dir) {
			return 0
		}
		n++
		text := strings.ReplaceAll(c.String(), dir+"/", "")
		if c.Name == "write" {
			data, err := c.Data()
			at, oerr := c.Offset()
			text += fmt.Sprintf(" %q at %d %v", data, at, errors.Join(err, oerr))
		}
		answered <- text
		return decide(n, c)
	}, options...))
	err = cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	close(answered)
	for s := range answered {
		calls = append(calls, s)
	}
	return calls, b.String(), err
}

func TestEachCallIsTold(t *testing.T) {
	none := func(int, trap.Call) syscall.Errno { return 0 }
	calls, _, err := run(t, t.TempDir(), none)
	require.NoError(t, err)
	require.Equal(t, []string{"openat a", `write a "hello" at 0 <nil>`, "renameat a b"}, calls)
	calls, _, err = run(t, t.TempDir(), none, trap.WithReads)
	require.NoError(t, err)
	require.Contains(t, calls, "read a")
}

func TestACallMayFail(t *testing.T) {
	dir := t.TempDir()
	_, out, err := run(t, dir, func(_ int, c trap.Call) syscall.Errno {
		if c.Name == "renameat" {
			return syscall.EDQUOT
		}
		return 0
	})
	require.Error(t, err)
	require.Contains(t, out, "quota")
	require.FileExists(t, filepath.Join(dir, "a"))
}

func TestTheProcessMayDieAtACall(t *testing.T) {
	for n, want := range map[int]string{1: "-", 2: "", 3: "hello"} {
		dir := t.TempDir()
		calls, _, err := run(t, dir, func(i int, _ trap.Call) syscall.Errno {
			if i == n {
				return trap.Kill
			}
			return 0
		})
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
		require.Len(t, calls, n)
		got, err := os.ReadFile(filepath.Join(dir, "a"))
		if errors.Is(err, fs.ErrNotExist) {
			got = []byte("-")
		}
		require.Equal(t, want, string(got))
	}
}
