package sshd_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/terminal"
	"corpus-git/internal/vfs"
	"corpus-git/receive/sshd"
)

// keyring knows keys by their fingerprint.
type keyring map[string]access.Key

func (k keyring) Identify(_ context.Context, o access.Offer) (access.Identity, bool, error) {
	key, ok := k[ssh.FingerprintSHA256(o.Key)]
	return access.Identity{Name: key.Name, Fingerprint: key.Fingerprint, Admin: key.Admin, From: o.From}, ok, nil
}

type handler func(ctx context.Context, s *sshd.Session) int

func (h handler) Serve(ctx context.Context, s *sshd.Session) int { return h(ctx, s) }

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	s, _ := newKey(t)
	return s
}

func newKey(t *testing.T) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(priv)
	require.NoError(t, err)
	return s, priv
}

type server struct {
	*sshd.Server
	addr    string
	key     ssh.Signer
	private ed25519.PrivateKey // key's
}

func serve(t *testing.T, l sshd.Limits, h handler, change ...func(*sshd.Server)) *server {
	t.Helper()
	s := &server{}
	s.key, s.private = newKey(t)
	fp := ssh.FingerprintSHA256(s.key.PublicKey())
	s.Server = &sshd.Server{HostKeys: []ssh.Signer{newSigner(t)}, Keys: keyring{fp: {Name: "marie", Fingerprint: fp}}, Handler: h, Version: "test", Limits: l}
	for _, c := range change {
		c(s.Server)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, sshd.ErrClosed)
	})
	return s
}

func (s *server) config(auth ...ssh.AuthMethod) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: "deploy", Auth: auth, HostKeyCallback: ssh.FixedHostKey(s.HostKeys[0].PublicKey())}
}

func (s *server) dial(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial("tcp", s.addr, s.config(ssh.PublicKeys(s.key)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func hello(_ context.Context, s *sshd.Session) int {
	fmt.Fprintf(s.Stdout, "hello %s", s.Identity.Name)
	return 0
}

// Setting a key callback only where the library's configuration is created leaves its NoClientAuth on: anybody would be let in.
func TestNobodyComesInWithoutAKey(t *testing.T) {
	s := serve(t, sshd.Limits{}, hello)
	for name, auth := range map[string][]ssh.AuthMethod{
		"none":        nil,
		"password":    {ssh.Password("x")},
		"interactive": {ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })},
		"stranger":    {ssh.PublicKeys(newSigner(t))},
	} {
		_, err := ssh.Dial("tcp", s.addr, s.config(auth...))
		require.ErrorContains(t, err, "unable to authenticate", name)
	}
	c := s.dial(t)
	sess, err := c.NewSession()
	require.NoError(t, err)
	out, err := sess.Output("x")
	require.NoError(t, err)
	require.Equal(t, "hello marie", string(out))
}

// A connection that sends nothing, or only single bytes, is ended at one deadline.
func TestLoginGrace(t *testing.T) {
	s := serve(t, sshd.Limits{LoginGrace: 300 * time.Millisecond}, hello)
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer c.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		_, _ = io.WriteString(c, "SSH-2.0-slow\r\n")
		for { // a byte now and then does not extend the deadline
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_, _ = c.Write([]byte{0})
			}
		}
	}()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err = io.Copy(io.Discard, c)
	var ne net.Error
	require.False(t, errors.As(err, &ne) && ne.Timeout(), "the server hung up, not we")
}

// A client that logged in and opens no session is disconnected, too; one with a session is kept.
func TestIdleConnection(t *testing.T) {
	goOn := make(chan struct{})
	s := serve(t, sshd.Limits{Idle: 200 * time.Millisecond}, func(ctx context.Context, s *sshd.Session) int {
		<-goOn
		return hello(ctx, s)
	})
	busy, idle := s.dial(t), s.dial(t)
	sess, err := busy.NewSession()
	require.NoError(t, err)
	var out bytes.Buffer
	sess.Stdout = &out
	require.NoError(t, sess.Start("x"))
	require.Error(t, idle.Wait())
	close(goOn)
	require.NoError(t, sess.Wait())
	require.Equal(t, "hello marie", out.String())
}

