package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/trap"
	"corpus-git/layout"
	"corpus-git/pipeline/journal"
)

// crashed is a server that gets killed, and a client that pushes to it.
type crashed struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string // of everything
	hook    string // see crashable
	exe     string
	root    layout.Root
	project string // which project is meant
	env     []string

	server *exec.Cmd
	ended  chan error
	stderr bytes.Buffer
	addr   string
	watch  *watcher    // nil where nobody kills the server at its calls
	decide trap.Decide // nil where the server is not trapped

	commits int // how many the client has made
	kills   int // of this server, by boundary or by signal
	// continues: a deployment waited when the server started.
	continues bool
	usual     time.Duration // how long an action takes
	say       []string      // what happened, for a failure's report
}

func newCrashed(t *testing.T, seed uint64) *crashed {
	dir := t.TempDir()
	return newCrashedAt(t, seed, dir, filepath.Join(dir, "srv"))
}

// newCrashedAt has the client's things in dir and the server's in root.
func newCrashedAt(t *testing.T, seed uint64, dir, root string) *crashed {
	exe, err := exec.LookPath("corpus-git")
	require.NoError(t, err)
	m := &crashed{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: dir, hook: filepath.Join(dir, "hook"), exe: exe, root: layout.Root(root), usual: time.Second,
	}
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.MkdirAll(m.hook, 0o700))
	require.NoError(t, writeKey(filepath.Join(home, "dev"), "dev"))
	config := "[user]\n\tname = Marie\n\temail = marie@example.org\n[init]\n\tdefaultBranch = master\n[gc]\n\tauto = 0\n[core]\n\tfsync = none\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600))
	m.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"CORPUS_GIT_ROOT=" + m.root.Path(), "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_KEEP_ARCHIVES=2",
		"GIT_SSH_COMMAND=ssh -F none -i " + filepath.Join(home, "dev") + " -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
	}
	if d := os.Getenv("GOCOVERDIR"); d != "" {
		m.env = append(m.env, "GOCOVERDIR="+d)
	}
	t.Cleanup(func() {
		if m.server != nil {
			m.kill()
		}
	})
	m.create("app")
	m.must("key", "add", "dev", "--file", filepath.Join(home, "dev.pub"))
	m.grant("app")
	for _, repo := range []string{"code", "pillar"} {
		require.NoError(t, os.MkdirAll(m.clone(repo), 0o755))
		m.git(repo, "init", "-q")
	}
	m.recipe()
	return m
}

func (m *crashed) create(name string) {
	m.must("project", "create", name)
	m.use(name)
}

func (m *crashed) grant(name string) {
	m.must("access", "grant", name, "dev", "deploy")
	m.must("access", "grant", name, "dev", "configure")
}

func (m *crashed) use(name string) {
	m.project = name
	require.NoError(m.t, os.WriteFile(filepath.Join(m.hook, "project"), []byte(name), 0o600))
}

func (m *crashed) paths() layout.Project { return m.root.Project(m.project) }
func (m *crashed) state() layout.State   { return m.root.DefaultState() }

func (m *crashed) note(format string, args ...any) {
	m.say = append(m.say, fmt.Sprintf(format, args...))
	if len(m.say) > 200 {
		m.say = m.say[100:]
	}
}

// cli runs the program as an operator does.
func (m *crashed) cli(args ...string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), m.exe, args...)
	cmd.Env, cmd.Dir = m.env, m.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("corpus-git %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (m *crashed) must(args ...string) string {
	m.t.Helper()
	out, err := m.cli(args...)
	require.NoError(m.t, err)
	return out
}

