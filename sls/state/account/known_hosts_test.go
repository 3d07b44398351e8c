package account

import (
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
	"corpus-git/sls/state/core"
)

// knownHostsMachine calls the states with a user ann whose home is a temporary folder, the real ssh-keygen, and an ssh-keyscan that prints what a file has.
type knownHostsMachine struct {
	t      *testing.T
	home   string
	shows  string // what hosts show: a file
	keys   [2]string
	passwd string
	path   string
	calls  string
}

func newKnownHostsMachine(t *testing.T) *knownHostsMachine {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	dir := t.TempDir()
	m := &knownHostsMachine{t: t, home: filepath.Join(dir, "home"), shows: filepath.Join(dir, "shows"), passwd: filepath.Join(dir, "passwd"), path: filepath.Join(dir, "bin"), calls: filepath.Join(dir, "calls")}
	require.NoError(t, os.Mkdir(m.home, 0o700))
	require.NoError(t, os.Mkdir(m.path, 0o700))
	require.NoError(t, os.WriteFile(m.passwd, fmt.Appendf(nil, "ann:x:%d:%d::%s:/bin/sh\n", os.Geteuid(), os.Getegid(), m.home), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(m.path, "ssh-keyscan"), []byte("#!/bin/sh\necho \"$@\" >> "+m.calls+"\ncat "+m.shows+" 2>/dev/null\n"), 0o700))
	for i := range m.keys {
		name := filepath.Join(dir, fmt.Sprint("key", i))
		out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name).CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := os.ReadFile(name + ".pub")
		require.NoError(t, err)
		m.keys[i] = strings.Fields(string(text))[1]
	}
	return m
}

func (m *knownHostsMachine) call(test bool, fun, name string, args ...any) core.Return {
	f, ok := core.NewTable(States).Lookup(fun)
	require.True(m.t, ok)
	h := host.New(execx.OS{})
	h.Users, h.Environ = host.FileUsers{Passwd: m.passwd}, []string{"PATH=" + m.path + ":" + os.Getenv("PATH")}
	c := &core.Call{Env: &core.Env{Host: h, Cache: map[string]any{}}, Ctx: context.Background(), Name: name, Args: py.NewDict(append(args, "name", name)...), Test: test}
	return f.Run(c)
}

func (m *knownHostsMachine) file() string {
	text, err := os.ReadFile(filepath.Join(m.home, ".ssh/known_hosts"))
	require.NoError(m.t, err)
	return string(text)
}

func TestKnownHostsWithAKey(t *testing.T) {
	m := newKnownHostsMachine(t)
	one := []any{"user", "ann", "enc", "ed25519", "key", m.keys[0]}
	r := m.call(true, "ssh_known_hosts.present", "git.example", one...)
	require.Equal(t, core.None, r.Result)
	require.Equal(t, "Key for git.example is set to be added to .ssh/known_hosts", r.Comment)
	require.NoFileExists(t, filepath.Join(m.home, ".ssh/known_hosts"))

	r = m.call(false, "ssh_known_hosts.present", "git.example", one...)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "git.example's key saved to .ssh/known_hosts (key: "+m.keys[0]+")", r.Comment)
	require.Regexp(t, `^\|1\|[A-Za-z0-9+/=]{28}\|[A-Za-z0-9+/=]{28} ssh-ed25519 `, m.file())
	st, err := os.Stat(filepath.Join(m.home, ".ssh/known_hosts"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode())
	require.Equal(t, core.OKf("git.example already exists in .ssh/known_hosts"), m.call(false, "ssh_known_hosts.present", "git.example", one...))
	require.Equal(t, core.OKf("Host git.example is already in .ssh/known_hosts"), m.call(true, "ssh_known_hosts.present", "git.example", one...))

	// Another key comes in its place, and the lines of others stay.
	other := append(one[:4:4], "key", m.keys[1], "hash_known_hosts", false)
	require.Equal(t, core.True, m.call(false, "ssh_known_hosts.present", "other.example", append(other[:6:6], "hash_known_hosts", false)...).Result)
	before := strings.SplitAfter(m.file(), "\n")[1]
	require.Equal(t, "other.example ssh-ed25519 "+m.keys[1]+"\n", before)
	r = m.call(true, "ssh_known_hosts.present", "git.example", other...)
	require.Equal(t, "Key for git.example is set to be updated to .ssh/known_hosts", r.Comment)
	r = m.call(false, "ssh_known_hosts.present", "git.example", other...)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, before+"git.example ssh-ed25519 "+m.keys[1]+"\n", m.file())

	require.Equal(t, "Key for git.example is set to be removed from .ssh/known_hosts", m.call(true, "ssh_known_hosts.absent", "git.example", "user", "ann").Comment)
	require.Equal(t, core.True, m.call(false, "ssh_known_hosts.absent", "git.example", "user", "ann").Result)
	require.Equal(t, before, m.file())
	require.Equal(t, core.OKf("Host is already absent"), m.call(false, "ssh_known_hosts.absent", "git.example", "user", "ann"))
	require.NoFileExists(t, m.calls, "no host is asked")
}