func TestConnectionsAreCapped(t *testing.T) {
	s := serve(t, sshd.Limits{Connections: 3, UnauthenticatedPerSource: 2}, hello)
	read := func(c net.Conn) string {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		b := make([]byte, 200)
		n, err := c.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	var cs []net.Conn
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		cs = append(cs, c)
		return c
	}
	defer func() {
		for _, c := range cs {
			_ = c.Close()
		}
	}()
	in := s.dial(t)
	for range 2 {
		require.Contains(t, read(dial()), "SSH-2.0-corpus-git_test")
	}
	require.Contains(t, read(dial()), "too many connections")
	// Running sessions are not affected, and a place that is released is available.
	sess, err := in.NewSession()
	require.NoError(t, err)
	out, err := sess.Output("x")
	require.NoError(t, err)
	require.Equal(t, "hello marie", string(out))
	require.NoError(t, cs[0].Close())
	require.Eventually(t, func() bool { return strings.HasPrefix(read(dial()), "SSH-2.0") }, 20*time.Second, 20*time.Millisecond)
}

// Each limit on connections has its own message and key.
func TestEveryCapIsNamed(t *testing.T) {
	for want, l := range map[string]sshd.Limits{
		"too many connections: 1 (limits.max_connections)":                                                          {Connections: 1},
		"too many connections from your address: 1 (limits.max_connections_per_source)":                             {PerSource: 1},
		"too many connections that have not logged in: 1 (limits.max_unauthenticated)":                              {Unauthenticated: 1},
		"too many connections from your address that have not logged in: 1 (limits.max_unauthenticated_per_source)": {UnauthenticatedPerSource: 1},
	} {
		var log lockedBuffer
		s := serve(t, l, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
		one, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer one.Close()
		_, err = io.ReadFull(one, make([]byte, 4)) // it is in
		require.NoError(t, err)
		two, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer two.Close()
		said, err := io.ReadAll(two)
		require.NoError(t, err)
		require.Equal(t, "corpus-git: "+want+", try again later\r\n", string(said))
		require.Contains(t, log.String(), want)
	}
}

func TestGuessersArePutOff(t *testing.T) {
	var told atomic.Int32
	s := serve(t, sshd.Limits{Failures: 3, Penalty: time.Hour}, hello, func(s *sshd.Server) {
		s.RefusedLogin = func(string, string, string) { told.Add(1) }
	})
	running := s.dial(t)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer c.Close()
		b := make([]byte, 100)
		n, _ := c.Read(b)
		if strings.Contains(string(b[:n]), "too many failed logins") {
			return true
		}
		_, err = ssh.Dial("tcp", s.addr, s.config(ssh.PublicKeys(newSigner(t))))
		require.Error(t, err)
		return false
	}, 20*time.Second, time.Millisecond)
	require.Equal(t, int32(1), told.Load(), "one line for all of them")
	sess, err := running.NewSession()
	require.NoError(t, err)
	_, err = sess.Output("x")
	require.NoError(t, err)
}

// Limits can change while the server is running, and apply to new connections.
func TestSetLimits(t *testing.T) {
	s := serve(t, sshd.Limits{Sessions: 1}, hello)
	old := s.dial(t)
	s.SetLimits(sshd.Limits{Connections: 2, Sessions: 3})
	c := s.dial(t)
	for range 3 {
		ch, _, err := c.OpenChannel("session", nil)
		require.NoError(t, err)
		defer ch.Close()
	}
	_, _, err := c.OpenChannel("session", nil)
	require.ErrorContains(t, err, "limits.max_sessions_per_connection")
	ch, _, err := old.OpenChannel("session", nil)
	require.NoError(t, err)
	defer ch.Close()
	_, _, err = old.OpenChannel("session", nil)
	require.ErrorContains(t, err, "more than 1 sessions", "it keeps the limits of its beginning")
	third, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer third.Close()
	said, err := io.ReadAll(third)
	require.NoError(t, err)
	require.Equal(t, "corpus-git: too many connections: 2 (limits.max_connections), try again later\r\n", string(said))
}

// Each limit that ends a connection is in the log with its key.
func TestEndedConnectionsAreLogged(t *testing.T) {
	var log lockedBuffer
	s := serve(t, sshd.Limits{LoginGrace: 200 * time.Millisecond, Idle: 200 * time.Millisecond}, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer c.Close()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "limits.auth_timeout") }, 20*time.Second, 5*time.Millisecond)
	s.dial(t)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "limits.idle_timeout") }, 20*time.Second, 5*time.Millisecond)
}

