package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reader is somebody who follows a page.
type reader struct {
	t     *testing.T
	tmp   string
	dir   string // where their shell is
	env   []string
	port  string
	salt  string // a project of the SLS files
	steps int
	out   string // what the last command printed
	// hosts: the host key is trusted as soon as a server listens; the page says nothing of it.
	hosts bool
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
	// ssh looks for its files in the home of the user database. What pages do with sudo is done below a folder of the test.
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s -F none -o BatchMode=yes -o IdentitiesOnly=yes -i %s/.ssh/id_ed25519 -o UserKnownHostsFile=%[2]s/.ssh/known_hosts \"$@\"\n", ssh, home)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(wrapper), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = me\n\temail = me@localhost\n[init]\n\tdefaultBranch = master\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Cleanup(func() { endAgents(t, work) })
	return &reader{t: t, tmp: tmp, dir: work, port: port, salt: filepath.Join(tmp, "app"), env: []string{
		"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_LOG_LEVEL=warn",
	}}
}

// endAgents ends the agents that a page has started in the background, below a folder.
func endAgents(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", ".corpus-git", "addr.json"))
	require.NoError(t, err)
	var ended []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var at struct {
			SSH string `json:"ssh"`
			PID int    `json:"pid"`
		}
		require.NoError(t, json.Unmarshal(text, &at))
		if at.SSH == "" && at.PID > 0 && syscall.Kill(at.PID, syscall.SIGTERM) == nil {
			ended = append(ended, at.PID)
		}
	}
	for _, pid := range ended {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, 5*time.Millisecond, "the agent %d has ended", pid)
	}
}

// appWorld is what pages take for granted that are no lessons: a project app with a unit, logs and tasks is live, and the reader is in its clone.
const appWorld = `corpus-git project create app
corpus-git key add marie --file marie.pub
corpus-git access grant app marie deploy
corpus-git access grant app marie configure
corpus-git init app
cd app
printf 'port: {type: integer, default: 80}\ndebug: {type: boolean, default: false}\nwho: {type: string, default: me}\n' >> .salt/inputs.yaml
cat >> .salt/PILLAR.sample <<'END'
  units:
    queue: {start: 'touch ../data/on', stop: 'rm -f ../data/on', status: 'test -e ../data/on'}
  logs: ['{data_root}/log/*.log']
END
printf 'hello:\n  test.nop: []\n' > .salt/task_hello.sls
printf '#!/bin/sh\necho manage "$@"\n' > manage.py
chmod 755 manage.py
git init -q
git add -A
git commit -q -m Begin
git remote add prod ssh://deploy@127.0.0.1:2222/app/project.git
git push -q prod HEAD:master
mkdir -p "$CORPUS_GIT_ROOT/projects/app/data/log"
echo started > "$CORPUS_GIT_ROOT/projects/app/data/log/app.log"
`

// prepare makes what a page takes for granted.
func (r *reader) prepare(page string, all []block) {
	commands := slices.ContainsFunc(all, func(b block) bool {
		return b.notRun == "" && (b.kind == "" || b.kind == "sh" || b.kind == "sh fails")
	})
	switch {
	case !commands || page == "docs/guide/first.md":
	case strings.HasPrefix(page, "docs/guide/"):
		// You have the server and the project of the first deployment.
		for _, b := range blocks(r.t, "../../docs/guide/first.md") {
			r.do(b)
		}
	case strings.HasPrefix(page, "skeletons/"):
		r.run(page, "corpus-git init --skeleton "+filepath.Base(filepath.Dir(page))+" app\ncd app\n")
	default:
		r.hosts = true
		r.env = append(r.env, "CORPUS_GIT_ROOT="+filepath.Join(r.tmp, "srv"), "CORPUS_GIT_LISTEN=127.0.0.1:"+r.port)
		r.run(page, "cp ~/.ssh/id_ed25519.pub marie.pub\n")
		if page == "README.md" {
			return // it makes the rest
		}
		r.serve(block{at: page}, "corpus-git serve\n")
		r.run(page, appWorld)
	}
}

// here is a text of a page with the addresses of this test.
func (r *reader) here(text string) string {
	repository, err := filepath.Abs("../..")
	require.NoError(r.t, err)
	// The Makefile's demo is run with the program that is tested, which is built, and its own ssh; and it ends when it has shown all.
	demo := "PATH=" + os.Getenv("PATH") + " make -s -C " + repository + " -o build demo ARGS='--exit' BIN=corpus-git"
	return strings.NewReplacer("2222", r.port, "@server", "@127.0.0.1", "make demo", demo, "/var/backups", r.tmp).Replace(text)
}

// shell runs a text, and says what it printed and how it ended.
func (r *reader) shell(text string) (string, error) {
	at := filepath.Join(r.t.TempDir(), "pwd")
	cmd := exec.CommandContext(r.t.Context(), "sh", "-euc", r.here(text)+"pwd > "+at)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		dir, err := os.ReadFile(at)
		require.NoError(r.t, err)
		r.dir = strings.TrimSpace(string(dir))
	}
	return string(out), err
}

// run runs a text that must succeed.
func (r *reader) run(at, text string) {
	r.t.Helper()
	out, err := r.shell(text)
	require.NoError(r.t, err, "%s:\n%s", at, out)
	r.out = out
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
	if r.hosts {
		r.run(b.at, "corpus-git host-key >> ~/.ssh/known_hosts\n")
	}
}
