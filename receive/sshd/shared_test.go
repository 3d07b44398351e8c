package sshd_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/receive/sshd"
)

// held is a handler whose session "hold" runs until goOn is closed, whose "flood" writes more than a pipe holds, and which prints a greeting in the
// others.
func held(goOn chan struct{}) handler {
	return func(ctx context.Context, s *sshd.Session) int {
		switch s.Command {
		case "hold":
			select {
			case <-goOn:
			case <-ctx.Done():
				return 1
			}
		case "leave":
			<-ctx.Done()
			return 1
		case "flood":
			_, _ = s.Stdout.Write(make([]byte, 1<<20))
		}
		return hello(ctx, s)
	}
}

// Many short sessions on a connection that a long one shares: the timer that disconnects a client that does not close its sessions must not be left
// running by a closed session, or it would cut off the long one.
func TestSharedConnectionIsNotCut(t *testing.T) {
	goOn := make(chan struct{})
	// Longer than a busy machine keeps a client from closing its session, for which it would be disconnected.
	const idle = 3 * time.Second
	// A session that its client has closed counts until its command has ended, which may take a while on a busy machine.
	s := serve(t, sshd.Limits{Idle: idle, Sessions: 4001}, held(goOn))
	c := s.dial(t)
	long, err := c.NewSession()
	require.NoError(t, err)
	var out strings.Builder
	long.Stdout = &out
	require.NoError(t, long.Start("hold"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				sess, err := c.NewSession()
				if err != nil {
					t.Errorf("the connection was cut: %v", err)
					return
				}
				// Every second one is closed by the client before its command has ended.
				if i%2 == 0 {
					_, err = sess.Output("x")
				} else {
					err = errors.Join(sess.Start("leave"), sess.Close())
				}
				if err != nil {
					t.Errorf("the connection was cut: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	// A timer that was left running by the last of them has run out by then.
	time.Sleep(idle + idle/3)
	close(goOn)
	require.NoError(t, long.Wait())
	require.Equal(t, "hello marie", out.String())
}

// A client with a shared connection (ssh_config(5), ControlMaster) closes a session when whoever started it has read its output:  ssh … logs | less
// must not end the push that shares the connection, however long it takes. When the push has ended, the connection is not kept for it.
func TestUnreadOutputDoesNotCutTheOthers(t *testing.T) {
	goOn := make(chan struct{})
	var log lockedBuffer
	s := serve(t, sshd.Limits{Idle: 100 * time.Millisecond, WriteIdle: 100 * time.Millisecond}, held(goOn), func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	// A socket's path is at most 108 bytes long.
	dir, err := os.MkdirTemp("", "cm")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	host, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(s.private, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(block), 0o600))
	client := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "ssh", append([]string{"-F", "none", "-i", filepath.Join(dir, "key"), "-p", port, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ControlPath=" + filepath.Join(dir, "s")}, args...)...)
	}
	push := client("-M", "deploy@"+host, "hold")
	var out strings.Builder
	push.Stdout = &out
	require.NoError(t, push.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "s")); return err == nil }, 20*time.Second, 5*time.Millisecond)
	logs := client("deploy@"+host, "flood")
	unread, err := logs.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, logs.Start())
	// The output has arrived and is not read; the limits are exceeded many times.
	_, err = io.ReadFull(unread, make([]byte, 1))
	require.NoError(t, err)
	time.Sleep(time.Second)
	require.NotContains(t, log.String(), "connection ended")
	close(goOn)
	require.NoError(t, push.Wait())
	require.Equal(t, "hello marie", out.String())
	_, _ = io.Copy(io.Discard, unread)
	_ = logs.Wait()
}

// The attack: two addresses with 128 connections each that print nothing, and that are opened again when they end, take all places for connections
// that have not logged in. Nobody else could log in (0 of 70). Now the source that has the most of them loses one.
func TestSilentConnectionsLockNobodyOut(t *testing.T) {
	s := serve(t, sshd.Limits{}, hello)
	stop := make(chan struct{})
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer close(stop)
	in := make(chan struct{}, 256)
	for i := range 256 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%2))}}
		attackers.Go(func() {
			for first := true; ; first = false {
				c, err := d.Dial("tcp", s.addr)
				if err != nil {
					t.Errorf("attacker: %v", err)
					return
				}
				if first {
					in <- struct{}{}
				}
				gone := make(chan struct{})
				go func() { _, _ = io.Copy(io.Discard, c); close(gone) }()
				select {
				case <-gone:
				case <-stop:
					_ = c.Close()
					return
				}
				_ = c.Close()
			}
		})
	}
	for range 256 {
		<-in
	}
	for i := range 70 {
		c, err := ssh.Dial("tcp", s.addr, s.config(ssh.PublicKeys(s.key)))
		require.NoError(t, err, "login %d", i)
		sess, err := c.NewSession()
		require.NoError(t, err)
		out, err := sess.Output("x")
		require.NoError(t, err)
		require.Equal(t, "hello marie", string(out))
		require.NoError(t, c.Close())
	}
}

// The oldest connection of the source with the most of them is closed, and a source that has as many gets no place at the expense of another.
func TestTheLargestSourceMakesRoom(t *testing.T) {
	var log lockedBuffer
	s := serve(t, sshd.Limits{Unauthenticated: 4}, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	from := func(last byte) net.Conn {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, last)}}).Dial("tcp", s.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
		return c
	}
	first := func(c net.Conn) string {
		b := make([]byte, 11)
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
		return string(b)
	}
	var two []net.Conn
	one := from(3)
	require.Equal(t, "SSH-2.0-cor", first(one))
	for range 3 {
		two = append(two, from(2))
		require.Equal(t, "SSH-2.0-cor", first(two[len(two)-1]))
	}
	require.Equal(t, "corpus-git:", first(from(2)), "the largest source gets no more")
	require.Equal(t, "SSH-2.0-cor", first(from(4)))
	_, err := io.Copy(io.Discard, two[0])
	var ne net.Error
	require.False(t, errors.As(err, &ne) && ne.Timeout(), "its oldest was put out")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "limits.max_unauthenticated") }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, "SSH-2.0-cor", first(from(5)))
	require.Contains(t, first(from(3)), "corpus-git:", "as many as the largest: 2 of 127.0.0.3 would be more than 1 of the others")
}

// A client that does not even begin the key exchange has less time than one whose user has to confirm the host key.
func TestKeyExchangeGrace(t *testing.T) {
	var log lockedBuffer
	s := serve(t, sshd.Limits{KeyExchange: 200 * time.Millisecond, LoginGrace: time.Hour}, hello, func(s *sshd.Server) { s.Log = zerolog.New(&log) })
	asked, answer := make(chan struct{}), make(chan struct{})
	conf := s.config(ssh.PublicKeys(s.key))
	check := conf.HostKeyCallback
	conf.HostKeyCallback = func(h string, a net.Addr, k ssh.PublicKey) error {
		close(asked)
		<-answer
		return check(h, a, k)
	}
	in := make(chan error, 1)
	go func() {
		c, err := ssh.Dial("tcp", s.addr, conf)
		if err == nil {
			_ = c.Close()
		}
		in <- err
	}()
	<-asked
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.Copy(io.Discard, c)
	_ = err // the end, or a reset
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "no key exchange within 200ms (limits.kex_timeout)")
	}, 20*time.Second, 5*time.Millisecond)
	close(answer)
	require.NoError(t, <-in)
}
