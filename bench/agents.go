package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/bundle"
	"corpus-git/fleet"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/remote"
)

// manyAgents is how many agents benchAgents connects; CORPUS_GIT_BENCH_AGENTS changes it. agentStages is in how many stages they are deployed,
// and agentPushes how often, if -rounds does not say it.
const (
	manyAgents  = 1000
	agentStages = 4
	agentPushes = 5
	fewAgents   = 20
)

// benchAgents connects agents to a hub, and pushes to a project that is on all of them. The hub is the program; the agents are the real client of package fleet/agent and the real session of
// package remote, all in this process, but for what they do with a bundle: they verify it and answer that it is live. So what is measured is what the hub does.
func benchAgents(l *lab) error { return l.agents(false, manyAgents, 0) }

// benchAgentsNATS is benchAgents over NATS, with the NATS server as a process of its own.
func benchAgentsNATS(l *lab) error { return l.agents(true, manyAgents, 0) }

// benchStages deploys on few agents, each of which works for a second: the peer is that work, one stage after the other.
func benchStages(l *lab) error {
	l.quiet = 0
	return l.agents(false, fewAgents, time.Second)
}

// startNATS starts a NATS server for agents, and returns its process, its address and what ends it.
func (l *lab) startNATS() (pid int, at *agent.NATS, stop func(), err error) {
	build := exec.Command("go", "build", "-o", l.path("nats-server"), "github.com/nats-io/nats-server/v2")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return 0, nil, nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, nil, err
	}
	at = &agent.NATS{URL: "tls://" + free.Addr().String()}
	dir := layout.Root(l.path("srv")).DefaultState().NATS()
	if err := errors.Join(free.Close(), l.sh(l.dir, l.bin, "nats", "init", at.URL)); err != nil {
		return 0, nil, nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return 0, nil, nil, err
	}
	at.CA = string(ca)
	server := exec.Command(l.path("nats-server"), "-c", filepath.Join(dir, "nats.conf")) //nolint:gosec // our own
	if err := server.Start(); err != nil {
		return 0, nil, nil, err
	}
	return server.Process.Pid, at, func() { _ = server.Process.Kill(); _ = server.Wait() }, nil
}