// begin starts the server; up reports whether it came up and recovered what was left, or ended before it did.
func (m *crashed) begin() {
	kinds, _ := m.entries()
	m.continues = len(kinds) > 0 && kinds[len(kinds)-1] == journal.Waiting
	m.t.Helper()
	m.stderr.Reset()
	require.NoError(m.t, os.WriteFile(filepath.Join(m.hook, "upkeep"), nil, 0o600))
	// A context of its own: the test ends it.
	cmd := exec.CommandContext(context.Background(), m.exe, "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Dir = append(m.env, "CRASH_HOOK_DIR="+m.hook), m.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A step that outlives the server holds no pipe of ours.
	log, err := os.OpenFile(filepath.Join(m.dir, "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(m.t, err)
	defer log.Close()
	out, err := os.OpenFile(filepath.Join(m.dir, "server.out"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	require.NoError(m.t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, log
	if m.decide == nil {
		require.NoError(m.t, cmd.Start())
	} else {
		require.NoError(m.t, trap.Start(cmd, m.decide))
	}
	m.server, m.ended = cmd, make(chan error, 1)
	ended := m.ended
	go func() { ended <- cmd.Wait() }()
}

func (m *crashed) up() bool {
	m.t.Helper()
	limit := time.After(time.Minute)
	for {
		text, err := os.ReadFile(filepath.Join(m.dir, "server.out"))
		require.NoError(m.t, err)
		done, err := os.ReadFile(filepath.Join(m.hook, "upkeep"))
		require.NoError(m.t, err)
		if r := readyLine.FindSubmatch(text); r != nil && bytes.Contains(done, []byte("recovered\n")) && m.continued(done) {
			m.addr = string(r[1])
			return true
		}
		select {
		case err := <-m.ended:
			m.server = nil
			m.died(err)
			return false
		case <-limit:
			m.fail("the server is not ready after a minute")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// continued reports whether a deployment that waited when the server started has ended; done is what the hook says.
func (m *crashed) continued(done []byte) bool {
	return !m.continues || bytes.Contains(done, []byte("told\n"))
}

// died checks that a server ended by SIGKILL and not by itself.
func (m *crashed) died(err error) {
	m.t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		m.fail("the server ended by itself: %v", err)
	}
	m.kills++
}

// serve starts the server and wants it up.
func (m *crashed) serve() {
	m.t.Helper()
	m.begin()
	if !m.up() {
		m.fail("the server did not come up")
	}
}

// kill ends the server with SIGKILL; steps that it runs live on.
func (m *crashed) kill() {
	_ = m.server.Process.Signal(syscall.SIGKILL)
	<-m.ended
	m.server = nil
}

// arm makes the server die at the n-th boundary from now, counted from 0.
func (m *crashed) arm(n int) {
	require.NoError(m.t, replaceFile(filepath.Join(m.hook, "arm"), strconv.Itoa(n)))
}

func (m *crashed) disarm() {
	if err := os.Remove(filepath.Join(m.hook, "arm")); err != nil && !os.IsNotExist(err) {
		require.NoError(m.t, err)
	}
}

// fail ends the test with the story so far.
func (m *crashed) fail(format string, args ...any) {
	m.t.Helper()
	log, _ := os.ReadFile(filepath.Join(m.dir, "server.log"))
	if len(log) > 6000 {
		log = log[len(log)-6000:]
	}
	if keep := os.Getenv("CORPUS_GIT_CRASH_KEEP"); keep != "" {
		to := filepath.Join(keep, strings.ReplaceAll(m.t.Name(), "/", "_"))
		_ = exec.Command("cp", "-a", m.dir, to).Run()
		m.t.Logf("the state is kept in %s", to)
	}
	tail := m.say[max(0, len(m.say)-12):]
	m.t.Fatalf("%s\n--- what happened\n%s\n--- journal\n%s\n--- server\n%s", fmt.Sprintf(format, args...), strings.Join(tail, "\n"), m.journalText(), log)
}

func (m *crashed) journalText() string {
	text, _ := os.ReadFile(m.state().Journal(m.project))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-16):], "\n")
}

func (m *crashed) clone(repo string) string { return filepath.Join(m.dir, repo) }

func (m *crashed) gitCommand(repo string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = m.clone(repo), m.env
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func (m *crashed) git(repo string, args ...string) string {
	m.t.Helper()
	cmd := m.gitCommand(repo, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		m.fail("git %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

func (m *crashed) remote(repo string) string {
	if repo == "code" {
		repo = "project"
	}
	return "ssh://deploy@" + m.addr + "/" + m.project + "/" + repo + ".git"
}

func (m *crashed) write(repo, name, text string) {
	m.t.Helper()
	path := filepath.Join(m.clone(repo), name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o644))
}

// commit records a change that no other commit has made, and returns the commit. bad makes a step fail.
func (m *crashed) commit(repo string, bad bool) string {
	m.t.Helper()
	m.commits++
	text := fmt.Sprintf("number %d", m.commits)
	if bad {
		text += " BREAK"
	}
	if repo == "pillar" {
		m.write(repo, "init.sls", "makina-projects.app:\n  data:\n    title: "+text+"\n")
	} else {
		m.write(repo, "page", text+"\n")
		// One file comes, one goes.
		m.write(repo, fmt.Sprintf("pages/%d", m.commits%7), text+"\n")
		_ = os.Remove(filepath.Join(m.clone(repo), fmt.Sprintf("pages/%d", (m.commits+3)%7)))
		m.outsideRecipe()
	}
	m.git(repo, "add", "-A")
	m.git(repo, "commit", "-q", "-m", text)
	return m.git(repo, "rev-parse", "HEAD")
}

// recipe writes the files that never change. What they make of the same commits is the same, as after a rollback they run again. Steps start many processes, so that a kill often falls between two of them.
func (m *crashed) recipe() {
	m.write("code", ".gitignore", "/uploads\n/generated\n/title\n/made\n")
	m.write("code", "bin/run", "#!/bin/sh\n")
	require.NoError(m.t, os.Chmod(filepath.Join(m.clone("code"), "bin/run"), 0o755))
	require.NoError(m.t, os.Symlink("page", filepath.Join(m.clone("code"), "link")))
	m.write("code", ".salt/PILLAR.sample", "makina-projects.projectname:\n  data:\n    title: none\n")
	m.write("code", ".salt/010_build.sls", `{% set cfg = opts.ms_project %}
build:
  cmd.run:
    - name: i=0; mkdir -p made; while [ $i -lt 12 ]; do cmp -s page generated || cat page > generated; cmp -s page made/$i || cp page made/$i; i=$((i+1)); done
    - cwd: {{cfg.project_root}}
`)
	m.write("code", ".salt/020_title.sls", `{% set cfg = opts.ms_project %}
title:
  file.managed:
    - name: {{cfg.project_root}}/title
    - contents: "{{cfg.data.title}}"
`)
	m.write("code", ".salt/030_check.sls", `{% set cfg = opts.ms_project %}
check:
  cmd.run:
    - name: if grep -q BREAK page title; then rm -rf uploads page link; chmod 700 . bin; echo junk > junk; ln uploads-too here; exit 7; fi
    - cwd: {{cfg.project_root}}
`)
}

// outsideRecipe writes the step that changes what is outside of the trees, for the next commit: a file is rewritten, a folder made, the one
// of before removed.
func (m *crashed) outsideRecipe() {
	m.write("code", ".salt/015_outside.sls", strings.NewReplacer("OUTSIDE", filepath.Dir(m.outside())+"/{{cfg.name}}", "NUMBER", strconv.Itoa(m.commits)).Replace(`{% set cfg = opts.ms_project %}
{% set release = 'NUMBER ' + cfg.data.title %}
site:
  file.managed:
    - name: OUTSIDE/site
    - contents: "{{release}}"
    - makedirs: true
made:
  file.managed:
    - name: OUTSIDE/all/{{release}}/file
    - contents: "{{release}}"
    - makedirs: true
clean:
  file.directory:
    - name: OUTSIDE/all
    - clean: true
    - require:
      - file: made
link:
  file.symlink:
    - name: OUTSIDE/link
    - target: all/{{release}}
`))
}

// outside is a folder outside of all that is archived, which steps of the project write to: one for each, as the steps of what is live run again
// after a rollback.
func (m *crashed) outside() string {
	return filepath.Join(filepath.Dir(m.root.Path()), "outside", m.project)
}

// uploads puts files that git does not track into the live tree.
func (m *crashed) uploads() {
	t, live := m.t, m.paths().Live()
	sub := filepath.Join(live, "uploads", "sub")
	require.NoError(t, os.MkdirAll(sub, 0o750))
	for _, name := range []string{"a", "caf\xe9", ".hidden"} {
		path := filepath.Join(live, "uploads", name)
		require.NoError(t, os.WriteFile(path, []byte(name), 0o640))
		require.NoError(t, os.Chtimes(path, time.Unix(1_500_000_000, 123_456_789), time.Unix(1_500_000_000, 123_456_789)))
	}
	require.NoError(t, os.Link(filepath.Join(live, "uploads", "a"), filepath.Join(sub, "hard")))
	require.NoError(t, os.Symlink("../a", filepath.Join(sub, "soft")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(sub, "fifo"), 0o600))
}
