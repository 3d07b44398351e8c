package sshd

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// conn is the network connection beneath an SSH connection. It keeps deadlines of its own: the library's calls of
// SetDeadline, one before each read and write, would lift them.
type conn struct {
	net.Conn
	limits Limits
	source string

	authenticated atomic.Bool
	offered       atomic.Int32 // keys that were offered
	lastOffer     atomic.Pointer[string]

	sessions  atomic.Int32
	keepalive sync.Once
	closing   sync.Once
	onClose   func()
}

// SetDeadline does nothing; see conn.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing; see conn.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing; see conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// start sets the one deadline that holds until the peer has logged in.
func (c *conn) start() error { return c.Conn.SetDeadline(time.Now().Add(c.limits.LoginGrace)) }

// loggedIn lifts it: from here on a first session must come within Idle. It tells whether this is the first time.
func (c *conn) loggedIn() bool {
	if !c.authenticated.CompareAndSwap(false, true) {
		return false
	}
	_ = c.Conn.SetWriteDeadline(time.Time{})
	_ = c.Conn.SetReadDeadline(time.Now().Add(c.limits.Idle))
	return true
}

// Write gives a peer whose window is full WriteIdle to read on.
func (c *conn) Write(p []byte) (int, error) {
	if c.authenticated.Load() {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.limits.WriteIdle))
	}
	return c.Conn.Write(p)
}

// Close closes once.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		err = c.Conn.Close()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return err
}

// watch asks the client every Keepalive whether it is there (OpenSSH, PROTOCOL, "keepalive@openssh.com"), and closes the
// connection when one question stays without an answer. Any answer will do. From here on reading has no deadline.
func (c *conn) watch(sc *gossh.ServerConn) {
	c.keepalive.Do(func() {
		_ = c.Conn.SetReadDeadline(time.Time{})
		go func() {
			tick := time.NewTicker(c.limits.Keepalive)
			defer tick.Stop()
			gone := make(chan struct{})
			go func() { _ = sc.Wait(); close(gone) }()
			for {
				select {
				case <-gone:
					return
				case <-tick.C:
				}
				late := time.AfterFunc(c.limits.Answer, func() { _ = c.Close() })
				_, _, err := sc.SendRequest("keepalive@openssh.com", true, nil)
				late.Stop()
				if err != nil {
					_ = c.Close()
					return
				}
			}
		}()
	})
}