func (l *lab) agents(overNATS bool, n int, work time.Duration) error {
	if v := os.Getenv("CORPUS_GIT_BENCH_AGENTS"); v != "" {
		if _, err := fmt.Sscanf(v, "%d", &n); err != nil || n < agentStages {
			return fmt.Errorf("CORPUS_GIT_BENCH_AGENTS is %q and should be a number, %d at least", v, agentStages)
		}
	}
	if err := l.buildWithKey(); err != nil {
		return err
	}
	if err := errors.Join(l.sh(l.dir, l.bin, "key", "add", "bench", "--file", l.path("key.pub")), l.createProject("app"), l.sh(l.dir, l.bin, "access", "grant", "app", "bench", "configure")); err != nil {
		return err
	}
	keys, err := registerAgents(layout.Root(l.path("srv")).DefaultState(), n)
	if err != nil {
		return err
	}
	more := fmt.Sprint(3 * n)
	var over *agent.NATS
	broker, url := 0, ""
	if overNATS {
		var end func()
		if broker, over, end, err = l.startNATS(); err != nil {
			return err
		}
		defer end()
		url = over.URL
	}
	base, pid, stop, err := l.serveBin("--nats-url", url, "--limits-max-connections", more, "--limits-max-connections-per-source", more, "--limits-max-unauthenticated", more, "--limits-max-unauthenticated-per-source", more)
	if err != nil {
		return err
	}
	defer stop()
	alone, _ := treeMemory(pid)
	cmd := exec.Command(l.bin, "bundle", "key")
	cmd.Env = l.env()
	hostKey, err := cmd.Output()
	if err != nil {
		return err
	}
	hub := agent.Hub{Address: strings.Trim(strings.TrimPrefix(base, "ssh://deploy@"), "/"), HostKey: strings.TrimSpace(string(hostKey)), NATS: over}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	c := &crowd{want: int64(n), work: work, here: make(chan struct{})}
	used, err := cpuTime(pid)
	if err != nil {
		return err
	}
	took, _ := timed(func() error {
		for i, key := range keys {
			a := c.agent(hub, agentName(i), key)
			running.Go(func() { a.Run(ctx) })
		}
		<-c.here
		return nil
	})
	in, err := cpuTime(pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d agents connected after %.1f s, %.2f s of the hub's processor time\n", n, took.Seconds(), (in - used).Seconds())
	time.Sleep(5 * time.Second) // each offers its streams
	used, err = cpuTime(pid)
	if err != nil {
		return err
	}
	time.Sleep(l.quiet)
	if in, err = cpuTime(pid); err != nil {
		return err
	}
	if overNATS {
		idle, err := cpuTime(broker)
		if err != nil {
			return err
		}
		of, _ := treeMemory(broker)
		fmt.Printf("NATS server: memory %s, %.2f s of processor time since its start\n", mib(of), idle.Seconds())
	}
	with, own := treeMemory(pid)
	fmt.Printf("hub: memory %s alone, %s with them, %.0f KiB each; %s of it pages of files\n", mib(alone), mib(with), float64(with-alone)/float64(n)/1024, mib(with-own))
	if l.quiet > 0 {
		fmt.Printf("%.2f %% of a core while nothing happens\n", 100*(in-used).Seconds()/l.quiet.Seconds())
	}
	return l.pushToAgents(base, pid, n, c)
}

// agentName returns the name of an agent's node: its role is a letter.
func agentName(i int) string { return fmt.Sprintf("%c%d", 'a'+i%agentStages, i/agentStages) }

// registerAgents adds nodes to a hub that does not run, as if each had joined, and returns their keys.
func registerAgents(state layout.State, n int) ([]ssh.Signer, error) {
	ctx := context.Background()
	d, err := db.Open(ctx, state.Database())
	if err != nil {
		return nil, err
	}
	defer d.Close()
	log, err := audit.Open(ctx, d, time.Now)
	if err != nil {
		return nil, err
	}
	logins, err := access.Open(ctx, d, log, time.Now)
	if err != nil {
		return nil, err
	}
	nodes, err := fleet.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	by := access.Identity{Name: "bench", Admin: true, From: "local"}
	keys := make([]ssh.Signer, n)
	for i := range keys {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if keys[i], err = ssh.NewSignerFromKey(private); err != nil {
			return nil, err
		}
		name := agentName(i)
		_, perr := logins.AddPrincipal(ctx, by, access.Principal{Name: "node-" + name, Kind: access.Agent})
		_, kerr := logins.AddKeyTo(ctx, by, access.NewKey{Name: "node-" + name + "-agent", Principal: "node-" + name, Text: []byte(agent.PublicLine(keys[i]))})
		if err := errors.Join(nodes.Add(ctx, fleet.Node{Name: name, Agent: true, Added: time.Now(), AddedBy: by.Name}), perr, kerr); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// crowd are the agents.
type crowd struct {
	want      int64
	work      time.Duration // what a deployment takes on each
	connected atomic.Int64
	here      chan struct{}
	// live counts the deployments that were answered.
	live atomic.Int64
}

func (c *crowd) agent(hub agent.Hub, name string, key ssh.Signer) *agent.Agent {
	hub.Node = name
	hello := remote.Hello{Protocol: remote.Protocol, Oldest: remote.OldestProtocol, Release: "bench", Facts: map[string]string{"id": name, "os": "Debian", "osrelease": "12", "kernelrelease": "6.1.0", "cpuarch": "x86_64"}}
	s := &simulated{crowd: c}
	return &agent.Agent{
		Hub: hub, Key: key, Log: zerolog.Nop(), Hello: func() any { return hello },
		Connected: func() error {
			if c.connected.Add(1) == c.want {
				close(c.here)
			}
			return nil
		},
		Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
			return remote.Serve(ctx, in, out, func() remote.Hello { return hello }, s)
		},
	}
}

// simulated implements remote.Handler for an agent that deploys nothing.
type simulated struct {
	*crowd
	mu   sync.Mutex
	tips bundle.Tips
}

var errSimulated = fault.New(fault.Refused, "", "a simulated agent does not do that")

// Trust implements remote.Handler.
func (*simulated) Trust(context.Context, string) error { return nil }

// Tips implements remote.Handler.
func (s *simulated) Tips(context.Context, project.Name) (bundle.Tips, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tips, nil
}

// Apply implements remote.Handler.
func (s *simulated) Apply(_ context.Context, q remote.ApplyRequest, in *bufio.Reader, send func(remote.Frame) error) error {
	b, err := bundle.Open(in, bundle.Anybody)
	if err != nil {
		return err
	}
	if err := b.Skip(); err != nil {
		return err
	}
	s.mu.Lock()
	s.tips = bundle.Tips{Code: []project.Commit{b.Manifest.Release.Code}, Pillar: []project.Commit{b.Manifest.Release.Pillar}, KV: b.Manifest.KVDigest}
	s.mu.Unlock()
	if q.Hold || q.StoreOnly {
		return nil
	}
	time.Sleep(s.work)
	s.live.Add(1)
	return send(remote.Frame{Result: &project.Result{State: project.Live, Code: b.Manifest.Release.Code, Pillar: b.Manifest.Release.Pillar}})
}

// Cancel implements remote.Handler.
func (*simulated) Cancel(context.Context, remote.CancelRequest) error { return errSimulated }

// Upgrade implements remote.Handler.
func (*simulated) Upgrade(context.Context, *bufio.Reader) error { return errSimulated }

// Converge implements remote.Handler.
func (*simulated) Converge(context.Context, remote.ConvergeRequest) (project.Result, error) {
	return project.Result{}, errSimulated
}

// Untrust implements remote.Handler.
func (*simulated) Untrust(context.Context, string) error { return nil }

// Keys implements remote.Handler.
func (*simulated) Keys(context.Context, bundle.Succession) error { return errSimulated }

// Plan implements remote.Handler.
func (*simulated) Plan(context.Context, remote.PlanRequest) (remote.Planned, error) {
	return remote.Planned{}, errSimulated
}

// Check implements remote.Handler.
func (*simulated) Check(context.Context, project.Name) (project.Result, error) {
	return project.Result{}, errSimulated
}

// pushToAgents deploys small changes on all agents, in stages.
func (l *lab) pushToAgents(base string, pid, n int, c *crowd) error {
	pillar, work := l.path("pillar"), l.path("work")
	var nodes, stages strings.Builder
	for s := range agentStages {
		role := string(rune('a' + s))
		fmt.Fprintf(&nodes, "  \"%s[0-%d]\": {roles: [%s]}\n", role, (n-1-s)/agentStages, role)
		fmt.Fprintf(&stages, "- {name: %s, roles: [%s]}\n", role, role)
	}
	if err := errors.Join(
		writeFile(filepath.Join(pillar, "nodes.yaml"), "nodes:\n"+nodes.String(), 0o644),
		writeFile(filepath.Join(pillar, "init.sls"), "makina-projects.app: {data: {}}\n", 0o644),
		writeFile(filepath.Join(work, ".salt/stages.yaml"), "stages:\n"+stages.String(), 0o644),
		writeFile(filepath.Join(work, ".salt/010_run.sh"), "#!/bin/sh\nexit 0\n", 0o755),
		l.commitAll(pillar), l.commitAll(work),
		l.sh(pillar, "git", "push", "-q", base+"app/pillar.git", "HEAD:master"),
	); err != nil {
		return err
	}
	var all, hubs, own []time.Duration
	for i := range l.roundsOr(agentPushes) + 1 {
		if err := errors.Join(writeFile(filepath.Join(work, "page"), fmt.Sprint(i), 0o644), l.commitAll(work)); err != nil {
			return err
		}
		before := c.live.Load()
		hub, herr := cpuTime(pid)
		agents, aerr := cpuTime(os.Getpid())
		took, err := timed(func() error { return l.sh(work, "git", "push", "-q", base+"app/project.git", "HEAD:master") })
		hub2, herr2 := cpuTime(pid)
		agents2, aerr2 := cpuTime(os.Getpid())
		if err := errors.Join(err, herr, aerr, herr2, aerr2); err != nil {
			return err
		}
		if got := c.live.Load() - before; got != int64(n) {
			return fmt.Errorf("%d of %d agents answered", got, n)
		}
		fmt.Printf("push %d to %d agents in %d stages: %.2f s, processor time: hub %.2f s, agents %.2f s\n", i, n, agentStages, took.Seconds(), (hub2 - hub).Seconds(), (agents2 - agents).Seconds())
		if i > 0 {
			all, hubs, own = append(all, took), append(hubs, hub2-hub), append(own, agents2-agents)
		}
	}
	slices.Sort(all)
	slices.Sort(hubs)
	slices.Sort(own)
	after, _ := treeMemory(pid)
	fmt.Printf("-- a push to %d agents in %d stages: median of %d %.2f s (%.2f to %.2f); medians of processor time: hub %.2f s (%.2f to %.2f), agents %.2f s; memory %s after them, load %s\n",
		n, agentStages, len(all), median(all).Seconds(), all[0].Seconds(), all[len(all)-1].Seconds(), median(hubs).Seconds(), hubs[0].Seconds(), hubs[len(hubs)-1].Seconds(), median(own).Seconds(), mib(after), load())
	if c.work > 0 {
		fmt.Printf("   the work of all stages %.2f s, ratio %.3f\n", (agentStages * c.work).Seconds(), median(all).Seconds()/(agentStages*c.work).Seconds())
	}
	return nil
}

// cpuTime returns the processor time of a process (proc(5), stat): with clock ticks of 10 ms, as Linux has them for programs.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int64
	if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
