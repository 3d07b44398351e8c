package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// block is a fenced block of a page of the guide.
type block struct {
	at   string // file:line
	kind string
	text string
}

// blocks are those of a page, in order.
func blocks(t *testing.T, page string) (out []block) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	in := false
	for i, line := range strings.Split(string(data), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !in:
			in = true
			out = append(out, block{at: fmt.Sprintf("%s:%d", filepath.Base(page), i+1), kind: fence})
		case isFence:
			in = false
		case in:
			out[len(out)-1].text += line + "\n"
		}
	}
	require.False(t, in, "%s: a block has no end", page)
	return out
}

// TestGuide does what the guide says: its commands are run in their order by a shell, its SLS files are linted.
func TestGuide(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guide/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	ran := 0
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			r := newReader(t)
			for _, b := range blocks(t, page) {
				ran++
				r.do(b)
			}
			r.lint()
		})
	}
	require.NotZero(t, ran)
}

// reader is somebody who follows a page.
type reader struct {
	t     *testing.T
	dir   string // where their shell is
	env   []string
	port  string
	salt  string // a project of the SLS files
	steps int
}

func newReader(t *testing.T) *reader {
	tmp := t.TempDir()
	home, bin, work := filepath.Join(tmp, "home"), filepath.Join(tmp, "bin"), filepath.Join(tmp, "work")
	for _, dir := range []string{filepath.Join(home, ".ssh"), bin, work} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, writeKey(filepath.Join(home, ".ssh", "id_ed25519"), "me"))
	ssh, err := exec.LookPath("ssh")
	require.NoError(t, err)
	// ssh looks for its files in the home of the user database.
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s -F none -o BatchMode=yes -o IdentitiesOnly=yes -i %s/.ssh/id_ed25519 -o UserKnownHostsFile=%[2]s/.ssh/known_hosts \"$@\"\n", ssh, home)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(wrapper), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = me\n\temail = me@localhost\n[init]\n\tdefaultBranch = master\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return &reader{t: t, dir: work, port: port, salt: filepath.Join(tmp, "app"), env: []string{
		"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "CORPUS_GIT_ACCOUNTS=off",
	}}
}

// do does what one block says.
func (r *reader) do(b block) {
	r.t.Helper()
	text := strings.ReplaceAll(b.text, "2222", r.port)
	switch b.kind {
	case "sh", "sh fails":
		at := filepath.Join(r.t.TempDir(), "pwd")
		cmd := exec.CommandContext(r.t.Context(), "sh", "-euc", text+"pwd > "+at)
		cmd.Dir, cmd.Env = r.dir, r.env
		out, err := cmd.CombinedOutput()
		if b.kind == "sh fails" {
			require.Error(r.t, err, "%s:\n%s", b.at, out)
			require.Contains(r.t, string(out), "rolled back", b.at)
			return
		}
		require.NoError(r.t, err, "%s:\n%s", b.at, out)
		dir, err := os.ReadFile(at)
		require.NoError(r.t, err)
		r.dir = strings.TrimSpace(string(dir))
	case "sh server":
		r.serve(b, text)
	case "yaml step":
		r.steps++
		r.write(fmt.Sprintf("%03d_step.sls", r.steps), b.text)
	case "yaml sample":
		r.write("PILLAR.sample", b.text)
	default:
		r.t.Errorf("%s: nothing is done with a block of kind %q", b.at, b.kind)
	}
}

// serve starts the server of a block, and waits until it listens.
func (r *reader) serve(b block, text string) {
	cmd := exec.Command("sh", "-euc", "exec "+text) //nolint:gosec // a page of ours
	cmd.Dir, cmd.Env, cmd.Stderr = r.dir, r.env, os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start(), b.at)
	listens := make(chan bool)
	go func() {
		told := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !told && strings.HasPrefix(lines.Text(), "listening on ") {
				told = true
				listens <- true
			}
		}
		close(listens)
	}()
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for range listens { // until its output ends
		}
		_ = cmd.Wait()
	})
	select {
	case ok := <-listens:
		require.True(r.t, ok, "%s: the server ended", b.at)
	case <-time.After(time.Minute):
		r.t.Fatalf("%s: the server does not listen", b.at)
	}
}

func (r *reader) write(name, text string) {
	at := filepath.Join(r.salt, ".salt", name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(r.t, os.WriteFile(at, []byte(text), 0o644))
}

// lint checks the files of the page.
func (r *reader) lint() {
	if r.steps == 0 {
		return
	}
	cmd := exec.CommandContext(r.t.Context(), "corpus-git", "lint", r.salt)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	require.Contains(r.t, string(out), fmt.Sprintf("%d steps, ", r.steps))
}
