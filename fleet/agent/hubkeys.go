package agent

import (
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// pin is a key by which a hub is known, and its line.
type pin struct {
	line string
	key  ssh.PublicKey
}

// keys returns the keys by which a hub is known, the present one first.
func (h Hub) keys() (out []pin, err error) {
	for _, line := range []string{h.HostKey, h.Next} {
		if line == "" && len(out) > 0 {
			continue
		}
		k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, err
		}
		out = append(out, pin{line, k})
	}
	return out, nil
}

// replaced is the error about a hub that has another key.
func (h Hub) replaced(want, has ssh.PublicKey) error {
	hint := "compare it with  corpus-git host-key  on the hub; if it is the hub's, begin again with a new token from there"
	if h.Node != "" {
		hint = "compare it with  corpus-git host-key  on the hub; if it is the hub's: there  corpus-git node token " + h.Node + " ; here, while the agent is stopped,  corpus-git agent --join-file FILE"
	}
	return fault.New(fault.Refused, "", "the hub %s has the host key %s, and this machine knows %s: the key was replaced meanwhile, or another machine responds", h.Address, ssh.FingerprintSHA256(has), ssh.FingerprintSHA256(want)).
		WithHint("%s", hint)
}

// hub returns what is known of the hub now.
func (a *Agent) hub() Hub {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Hub
}

// change makes a change of what is known of the hub durable, and then uses it.
func (a *Agent) change(change func(*Hub)) error {
	a.learning.Lock()
	defer a.learning.Unlock()
	return a.changeLocked(change)
}

func (a *Agent) changeLocked(change func(*Hub)) error {
	hub := a.hub()
	change(&hub)
	if a.Learned != nil {
		if err := a.Learned(hub); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Hub = hub
	return nil
}

// Pinned returns the fingerprints of the keys by which the hub is known: the present one, then the next one.
func (a *Agent) Pinned() (fingerprints []string) {
	keys, _ := a.hub().keys() // the connection has the error
	for _, k := range keys {
		fingerprints = append(fingerprints, ssh.FingerprintSHA256(k.key))
	}
	return fingerprints
}

// Pin keeps that the hub has the key current from now on, and that next will replace it, "" for none. verify refuses a statement that is not by one of the known keys. Durable on return.
func (a *Agent) Pin(current, next string, verify func(known ...string) error) error {
	a.learning.Lock()
	defer a.learning.Unlock()
	old := a.hub()
	known := []string{old.HostKey}
	if old.Next != "" {
		known = append(known, old.Next)
	}
	if err := verify(known...); err != nil {
		return err
	}
	if err := a.changeLocked(func(hub *Hub) { hub.HostKey, hub.Next = current, next }); err != nil {
		return err
	}
	return a.left(old.HostKey, current)
}

// proven keeps that the hub has the announced key, if that is what it has proven itself with.
func (a *Agent) proven(by string) error {
	a.learning.Lock()
	defer a.learning.Unlock()
	old := a.hub()
	if by == old.HostKey || by != old.Next {
		return nil
	}
	if err := a.changeLocked(func(hub *Hub) { hub.HostKey, hub.Next = by, "" }); err != nil {
		return err
	}
	a.Log.Info().Str("hub", old.Address).Msg("the hub uses its next host key from now on")
	return a.left(old.HostKey, by)
}

// left calls Replaced if the key of the hub is another one.
func (a *Agent) left(old, now string) error {
	was, _, _, _, err := ssh.ParseAuthorizedKey([]byte(old))
	is, _, _, _, nerr := ssh.ParseAuthorizedKey([]byte(now))
	if err != nil || nerr != nil || a.Replaced == nil || string(was.Marshal()) == string(is.Marshal()) {
		return nil
	}
	return a.Replaced(old)
}
