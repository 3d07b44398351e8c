//go:build fleet

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/draw"
	"corpus-git/layout"
	"corpus-git/project"
)

// TestCrashFleet deploys on agents that dial in to a hub, by pushes and by jobs, while those are killed, frozen and cut off, the hub among them. CORPUS_GIT_CRASH_AGENTS says how many there are, CORPUS_GIT_CRASH_ROUNDS how often it
// deploys.
// After each round every machine runs and is reached again, and then: the rollout has ended, with a verdict that is true of every node; each tree is that of a commit, whole; no deployment began twice on a node, and no two
// ran there at a time.
func TestCrashFleet(t *testing.T) {
	f := newCrashedFleet(t, draw.Seed(t), number(t, "CORPUS_GIT_CRASH_AGENTS", 6))
	rounds := number(t, "CORPUS_GIT_CRASH_ROUNDS", 10)
	for i := range rounds {
		f.round(i)
		if i%25 == 24 {
			t.Logf("%d rounds: %v", i+1, f.did)
		}
	}
	t.Logf("%d rounds: %v", rounds, f.did)
	for _, what := range []string{"kill node", "kill hub", "freeze node", "freeze hub", "cut node", "job live"} {
		if rounds >= 100 && f.did[what] == 0 {
			t.Errorf("nothing of this happened: %s", what)
		}
	}
}

func number(t *testing.T, key string, usual int) int {
	t.Helper()
	text := os.Getenv(key)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, key)
	require.Positive(t, n, key)
	return n
}

// crashedFleet is a hub with nodes, and a client that pushes to it.
type crashedFleet struct {
	t    *testing.T
	rng  *rand.Rand
	dir  string
	exe  string
	env  []string
	root layout.Root
	// port is where the hub listens.
	port    string
	hub     *machine
	nodes   []*machine
	version int
	live    int // the version that is live, 0 for none
	did     map[string]int
	story   []string
}

// machine is a process that can be killed.
type machine struct {
	name string
	root layout.Root
	args []string
	log  string
	wire *wire // nil for the hub
	process
}

func newCrashedFleet(t *testing.T, seed uint64, n int) *crashedFleet {
	exe, err := exec.LookPath("corpus-git")
	require.NoError(t, err)
	dir := t.TempDir()
	f := &crashedFleet{t: t, rng: rand.New(rand.NewPCG(seed, 18)), dir: dir, exe: exe, root: layout.Root(filepath.Join(dir, "hub")), did: map[string]int{}}
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, writeKey(filepath.Join(home, "dev"), "dev"))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Marie\n\temail = marie@example.org\n[init]\n\tdefaultBranch = master\n[gc]\n\tauto = 0\n"), 0o600))
	f.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_KEEP_ARCHIVES=2",
		"GIT_SSH_COMMAND=ssh -F none -i " + filepath.Join(home, "dev") + " -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, f.port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	f.hub = &machine{name: "hub", root: f.root, args: []string{"serve", "--listen", "127.0.0.1:" + f.port}, log: filepath.Join(dir, "hub.log")}
	f.cli("project", "create", "app")
	f.cli("key", "add", "dev", "--file", filepath.Join(home, "dev.pub"))
	f.cli("access", "grant", "app", "dev", "deploy")
	f.cli("access", "grant", "app", "dev", "configure")
	t.Cleanup(func() {
		for _, m := range append(f.nodes, f.hub) {
			m.kill()
		}
	})
	f.start(f.hub)
	f.awaitHub()
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		m := &machine{name: name, root: layout.Root(filepath.Join(dir, name)), log: filepath.Join(dir, name+".log"), wire: newWire(t, "127.0.0.1:"+f.port)}
		token := filepath.Join(dir, name+".token")
		require.NoError(t, os.WriteFile(token, []byte(f.cli("node", "token", name, "--for", "1d", "--hub", m.wire.addr())), 0o600))
		m.args = []string{"agent", "--join-file", token}
		f.nodes = append(f.nodes, m)
		f.start(m)
	}
	f.projects(n)
	return f
}

// projects makes the pillar and the first release, which nothing disturbs.
func (f *crashedFleet) projects(n int) {
	crashedProject(f.t, f.dir, n, f.write, f.git)
	f.git("pillar", "push", "-q", f.url("pillar"), "HEAD:master")
	f.awaitAgents()
	f.commit("")
	f.git("code", "push", "-q", f.url("project"), "HEAD:master")
	f.live = f.version
	f.check()
	f.write("again.yaml", "on_failure: all\nstages:\n- {name: second, roles: [b], parallel: 3}\n- {name: first, roles: [a], rolling: 50%}\n")
	set := f.command(f.dir, "sh", "-c", `"$0" job set app again < again.yaml`, f.exe)
	out, err := set.CombinedOutput()
	require.NoError(f.t, err, string(out))
}

