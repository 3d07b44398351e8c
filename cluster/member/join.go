package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/fleet/agent"
	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Joining makes this machine one of the hubs.
type Joining struct {
	Root  layout.Root
	State layout.State
	// Token is that of hub add; "" goes on with the last one.
	Token string
	// Key reads the key of a file, and creates it if it is not there.
	Key func(path string) (ssh.Signer, error)
	// Waiting is called while other hubs have not joined yet.
	Waiting func(l List)
	// Again is the interval at which the hub is asked whether they have.
	Again time.Duration
}

// pending is what a machine keeps while it joins.
type pending struct {
	Hub     string `json:"hub"`
	HostKey string `json:"host_key"`
	Name    string `json:"name"`
}

// Join joins, and waits until all hubs have. It can be run again after it was ended at any point. Durable on return.
func (j Joining) Join(ctx context.Context) (l List, config string, err error) {
	for _, dir := range []string{j.State.Path(), j.State.NATS(), j.State.Cluster()} { // one that was killed leaves copies of keys
		if err := vfs.SweepTemps(vfs.OS{}, dir); err != nil {
			return l, "", err
		}
	}
	self, there, err := LoadSelf(j.State)
	if err != nil {
		return l, "", err
	}
	if there {
		if l, err = Load(j.State); err != nil {
			return l, "", err
		}
		if l.Formed {
			config, _, err = Configure(j.State)
			return l, config, err
		}
		if self.Founder {
			return l, "", fault.New(fault.Refused, "", "this machine is the hub %s, which others join", self.Name)
		}
	} else if err := j.unused(); err != nil {
		return l, "", err
	}
	p, key, err := j.exchange(ctx)
	if err != nil {
		return l, "", err
	}
	if l, err = j.admitted(ctx, p, key, there); err != nil {
		return l, "", err
	}
	for told := false; !l.Formed; told = true {
		if !told && j.Waiting != nil {
			j.Waiting(l)
		}
		select {
		case <-ctx.Done():
			return l, "", fault.New(fault.Busy, "", "the other hubs have not joined yet").WithHint("run  corpus-git hub join  again here when they have")
		case <-time.After(j.Again):
		}
		if l, err = j.joined(ctx, p, key); err != nil && fault.KindOf(err) != fault.Busy {
			return l, "", err
		}
	}
	if config, _, err = Configure(j.State); err != nil {
		return l, config, err
	}
	for _, path := range []string{j.State.ClusterKey(), j.State.ClusterKey() + ".pub", j.State.ClusterJoin()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l, config, err
		}
	}
	return l, config, vfs.SyncDir(vfs.OS{}, j.State.Cluster())
}

// unused refuses a machine that is something else already: a hub with projects of its own, or a node.
func (j Joining) unused() error {
	entries, err := os.ReadDir(j.Root.Projects())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fault.New(fault.Refused, "", "this machine has projects of its own, such as %s", printable.Text(entries[0].Name())).WithHint("a further hub takes over the state of the first one: use a new machine, or destroy the projects")
	}
	if there, err := vfs.Exists(vfs.OS{}, j.State.AgentHub()); err != nil || there {
		if there {
			err = fault.New(fault.Refused, "", "this machine is a node of a hub").WithHint("a hub of a cluster is no node: use another machine")
		}
		return err
	}
	return nil
}

// exchange exchanges the token for a key of this machine, unless that is done, and returns where it joins.
func (j Joining) exchange(ctx context.Context) (p pending, key ssh.Signer, err error) {
	there, err := readJSON(j.State.ClusterJoin(), &p)
	if err != nil {
		return p, nil, err
	}
	if !there && j.Token == "" {
		return p, nil, fault.New(fault.Usage, "", "TOKEN is missing").WithHint("on the existing hub:  corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT")
	}
	if err := vfs.MkdirAll(vfs.OS{}, j.State.Cluster(), 0o700); err != nil {
		return p, nil, err
	}
	if key, err = j.Key(j.State.ClusterKey()); err != nil || j.Token == "" {
		return p, key, err
	}
	t, err := agent.ParseHubToken(j.Token)
	if err != nil {
		return p, nil, err
	}
	if self, there, err := LoadSelf(j.State); err != nil {
		return p, nil, err
	} else if there && self.Name != t.Node {
		return p, nil, fault.New(fault.Refused, "", "this machine has joined as %s", self.Name)
	}
	p = pending{Hub: t.Hub, HostKey: t.HostKey, Name: t.Node}
	signer, err := t.Signer()
	if err != nil {
		return p, nil, err
	}
	if _, err := p.ask(ctx, signer, "exchange", nil, agent.PublicLine(key)); err != nil {
		// The token may have been exchanged for this very key, and the answer lost.
		if _, oerr := p.ask(ctx, key, "known", nil); oerr != nil {
			if fault.KindOf(err) == fault.Refused {
				err = fault.New(fault.Refused, "", "%w", err).WithHint("a token can be used once, and expires; an administrator makes another one:  corpus-git hub add %s", t.Node)
			}
			return p, nil, err
		}
	}
	return p, key, writeJSON(j.State, j.State.ClusterJoin(), p)
}

