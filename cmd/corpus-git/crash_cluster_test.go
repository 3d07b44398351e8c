//go:build fleet

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/draw"
	"corpus-git/layout"
	"corpus-git/project/status"
)

// TestCrashCluster deploys on agents by three hubs, each machine in a network namespace of its own, while hubs, their NATS servers and agents are killed and frozen, and machines are cut off: of all others, of the other hubs, in one direction. A
// client pushes to any of the hubs, deploys again, rolls back, cancels and runs jobs meanwhile. CORPUS_GIT_CRASH_AGENTS says how many agents there are, CORPUS_GIT_CRASH_ROUNDS how often something is deployed.
// After each round everything runs and is reached again, and then: every rollout has ended, with a verdict that is true of every node, and that is the one that the client was told; each tree is that of a commit, whole; no deployment and no step
// ran twice; of the log of the hubs each part is from the hub that led; the three hubs have the same state.
func TestCrashCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	c := newCrashedCluster(t, draw.Seed(t), number(t, "CORPUS_GIT_CRASH_AGENTS", 6))
	rounds := number(t, "CORPUS_GIT_CRASH_ROUNDS", 8)
	for i := range rounds {
		c.round(i)
		if i%5 == 4 {
			t.Logf("%d rounds: %v", i+1, c.did)
		}
	}
	t.Logf("%d rounds: %v", rounds, c.did)
	for _, what := range []string{"kill agent", "kill hub", "kill nats", "kill machine", "freeze agent", "freeze hub", "freeze nats", "cut agent", "cut hub", "part hub", "another leads", "push live", "rollback live", "deploy live", "job live", "cancel rolled back"} {
		if rounds >= 150 && c.did[what] == 0 {
			t.Errorf("nothing of this happened: %s", what)
		}
	}
}

// program is a process of a machine that can be killed and frozen.
type program struct {
	name string // as in the logs: hub1, nats1, n0
	at   *place
	args []string
	env  []string
	log  string

	mu sync.Mutex // held while something happens to it
	process
}

// clusterHub is a machine with a hub and its NATS server.
type clusterHub struct {
	name      string
	root      layout.Root
	at        *place
	hub, nats *program
}

// clusterAgent is a machine with an agent.
type clusterAgent struct {
	name string
	root layout.Root
	at   *place
	run  *program
}

// crashedCluster is three hubs with nodes, and a client.
type crashedCluster struct {
	t      *testing.T
	rng    *rand.Rand
	dir    string
	exe    string
	env    []string
	net    *network
	hubs   []*clusterHub
	agents []*clusterAgent
	client *place

	version  int
	versions map[string]int // of commits
	did      map[string]int
	log      logCheck
	epoch    uint64

	mu    sync.Mutex
	begun time.Time
	story []string
}

const (
	hubSSH, hubNATS, hubRoute = 2222, 4222, 6222
	firstAgent                = 100 // the last part of its address
)

func newCrashedCluster(t *testing.T, seed uint64, agents int) *crashedCluster {
	exe, err := exec.LookPath("corpus-git")
	require.NoError(t, err)
	dir := t.TempDir()
	c := &crashedCluster{t: t, rng: rand.New(rand.NewPCG(seed, 47)), dir: dir, exe: exe, net: newNetwork(t), versions: map[string]int{}, did: map[string]int{}, begun: time.Now()}
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, writeKey(filepath.Join(home, "dev"), "dev"))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Marie\n\temail = marie@example.org\n[init]\n\tdefaultBranch = master\n[gc]\n\tauto = 0\n"), 0o600))
	c.env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_KEEP_ARCHIVES=3",
		"GIT_SSH_COMMAND=ssh -F none -i " + filepath.Join(home, "dev") + " -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR" +
			" -o ConnectTimeout=5 -o ServerAliveInterval=5 -o ServerAliveCountMax=4",
	}
	c.client = c.net.connect("cl", 200)
	t.Cleanup(c.end) // before the namespaces go
	c.form(home)
	c.join(agents)
	c.projects()
	return c
}