// A peer that no longer reads from the network, although the channel's window is open, holds a connection no longer than a write may take.
func TestLineThatIsNotRead(t *testing.T) {
	var log lockedBuffer
	ended := make(chan error, 1)
	s := serve(t, sshd.Limits{WriteIdle: 300 * time.Millisecond, Keepalive: time.Hour}, func(ctx context.Context, s *sshd.Session) int {
		_, err := s.Stdin.Read(make([]byte, 1))
		for err == nil {
			_, err = s.Stdout.Write(make([]byte, 1024))
		}
		ended <- err
		return 1
	}, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	// Buffers that hold less than the channel's window.
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(narrow{tcp}) }()
	here, err := net.Dial("tcp", tcp.Addr().String())
	require.NoError(t, err)
	require.NoError(t, here.(*net.TCPConn).SetReadBuffer(8<<10))
	f := &frozen{Conn: here, stop: make(chan struct{}), end: make(chan struct{})}
	sc, chans, reqs, err := ssh.NewClientConn(f, s.addr, s.config(ssh.PublicKeys(s.key)))
	require.NoError(t, err)
	c := ssh.NewClient(sc, chans, reqs)
	t.Cleanup(func() { _ = f.Close() })
	sess, err := c.NewSession()
	require.NoError(t, err)
	in, err := sess.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sess.Start("flood"))
	close(f.stop)
	_, err = in.Write([]byte{1})
	require.NoError(t, err)
	require.Error(t, <-ended)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "limits.write_timeout") }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, sshd.ErrClosed)
}

// narrow is a listener whose connections buffer little of what is written.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return c, err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAuthTries(t *testing.T) {
	var log lockedBuffer
	s := serve(t, sshd.Limits{AuthTries: 2}, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	strangers := []ssh.Signer{newSigner(t), newSigner(t), newSigner(t), s.key}
	_, err := ssh.Dial("tcp", s.addr, s.config(ssh.PublicKeys(strangers...)))
	require.Error(t, err, "the right key comes too late")
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "none of the 2 offered keys was accepted (limits.auth_tries)")
	}, 20*time.Second, 5*time.Millisecond)
}

func TestSessionsAreCapped(t *testing.T) {
	s := serve(t, sshd.Limits{Sessions: 2}, func(ctx context.Context, s *sshd.Session) int { <-ctx.Done(); return 0 })
	c := s.dial(t)
	var open []*ssh.Session
	for range 2 {
		sess, err := c.NewSession()
		require.NoError(t, err)
		require.NoError(t, sess.Start("x"))
		open = append(open, sess)
	}
	_, err := c.NewSession()
	require.ErrorContains(t, err, "more than 2 sessions")
	require.NoError(t, open[0].Close())
	require.Eventually(t, func() bool {
		sess, err := c.NewSession()
		if err == nil {
			_ = sess.Close()
		}
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
}

// The context of a session ends with its channel, although the connection stays open; the end of its input does not end it.
func TestContextEndsWithTheChannel(t *testing.T) {
	ended := make(chan struct{})
	eof := make(chan struct{})
	s := serve(t, sshd.Limits{}, func(ctx context.Context, s *sshd.Session) int {
		if s.Command == "hello" {
			return hello(ctx, s)
		}
		_, _ = io.Copy(io.Discard, s.Stdin)
		if ctx.Err() == nil {
			close(eof)
		}
		<-ctx.Done()
		close(ended)
		return 0
	})
	c := s.dial(t)
	sess, err := c.NewSession()
	require.NoError(t, err)
	in, err := sess.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sess.Start("wait"))
	require.NoError(t, in.Close())
	<-eof
	require.NoError(t, sess.Close())
	<-ended
	sess, err = c.NewSession()
	require.NoError(t, err)
	out, err := sess.Output("hello")
	require.NoError(t, err)
	require.Equal(t, "hello marie", string(out))
}

func TestSignalEndsTheContext(t *testing.T) {
	began := make(chan struct{})
	s := serve(t, sshd.Limits{}, func(ctx context.Context, s *sshd.Session) int { close(began); <-ctx.Done(); return 7 })
	sess, err := s.dial(t).NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Start("x"))
	<-began
	require.NoError(t, sess.Signal(ssh.SIGTERM))
	var ee *ssh.ExitError
	require.ErrorAs(t, sess.Wait(), &ee)
	require.Equal(t, 7, ee.ExitStatus())
}

