package remote

import (
	"context"
	"time"

	"corpus-git/internal/fault"
)

// keptFor is how long a session stays after its use, as long as ssh(1) keeps a connection: a login starts a shell with its start files, and then the
// program, which takes as much processor time as a small deployment.
const keptFor = time.Minute

// keptSession is a session that waits for its next use.
type keptSession struct {
	conn     *conn
	program  string
	hello    Hello
	protocol int
	late     *time.Timer
}

// errNotUsed is why a session ends that was kept and not used again.
var errNotUsed = fault.New(fault.Busy, "", "%w", &ConnectionError{"the session was not used any more"})

// Keep ends the use of the session, which stays for a minute for the next Open of the same program and root on the same Host. A session of an agent ends, and so does one that is kept already. Idempotent.
func (n *Node) Keep() error {
	c := n.conn
	if c == nil || n.Dial != nil {
		return n.Close()
	}
	n.conn = nil
	k := &keptSession{conn: c, program: n.Program, hello: n.Hello, protocol: n.Protocol}
	h, of := n.Host, n.kind()
	h.mu.Lock()
	old := h.kept[of]
	if h.kept == nil {
		h.kept = map[string]*keptSession{}
	}
	h.kept[of] = k
	k.late = time.AfterFunc(keptFor, func() {
		if h.unkeep(of, k) {
			_ = c.end() // errors of ending a session that is not needed are ignored
		}
	})
	h.mu.Unlock()
	if old != nil {
		old.late.Stop()
		_ = old.conn.end()
	}
	return nil
}

// kind says what runs in the session.
func (n *Node) kind() string { return n.Release.Sum + " " + n.Root }

// unkeep removes a session of a kind, and reports whether it was there: who removes one ends it or uses it.
func (h *Host) unkeep(of string, k *keptSession) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept[of] != k {
		return false
	}
	delete(h.kept, of)
	return true
}

// drop ends all sessions that were kept, without a word to the other side: it may not respond.
func (h *Host) drop() {
	h.mu.Lock()
	all := h.kept
	h.kept = nil
	h.mu.Unlock()
	for _, k := range all {
		k.late.Stop()
		k.conn.stop(errNotUsed)
		_ = k.conn.end()
	}
}

// resume returns a session that was kept and still responds, nil if there is none. The machine greets again, as what it says of itself may have changed.
func (n *Node) resume(ctx context.Context) *conn {
	h, of := n.Host, n.kind()
	h.mu.Lock()
	k := h.kept[of]
	delete(h.kept, of)
	h.mu.Unlock()
	if k == nil {
		return nil
	}
	k.late.Stop()
	select {
	case <-k.conn.ended:
		return nil
	default:
	}
	n.conn, n.Program, n.Hello, n.Protocol = k.conn, k.program, k.hello, k.protocol
	f, err := n.ask(ctx, Request{Hello: true})
	if err == nil && f.Hello != nil { // an older server there refuses the request
		n.Hello = *f.Hello
	}
	return n.conn
}
