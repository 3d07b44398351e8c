// Package agents holds what an agent needs in addition to a server: joining its hub, reporting facts of its machine, and replacing its program.
//
// It owns the files for this (layout.State.AgentHub, AgentKey, AgentNewKey, AgentPrograms). It runs no deployment. For what a crash leaves see packages fleet/agent and
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

	"corpus-git/bundle"
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
	hub, _, err := j.Hub(ctx, state, owned)
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

// readHub returns the hub of this machine's agent, nil if it has none.
func readHub(state layout.State) (known *agent.Hub, err error) {
	doc, err := os.ReadFile(state.AgentHub())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		if err = json.Unmarshal(doc, &known); err != nil {
			err = fault.New(fault.Internal, state.AgentHub(), "%w", err)
		}
	}
	return known, err
}

// readKey returns a private key, which is made if there is none. Durable on return.
func readKey(path string) (ssh.Signer, error) {
	key, _, err := sshd.HostKey(vfs.OS{}, path, ssh.KeyAlgoED25519, rand.Reader)
	return key, err
}

// Hub returns the hub of this machine's agent and the agent's key, nil if it has none. A token that has not joined from here yet joins first; on a machine that has joined before, with
// another key, which replaces the old one. That is refused while owned, as the running agent would keep the old key. Durable on return.
func (j Joining) Hub(ctx context.Context, state layout.State, owned func(layout.State) bool) (*agent.Hub, ssh.Signer, error) {
	text, err := j.text()
	if err != nil {
		return nil, nil, err
	}
	known, err := readHub(state)
	if err != nil || known == nil && text == "" {
		return nil, nil, err
	}
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return nil, nil, err
	}
	key, err := readKey(state.AgentKey())
	if err != nil || text == "" {
		return known, key, err
	}
	t, err := agent.ParseToken(text)
	if err != nil {
		return nil, nil, err
	}
	token, err := t.Signer()
	if err != nil {
		return nil, nil, err
	}
	switch same := known != nil && known.Node == t.Node && known.Address == t.Hub && known.HostKey == t.HostKey; {
	case known == nil:
		hub, _, err := agent.Join(ctx, t, key)
		if err != nil {
			return nil, nil, err
		}
		return &hub, key, Keep(state, hub)
	case same && known.Joined == ssh.FingerprintSHA256(token.PublicKey()):
		return known, key, nil
	case same && known.Joined == "" && owned(state): // an older release joined, and runs
		return known, key, nil
	case owned(state):
		return nil, nil, fault.New(fault.Refused, "agent", "an agent of the hub %s is running here, which joined with another token", printable.Text(known.Address)).WithHint("stop it first")
	case same && known.Joined == "":
		hub, own, err := rejoin(ctx, state, t, key)
		if err != nil { // it joined with this token, which is used; or the hub is not reached
			return known, key, nil
		}
		return hub, own, nil
	}
	hub, own, err := rejoin(ctx, state, t, key)
	if err == nil && known.HostKey != hub.HostKey {
		_, _, err = bundle.Signers{Path: state.BundleSigners()}.Forget(known.HostKey) // it gives no orders here any more
	}
	return hub, own, err
}

// rejoin joins with a new key, which replaces the old one. After a crash the token has joined with the new key, wherever that is then.
func rejoin(ctx context.Context, state layout.State, t agent.Token, old ssh.Signer) (*agent.Hub, ssh.Signer, error) {
	fresh, err := readKey(state.AgentNewKey())
	if err != nil {
		return nil, nil, err
	}
	hub, key, err := agent.Join(ctx, t, fresh, old)
	if err != nil {
		return nil, nil, err
	}
	if key == fresh {
		if err = os.Rename(state.AgentNewKey(), state.AgentKey()); err == nil {
			err = errors.Join(os.Rename(state.AgentNewKey()+".pub", state.AgentKey()+".pub"), vfs.SyncDir(vfs.OS{}, state.Path()))
		}
	}
	if err == nil {
		err = Keep(state, hub)
	}
	if err != nil {
		return nil, nil, err
	}
	return &hub, key, nil
}

// Keep stores the hub of this machine's agent. Durable on return.
func Keep(state layout.State, hub agent.Hub) error {
	doc, err := json.Marshal(hub)
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS{}, state.AgentHub(), append(doc, '\n'), 0o600)
	}
	return err
}

// New returns the description of a machine on which nothing was deployed yet.
func New(release string) *remote.Hello {
	return &remote.Hello{Protocol: remote.Protocol, Oldest: remote.OldestProtocol, Release: release, New: true}
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