// A client that closes the channel at the end of the output, as PuTTY's plink does once its own input has ended, has received the status by
// then.
func TestStatusComesBeforeTheEndOfFile(t *testing.T) {
	s := serve(t, sshd.Limits{}, func(_ context.Context, s *sshd.Session) int {
		_, _ = io.Copy(io.Discard, s.Stdin)
		_, _ = io.WriteString(s.Stdout, "out")
		return 7
	})
	ch, reqs, err := s.dial(t).OpenChannel("session", nil)
	require.NoError(t, err)
	ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{"x"}))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, ch.CloseWrite())
	out, err := io.ReadAll(ch)
	require.NoError(t, err)
	require.Equal(t, "out", string(out))
	// What was sent before the end of file is in the queue now; a later status is not.
	select {
	case req := <-reqs:
		require.NotNil(t, req, "the channel was closed without a status")
		require.Equal(t, "exit-status", req.Type)
		require.Equal(t, []byte{0, 0, 0, 7}, req.Payload)
	default:
		t.Fatal("the output ended before its status")
	}
	_ = ch.Close()
}

// frozen is a network connection that stops returning what it reads, like a stopped client.
type frozen struct {
	net.Conn
	stop chan struct{}
	once sync.Once
	end  chan struct{}
}

func (f *frozen) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	select {
	case <-f.stop:
		<-f.end
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (f *frozen) Close() error {
	f.once.Do(func() { close(f.end) })
	return f.Conn.Close()
}

func (s *server) dialFrozen(t *testing.T) (*ssh.Client, *frozen) {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	f := &frozen{Conn: nc, stop: make(chan struct{}), end: make(chan struct{})}
	sc, chans, reqs, err := ssh.NewClientConn(f, s.addr, s.config(ssh.PublicKeys(s.key)))
	require.NoError(t, err)
	c := ssh.NewClient(sc, chans, reqs)
	t.Cleanup(func() { _ = c.Close(); _ = f.Close() })
	return c, f
}

// A stopped client no longer answers: it is detected by an unanswered keepalive.
func TestKeepaliveFindsTheDead(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	var log lockedBuffer
	s := serve(t, sshd.Limits{Keepalive: 20 * time.Millisecond, Answer: 200 * time.Millisecond}, func(ctx context.Context, s *sshd.Session) int {
		close(began)
		<-ctx.Done()
		close(ended)
		return 0
	}, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	c, f := s.dialFrozen(t)
	sess, err := c.NewSession()
	require.NoError(t, err)
	require.NoError(t, sess.Start("x"))
	<-began
	close(f.stop)
	<-ended
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "no answer to a keepalive within 200ms (limits.keepalive_timeout)")
	}, 20*time.Second, 5*time.Millisecond)
}

// A client that answers and does not read blocks only its own session, and not forever.
func TestSlowReaderIsEnded(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, sshd.Limits{WriteIdle: 200 * time.Millisecond}, func(ctx context.Context, s *sshd.Session) int {
		if s.Command == "hello" {
			return hello(ctx, s)
		}
		block := make([]byte, 64<<10)
		for {
			if _, err := s.Stdout.Write(block); err != nil {
				ended <- err
				return 1
			}
		}
	})
	c := s.dial(t)
	ch, reqs, err := c.OpenChannel("session", nil)
	require.NoError(t, err)
	go ssh.DiscardRequests(reqs)
	_, err = ch.SendRequest("exec", true, ssh.Marshal(struct{ S string }{"flood"}))
	require.NoError(t, err)
	sess, err := s.dial(t).NewSession()
	require.NoError(t, err)
	out, err := sess.Output("hello")
	require.NoError(t, err)
	require.Equal(t, "hello marie", string(out), "others are served meanwhile")
	require.Error(t, <-ended)
}

func TestSilentInputIsEnded(t *testing.T) {
	ended := make(chan error, 1)
	s := serve(t, sshd.Limits{ReadIdle: 100 * time.Millisecond}, func(ctx context.Context, s *sshd.Session) int {
		_, err := s.Stdin.Read(make([]byte, 1))
		ended <- err
		return 1
	})
	sess, err := s.dial(t).NewSession()
	require.NoError(t, err)
	_, err = sess.StdinPipe()
	require.NoError(t, err)
	var stderr lockedBuffer
	sess.Stderr = &stderr
	require.NoError(t, sess.Start("x"))
	require.ErrorContains(t, <-ended, "no data received")
	require.Error(t, sess.Wait())
	require.Equal(t, "error: no data received for 100ms (limits.read_timeout)\n", stderr.String(), "who typed the command reads why it ended")
}