// form makes three hubs of one.
func (c *crashedCluster) form(home string) {
	for i := range 3 {
		name := fmt.Sprintf("hub%d", i+1)
		h := &clusterHub{name: name, root: layout.Root(filepath.Join(c.dir, name)), at: c.net.connect(name, i+1)}
		c.hubs = append(c.hubs, h)
		natsExe, err := exec.LookPath("nats-server")
		require.NoError(c.t, err)
		h.hub = c.program(name, h.at, h.root, c.exe, "serve", "--listen", h.address(hubSSH), "--nats-url", h.natsURL())
		h.nats = c.program(fmt.Sprintf("nats%d", i+1), h.at, h.root, natsExe, "-c", filepath.Join(h.root.DefaultState().NATS(), "nats.conf"))
	}
	first := c.hubs[0]
	c.cli(first.root, "project", "create", "app")
	c.cli(first.root, "key", "add", "dev", "--file", filepath.Join(home, "dev.pub"))
	c.cli(first.root, "access", "grant", "app", "dev", "deploy")
	c.cli(first.root, "access", "grant", "app", "dev", "configure")
	c.cli(first.root, "nats", "init", first.natsURL())
	c.start(first.nats)
	c.start(first.hub)
	c.awaitLog(first.hub, "listening on")
	var joining sync.WaitGroup
	for i, h := range c.hubs[1:] {
		args := []string{"hub", "add", h.name, "--ssh", h.address(hubSSH), "--nats", h.natsURL(), "--route", h.address(hubRoute)}
		if i == 0 {
			args = append(args, "--as", first.name, "--own-ssh", first.address(hubSSH), "--own-nats", first.natsURL(), "--own-route", first.address(hubRoute))
		}
		_, token, ok := strings.Cut(c.cli(first.root, args...), "hub join ")
		require.True(c.t, ok)
		token, _, _ = strings.Cut(token, "\n")
		joining.Go(func() {
			cmd := h.at.command(c.t.Context(), c.exe, "hub", "join", strings.Fields(token)[0])
			cmd.Env = c.environ(h.root)
			if out, err := cmd.CombinedOutput(); err != nil {
				c.t.Errorf("%s does not join: %v\n%s", h.name, err, out)
			}
		})
	}
	joining.Wait()
	first.hub.kill()
	first.nats.kill()
	for _, h := range c.hubs {
		c.start(h.nats)
	}
	for _, h := range c.hubs {
		c.start(h.hub)
	}
	c.awaitHubs()
}

// join lets the agents join: most over NATS, every fifth over ssh.
func (c *crashedCluster) join(n int) {
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		a := &clusterAgent{name: name, root: layout.Root(filepath.Join(c.dir, name)), at: c.net.connect(name, firstAgent+i)}
		token := filepath.Join(c.dir, name+".token")
		leader := c.leader()
		text := c.cli(leader.root, "node", "token", name, "--for", "1d", "--hub", leader.address(hubSSH))
		if i%5 == 4 {
			text = withoutNATS(c.t, text)
		}
		require.NoError(c.t, os.WriteFile(token, []byte(text), 0o600))
		a.run = c.program(name, a.at, a.root, c.exe, "agent", "--join-file", token)
		c.agents = append(c.agents, a)
		c.start(a.run)
	}
	for _, a := range c.agents {
		c.awaitLog(a.run, "joined ")
	}
}

func (h *clusterHub) address(port int) string { return fmt.Sprintf("%s:%d", h.at.ip, port) }
func (h *clusterHub) natsURL() string         { return "tls://" + h.address(hubNATS) }

func (c *crashedCluster) environ(root layout.Root) []string {
	return append(slices.Clone(c.env), "CORPUS_GIT_ROOT="+root.Path())
}

func (c *crashedCluster) program(name string, at *place, root layout.Root, args ...string) *program {
	return &program{name: name, at: at, args: args, env: c.environ(root), log: filepath.Join(c.dir, name+".log")}
}

// command runs a program on the machine of the test: the sockets of the hubs are files.
func (c *crashedCluster) command(root layout.Root, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.dir, c.environ(root), 10*time.Second
	return cmd
}

