// Package agents holds what an agent needs in addition to a server: joining its hub, reporting facts of its machine, and replacing its program.
//
// It owns the files for this (layout.State.AgentHub, AgentKey, AgentPrograms). It runs no deployment. For what a crash leaves see packages fleet/agent and
// fleet/upgrade.
package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"corpus-git/fleet/agent"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/receive/sshd"
	"corpus-git/remote"
)

// Joining configures how an agent joins its hub.
type Joining struct{ Token, File string }

// text returns the token, "" for none.
func (j Joining) text() (string, error) {
	if j.File == "" {
		return j.Token, nil
	}
	f, err := os.Open(j.File)
	if err != nil {
		return "", fault.New(fault.Usage, "--join-file", "%w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = fault.New(fault.Usage, "--join-file", "%s is empty", printable.Text(j.File))
	}
	return strings.TrimSpace(string(text)), err
}

// Given reports whether there is a token.
func (j Joining) Given() bool { return j != Joining{} }

// First joins the hub before an agent is started in the background, so that a refusal is the command's error, and reports it on out. It is refused if the state is
// owned by an agent or a server that does not connect to a hub: that one would not start to. Durable on return.
func (j Joining) First(ctx context.Context, state layout.State, session bool, owned func(layout.State) bool, out io.Writer) error {
	if session {
		return fault.New(fault.Usage, "--session", "an agent that joins a hub is started with --detach or in the foreground")
	}
	if !(Joining{}).Dials(state) && owned(state) {
		return fault.New(fault.Refused, "agent", "a server or an agent without a hub is running here").WithHint("stop it first")
	}
	hub, _, err := j.Hub(ctx, state)
	if err == nil {
		fmt.Fprintf(out, "joined %s as %s\n", hub.Address, hub.Node)
	}
	return err
}

// Dials reports whether an agent with this state dials in, or should.
func (j Joining) Dials(state layout.State) bool {
	_, err := os.Stat(state.AgentHub())
	return err == nil || j.Given()
}

// Hub returns the hub of this machine's agent and the agent's key, nil if it has none. If there is a token, it joins the hub first. Durable on return.
func (j Joining) Hub(ctx context.Context, state layout.State) (*agent.Hub, ssh.Signer, error) {
	text, err := j.text()
	if err != nil {
		return nil, nil, err
	}
	var known *agent.Hub
	switch doc, err := os.ReadFile(state.AgentHub()); {
	case err == nil:
		if err := json.Unmarshal(doc, &known); err != nil {
			return nil, nil, fault.New(fault.Internal, state.AgentHub(), "%w", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	if known == nil && text == "" {
		return nil, nil, nil
	}
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return nil, nil, err
	}
	key, _, err := sshd.HostKey(vfs.OS{}, state.AgentKey(), ssh.KeyAlgoED25519, rand.Reader)
	if err != nil || text == "" {
		return known, key, err
	}
	t, err := agent.ParseToken(text)
	if err != nil {
		return nil, nil, err
	}
	if known != nil && known.Node == t.Node && known.Address == t.Hub && known.HostKey == t.HostKey {
		return known, key, nil
	}
	hub, err := agent.Join(ctx, t, key)
	if err != nil {
		return nil, nil, err
	}
	return &hub, key, Keep(state, hub)
}

// Keep stores the hub of this machine's agent. Durable on return.
func Keep(state layout.State, hub agent.Hub) error {
	doc, err := json.Marshal(hub)
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS{}, state.AgentHub(), append(doc, '\n'), 0o600)
	}
	return err
}

// Hello returns the description of this machine, with these grains, that is sent to another one.
func Hello(release string, grains *py.Dict) remote.Hello {
	h := remote.Hello{Protocol: remote.Protocol, Oldest: remote.OldestProtocol, Release: release, Facts: shown(grains)}
	files, err := filepath.Glob("/etc/ssh/ssh_host_*_key.pub")
	for _, f := range files {
		if text, rerr := os.ReadFile(f); rerr == nil && err == nil {
			h.HostKeys = append(h.HostKeys, strings.TrimSpace(string(text)))
		}
	}
	return h
}

// shown returns the grains that the hub displays.
func shown(grains *py.Dict) map[string]string {
	out := map[string]string{}
	for _, k := range []string{"id", "fqdn", "os", "osrelease", "os_family", "kernelrelease", "cpuarch", "num_cpus", "mem_total", "virtual", "ipv4", "ipv6"} {
		if v, ok := grains.GetStr(k); ok {
			out[k] = py.Str(v)
		}
	}
	return out
}
