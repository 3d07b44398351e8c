package sshd

import (
	"errors"
	"fmt"
	"net"
	"os"
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

	kex           atomic.Bool // the peer took part in the key exchange
	authenticated atomic.Bool
	offered       atomic.Int32 // keys that were offered
	lastOffer     atomic.Pointer[string]

	sessions    atomic.Int32 // that are open
	running     atomic.Int32 // those of them whose end we have not sent
	keepalive   sync.Once
	busy        atomic.Bool // it has had a session
	limitLogged atomic.Bool // a session was refused because there are too many
	closing     sync.Once
	onClose     func()
	ended       atomic.Pointer[string] // why we closed it
	begun       time.Time
}

// end closes the connection for a reason that the log gives: a limit, and its key in the configuration.
func (c *conn) end(why string) {
	c.ended.CompareAndSwap(nil, &why)
	_ = c.Close()
}

// why is the limit that ended a connection, "" where none did.
func (c *conn) why() string {
	if p := c.ended.Load(); p != nil {
		return *p
	}
	switch age := time.Since(c.begun); {
	case !c.kex.Load() && age >= c.limits.KeyExchange:
		return fmt.Sprintf("no key exchange within %s (limits.kex_timeout)", c.limits.KeyExchange)
	case !c.authenticated.Load() && age >= c.limits.LoginGrace:
		return fmt.Sprintf("not logged in within %s (limits.auth_timeout)", c.limits.LoginGrace)
	case !c.authenticated.Load() && int(c.offered.Load()) >= c.limits.AuthTries:
		return fmt.Sprintf("it offered %d keys, and none was right (limits.auth_tries)", c.offered.Load())
	case c.authenticated.Load() && !c.busy.Load() && age >= c.limits.Idle:
		return fmt.Sprintf("no session within %s (limits.idle_timeout)", c.limits.Idle)
	}
	return ""
}

// SetDeadline does nothing; see conn.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing; see conn.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing; see conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// start sets the deadline until which the peer must have begun the key exchange.
func (c *conn) start() error {
	return c.Conn.SetDeadline(c.begun.Add(min(c.limits.KeyExchange, c.limits.LoginGrace)))
}

// exchanged lifts it: the peer's part of the key exchange is here. Now the one deadline holds that ends when the peer has logged in. A person
// who is asked whether the host key is right takes longer than the exchange does.
func (c *conn) exchanged() {
	if c.kex.CompareAndSwap(false, true) {
		_ = c.Conn.SetDeadline(c.begun.Add(c.limits.LoginGrace))
	}
}

// loggedIn lifts it: from here on a first session must come within Idle. It reports whether this is the first time.
func (c *conn) loggedIn() bool {
	if !c.authenticated.CompareAndSwap(false, true) {
		return false
	}
	_ = c.Conn.SetWriteDeadline(time.Time{})
	_ = c.Conn.SetReadDeadline(time.Now().Add(c.limits.Idle))
	return true
}

// Write gives a peer that takes no bytes off the line WriteIdle to go on.
func (c *conn) Write(p []byte) (int, error) {
	in := c.authenticated.Load()
	if in {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.limits.WriteIdle))
	}
	n, err := c.Conn.Write(p)
	if in && errors.Is(err, os.ErrDeadlineExceeded) {
		c.end(fmt.Sprintf("nothing was taken off the line within %s (limits.write_timeout)", c.limits.WriteIdle))
	}
	return n, err
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

// awaitClose waits for a client to close a session that has ended here. One that does not keeps a place for nothing, and is put out; but not
// while another session runs on the same connection: a multiplexing client (ssh_config(5), ControlMaster) closes a session only when
// whoever started it has read all of its output.
func (c *conn) awaitClose(closed <-chan struct{}) {
	tick := time.NewTicker(c.limits.Idle)
	defer tick.Stop()
	for {
		select {
		case <-closed:
			return
		case <-tick.C:
		}
		select {
		case <-closed:
			return
		default:
		}
		if c.running.Load() == 0 {
			c.end(fmt.Sprintf("a session was not closed within %s of its end (limits.idle_timeout)", c.limits.Idle))
			return
		}
	}
}

// watch asks the client every Keepalive whether it is there (OpenSSH, PROTOCOL, "keepalive@openssh.com"), and closes the
// connection when one question stays without an answer. Any answer will do. From here on reading has no deadline.
func (c *conn) watch(sc *gossh.ServerConn) {
	c.keepalive.Do(func() {
		c.busy.Store(true)
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
				late := time.AfterFunc(c.limits.Answer, func() {
					c.end(fmt.Sprintf("no answer to a keepalive within %s (limits.keepalive_timeout)", c.limits.Answer))
				})
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