// A session without a command is ended, and the log names the limit; the first session over the limit on a connection is logged as well.
func TestSessionsWithoutACommandAreLogged(t *testing.T) {
	var log lockedBuffer
	s := serve(t, sshd.Limits{Idle: 100 * time.Millisecond, Sessions: 1}, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	c := s.dial(t)
	ch, reqs, err := c.OpenChannel("session", nil)
	require.NoError(t, err)
	for range 2 {
		_, _, err = c.OpenChannel("session", nil)
		if err != nil { // on a slow machine the first session has ended by now
			require.ErrorContains(t, err, "limits.max_sessions_per_connection")
			require.Equal(t, 1, strings.Count(log.String(), "limits.max_sessions_per_connection"), log.String())
		}
	}
	for range reqs { // until the server has closed it
	}
	_, err = ch.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Contains(t, log.String(), "no command within 100ms (limits.idle_timeout)")
	require.Contains(t, log.String(), `"key":"marie"`)
}

func TestTerminal(t *testing.T) {
	got := make(chan *sshd.Session, 1)
	s := serve(t, sshd.Limits{}, func(ctx context.Context, s *sshd.Session) int {
		b, _ := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%q\n", b)
		got <- s
		return 0
	})
	run := func(set func(*ssh.Session), input string) (string, *sshd.Session) {
		sess, err := s.dial(t).NewSession()
		require.NoError(t, err)
		set(sess)
		sess.Stdin = strings.NewReader(input)
		out, err := sess.Output("x")
		require.NoError(t, err)
		return string(out), <-got
	}
	out, g := run(func(c *ssh.Session) {
		require.NoError(t, c.RequestPty("xterm-256color", 24, 132, nil))
		require.NoError(t, c.Setenv("LANG", "C.UTF-8"))
		require.Error(t, c.Setenv("LD_PRELOAD", "/tmp/x"))
		require.Error(t, c.Setenv("TERM", "a\nb"))
		require.Error(t, c.Setenv("TERM", strings.Repeat("x", 300)))
	}, "ab\r\x04more")
	require.Equal(t, "\"ab\\n\"\r\n", out)
	require.Equal(t, "xterm-256color", g.Terminal.Screen.Name)
	require.Equal(t, terminal.Size{Columns: 132, Rows: 24}, g.Terminal.Screen.Size)
	g.Terminal.Screen = nil
	require.Equal(t, sshd.Terminal{Pty: true, Term: "xterm-256color", Columns: 132, Colour: true}, g.Terminal)
	require.Equal(t, map[string]string{"LANG": "C.UTF-8"}, g.Env)
	_, g = run(func(c *ssh.Session) {
		require.NoError(t, c.RequestPty("dumb", 24, 80, nil))
	}, "")
	require.False(t, g.Terminal.Colour)
	_, g = run(func(c *ssh.Session) {
		require.NoError(t, c.RequestPty("xterm", 24, 80, nil))
		require.NoError(t, c.Setenv("NO_COLOR", "1"))
	}, "\x03")
	require.False(t, g.Terminal.Colour)
	_, g = run(func(c *ssh.Session) { require.NoError(t, c.Setenv("COLUMNS", "90")) }, "")
	require.Equal(t, sshd.Terminal{Columns: 90}, g.Terminal)
}

func TestNothingButSessions(t *testing.T) {
	s := serve(t, sshd.Limits{}, hello)
	c := s.dial(t)
	_, err := c.Dial("tcp", s.addr)
	require.ErrorContains(t, err, "forwarding is not supported")
	_, err = c.Listen("tcp", "127.0.0.1:0")
	require.Error(t, err)
	sess, err := c.NewSession()
	require.NoError(t, err)
	ok, err := sess.SendRequest("auth-agent-req@openssh.com", true, nil)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = sess.SendRequest("x11-req", true, nil)
	require.NoError(t, err)
	require.False(t, ok)
	ok, _, err = c.SendRequest("keepalive@openssh.com", true, nil)
	require.NoError(t, err)
	require.False(t, ok, "an answer, which is all a client wants")
}

func TestShutdownRefusesNewSessions(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := serve(t, sshd.Limits{}, func(ctx context.Context, s *sshd.Session) int {
		close(began)
		<-goOn
		fmt.Fprint(s.Stdout, "done")
		return 3
	})
	c := s.dial(t)
	sess, err := c.NewSession()
	require.NoError(t, err)
	var out bytes.Buffer
	sess.Stdout = &out
	require.NoError(t, sess.Start("x"))
	<-began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool { n, err := net.Dial("tcp", s.addr); _ = n; return err != nil }, 20*time.Second, 5*time.Millisecond)
	late, err := c.NewSession()
	require.NoError(t, err)
	var stderr bytes.Buffer
	late.Stderr = &stderr
	var ee *ssh.ExitError
	require.ErrorAs(t, late.Run("x"), &ee)
	require.Equal(t, fault.Busy.ExitCode(), ee.ExitStatus())
	require.Contains(t, stderr.String(), "try again")
	close(goOn)
	require.ErrorAs(t, sess.Wait(), &ee)
	require.Equal(t, 3, ee.ExitStatus())
	require.Equal(t, "done", out.String())
	require.NoError(t, <-down)
}

