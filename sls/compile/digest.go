package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"corpus-git/internal/py"
)

// Digest identifies the states of the program, with their arguments, requisites and order.
func (p *Program) Digest() string {
	h := sha256.New()
	for _, n := range p.Nodes {
		c := n.Chunk
		umask := -1
		if c.Umask != nil {
			umask = *c.Umask
		}
		for _, part := range []string{c.SLS, c.Tag(), fmt.Sprint(n.IsTest, umask), py.Repr(c.Args), py.Repr(c.Global)} {
			_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
		}
		for t, refs := range c.Reqs {
			for _, r := range refs {
				_, _ = fmt.Fprintf(h, "%d %q %q;", t, r.Module, r.Target)
			}
		}
		for _, r := range c.ListenIn {
			_, _ = fmt.Fprintf(h, "listen_in %q %q;", r.Module, r.Target)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
