package state

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// do calls a function with arguments in pairs; name comes first.
func do(t *testing.T, test bool, fun, name string, args ...any) Return {
	t.Helper()
	f, ok := NewTable().Lookup(fun)
	require.True(t, ok, fun)
	c := callFor(t, "", fun, name, args...)
	c.Test = test
	for _, k := range c.Args.Keys() {
		require.True(t, f.Knows(k.(string)), "%s does not know %s", fun, k)
	}
	return f.Run(c)
}

// callFor is a call on this machine; backups is where old files are kept.
func callFor(t *testing.T, backups, fun, name string, args ...any) *Call {
	t.Helper()
	c := &Call{
		Env: &Env{Host: host.New(execx.OS{}), Pillar: py.NewDict(), Grains: py.NewDict(), Cache: map[string]any{}, Accumulated: map[string]*Accumulator{}, Backups: backups},
		Ctx: context.Background(), Function: fun, Name: name, ID: name, Args: py.NewDict(args...),
	}
	c.Args.SetStr("name", name)
	return c
}

// The expected hashes are those of openssl passwd.
func TestApr1(t *testing.T) {
	require.Equal(t, "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", apr1("secret", "abcdefgh"))
	require.Equal(t, "$apr1$12345678$iHG6z5QyvBj5X7XsjhPcb/", apr1("a much longer password than sixteen", "12345678"))
}

func TestHtpasswd(t *testing.T) {
	f := filepath.Join(t.TempDir(), "htpasswd")
	args := []any{"htpasswd_file", f, "password", "pw", "options", "m"}
	require.Equal(t, None, do(t, true, "webutil.user_exists", "ann", args...).Result)
	require.NoFileExists(t, f)
	r := do(t, false, "webutil.user_exists", "ann", args...)
	require.Equal(t, True, r.Result, r.Comment)
	require.True(t, r.Changed())
	r = do(t, false, "webutil.user_exists", "ann", args...)
	require.False(t, r.Changed())
	r = do(t, false, "webutil.user_exists", "ann", append(args, "force", true)...)
	require.True(t, r.Changed())
	r = do(t, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "x", "options", "B")
	require.True(t, r.Changed())
	r = do(t, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "x", "update", true)
	require.False(t, r.Changed())
	r = do(t, false, "webutil.user_exists", "bob", "htpasswd_file", f, "password", "y", "update", true)
	require.True(t, r.Changed())
	b, err := os.ReadFile(f)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(b), "\n"))
	require.NotContains(t, string(b), "pw")
	require.True(t, do(t, false, "webutil.user_absent", "ann", "htpasswd_file", f).Changed())
	require.False(t, do(t, false, "webutil.user_absent", "ann", "htpasswd_file", f).Changed())
}

func tarball(t *testing.T, files map[string]string, links map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for n, target := range links {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: n, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}))
	}
	for n, s := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: n, Mode: 0o640, Size: int64(len(s))}))
		_, err := w.Write([]byte(s))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(src, tarball(t, map[string]string{"top/a": "A", "top/d/b": "B"}, nil), 0o600))
	require.Equal(t, None, do(t, true, "archive.extracted", dst, "source", src).Result)
	require.NoDirExists(t, dst)
	r := do(t, false, "archive.extracted", dst, "source", src)
	require.Equal(t, True, r.Result, r.Comment)
	require.FileExists(t, filepath.Join(dst, "top/d/b"))
	require.False(t, do(t, false, "archive.extracted", dst, "source", src).Changed())

	r = do(t, false, "archive.extracted", dst, "source", src, "source_hash", "md5=00000000000000000000000000000000", "overwrite", true)
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "does not match")
}

// An archive that carries a link out of the directory, and then a file through that link, must not write outside.
func TestArchiveCannotEscape(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "outside")
	require.NoError(t, os.Mkdir(out, 0o755))
	for i, files := range []map[string]string{{"../outside/x": "evil"}, {"top/l/x": "evil"}} {
		src := filepath.Join(dir, "a.tar.gz")
		require.NoError(t, os.WriteFile(src, tarball(t, files, map[string]string{"top/l": out}), 0o600))
		r := do(t, false, "archive.extracted", filepath.Join(dir, "dst"), "source", src, "enforce_toplevel", false)
		require.Equal(t, False, r.Result, "case %d: %s", i, r.Comment)
		require.NoFileExists(t, filepath.Join(out, "x"))
	}
}

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
	run := func(args ...any) Return {
		return do(t, false, "mc_git.latest", up, append([]any{"target", dst}, args...)...)
	}

	require.Equal(t, None, do(t, true, "git.latest", up, "target", dst).Result)
	require.NoDirExists(t, dst)
	r := run("rev", "master")
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, "one", read())
	require.False(t, run("rev", "master").Changed())

	commit("two")
	r = run("rev", "master")
	require.Equal(t, True, r.Result, r.Comment)
	require.True(t, r.Changed())
	require.Equal(t, "two", read())

	r = run("rev", "v1")
	require.Equal(t, False, r.Result, "Salt goes back only where force_reset says so")
	require.Contains(t, r.Comment, "not a fast-forward merge")
	r = run("rev", "v1", "force_reset", true)
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, "one", read())
	r = run("rev", "master")
	require.Equal(t, "two", read(), r.Comment)

	commit("three")
	require.NoError(t, os.WriteFile(filepath.Join(dst, "f"), []byte("mine"), 0o644))
	r = run("rev", "master")
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "uncommitted changes")
	r = run("rev", "master", "force_reset", true)
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, "three", read())

	git("reset", "-q", "--hard", "v1")
	commit("other history")
	r = run("rev", "master")
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "Set 'force_fetch' to True")
	r = run("rev", "master", "force_fetch", true)
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "not a fast-forward")
	r = run("rev", "master", "force_reset", true)
	require.Equal(t, True, r.Result, r.Comment)
	r = run("rev", "nothing")
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "No revision matching")
}

