package upgrade

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/bundle/program"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

func signer(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return s
}

func sent(t *testing.T, text string, s ssh.Signer) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	var out bytes.Buffer
	require.NoError(t, program.Write(&out, program.Manifest{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(text))}, strings.NewReader(text), s))
	return out.Bytes()
}

func script(body string) string {
	return "#!/bin/sh\ncase $1 in version) echo corpus-git 9; exit 0;; esac\n" + body + "\n"
}

func programs(t *testing.T) *Programs {
	t.Helper()
	return &Programs{Dir: filepath.Join(t.TempDir(), "programs"), FS: vfs.OS{}, Own: strings.Repeat("0", 64)}
}

// What is damaged, signed by somebody else, for another machine or does not start is refused, and no trial is noted.
func TestTake(t *testing.T) {
	us, them := signer(t), signer(t)
	trusted := func(k ssh.PublicKey) error {
		if !bytes.Equal(k.Marshal(), us.PublicKey().Marshal()) {
			return fault.New(fault.Refused, "", "a key that is not trusted")
		}
		return nil
	}
	ok := sent(t, script("exit 0"), us)
	flipped := bytes.Clone(ok)
	flipped[len(flipped)-6] ^= 1
	forged := bytes.Replace(ok, []byte(`"bytes":`), []byte(`"bytes":1`), 1)
	for name, c := range map[string]struct {
		in  []byte
		err string
	}{
		"somebody else's":     {sent(t, script("exit 0"), them), "a key that is not trusted"},
		"damaged":             {flipped, "the program: "},
		"cut off":             {ok[:len(ok)-20], "the program: "},
		"a forged manifest":   {forged, "signature"},
		"something else":      {[]byte(strings.Repeat("x", 100)), "does not read what was sent"},
		"it does not start":   {sent(t, "#!/bin/sh\nexit 1\n", us), "does not run here"},
		"it is not a program": {sent(t, "MZ", us), "does not run here"},
	} {
		t.Run(name, func(t *testing.T) {
			p := programs(t)
			require.ErrorContains(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(c.in)), trusted), c.err)
			n, err := p.read()
			require.NoError(t, err)
			require.Zero(t, n)
			entries, err := os.ReadDir(p.Dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
	p := programs(t)
	in := bufio.NewReader(bytes.NewReader(append(ok, "next\n"...)))
	require.NoError(t, p.Take(t.Context(), in, trusted))
	rest, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "next\n", rest)
}

// A program that comes back stays; one that ends, hangs, or is stopped before does not, and is not run by a later start either.
func TestTry(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		stop   bool
		came   bool
		failed string
		err    error
	}{
		"it comes back":      {body: `sed -i s/trying/good/ "$NOTE"; sleep 0.3; exit 7`, came: true},
		"it ends well":       {body: "exit 0", failed: "it ended before it reached the hub: exit status 0"},
		"it ends":            {body: "exit 3", failed: "it ended before it reached the hub: exit status 3"},
		"it hangs":           {body: "exec sleep 600", failed: "it did not reach the hub within 500ms"},
		"the agent is ended": {body: "exec sleep 600", stop: true, failed: "stopped during the trial", err: ErrStopped},
	} {
		t.Run(name, func(t *testing.T) {
			p := programs(t)
			require.NoError(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(sent(t, script(c.body), signer(t)))), bundle.Anybody))
			signals := make(chan os.Signal, 1)
			if c.stop {
				signals <- syscall.SIGTERM
			}
			told := 0
			came, err := p.Try(Trial{Args: []string{"agent"}, Env: append(os.Environ(), "NOTE="+p.note()), Timeout: 500 * time.Millisecond, Signals: signals, Connected: func() { told++ }})
			require.Equal(t, c.came, came)
			require.Contains(t, p.Failed(), c.failed)
			path, cerr := p.Chosen()
			require.NoError(t, cerr)
			if !c.came {
				require.ErrorIs(t, err, c.err)
				require.NotEmpty(t, p.Failed())
				require.Empty(t, path)
				return
			}
			require.ErrorContains(t, err, "exit status 7")
			require.Equal(t, 1, told)
			require.FileExists(t, path)
			// Somebody installs another program: that one counts.
			p.Own = strings.Repeat("1", 64)
			path, cerr = p.Chosen()
			require.NoError(t, cerr)
			require.Empty(t, path)
		})
	}
}

