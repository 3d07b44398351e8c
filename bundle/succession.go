package bundle

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// Succession says which key a machine has, and which one will replace it. It is signed by both: who knows the present key learns the next one from it, over whatever connection.
type Succession struct {
	// Current and Next are public keys, lines as in authorized_keys; Next is "" if none will replace Current.
	Current string `json:"current"`
	Next    string `json:"next,omitempty"`
	// ByCurrent and ByNext are signatures in the wire format of ssh.
	ByCurrent []byte `json:"by_current"`
	ByNext    []byte `json:"by_next,omitempty"`
}

// text is what is signed.
func (s Succession) text() []byte {
	return fmt.Appendf(nil, "corpus-git host keys 1\n%s\n%s\n", s.Current, s.Next)
}

// Succeed makes a statement; next may be nil.
func Succeed(current, next ssh.Signer) (s Succession, err error) {
	if s.Current = keyLine(current.PublicKey()); next != nil {
		s.Next = keyLine(next.PublicKey())
	}
	sign := func(k ssh.Signer) []byte {
		sig, serr := k.Sign(rand.Reader, s.text())
		if serr != nil {
			err = serr
			return nil
		}
		return ssh.Marshal(sig)
	}
	s.ByCurrent = sign(current)
	if next != nil {
		s.ByNext = sign(next)
	}
	return s, err
}

// Verify returns fault.Refused unless the statement is signed by its keys, and its current one is one of known: lines as in authorized_keys, of which comments do not count.
func (s Succession) Verify(known ...string) error {
	current, err := verified(s.Current, s.text(), s.ByCurrent)
	if err == nil && s.Next != "" {
		_, err = verified(s.Next, s.text(), s.ByNext)
	}
	if err != nil {
		return fault.New(fault.Refused, "host key", "a statement about the hub's keys is not valid: %w", err)
	}
	for _, line := range known {
		if k, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil && bytes.Equal(k.Marshal(), current.Marshal()) {
			return nil
		}
	}
	return fault.New(fault.Refused, "host key", "a statement about the hub's keys is by %s, which is not the hub that this machine joined", ssh.FingerprintSHA256(current))
}

// verified returns the key of a line that has signed a text.
func verified(line string, text, signature []byte) (ssh.PublicKey, error) {
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(rest) > 0 || keyLine(key) != line {
		return nil, fault.New(fault.Refused, "", "%q is not one public key", line)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(signature, &sig); err != nil {
		return nil, err
	}
	return key, key.Verify(text, &sig)
}
