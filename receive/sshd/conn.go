package sshd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// conn is the network connection beneath an SSH connection. It ignores the library's calls of SetDeadline, made before each read and write,
// which would reset its own deadlines.
type conn struct {
	net.Conn
	limits Limits
	source string

	kex           atomic.Bool // the peer has begun the key exchange
	authenticated atomic.Bool
	offered       atomic.Int32 // number of keys that were offered
	lastOffer     atomic.Pointer[string]

	sessions    atomic.Int32 // open sessions
	running     atomic.Int32 // sessions that we have not closed
	keepalive   sync.Once
	announced   sync.Once   // see Server.announce
	asking      sync.Mutex  // held while next, closed and gone change
	next        *time.Timer // sends the next keepalive; nil before the first session
	closed      bool
	gone        []func()      // called when it is closed
	over        chan struct{} // closed when it is
	busy        atomic.Bool   // it has had a session
	limitLogged atomic.Bool   // a session was refused because of the limit
	closing     sync.Once
	onClose     func()
	ended       atomic.Pointer[string] // why we closed it
	begun       time.Time
	socket      syscall.RawConn // nil if it is not TCP
}

func newConn(nc net.Conn, l Limits) *conn {
	c := &conn{Conn: nc, limits: l, source: source(nc.RemoteAddr()), begun: time.Now(), over: make(chan struct{})}
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.socket, _ = tcp.SyscallConn() // an error is that of a closed connection, which Read reports
	}
	return c
}

// Read acknowledges received data immediately, since the peer may wait for that. OpenSSH's client leaves Nagle's algorithm on: its second
// small packet in a row is sent only when the first is acknowledged, which Linux delays by 40 ms (tcp(7), TCP_QUICKACK); a key exchange and
// a login have one such pair each. The kernel resets the option, so it is set after each read. A full buffer means that more is coming,
// which is acknowledged anyway.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.socket != nil && (n < len(p) || !c.authenticated.Load()) {
		_ = c.socket.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
	return n, err
}

// end closes the connection for a reason that is logged: a limit, and its key in the configuration.
func (c *conn) end(why string) {
	c.ended.CompareAndSwap(nil, &why)
	_ = c.Close()
}

// why returns the limit that ended a connection, "" if none did.
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
		return fmt.Sprintf("none of the %d offered keys was accepted (limits.auth_tries)", c.offered.Load())
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

// start sets the deadline by which the peer must have begun the key exchange.
func (c *conn) start() error {
	return c.Conn.SetDeadline(c.begun.Add(min(c.limits.KeyExchange, c.limits.LoginGrace)))
}

// exchanged removes that deadline: the peer has begun the key exchange. Now the deadline for the login applies, since a person who is asked
// to confirm the host key takes longer than the exchange.
func (c *conn) exchanged() {
	if c.kex.CompareAndSwap(false, true) {
		_ = c.Conn.SetDeadline(c.begun.Add(c.limits.LoginGrace))
	}
}

// loggedIn removes the deadline of the login: the first session must begin within Idle. It reports whether this is the first time.
func (c *conn) loggedIn() bool {
	if !c.authenticated.CompareAndSwap(false, true) {
		return false
	}
	_ = c.Conn.SetWriteDeadline(time.Time{})
	_ = c.Conn.SetReadDeadline(time.Now().Add(c.limits.Idle))
	return true
}

// Write allows a peer that does not read WriteIdle to continue.
func (c *conn) Write(p []byte) (int, error) {
	in := c.authenticated.Load()
	if in {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.limits.WriteIdle))
	}
	n, err := c.Conn.Write(p)
	if in && errors.Is(err, os.ErrDeadlineExceeded) {
		c.end(fmt.Sprintf("the client did not read for %s (limits.write_timeout)", c.limits.WriteIdle))
	}
	return n, err
}

// Close closes once.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		err = c.Conn.Close()
		for _, f := range c.quiet() {
			go f()
		}
		if c.onClose != nil {
			c.onClose()
		}
	})
	return err
}

// awaitClose waits for a client to close a session that has ended here, and disconnects one that does not; but not while another session
// is running on the same connection: a multiplexing client (ssh_config(5), ControlMaster) closes a session only when its user has read all
// of its output.
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

// watch sends the client a request every Keepalive (OpenSSH, PROTOCOL, "keepalive@openssh.com"), and closes the connection if one is not
// answered. Any answer counts. From then on reading has no deadline.
func (c *conn) watch(sc *gossh.ServerConn) {
	c.keepalive.Do(func() {
		c.busy.Store(true)
		_ = c.Conn.SetReadDeadline(time.Time{})
		c.ask(sc)
	})
}

// ask waits until the next keepalive is due, without a goroutine: most connections only wait.
func (c *conn) ask(sc *gossh.ServerConn) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.closed {
		return
	}
	c.next = time.AfterFunc(c.limits.Keepalive, func() {
		late := time.AfterFunc(c.limits.Answer, func() {
			c.end(fmt.Sprintf("no answer to a keepalive within %s (limits.keepalive_timeout)", c.limits.Answer))
		})
		_, _, err := sc.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()
		if err != nil {
			_ = c.Close()
			return
		}
		c.ask(sc)
	})
}

// quiet asks no more, and returns who wants to know that the connection is closed.
func (c *conn) quiet() []func() {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.closed = true; c.next != nil {
		c.next.Stop()
	}
	close(c.over)
	return c.gone
}