// A program that hangs when it is asked for its version is ended, with what it has started; and what a killed agent has left of an earlier one is removed.
func TestVersionHangs(t *testing.T) {
	p := programs(t)
	p.startLimit = 200 * time.Millisecond
	left := filepath.Join(p.Dir, newPrefix+"1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	pid := filepath.Join(t.TempDir(), "pid")
	in := sent(t, "#!/bin/sh\nsleep 600 & echo $! > "+pid+"; wait\n", signer(t))
	require.ErrorContains(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(in)), bundle.Anybody), "the program does not run here: it did not print its version within 200ms")
	require.NoDirExists(t, left)
	text, err := os.ReadFile(pid)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody may have reaped it
	}, 10*time.Second, 10*time.Millisecond)
}

// full is a disk that takes no more files.
type full struct{ vfs.FS }

func (full) OpenFile(string, int, uint32) (vfs.File, error) { return nil, syscall.ENOSPC }

// An agent whose disk is full during a trial returns to its program, at once and at each start, and says why.
func TestFullDisk(t *testing.T) {
	p := programs(t)
	require.NoError(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(sent(t, script("exit 3"), signer(t)))), bundle.Anybody))
	p.FS = full{vfs.OS{}}
	came, err := p.Try(Trial{Args: []string{"agent"}, Timeout: time.Minute})
	require.NoError(t, err)
	require.False(t, came)
	require.Contains(t, p.Failed(), "exit status 3; and this was not recorded: ")
	p.FS = vfs.OS{}
	require.NoError(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(sent(t, script("exit 4"), signer(t)))), bundle.Anybody))
	require.Empty(t, p.Failed(), "another trial")
	p.FS = full{vfs.OS{}}
	again := &Programs{Dir: p.Dir, FS: p.FS, Own: p.Own}
	path, err := again.Chosen()
	require.NoError(t, err)
	require.Empty(t, path)
	require.Contains(t, again.Failed(), "was stopped during the trial")
}

// A crash in a trial leaves the old program; the program on trial alone can confirm itself.
func TestCrash(t *testing.T) {
	p := programs(t)
	require.NoError(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(sent(t, script("exit 0"), signer(t)))), bundle.Anybody))
	require.NoError(t, p.Confirm())
	n, err := p.read()
	require.NoError(t, err)
	require.Equal(t, trying, n.State)
	path, err := p.Chosen()
	require.NoError(t, err)
	require.Empty(t, path)
	require.Contains(t, p.Failed(), "was stopped during the trial")
	came, err := p.Try(Trial{})
	require.False(t, came)
	require.Error(t, err)
	require.False(t, errors.Is(err, ErrStopped))
}

// A program that was good and is damaged or gone now is not started, which would fail at each start: the installed one runs, and says why.
func TestDamagedProgram(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o700) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			p := programs(t)
			require.NoError(t, p.Take(t.Context(), bufio.NewReader(bytes.NewReader(sent(t, script("exit 0"), signer(t)))), bundle.Anybody))
			n, err := p.read()
			require.NoError(t, err)
			require.NoError(t, (&Programs{Dir: p.Dir, FS: p.FS, Own: n.Program}).Confirm())
			path, err := p.Chosen()
			require.NoError(t, err)
			require.Equal(t, p.path(n.Program), path)
			require.NoError(t, damage(path))
			path, err = p.Chosen()
			require.NoError(t, err)
			require.Empty(t, path)
			require.NotEmpty(t, p.Failed())
		})
	}
}