func TestDiffIsPythons(t *testing.T) {
	// Recorded from difflib of CPython 3.11.
	a := splitKeep("a\nb\nc\nd\ne\nf\ng\nh\n")
	b := splitKeep("a\nb\nC\nd\ne\nf\ng\nnew\nh\n")
	require.Equal(t, "--- \n+++ \n@@ -1,8 +1,9 @@\n a\n b\n-c\n+C\n d\n e\n f\n g\n+new\n h\n", strings.Join(unifiedDiff(a, b, "\n"), ""))
}

func TestWrongArgumentTypesFailTheState(t *testing.T) {
	table := NewTable()
	for _, name := range table.Names() {
		if !strings.HasPrefix(name, "file.") && !strings.HasPrefix(name, "test.") && !strings.HasPrefix(name, "cmd.") {
			continue // those would run tools
		}
		f, _ := table.Lookup(name)
		for _, v := range []any{py.NewDict("a", int64(1)), py.NewList(int64(1), py.NewDict()), int64(-1), nil, "x"} {
			args := []any{}
			for _, p := range f.Params {
				if p != "name" && p != "timeout" {
					args = append(args, p, v)
				}
			}
			require.NotPanics(t, func() { do(t, true, name, filepath.Join(t.TempDir(), "x"), args...) }, "%s with %T", name, v)
		}
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add([]byte("PK\x03\x04"), "zip")
	f.Add([]byte{0x1f, 0x8b}, "tar")
	f.Fuzz(func(_ *testing.T, data []byte, format string) { _, _ = readArchive(data, format, "x") })
}

func TestSSHAuth(t *testing.T) {
	home := t.TempDir()
	passwd := filepath.Join(t.TempDir(), "passwd")
	uid := os.Geteuid()
	require.NoError(t, os.WriteFile(passwd, fmt.Appendf(nil, "ann:x:%d:%d::%s:/bin/sh\n", uid, os.Getegid(), home), 0o600))
	run := func(fun, key string, args ...any) Return {
		f, _ := NewTable().Lookup(fun)
		h := host.New(execx.OS{})
		h.Users = host.FileUsers{Passwd: passwd}
		c := &Call{Env: &Env{Host: h, Cache: map[string]any{}}, Ctx: context.Background(), Name: key, Args: py.NewDict(append(args, "user", "ann")...)}
		return f.Run(c)
	}
	file := filepath.Join(home, ".ssh/authorized_keys")
	read := func() string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	r := run("ssh_auth.present", "AAAAkey1", "enc", "ed25519", "comment", "one")
	require.Equal(t, True, r.Result, r.Comment)
	require.True(t, r.Changed())
	require.False(t, run("ssh_auth.present", "AAAAkey1", "enc", "ed25519", "comment", "one").Changed())
	require.True(t, run("ssh_auth.present", `command="a b" ssh-rsa AAAAkey2 two words`).Changed())
	require.Equal(t, "ssh-ed25519 AAAAkey1 one\ncommand=\"a b\" ssh-rsa AAAAkey2 two words\n", read())
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())
	require.True(t, run("ssh_auth.absent", "AAAAkey1").Changed())
	require.False(t, run("ssh_auth.absent", "AAAAkey1").Changed())
	require.Equal(t, "command=\"a b\" ssh-rsa AAAAkey2 two words\n", read())
}

func TestCron(t *testing.T) {
	dir := t.TempDir()
	tab := filepath.Join(dir, "tab")
	script := "#!/bin/sh\ncase \" $* \" in *\" -l \"*) cat " + tab + " 2>/dev/null || { echo no crontab >&2; exit 1; } ;; *) cat > " + tab + " ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "crontab"), []byte(script), 0o755))
	run := func(fun, name string, args ...any) Return {
		f, _ := NewTable().Lookup(fun)
		h := host.New(execx.OS{})
		h.Environ = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/"}
		c := &Call{Env: &Env{Host: h, Cache: map[string]any{}}, Ctx: context.Background(), Name: name, Args: py.NewDict(args...)}
		return f.Run(c)
	}
	read := func() string {
		b, err := os.ReadFile(tab)
		require.NoError(t, err)
		return string(b)
	}
	r := run("cron.present", "/bin/a b", "minute", int64(5), "comment", "why", "identifier", "A")
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, cronHead+"\n# why SALT_CRON_IDENTIFIER:A\n5 * * * * /bin/a b\n", read())
	require.False(t, run("cron.present", "/bin/a b", "minute", int64(5), "comment", "why", "identifier", "A").Changed())
	require.True(t, run("cron.present", "/bin/new", "identifier", "A", "special", "@daily").Changed())
	require.Equal(t, cronHead+"\n# why SALT_CRON_IDENTIFIER:A\n@daily /bin/new\n", read())
	require.True(t, run("cron.present", "/bin/c").Changed())
	require.False(t, run("cron.absent", "/bin/x", "identifier", "A").Changed()) // Salt looks among those with a time
	require.True(t, run("cron.absent", "/bin/x", "identifier", "A", "special", "@daily").Changed())
	require.Equal(t, cronHead+"\n# SALT_CRON_IDENTIFIER:/bin/c\n* * * * * /bin/c\n", read())
	require.False(t, run("cron.absent", "/bin/zz").Changed())
}