// admitted has the hub admit this machine, and keeps what it is given.
func (j Joining) admitted(ctx context.Context, p pending, key ssh.Signer, there bool) (l List, err error) {
	if l, err = j.admit(ctx, p, key, there); err != nil {
		return l, err
	}
	return j.joined(ctx, p, key)
}

func (j Joining) admit(ctx context.Context, p pending, key ssh.Signer, there bool) (l List, err error) {
	var member Member
	said, err := p.ask(ctx, key, "known", nil)
	if err == nil {
		err = decode(said, &member)
	}
	if err == nil {
		err = member.check()
	}
	if err == nil && member.Name != p.Name {
		err = fault.New(fault.Refused, "", "the hub takes this machine for %s", member.Name)
	}
	if err != nil {
		return l, err
	}
	if member.Joined && there {
		return l, nil
	}
	own, err := broker.Prepare(j.State.NATS(), member.NATS, member.Route)
	if err != nil {
		return l, err
	}
	q, err := json.Marshal(Request{own})
	if err != nil {
		return l, err
	}
	var a Answer
	if said, err = p.ask(ctx, key, "admit", q); err == nil {
		err = decode(said, &a)
	}
	if err != nil {
		return l, err
	}
	if a.Joined {
		return l, fault.New(fault.Refused, "", "another machine has joined as %s", p.Name).WithHint("an administrator makes another token:  corpus-git hub add %s", p.Name)
	}
	if err := broker.Accept(j.State.NATS(), a.Granted); err != nil {
		return l, err
	}
	for path, kind := range hostKeys(j.State) {
		signer, err := ssh.ParsePrivateKey(a.HostKeys[kind])
		if err != nil {
			return l, fault.New(fault.Refused, "", "the answer of the hub has no valid %s host key", kind)
		}
		if err := errors.Join(vfs.WriteFileAtomic(vfs.OS{}, path, a.HostKeys[kind], 0o600), vfs.WriteFileAtomic(vfs.OS{}, path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o644)); err != nil {
			return l, err
		}
	}
	if err := writeJSON(j.State, j.State.ClusterHubs(), a.List); err != nil {
		return l, err
	}
	return a.List, writeJSON(j.State, j.State.ClusterSelf(), Self{Name: p.Name})
}

// joined tells the hub that this machine has all that it needs, and keeps the list.
func (j Joining) joined(ctx context.Context, p pending, key ssh.Signer) (l List, err error) {
	said, err := p.ask(ctx, key, "joined", nil)
	if err == nil {
		err = decode(said, &l)
	}
	if err != nil {
		return l, err
	}
	return l, writeJSON(j.State, j.State.ClusterHubs(), l)
}

func decode(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fault.New(fault.Failed, "", "the answer of the hub is not complete: %w", err)
	}
	return nil
}

// maxAnswer limits what the hub may answer.
const maxAnswer = 1 << 20

// ask runs a verb of the hub under this machine's name, and returns what it prints. The hub proves itself by the key in the token.
func (p pending) ask(ctx context.Context, key ssh.Signer, verb string, input []byte, args ...string) ([]byte, error) {
	c, err := agent.Dial(ctx, agent.Hub{Address: p.Hub, HostKey: p.HostKey}, key)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	s, err := c.NewSession()
	if err != nil {
		return nil, fault.New(fault.Busy, "", "the hub %s: %w", p.Hub, err)
	}
	defer s.Close()
	var out, said bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = bytes.NewReader(input), &out, &said
	line := "hub " + verb + " " + p.Name
	for _, a := range args {
		line += " '" + a + "'"
	}
	err = s.Run(line)
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		text, _, _ := strings.Cut(strings.TrimPrefix(said.String(), "error: "), "\n")
		return nil, fault.New(fault.Refused, "", "the hub: %s", printable.Clip(text, 500))
	case err != nil:
		return nil, fault.New(fault.Busy, "", "the hub %s: %w", p.Hub, err)
	case out.Len() > maxAnswer:
		return nil, fault.New(fault.Failed, "", "the answer of the hub is too large")
	}
	return out.Bytes(), nil
}
