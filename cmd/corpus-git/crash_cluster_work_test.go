//go:build fleet

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet/agent"
)

// withoutNATS is the token of an agent that connects by ssh.
func withoutNATS(t *testing.T, text string) string {
	t.Helper()
	token, err := agent.ParseToken(text)
	require.NoError(t, err)
	require.NotNil(t, token.NATS)
	token.NATS = nil
	doc, err := json.Marshal(token)
	require.NoError(t, err)
	return agent.TokenPrefix + base64.RawURLEncoding.EncodeToString(doc)
}

// projects makes the pillar and the first two releases, which nothing disturbs, and a job.
func (c *crashedCluster) projects() {
	crashedProject(c.t, c.dir, len(c.agents), c.write, func(repo string, args ...string) { c.git(repo, args...) })
	// Which steps ran.
	c.write("code/.salt/020_ran", "#!/bin/sh\necho \"$CORPUS_DEPLOYMENT $(cat \"$CORPUS_PROJECT_ROOT/version\")\" >> \"$CORPUS_DATA_ROOT/ran\"\n")
	require.NoError(c.t, os.Chmod(filepath.Join(c.dir, "code/.salt/020_ran"), 0o755))
	c.undisturbed("pillar", "pillar")
	for range 2 {
		c.commit("")
		c.undisturbed("code", "project")
	}
	c.write("again.yaml", "on_failure: all\nstages:\n- {name: second, roles: [b], parallel: 3}\n- {name: first, roles: [a], rolling: 50%}\n")
	set := c.command(c.leader().root, "sh", "-c", `"$0" job set app again < again.yaml`, c.exe)
	out, err := set.CombinedOutput()
	require.NoError(c.t, err, string(out))
	c.story = nil
	c.settle()
	c.check(outcome{})
}

// commit makes the next release; it fails on one node, "" for none.
func (c *crashedCluster) commit(breaks string) string {
	c.t.Helper()
	c.version++
	c.write("code/version", fmt.Sprintln(c.version))
	c.write("code/breaks", breaks+"\n")
	for i := range 20 {
		c.write(fmt.Sprintf("code/files/%d", i), fmt.Sprintf("%d of %d\n", i, c.version))
	}
	c.write(fmt.Sprintf("code/only/%d", c.version), "here\n")
	_ = os.Remove(filepath.Join(c.dir, fmt.Sprintf("code/only/%d", c.version-1)))
	c.git("code", "add", "-A")
	c.git("code", "commit", "-qm", fmt.Sprint(c.version))
	commit := c.git("code", "rev-parse", "HEAD")
	c.versions[commit] = c.version
	return commit
}

func (c *crashedCluster) remote(h *clusterHub, repo string) string {
	return "ssh://deploy@" + h.address(hubSSH) + "/app/" + repo + ".git"
}

// undisturbed pushes while nothing happens to anybody.
func (c *crashedCluster) undisturbed(folder, repo string) {
	c.t.Helper()
	cmd := c.from("git", "push", "-q", "-f", c.remote(c.leader(), repo), "HEAD:master")
	cmd.Dir = filepath.Join(c.dir, folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.fail("an undisturbed push: %v\n%s", err, out)
	}
}