func TestKnownHostsThatHostsShow(t *testing.T) {
	m := newKnownHostsMachine(t)
	show := func(keys ...string) {
		text := "# git.example:22 SSH-2.0-OpenSSH_9.2p1\n"
		for _, k := range keys {
			text += "git.example ssh-ed25519 " + k + "\n"
		}
		require.NoError(t, os.WriteFile(m.shows, []byte(text), 0o600))
	}
	r := m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann")
	require.Equal(t, core.Failf("Unable to receive remote host keys"), r)

	// Of two keys that are shown, the one with the fingerprint is believed.
	show(m.keys[:]...)
	good := fingerprintOf(m.keys[1], "sha256")
	r = m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann", "fingerprint", good, "hash_known_hosts", false)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "git.example ssh-ed25519 "+m.keys[1]+"\n", m.file())
	require.NoError(t, os.Remove(m.calls))
	r = m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann", "fingerprint", good)
	require.Equal(t, core.OKf("git.example already exists in .ssh/known_hosts"), r)
	require.NoFileExists(t, m.calls)

	show(m.keys[1])
	r = m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann", "fingerprint", fingerprintOf(m.keys[0], "sha256"))
	require.Equal(t, core.Failf("Remote host public keys found but none of their fingerprints match the one you have provided"), r)
	require.Equal(t, "git.example ssh-ed25519 "+m.keys[1]+"\n", m.file())

	// Without one, a host is asked each time, and what it shows counts.
	require.Equal(t, core.OKf("git.example already exists in .ssh/known_hosts"), m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann"))
	show(m.keys[0])
	r = m.call(false, "ssh_known_hosts.present", "git.example", "user", "ann", "port", int64(2222), "hash_known_hosts", false, "timeout", int64(9))
	require.Equal(t, "git.example's key(s) saved to .ssh/known_hosts", r.Comment)
	require.Contains(t, m.file(), "\n[git.example]:2222 ssh-ed25519 "+m.keys[0]+"\n")
	calls, err := os.ReadFile(m.calls)
	require.NoError(t, err)
	require.Contains(t, string(calls), "-T 9 -p 2222 -- git.example\n")
}

func TestKnownHostsRefuses(t *testing.T) {
	m := newKnownHostsMachine(t)
	for _, tt := range []struct {
		name string
		args []any
		says string
	}{
		{"h", []any{"config", "known"}, `specify an absolute "config"`},
		{"h", []any{"user", "nobody-here"}, "User nobody-here does not exist"},
		{"-oProxyCommand=evil", []any{"user", "ann"}, "is no name of one host"},
		{"a,b", []any{"user", "ann"}, "is no name of one host"},
		{"h", []any{"user", "ann", "key", m.keys[0]}, `Required argument "enc"`},
		{"h", []any{"user", "ann", "key", m.keys[0], "enc", "ed25519", "fingerprint", "aa"}, `Specify either "key" or "fingerprint"`},
		{"h", []any{"user", "ann", "key", m.keys[0], "enc", "ssh-rsa"}, "none of the type ssh-rsa"},
		{"h", []any{"user", "ann", "key", "AAAA", "enc", "ed25519"}, "none of the type ed25519"},
		{"h", []any{"user", "ann", "key", m.keys[0] + "\nevil ssh-rsa AAAA", "enc", "ed25519"}, "none of the type ed25519"},
		{"h", []any{"user", "ann", "key", m.keys[0][:40] + "\n" + m.keys[0][40:], "enc", "ed25519"}, "none of the type ed25519"},
		{"h", []any{"user", "ann", "fingerprint", "aa", "fingerprint_hash_type", "crc"}, "crc is no kind of fingerprint"},
		{"h", []any{"user", "ann", "port", int64(2222)}, "argument port can not be used"},
	} {
		r := m.call(false, "ssh_known_hosts.present", tt.name, tt.args...)
		require.Equal(t, core.False, r.Result, tt.says)
		require.Contains(t, r.Comment, tt.says)
	}
	require.NoDirExists(t, filepath.Join(m.home, ".ssh"))
	require.NoFileExists(t, m.calls)
	require.Equal(t, core.None, m.call(true, "ssh_known_hosts.present", "h", "user", "later").Result)
}
