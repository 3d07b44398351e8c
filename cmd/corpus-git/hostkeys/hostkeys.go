// Package hostkeys replaces the host keys of a server, which are also those by which its agents know it, and that sign its bundles.
//
// It owns the order: the next keys are announced first, and replace the present ones later, by another command. What a crash leaves is what sshd.KeyFiles leaves: a key of each type at any moment,
// and a command that can be run again.
package hostkeys

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/bundle"
	"corpus-git/fleet/machines"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project/status"
	"corpus-git/receive/sshd"
)

// Files returns the files of a server's host keys.
func Files(state layout.State) sshd.KeyFiles {
	return sshd.KeyFiles{FS: vfs.OS{}, Ed25519: state.HostKey(), ECDSA: state.HostKeyECDSA(), Retired: state.RetiredHostKeys(), Random: rand.Reader}
}

// Keys replaces the host keys of one server. Its fields are set before use.
type Keys struct {
	State layout.State
	Fleet *machines.Fleet
	// Busy counts the projects in which something runs.
	Busy func() int
	// Serve has the ssh server use keys; nil where none runs.
	Serve func(current, next []ssh.Signer)
	// Shared returns when other hubs have the files, before anybody is told; nil without others.
	Shared func()

	turn sync.Mutex // held by a command that changes keys

	mu   sync.Mutex
	said *machines.HubKeys // nil: not read since the last change
}

// Said returns the keys as nodes are told of them.
func (k *Keys) Said() (out machines.HubKeys, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.said == nil {
		if out, err = say(k.State); err != nil {
			return out, err
		}
		k.said = &out
	}
	return *k.said, nil
}

func say(state layout.State) (out machines.HubKeys, err error) {
	k, _, err := Files(state).Load()
	if err != nil {
		return out, err
	}
	for _, old := range k.Retired {
		out.Retired = append(out.Retired, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(old))))
	}
	out.Said, err = bundle.Succeed(k.Current[0], nextOf(k))
	return out, err
}

// nextOf returns the key that replaces the one that agents know, nil for none.
func nextOf(k sshd.HostKeys) ssh.Signer {
	for _, n := range k.Next {
		if n.PublicKey().Type() == k.Current[0].PublicKey().Type() {
			return n
		}
	}
	return nil
}

// Rotate generates the next keys, and announces them. began reports that there were none. Durable on return.
func (k *Keys) Rotate(ctx context.Context) (began bool, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if began, err = Files(k.State).Rotate(); err != nil {
		return began, err
	}
	return began, k.tell(ctx)
}

// Retire replaces the present keys by the next ones. Without force it is refused while agents do not know the next key: they would have to join again. Durable on return; after an error it can be run
// again.
func (k *Keys) Retire(ctx context.Context, force bool) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	s, err := k.Rotation(ctx)
	switch {
	case err != nil:
		return err
	case s.Since.IsZero():
		return fault.New(fault.Refused, "host-key retire", "there is no next host key").WithHint("corpus-git host-key rotate  makes and announces one")
	case len(s.Unaware) > 0 && !force:
		return fault.New(fault.Refused, "host-key retire", "%d of %d agents do not know the next host key yet: %s", len(s.Unaware), s.Agents, strings.Join(s.Unaware[:min(len(s.Unaware), shownNames)], ", ")).
			WithHint("they learn it when they connect, with this release of corpus-git; with --force those join again:  corpus-git node token NAME")
	case k.Busy != nil && k.Busy() > 0:
		return fault.New(fault.Busy, "host-key retire", "something is being deployed, and is signed with the present key").WithHint("try again when it has ended")
	}
	if err := Files(k.State).Retire(); err != nil {
		return err
	}
	return k.tell(ctx)
}

// shownNames is how many nodes are named in an error.
const shownNames = 12

// tell has the ssh server use the keys, and tells the agents.
func (k *Keys) tell(ctx context.Context) error {
	if k.Shared != nil {
		k.Shared()
	}
	k.mu.Lock()
	k.said = nil
	k.mu.Unlock()
	keys, _, err := Files(k.State).Load()
	if err != nil {
		return err
	}
	if k.Serve != nil {
		k.Serve(keys.Current, keys.Next)
	}
	return k.Fleet.TellKeys(ctx)
}

// Rotation returns how far the replacement is.
func (k *Keys) Rotation(ctx context.Context) (s status.HostKeyRotation, err error) {
	s = status.HostKeyRotation{Version: status.Version, Unaware: []string{}}
	keys, _, err := Files(k.State).Load()
	if err != nil {
		return s, err
	}
	add := func(state string, key ssh.PublicKey) {
		s.Keys = append(s.Keys, status.RotatedKey{Type: key.Type(), Fingerprint: access.Fingerprint(key), State: state})
	}
	for _, x := range keys.Current {
		add("present", x.PublicKey())
	}
	for _, x := range keys.Next {
		add("next", x.PublicKey())
	}
	for _, x := range keys.Retired {
		add("retired", x)
	}
	if len(keys.Next) > 0 {
		s.Since = k.since()
	}
	next := nextOf(keys)
	list, err := k.Fleet.List(ctx)
	for _, n := range list {
		if !n.Agent || n.Seen.IsZero() { // it has never connected: its token has the present key
			continue
		}
		if s.Agents++; next != nil && !slices.Contains(n.HubKeys, ssh.FingerprintSHA256(next.PublicKey())) {
			s.Unaware = append(s.Unaware, n.Name)
		}
	}
	return s, err
}

// since is when the next keys were made.
func (k *Keys) since() time.Time {
	for _, path := range []string{k.State.HostKey(), k.State.HostKeyECDSA()} {
		if fi, err := os.Stat(sshd.NextKey(path)); err == nil {
			return fi.ModTime().UTC()
		}
	}
	return time.Time{}
}
