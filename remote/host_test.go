package remote_test

import (
	"bytes"
	"os"
	"os/exec"
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

// Behind a jump host ssh ends with words that name nobody: what the jump host's client said before them is the reason, and the hint has the jump.
func TestWhatSSHSaysOfAJumpHost(t *testing.T) {
	for said, want := range map[string]struct {
		text string
		kind fault.Kind
		hint string
	}{
		"ssh: connect to host gate port 22: Connection refused\nConnection closed by UNKNOWN port 65535\r\n":             {"connect to host gate port 22: Connection refused", fault.Busy, "ssh -J gate -o BatchMode=yes web1 true"},
		"No ED25519 host key is known for gate.\nHost key verification failed.\nConnection closed by UNKNOWN port 65535": {"Host key verification failed.", fault.Refused, "known_hosts"},
		"kex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535":         {"kex_exchange_identification", fault.Busy, "-J gate"},
		"Connection closed by UNKNOWN port 65535": {"the connection was closed", fault.Busy, "-J gate"},
	} {
		h := host(t, "FAIL="+said)
		h.Options = []string{"-J", "gate"}
		_, err := h.Run(t.Context(), []string{"true"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
		require.ErrorContains(t, err, want.text)
		require.NotContains(t, err.Error(), "UNKNOWN")
		require.Equal(t, want.kind, fault.KindOf(err), said)
		require.Contains(t, fault.HintOf(err), want.hint)
	}
}

func TestWhatSSHSays(t *testing.T) {
	for said, want := range map[string]struct {
		kind fault.Kind
		hint string
	}{
		"Host key verification failed.": {fault.Refused, "known_hosts"},
		"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.": {fault.Refused, "ssh-keygen -R HOST"},
		"root@web1: Permission denied (publickey).":                                           {fault.Refused, "a key that needs no password"},
		"ssh: connect to host web1 port 22: Connection refused":                               {fault.Busy, "ssh -o BatchMode=yes web1 true"},
	} {
		_, err := host(t, "FAIL="+said).Run(t.Context(), []string{"true"}, nil, &bytes.Buffer{}, &bytes.Buffer{})
		require.ErrorContains(t, err, said[strings.LastIndexByte(said, '\n')+1:])
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
	// One of the same length that does not respond is compared, and replaced, whatever it does: a power cut can leave one.
	for _, damaged := range []string{"\x00\x00", "#!/bin/sh\necho broken >&2; exit 7\n", "#!/bin/sh\nkill -SEGV $$\n"} {
		require.NoError(t, os.WriteFile(path, append([]byte(damaged), bytes.Repeat([]byte("#"), len(text)-len(damaged))...), 0o700))
		sent, _ = open()
		require.Positive(t, sent, damaged)
		requireProgram()
	}
	require.NoError(t, os.Chmod(path, 0o600))
	sent, _ = open()
	require.Zero(t, sent)

	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	_, err = h.Install(t.Context(), release, "Linux riscv64")
	require.ErrorContains(t, err, "is Linux riscv64, and this program is for Linux ")
	other := release
	for arch, on := range map[string]string{"riscv64": "Linux riscv64", "arm64": "Linux aarch64", "arm": "Linux armv7l"} {
		other.Arch = arch
		_, err = h.Install(t.Context(), other, on)
		require.NoError(t, err)
	}
	_, err = h.Install(t.Context(), other, "FreeBSD amd64")
	require.ErrorContains(t, err, "is FreeBSD amd64")
}

// A program that is not damaged and does not respond is not copied again: its own error is reported.
func TestAProgramThatFails(t *testing.T) {
	h := host(t)
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'error: no room' >&2; exit 3\n"), 0o755))
	release, err := remote.ReadRelease(program)
	require.NoError(t, err)
	_, err = (&remote.Node{Host: h, Release: release}).Open(t.Context(), "")
	require.EqualError(t, err, "on web1: no room")
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

// What a machine lacks for it is named, whatever it is, and a program that is there already is not taken for a damaged one.
func TestMachinesThatLackTools(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'error: no room' >&2; exit 3\n"), 0o755))
	release, err := remote.ReadRelease(program)
	require.NoError(t, err)
	tools := []string{"chmod", "cut", "gzip", "mkdir", "mv", "rm", "sh", "sha256sum", "sync", "uname", "wc"}
	for _, lacks := range append([]string{""}, tools...) {
		if lacks == "sh" {
			continue
		}
		dir := t.TempDir()
		for _, tool := range tools {
			if tool != lacks {
				path, err := exec.LookPath(tool)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(path, filepath.Join(dir, tool)))
			}
		}
		h := host(t, "PATH="+dir)
		_, err := (&remote.Node{Host: h, Release: release}).Open(t.Context(), "")
		require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
		if lacks == "" {
			require.EqualError(t, err, "on web1: no room", "the program began")
			require.NoError(t, os.Remove(filepath.Join(dir, "sha256sum")))
			_, err = (&remote.Node{Host: h, Release: release}).Open(t.Context(), "")
			require.EqualError(t, err, "on web1: no room")
			continue
		}
		require.ErrorContains(t, err, "not in its PATH: "+lacks)
		require.Contains(t, fault.HintOf(err), "coreutils")
	}
}

// A machine where the program cannot be kept, and a login that runs no commands, are named as such.
func TestMachinesThatTakeNoProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	release, err := remote.ReadRelease(program)
	require.NoError(t, err)
	for name, c := range map[string]struct{ env, ssh, err, hint string }{
		"no home":       {env: "HOME=/proc/none", err: "on web1: no directory for the program: mkdir: ", hint: "XDG_CACHE_HOME"},
		"no gzip":       {ssh: `printf 'exec >&2; echo; echo gzip: full disk\nexit 1' > gzip; chmod +x gzip; PATH=$PWD:$PATH exec sh -c "$3"`, err: ": gzip: full disk"},
		"full":          {ssh: `printf 'exec >&2; echo gzip: stdout: No space left on device\nexit 1' > gzip; chmod +x gzip; PATH=$PWD:$PATH exec sh -c "$3"`, err: "No space left on device", hint: "free some space there"},
		"a banner":      {ssh: "echo WELCOME error: none >&2; echo This account is currently not available.; exit 1", err: "runs nothing", hint: "ForceCommand"},
		"nologin":       {ssh: "echo This account is currently not available.; exit 1", err: "on web1: the login prints \"This account is currently not available.\" and runs nothing", hint: "ForceCommand"},
		"chatty":        {ssh: "echo Welcome; exit 0", err: "on web1: the login prints \"Welcome\" before anything was asked", hint: "start files"},
		"a false shell": {ssh: "exit 3", err: "on web1: the login ended with status 3 and ran nothing", hint: "ForceCommand"},
		"no login":      {ssh: "echo not available >&2; exit 1", err: "on web1: the login ended with status 1 and ran nothing: not available", hint: "ForceCommand"},
		"nothing":       {ssh: "exit 0", err: "ssh to web1 failed: the session ended", hint: "BatchMode"},
	} {
		t.Run(name, func(t *testing.T) {
			h := host(t, c.env)
			if c.ssh != "" {
				text := strings.Replace(sshDouble, `exec sh -c "$3"`, c.ssh, 1)
				require.NoError(t, os.WriteFile(h.SSH, []byte(text), 0o755))
			}
			_, err := (&remote.Node{Host: h, Release: release}).Open(t.Context(), "")
			require.ErrorContains(t, err, c.err)
			require.Contains(t, fault.HintOf(err), c.hint)
		})
	}
}