// from is a command of the client.
func (c *crashedCluster) from(name string, args ...string) *exec.Cmd {
	cmd := c.client.command(c.t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.dir, c.env, 10*time.Second
	return cmd
}

// patience is how long one attempt of the client may take.
const patience = 6 * time.Minute

// said is what the client heard of what it asked for.
type said int

const (
	nothing said = iota // the connection ended
	yes
	no
)

func (s said) String() string { return []string{"nothing", "yes", "no"}[s] }

// outcome is what a round did.
type outcome struct {
	kind string // push, cancel, deploy, rollback, job; "" for none
	// commit is what was pushed, breaks the node on which it fails.
	commit, breaks string
	heard          said
	// known are the records that were there before.
	known map[string]bool
}

// round does one thing, lets faults happen meanwhile, and checks.
func (c *crashedCluster) round(i int) {
	c.story = nil
	o := outcome{kind: []string{"push", "push", "push", "push", "cancel", "deploy", "rollback", "job"}[c.rng.IntN(8)], known: map[string]bool{}}
	for _, r := range c.records(c.leader()) {
		o.known[string(r.ID)] = true
	}
	first := c.rng.IntN(3)
	stop := time.Duration(300+c.rng.IntN(3000)) * time.Millisecond
	if o.kind == "push" || o.kind == "cancel" {
		if o.kind == "push" && c.rng.IntN(4) == 0 {
			o.breaks = c.agents[c.rng.IntN(len(c.agents))].name
		}
		o.commit = c.commit(o.breaks)
	}
	faults := c.draw()
	c.note("round %d: %s of %d by way of hub%d, fails on %q", i, o.kind, c.version, first+1, o.breaks)
	var all sync.WaitGroup
	all.Go(func() { o.heard = c.ask(o, first) })
	if o.kind == "cancel" {
		all.Go(func() {
			time.Sleep(stop)
			_, _ = c.ssh((first+1)%3, "cancel", "app")
		})
	}
	c.trouble(faults)
	c.note("everything runs again")
	all.Wait()
	c.note("the client heard: %s", o.heard)
	healed := time.Now()
	c.settle()
	state := c.check(o)
	if keep := os.Getenv("CORPUS_GIT_CRASH_KEEP"); keep != "" {
		require.NoError(c.t, addLine(filepath.Join(keep, c.t.Name()+".story"), strings.Join(c.story, "\n")))
	}
	c.t.Logf("round %d: %s, the client heard: %s, it is: %s, %s after everything ran again", i, o.kind, o.heard, state, time.Since(healed).Round(time.Second))
}

// ask does what a round is about, by a hub, or the next ones if the connection is lost.
func (c *crashedCluster) ask(o outcome, hub int) said {
	for i := range 4 {
		var heard said
		var gone bool
		switch o.kind {
		case "push", "cancel":
			heard = c.push((hub + i) % 3)
			gone = heard == nothing
		case "deploy", "rollback":
			heard, gone = c.ssh((hub+i)%3, o.kind, "app")
		case "job":
			heard, gone = c.ssh((hub+i)%3, "run", "app/again")
		}
		if !gone {
			return heard
		}
		time.Sleep(time.Second)
	}
	return nothing
}

// push pushes once.
func (c *crashedCluster) push(hub int) said {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := c.client.command(ctx, "git", "push", "--porcelain", "-f", c.remote(c.hubs[hub], "project"), "HEAD:refs/heads/master")
	cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(c.dir, "code"), c.env, 10*time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	c.note("push to hub%d: %v\n%s%s", hub+1, err, out.String(), indent(errs.String()))
	if ctx.Err() != nil {
		c.note("THE PUSH HUNG")
	}
	switch {
	case err == nil:
		return yes
	case strings.Contains(out.String(), "[remote rejected]") && !unknown(out.String()+errs.String()):
		return no
	}
	return nothing
}

// unknown reports that a server says of what it was asked for that it goes on without it, or that it is to be tried again.
func unknown(text string) bool {
	for _, s := range []string{"no hub leads", "does not reach the one that leads", "no longer leads", "is not known yet", "the server stops", "the server is stopping"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// ssh runs a command on a hub once. gone reports that it was not reached, or said that it did nothing.
func (c *crashedCluster) ssh(hub int, args ...string) (heard said, gone bool) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := c.client.command(ctx, "sh", "-c", fmt.Sprintf("exec $GIT_SSH_COMMAND -p %d deploy@%s %s", hubSSH, c.hubs[hub].at.ip, strings.Join(args, " ")))
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.dir, c.env, 10*time.Second
	out, err := cmd.CombinedOutput()
	c.note("%s at hub%d: %v\n%s", strings.Join(args, " "), hub+1, err, indent(string(out)))
	if ctx.Err() != nil {
		c.note("THE COMMAND HUNG")
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return yes, false
	case errors.As(err, &exit) && exit.ExitCode() == 255:
		return nothing, strings.Contains(string(out), "connect to host")
	case unknown(string(out)):
		return nothing, false
	}
	return no, false
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n"
}
