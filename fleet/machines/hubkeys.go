package machines

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/remote"
)

// HubKeys are this hub's keys, as nodes are told of them.
type HubKeys struct {
	// Said is the statement for agents.
	Said bundle.Succession
	// Retired are the public keys that the hub had before, lines as in authorized_keys.
	Retired []string
}

// fingerprints returns those of the present key, and of the next one.
func (k HubKeys) fingerprints() (out []string) {
	for _, line := range []string{k.Said.Current, k.Said.Next} {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			out = append(out, ssh.FingerprintSHA256(key))
		}
	}
	return out
}

// tellTimeout is how long an agent may take to be told of the hub's keys.
const tellTimeout = time.Minute

// TellKeys tells the agents that are connected to this process of its keys, in the background. Others are told when they connect.
func (f *Fleet) TellKeys(ctx context.Context) error {
	list, err := f.List(ctx)
	for _, n := range list {
		if n.Agent && f.Connected(n.Name) {
			f.tellLater(n.Name, n.HubKeys)
		}
	}
	return err
}

// tellLater tells a node's agent of this hub's keys in the background, unless it knows them.
func (f *Fleet) tellLater(name string, knows []string) {
	if f.Keys == nil {
		return
	}
	keys, err := f.Keys()
	if err != nil {
		f.Log.Err(err).Msg("read the host keys")
		return
	}
	if slices.Equal(knows, keys.fingerprints()) || len(knows) == 0 && keys.Said.Next == "" { // one of an older release keeps the key that it has
		return
	}
	f.telling.Go(func() {
		ctx, end := context.WithTimeout(context.Background(), tellTimeout)
		defer end()
		if err := f.tell(ctx, name, keys); err != nil {
			f.Log.Warn().Err(err).Str("node", name).Msg("the agent was not told of the host keys; it is told when it connects again")
		}
	})
}

func (f *Fleet) tell(ctx context.Context, name string, keys HubKeys) error {
	n, err := f.Get(ctx, name)
	if err != nil || !n.Agent {
		return err
	}
	node := f.reach(n)
	if _, err := node.Open(ctx, ""); err != nil {
		return err
	}
	defer node.Close()
	if err := node.Keys(ctx, keys.Said); err != nil {
		if errors.Is(err, remote.ErrNotAsked) {
			err = fault.New(fault.Refused, "", "its release of corpus-git knows one host key only").WithHint("corpus-git node upgrade %s", name)
		}
		return err
	}
	return f.record(ctx, name, reportOf(node.Hello))
}

// reportOf returns what a node says of itself, now.
func reportOf(h remote.Hello) fleet.NodeReport {
	return fleet.NodeReport{Release: h.Release, Facts: h.Facts, HostKeys: h.HostKeys, HubKeys: h.HubKeys, Seen: time.Now()}
}
