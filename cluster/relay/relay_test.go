package relay_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster/relay"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// echo answers each connection with the address of its client, and then with what it sends.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.WriteString(c, c.RemoteAddr().String()+"\n")
			_, _ = io.Copy(c, c)
		}()
	}
}

func loopback(ip net.IP) bool { return ip.IsLoopback() }

// A client of a hub that follows is connected to the leader, which sees its address; it waits while there is none; and what the relay did not accept is for the next owner of the listener.
func TestRelay(t *testing.T) {
	behind := listen(t)
	leader := relay.Accepting(behind, loopback)
	go echo(leader)
	front := listen(t)
	var leads atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	r := &relay.Relay{Listener: front, Header: true, Log: zerolog.Nop(), Leader: func() (string, error) {
		if !leads.Load() {
			return "", relay.ErrNone
		}
		return behind.Addr().String(), nil
	}}
	go func() { r.Run(ctx); close(ended) }()

	c, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(c, "sent before any hub led")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	leads.Store(true)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, c.LocalAddr().String()+"\nsent before any hub led", string(got))

	open, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	_, err = io.ReadFull(open, make([]byte, len(open.LocalAddr().String())))
	require.NoError(t, err)
	stop()
	<-ended
	_, err = io.ReadAll(open)
	require.NoError(t, err, "ended by the relay")

	next, err := net.Dial("tcp", front.Addr().String())
	require.NoError(t, err)
	go echo(front)
	_, err = io.ReadFull(next, make([]byte, len(next.LocalAddr().String())))
	require.NoError(t, err)
}

// A client that can't be relayed is told why; only what may come soon is waited for.
func TestWhyNot(t *testing.T) {
	dead := listen(t)
	require.NoError(t, dead.Close())
	final := errors.New("it has no address")
	for name, c := range map[string]struct {
		patience time.Duration
		leader   func() (string, error)
		want     error
	}{
		"none leads":       {time.Millisecond, func() (string, error) { return "", relay.ErrNone }, relay.ErrNone},
		"it is not there":  {time.Millisecond, func() (string, error) { return dead.Addr().String(), nil }, relay.ErrUnreachable},
		"it never will be": {time.Hour, func() (string, error) { return "", final }, final},
	} {
		t.Run(name, func(t *testing.T) {
			front := listen(t)
			ctx, stop := context.WithCancel(t.Context())
			ended, why := make(chan struct{}), make(chan error, 1)
			r := &relay.Relay{Listener: front, Patience: c.patience, Leader: c.leader, Refuse: func(_ net.Conn, err error) { why <- err }, Log: zerolog.Nop()}
			go func() { r.Run(ctx); close(ended) }()
			defer func() { stop(); <-ended }()
			conn, err := net.Dial("tcp", front.Addr().String())
			require.NoError(t, err)
			require.ErrorIs(t, <-why, c.want)
			_, err = io.ReadAll(conn)
			require.NoError(t, err)
		})
	}
}

func TestHeader(t *testing.T) {
	for name, c := range map[string]struct {
		sent, want string
		trusted    bool
		closed     bool
	}{
		"named":           {sent: "PROXY TCP4 192.0.2.7 127.0.0.1 999 22\r\nhello", want: "192.0.2.7:999\nhello", trusted: true},
		"IPv6":            {sent: "PROXY TCP6 2001:db8::7 ::1 999 22\r\nhello", want: "[2001:db8::7]:999\nhello", trusted: true},
		"unknown":         {sent: "PROXY UNKNOWN\r\nhello", want: "hello", trusted: true},
		"direct":          {sent: "SSH-2.0-x\r\n", want: "SSH-2.0-x\r\n", trusted: true},
		"begins alike":    {sent: "PROX", closed: true, trusted: true},
		"not trusted":     {sent: "PROXY TCP4 192.0.2.7 127.0.0.1 999 22\r\nhello", want: "PROXY TCP4 192.0.2.7 127.0.0.1 999 22\r\nhello"},
		"no address":      {sent: "PROXY TCP4 nowhere 127.0.0.1 999 22\r\n", closed: true, trusted: true},
		"other family":    {sent: "PROXY TCP6 192.0.2.7 127.0.0.1 999 22\r\n", closed: true, trusted: true},
		"too long":        {sent: "PROXY TCP4 " + string(make([]byte, 200)) + "\r\n", closed: true, trusted: true},
		"waits and sends": {sent: "", want: "", trusted: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := relay.Accepting(listen(t), func(net.IP) bool { return c.trusted })
			go echo(l)
			conn, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			_, err = io.WriteString(conn, c.sent)
			require.NoError(t, err)
			if c.sent == "" {
				_, err := io.ReadFull(conn, make([]byte, 5)) // the server speaks first
				require.NoError(t, err)
				return
			}
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			got, _ := io.ReadAll(conn)
			if c.closed {
				require.Empty(t, got)
				return
			}
			if c.want[0] < '0' || c.want[0] > '9' && c.want[0] != '[' {
				c.want = conn.LocalAddr().String() + "\n" + c.want
			}
			require.Equal(t, c.want, string(got))
		})
	}
}

func TestClose(t *testing.T) {
	l := relay.Accepting(listen(t), loopback)
	require.NoError(t, l.Close())
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, l.Close(), net.ErrClosed)
}