func (f *crashedFleet) url(repo string) string {
	return "ssh://deploy@127.0.0.1:" + f.port + "/app/" + repo + ".git"
}

func (f *crashedFleet) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
}

// commit makes the next release; it fails on one node, "" for none.
func (f *crashedFleet) commit(breaks string) {
	f.t.Helper()
	f.version++
	f.write("code/version", fmt.Sprintln(f.version))
	f.write("code/breaks", breaks+"\n")
	for i := range 20 {
		f.write(fmt.Sprintf("code/files/%d", i), fmt.Sprintf("%d of %d\n", i, f.version))
	}
	f.write(fmt.Sprintf("code/only/%d", f.version), "here\n")
	_ = os.Remove(filepath.Join(f.dir, fmt.Sprintf("code/only/%d", f.version-1)))
	f.git("code", "add", "-A")
	f.git("code", "commit", "-qm", fmt.Sprint(f.version))
}

func (f *crashedFleet) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(slices.Clone(f.env), "CORPUS_GIT_ROOT="+f.root.Path()), 10*time.Second
	return cmd
}

func (f *crashedFleet) git(repo string, args ...string) {
	f.t.Helper()
	if out, err := f.command(filepath.Join(f.dir, repo), "git", args...).CombinedOutput(); err != nil {
		f.fail("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (f *crashedFleet) cli(args ...string) string {
	f.t.Helper()
	var out, errs bytes.Buffer
	cmd := f.command(f.dir, f.exe, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		f.fail("corpus-git %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

func (f *crashedFleet) note(format string, args ...any) {
	f.story = append(f.story, fmt.Sprintf(format, args...))
}

// fail ends the test with what happened in this round.
func (f *crashedFleet) fail(format string, args ...any) {
	f.t.Helper()
	if keep := os.Getenv("CORPUS_GIT_CRASH_KEEP"); keep != "" {
		_ = exec.Command("cp", "-a", f.dir, filepath.Join(keep, f.t.Name())).Run()
	}
	logs := ""
	for _, m := range append([]*machine{f.hub}, f.nodes...) {
		text, _ := os.ReadFile(m.log)
		logs += "--- " + m.log + "\n" + string(text[max(0, len(text)-1500):])
	}
	f.t.Fatalf("%s\n--- what happened\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(f.story, "\n"), logs)
}

// start runs a machine's program.
func (f *crashedFleet) start(m *machine) {
	f.t.Helper()
	// A context of its own: the test ends it.
	cmd := exec.CommandContext(context.Background(), f.exe, m.args...)
	cmd.Env, cmd.Dir = append(slices.Clone(f.env), "CORPUS_GIT_ROOT="+m.root.Path()), f.dir
	require.NoError(f.t, m.begin(cmd, m.log))
}

// until waits for something for at most some minutes.
func (f *crashedFleet) until(what string, ready func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			f.fail("after five minutes: %s", what)
		}
		for _, m := range append([]*machine{f.hub}, f.nodes...) {
			select {
			case <-m.ended:
				f.fail("%s ended by itself", m.name)
			default:
			}
		}
	}
}

func (f *crashedFleet) awaitHub() {
	f.until("the hub does not listen", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+f.port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// awaitAgents waits until every agent has a stream on the hub.
func (f *crashedFleet) awaitAgents() {
	f.until("not every agent has joined", func() bool {
		for _, m := range f.nodes {
			if text, err := os.ReadFile(m.log); err != nil || !bytes.Contains(text, []byte("joined ")) {
				return false
			}
		}
		return true
	})
}

// trouble is one thing that happens to a machine, and how it ends.
func (f *crashedFleet) trouble() {
	m := f.hub
	if f.rng.IntN(4) > 0 {
		m = f.nodes[f.rng.IntN(len(f.nodes))]
	}
	kind := "node"
	if m == f.hub {
		kind = "hub"
	}
	span := time.Duration(f.rng.IntN(1500)) * time.Millisecond
	if f.rng.IntN(40) == 0 {
		span += 35 * time.Second // longer than keepalives take
	}
	what := []string{"kill", "freeze", "cut"}[f.rng.IntN(3)]
	if m == f.hub && what == "cut" {
		what = "kill"
	}
	f.note("%s %s for %s", what, m.name, span)
	f.did[what+" "+kind]++
	switch what {
	case "kill":
		m.kill()
		time.Sleep(span)
		f.start(m)
	case "freeze":
		_ = m.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(span)
		_ = m.cmd.Process.Signal(syscall.SIGCONT)
	case "cut":
		m.wire.cut(f.rng.IntN(2) == 0)
		time.Sleep(span)
		m.wire.restore()
	}
}

// round pushes once, or runs a job that deploys what is live once more in an order of its own, and lets things happen meanwhile.
func (f *crashedFleet) round(i int) {
	f.story = nil
	if f.rng.IntN(4) == 0 {
		f.job(i)
		return
	}
	breaks := ""
	if f.rng.IntN(4) == 0 {
		breaks = f.nodes[f.rng.IntN(len(f.nodes))].name
	}
	f.commit(breaks)
	f.note("round %d: push %d, which fails on %q", i, f.version, breaks)
	var out bytes.Buffer
	push := f.command(filepath.Join(f.dir, "code"), "git", "push", "-q", "-f", f.url("project"), "HEAD:master")
	push.Stdout, push.Stderr = &out, &out
	require.NoError(f.t, push.Start())
	f.troubles()
	perr := push.Wait()
	f.note("the push ended: %v\n%s", perr, out.String())
	f.awaitHub()
	want := strings.TrimSpace(f.output("code", "git", "rev-parse", "HEAD"))
	state := f.verdict(func(p *fleet.Progress) bool { return string(p.Deployment.Code) == want })
	f.note("the rollout: %q", state)
	switch {
	case state == fleet.Live:
		f.live = f.version
		if breaks != "" {
			f.fail("%d is live, and fails on %s", f.version, breaks)
		}
	case perr == nil:
		f.fail("the push succeeded")
	}
	f.did["rollout "+state]++
	f.complete(state)
	f.check()
}

// job runs the job once, and lets things happen meanwhile: however it ends, what was live is live.
func (f *crashedFleet) job(i int) {
	f.note("round %d: job, %d is live", i, f.live)
	known := map[project.ID]bool{}
	all, err := fleet.History(filepath.Dir(f.root.DefaultState().Rollout("x")), "app")
	require.NoError(f.t, err)
	for _, p := range all {
		known[p.Deployment.ID] = true
	}
	var out bytes.Buffer
	// Over ssh: on its machine the command would deploy by itself while the hub is dead.
	run := f.command(f.dir, "sh", "-c", "$GIT_SSH_COMMAND -p "+f.port+" deploy@127.0.0.1 run app/again")
	run.Stdout, run.Stderr = &out, &out
	require.NoError(f.t, run.Start())
	f.troubles()
	rerr := run.Wait()
	f.note("the job ended: %v\n%s", rerr, out.String())
	f.awaitHub()
	state := f.verdict(func(p *fleet.Progress) bool { return p.Deployment.Job != "" && !known[p.Deployment.ID] })
	f.note("the rollout: %q", state)
	if rerr == nil && state != fleet.Live {
		f.fail("the job succeeded")
	}
	f.did["job "+state]++
	f.complete(state)
	f.check()
}

// troubles lets one to three things happen.
func (f *crashedFleet) troubles() {
	for range 1 + f.rng.IntN(3) {
		time.Sleep(time.Duration(f.rng.IntN(1200)) * time.Millisecond)
		f.trouble()
	}
}

// complete pushes another version after a rollout that could not roll back every node.
func (f *crashedFleet) complete(state string) {
	if state == fleet.Incomplete {
		f.commit("")
		f.note("push %d, which nothing disturbs", f.version)
		f.git("code", "push", "-q", "-f", f.url("project"), "HEAD:master")
		f.live = f.version
	}
}

// verdict waits until the server has ended all that it does, and gives how the rollout that is meant ended; "" if the deployment ended before it had one.
func (f *crashedFleet) verdict(meant func(p *fleet.Progress) bool) (state string) {
	f.t.Helper()
	f.until("the hub still deploys", func() bool {
		var doc struct {
			Projects []struct {
				Queue struct{ Running, Waiting any }
			}
		}
		var text bytes.Buffer
		cmd := f.command(f.dir, f.exe, "report", "--json")
		cmd.Stdout = &text
		if cmd.Run() != nil || json.Unmarshal(text.Bytes(), &doc) != nil {
			return false
		}
		all, err := fleet.History(filepath.Dir(f.root.DefaultState().Rollout("x")), "app")
		if err != nil {
			return false
		}
		state = ""
		for _, p := range all {
			if !p.Complete() {
				return false
			}
			if meant(p) {
				state = p.State
			}
		}
		return f.idle()
	})
	return state
}

// idle reports whether the hub has ended every deployment. Nodes may hold one that the hub could not take back: the next one ends it.
func (f *crashedFleet) idle() bool {
	text, err := os.ReadFile(f.root.DefaultState().Journal("app"))
	if err != nil {
		return false
	}
	open := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		e, ok := parseEntry(line)
		if !ok {
			return false
		}
		switch e.Kind {
		case "accepted":
			open[string(e.Deployment)] = true
		case "ended":
			delete(open, string(e.Deployment))
		}
	}
	return len(open) == 0
}

func (f *crashedFleet) roots() (out []layout.Root) {
	for _, m := range f.nodes {
		out = append(out, m.root)
	}
	return out
}

func (f *crashedFleet) output(dir, name string, args ...string) string {
	f.t.Helper()
	out, err := f.command(filepath.Join(f.dir, dir), name, args...).Output()
	if err != nil {
		f.fail("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}
