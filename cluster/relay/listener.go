package relay

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// headerTime limits how long a hub may take to send the header, and how long a client at the address of a hub waits for the server's first line.
	headerTime = time.Second
	// maxHeader is the length of the longest header of version 1, in bytes.
	maxHeader = 107
	// reading limits the connections whose header is being read.
	reading = 256
)

// Accepting returns a listener whose connections have the address of the client that the header of a relay names. Only connections from trusted addresses may have one. Closing it closes l.
func Accepting(l net.Listener, trusted func(net.IP) bool) net.Listener {
	ctx, stop := context.WithCancel(context.Background())
	a := &accepting{Listener: l, trusted: trusted, out: make(chan result), ctx: ctx, stop: stop, slots: make(chan struct{}, reading)}
	go a.run()
	return a
}

type accepting struct {
	net.Listener
	trusted func(net.IP) bool
	out     chan result
	ctx     context.Context //nolint:containedctx // ends with the listener
	stop    context.CancelFunc
	slots   chan struct{}
	once    sync.Once
}

type result struct {
	c   net.Conn
	err error
}

func (a *accepting) run() {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			a.give(result{nil, err})
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		at, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok || !a.trusted(at.IP) {
			a.give(result{c, nil})
			continue
		}
		select {
		case a.slots <- struct{}{}:
		case <-a.ctx.Done():
			_ = c.Close()
			return
		}
		go func() {
			defer func() { <-a.slots }()
			if c, err := named(c); err == nil {
				a.give(result{c, nil})
			}
		}()
	}
}

func (a *accepting) give(r result) {
	select {
	case a.out <- r:
	case <-a.ctx.Done():
		if r.c != nil {
			_ = r.c.Close()
		}
	}
}

// Accept implements net.Listener.
func (a *accepting) Accept() (net.Conn, error) {
	select {
	case r := <-a.out:
		return r.c, r.err
	case <-a.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (a *accepting) Close() (err error) {
	err = net.ErrClosed
	a.once.Do(func() {
		a.stop()
		err = a.Listener.Close()
	})
	return err
}

// conn is a connection of which the first bytes were read.
type conn struct {
	net.Conn
	first  []byte
	client net.Addr
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.client }

// CloseWrite closes the sending direction.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// prefix begins the header.
const prefix = "PROXY "

// named reads the header of a connection, if it has one. A connection with an invalid one is closed.
func named(c net.Conn) (net.Conn, error) {
	out := &conn{Conn: c, client: c.RemoteAddr()}
	if err := c.SetReadDeadline(time.Now().Add(headerTime)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var seen []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(seen, []byte("\r\n")) {
		n, err := c.Read(one)
		if n == 1 {
			seen = append(seen, one[0])
		}
		short := len(seen) <= len(prefix)
		if short && !strings.HasPrefix(prefix, string(seen)) || len(seen) == 0 && err != nil {
			out.first = seen // a client's own connection
			if timeout, ok := errors.AsType[net.Error](err); err != nil && (!ok || !timeout.Timeout()) {
				return nil, errors.Join(err, c.Close())
			}
			return out, c.SetReadDeadline(time.Time{})
		}
		if err == nil && len(seen) > maxHeader {
			err = errHeader
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	client, err := parse(string(seen))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if client != nil {
		out.client = client
	}
	return out, c.SetReadDeadline(time.Time{})
}

var errHeader = errors.New("invalid header of a relayed connection")

// parse returns the client's address of a header, nil if it is unknown.
func parse(line string) (net.Addr, error) {
	f := strings.Split(strings.TrimSuffix(line, "\r\n"), " ")
	if len(f) >= 2 && f[1] == "UNKNOWN" {
		return nil, nil
	}
	if len(f) != 6 || f[1] != "TCP4" && f[1] != "TCP6" {
		return nil, errHeader
	}
	ip := net.ParseIP(f[2])
	port, err := strconv.ParseUint(f[4], 10, 16)
	if ip == nil || err != nil || (ip.To4() == nil) != (f[1] == "TCP6") {
		return nil, errHeader
	}
	return &net.TCPAddr{IP: ip, Port: int(port)}, nil
}