func (c *crashedCluster) cli(root layout.Root, args ...string) string {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := c.command(root, c.exe, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		c.fail("corpus-git %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// git runs git in a repository of the client.
func (c *crashedCluster) git(repo string, args ...string) string {
	c.t.Helper()
	cmd := c.command("", "git", args...)
	cmd.Dir = filepath.Join(c.dir, repo)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.fail("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *crashedCluster) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o644))
}

// start runs a program. Its context is its own: the test ends it.
func (c *crashedCluster) start(p *program) {
	cmd := p.at.command(context.Background(), p.args[0], p.args[1:]...)
	cmd.Env, cmd.Dir = p.env, c.dir
	if err := p.begin(cmd, p.log); err != nil {
		panic(err)
	}
}

// programs are all of them.
func (c *crashedCluster) programs() (all []*program) {
	for _, h := range c.hubs {
		all = append(all, h.hub, h.nats)
	}
	for _, a := range c.agents {
		if a.run != nil {
			all = append(all, a.run)
		}
	}
	return all
}

func (c *crashedCluster) end() {
	for _, p := range c.programs() {
		p.kill()
	}
}

func (c *crashedCluster) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.story = append(c.story, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// fail ends the test with what happened in this round.
func (c *crashedCluster) fail(format string, args ...any) {
	c.t.Helper()
	if keep := os.Getenv("CORPUS_GIT_CRASH_KEEP"); keep != "" {
		_ = exec.Command("cp", "-a", c.dir, filepath.Join(keep, c.t.Name())).Run()
	}
	logs := ""
	for _, p := range c.programs() {
		text, _ := os.ReadFile(p.log)
		logs += "--- " + p.log + "\n" + string(text[max(0, len(text)-1500):])
	}
	c.t.Fatalf("%s\n--- what happened\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(c.story, "\n"), logs)
}

// until waits for something for at most some minutes, while all programs run.
func (c *crashedCluster) until(what string, ready func() bool) {
	c.t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !ready(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(limit) {
			c.fail("after five minutes: %s", what)
		}
		for _, p := range c.programs() {
			if p.cmd == nil {
				continue
			}
			select {
			case <-p.ended:
				c.fail("%s ended by itself", p.name)
			default:
			}
		}
	}
}

func (c *crashedCluster) awaitLog(p *program, text string) {
	c.until(fmt.Sprintf("%s does not say %q", p.name, text), func() bool {
		said, err := os.ReadFile(p.log)
		return err == nil && bytes.Contains(said, []byte(text))
	})
}

// awaitHubs waits until one hub leads, and the others follow it and are up to date.
func (c *crashedCluster) awaitHubs() {
	c.t.Helper()
	last := ""
	c.until("the hubs do not agree", func() bool {
		leader, epoch := "", uint64(0)
		for _, h := range c.hubs {
			var doc status.Hubs
			out, err := c.command(h.root, c.exe, "hub", "list", "--json").Output()
			if err != nil || json.Unmarshal(out, &doc) != nil || doc.Leader == "" || leader != "" && (leader != doc.Leader || epoch != doc.Epoch) {
				return false
			}
			leader, epoch = doc.Leader, doc.Epoch
			for _, o := range doc.Hubs {
				if o.Name == leader && o.State != "leads" || o.Name != leader && (o.State != "follows" || o.Behind > 0) {
					last = fmt.Sprintf("%s: %+v", h.name, o)
					return false
				}
			}
		}
		if c.epoch != 0 && epoch > c.epoch {
			c.did["another leads"]++
		}
		c.epoch = epoch
		return true
	})
	_ = last
}

// leader is the hub that leads.
func (c *crashedCluster) leader() *clusterHub {
	c.t.Helper()
	for range 600 {
		for _, h := range c.hubs {
			var doc status.Hubs
			out, err := c.command(h.root, c.exe, "hub", "status", "--json").Output()
			if err == nil && json.Unmarshal(out, &doc) == nil && doc.Self == doc.Leader && doc.Self != "" {
				return h
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.fail("no hub leads")
	return nil
}