func TestHostKey(t *testing.T) {
	f := vfs.OS{}
	path := filepath.Join(t.TempDir(), "state", "key")
	k, made, err := sshd.HostKey(f, path, ssh.KeyAlgoED25519, rand.Reader)
	require.NoError(t, err)
	require.True(t, made)
	again, made, err := sshd.HostKey(f, path, ssh.KeyAlgoED25519, rand.Reader)
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, k.PublicKey().Marshal(), again.PublicKey().Marshal())
	require.Equal(t, ssh.KeyAlgoED25519, k.PublicKey().Type())
	pub, err := os.ReadFile(path + ".pub")
	require.NoError(t, err)
	require.Equal(t, ssh.MarshalAuthorizedKey(k.PublicKey()), pub)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 2, "no temporary file stays")

	other := filepath.Join(filepath.Dir(path), "ecdsa")
	e, made, err := sshd.HostKey(f, other, ssh.KeyAlgoECDSA256, rand.Reader)
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, ssh.KeyAlgoECDSA256, e.PublicKey().Type())
	same, _, err := sshd.HostKey(f, other, ssh.KeyAlgoECDSA256, rand.Reader)
	require.NoError(t, err)
	require.Equal(t, e.PublicKey().Marshal(), same.PublicKey().Marshal())
	_, _, err = sshd.HostKey(f, other, ssh.KeyAlgoED25519, rand.Reader)
	require.ErrorContains(t, err, "a key of type ecdsa-sha2-nistp256, not ssh-ed25519")

	rk, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	rblock, err := ssh.MarshalPrivateKey(rk, "")
	require.NoError(t, err)
	_, ek, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	lblock, err := ssh.MarshalPrivateKeyWithPassphrase(ek, "", []byte("x"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"empty":  {"", 0o600, "it is empty"},
		"torn":   {"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA", 0o600, "not a valid private key"},
		"rsa":    {string(pem.EncodeToMemory(rblock)), 0o600, "a key of type ssh-rsa, not ssh-ed25519"},
		"locked": {string(pem.EncodeToMemory(lblock)), 0o600, "passphrase"},
		"open":   {"x", 0o644, "readable for other users"},
	} {
		p := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(p, []byte(c.text), c.mode))
		require.NoError(t, os.Chmod(p, c.mode))
		_, _, err := sshd.HostKey(f, p, ssh.KeyAlgoED25519, rand.Reader)
		require.ErrorContains(t, err, c.want, name)
		require.NotEmpty(t, fault.HintOf(err))
		after, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Equal(t, c.text, string(after), "never replaced")
	}
}

// A client without ed25519 (JGit without BouncyCastle) finds a key that it supports, and each client uses the one that it was configured
// with.
func TestEveryHostKeyServes(t *testing.T) {
	dir := t.TempDir()
	var keys []ssh.Signer
	for _, kind := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256} {
		k, _, err := sshd.HostKey(vfs.OS{}, filepath.Join(dir, kind), kind, rand.Reader)
		require.NoError(t, err)
		keys = append(keys, k)
	}
	s := serve(t, sshd.Limits{}, hello, func(s *sshd.Server) { s.HostKeys = keys })
	for _, k := range keys {
		conf := s.config(ssh.PublicKeys(s.key))
		conf.HostKeyCallback, conf.HostKeyAlgorithms = ssh.FixedHostKey(k.PublicKey()), []string{k.PublicKey().Type()}
		c, err := ssh.Dial("tcp", s.addr, conf)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestHostKeyRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, _, err := sshd.HostKey(vfs.OS{}, path, ssh.KeyAlgoED25519, rand.Reader)
			if err == nil {
				keys[i] = k.PublicKey().Marshal()
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		require.Equal(t, keys[0], k, "whoever comes first makes it")
	}
}
