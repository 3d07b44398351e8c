package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestGitLatest(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	up, dst := filepath.Join(dir, "up"), filepath.Join(dir, "dst")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=master"}, args...)...)
		cmd.Dir = up
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	require.NoError(t, os.Mkdir(up, 0o755))
	git("init", "-q")
	commit := func(s string) string {
		require.NoError(t, os.WriteFile(filepath.Join(up, "f"), []byte(s), 0o644))
		git("add", "f")
		git("commit", "-q", "-m", s)
		return git("rev-parse", "HEAD")
	}
	commit("one")
	git("tag", "v1")
	read := func() string {
		b, err := os.ReadFile(filepath.Join(dst, "f"))
		require.NoError(t, err)
		return string(b)
	}
	run := func(args ...any) core.Return {
		return statetest.Do(t, States, false, "mc_git.latest", up, append([]any{"target", dst}, args...)...)
	}

	require.Equal(t, core.None, statetest.Do(t, States, true, "git.latest", up, "target", dst).Result)
	require.NoDirExists(t, dst)
	r := run("rev", "master")
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "one", read())
	require.False(t, run("rev", "master").Changed())

	commit("two")
	r = run("rev", "master")
	require.Equal(t, core.True, r.Result, r.Comment)
	require.True(t, r.Changed())
	require.Equal(t, "two", read())

	r = run("rev", "v1")
	require.Equal(t, core.False, r.Result, "Salt goes back only where force_reset says so")
	require.Contains(t, r.Comment, "not a fast-forward merge")
	r = run("rev", "v1", "force_reset", true)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "one", read())
	r = run("rev", "master")
	require.Equal(t, "two", read(), r.Comment)

	commit("three")
	require.NoError(t, os.WriteFile(filepath.Join(dst, "f"), []byte("mine"), 0o644))
	r = run("rev", "master")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "uncommitted changes")
	r = run("rev", "master", "force_reset", true)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "three", read())

	git("reset", "-q", "--hard", "v1")
	commit("other history")
	r = run("rev", "master")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "Set 'force_fetch' to True")
	r = run("rev", "master", "force_fetch", true)
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "not a fast-forward")
	r = run("rev", "master", "force_reset", true)
	require.Equal(t, core.True, r.Result, r.Comment)
	r = run("rev", "nothing")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "No revision matching")
}
