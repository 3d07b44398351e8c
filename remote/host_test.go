package remote_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/remote"
)

// sshDouble is a substitute for ssh(1): it runs the command here, by sh, as sshd does, in its own home. FAIL makes it fail as ssh does.
const sshDouble = `#!/bin/sh
case "$*" in *-Oexit*) exit 0;; esac
while [ "$1" != -- ]; do shift; done
[ -z "$FAIL" ] || { echo "$FAIL" >&2; exit 255; }
exec sh -c "$3"
`

func host(t *testing.T, env ...string) *remote.Host {
	dir := t.TempDir()
	ssh := filepath.Join(dir, "ssh")
	require.NoError(t, os.WriteFile(ssh, []byte(sshDouble), 0o755))
	h := &remote.Host{
		Target: "web1", SSH: ssh, Exec: execx.OS{}, Dir: dir,
		Env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")}, env...),
	}
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func TestWordsArriveAsTheyAre(t *testing.T) {
	h := host(t)
	var out bytes.Buffer
	words := []string{"a b", "it's", `"$HOME"`, "", "*", "-x", "a\nb", "`id`"}
	code, err := h.Run(t.Context(), append([]string{"printf", "%s|"}, words...), nil, &out, &out)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, strings.Join(words, "|")+"|", out.String())
}

func TestWhatSSHSays(t *testing.T) {
	for said, want := range map[string]struct {
		kind fault.Kind
		hint string
	}{
		"Host key verification failed.":                         {fault.Refused, "known_hosts"},
		"root@web1: Permission denied (publickey).":             {fault.Refused, "a key that needs no password"},
		"ssh: connect to host web1 port 22: Connection refused": {fault.Busy, "BatchMode"},
	} {
		_, err := host(t, "FAIL="+said).Run(t.Context(), []string{"true"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
		require.ErrorContains(t, err, said)
		require.Equal(t, want.kind, fault.KindOf(err), said)
		require.Contains(t, fault.HintOf(err), want.hint)
		var lost *remote.ConnectionError
		require.ErrorAs(t, err, &lost)
	}
}

func TestATargetIsNoOption(t *testing.T) {
	h := host(t)
	h.Target = "-oProxyCommand=touch /tmp/x"
	_, err := h.Run(t.Context(), []string{"true"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	h.Target = "web1"
}

// The program is copied once, byte by byte; a copy that differs there is not run, but replaced. Another type of machine gets none.
func TestInstall(t *testing.T) {
	h := host(t)
	program := filepath.Join(t.TempDir(), "program")
	// It responds as a session would.
	text := append([]byte("#!/bin/sh\necho '{\"hello\":{\"protocol\":1,\"release\":\"'\"$*\"'\"}}'\ncat >/dev/null\n"), bytes.Repeat([]byte("# program\n"), 100_000)...)
	require.NoError(t, os.WriteFile(program, text, 0o755))
	release, err := remote.ReadRelease(program)
	require.NoError(t, err)
	open := func() (sent int64, path string) {
		n := &remote.Node{Host: h, Release: release, Root: "/a b"}
		sent, err := n.Open(t.Context(), "")
		require.NoError(t, err)
		require.NoError(t, n.Close())
		return sent, n.Program
	}
	sent, path := open()
	require.Positive(t, sent)
	require.Equal(t, "corpus-git", filepath.Base(path))
	requireProgram := func() {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	requireProgram()
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())

	sent, again := open()
	require.Zero(t, sent)
	require.Equal(t, path, again)

	require.NoError(t, os.WriteFile(path, []byte("somebody else's"), 0o700))
	sent, _ = open()
	require.Positive(t, sent)
	requireProgram()
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	_, err = h.Install(t.Context(), release, "Linux riscv64")
	require.ErrorContains(t, err, "is Linux riscv64, and this program is for Linux ")
}
