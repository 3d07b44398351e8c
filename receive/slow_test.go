package receive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"corpus-git/project"
	"corpus-git/receive/sshd"
)

// dial opens a bare connection.
func (w *world) dial() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// closed waits until the server has closed the connection, and returns what it sent before.
func closed(t *testing.T, c net.Conn) string {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	said, err := io.ReadAll(c)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the server holds on to it")
	return string(said)
}

// Clients that connect and then send nothing, or not enough, are disconnected after a while: before a version, in the middle of one,
// after it, in the key exchange, before a key is offered. Meanwhile a push runs unaffected.
func TestSlowLoris(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.server.Limits = sshd.Limits{LoginGrace: 5 * time.Second, Idle: 5 * time.Second}
		w.server.Log = zerolog.New(w.log).Level(zerolog.DebugLevel)
	})
	dir := w.clone("a", "app/project.git")
	push, release := w.heldPush(dir)

	kex := append([]byte{0, 0, 1, 0, 4, 20}, make([]byte, 30)...) // the length of a KEXINIT, and an eighth of it
	conns := map[string]net.Conn{}
	for story, bytes := range map[string]string{
		"not a byte":                 "",
		"half a version":             "SSH-2.0-Open",
		"a version and nothing more": "SSH-2.0-OpenSSH_9.2\r\n",
		"half a key exchange":        "SSH-2.0-OpenSSH_9.2\r\n" + string(kex),
		"another protocol":           "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a line without an end":      strings.Repeat("x", 4096),
	} {
		c := w.dial()
		_, err := io.WriteString(c, bytes)
		require.NoError(t, err)
		conns[story] = c
	}
	// A client that sends one byte at a time: the login deadline covers all of them.
	drip := w.dial()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := drip.Write([]byte("S")); err != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	conns["a byte at a time"] = drip
	// A client that completes the key exchange and never logs in, and one that logged in and opens no session.
	asking := make(chan struct{})
	go func() {
		c, err := net.Dial("tcp", w.addr)
		if err == nil {
			defer c.Close()
			_, _, _, _ = ssh.NewClientConn(c, w.addr, &ssh.ClientConfig{User: "deploy", HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // a test's own server
				Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
					<-asking
					return nil, errors.New("never")
				})}})
		}
	}()
	idle := w.dial()
	ic, chans, reqs, err := ssh.NewClientConn(idle, w.addr, w.clientConfig("marie"))
	require.NoError(t, err)
	go ssh.DiscardRequests(reqs)
	go func() {
		for ch := range chans {
			_ = ch.Reject(ssh.Prohibited, "")
		}
	}()
	for story, c := range conns {
		t.Run(story, func(t *testing.T) { closed(t, c) })
	}
	require.Error(t, ic.Wait(), "no session within the time for one")
	close(stop)
	wg.Wait()
	close(asking)
	release()
	o := <-push
	require.Zero(t, o.exit, o.all())
	require.Contains(t, w.log.String(), "connection failed")
}

func (w *world) clientConfig(key string) *ssh.ClientConfig {
	w.t.Helper()
	return &ssh.ClientConfig{User: "deploy", HostKeyCallback: ssh.FixedHostKey(w.hostKey.PublicKey()), Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer(key))}}
}

// signer is a key of newKey or writeKey.
func (w *world) signer(key string) ssh.Signer {
	w.t.Helper()
	text, err := os.ReadFile(w.path("key-" + key))
	require.NoError(w.t, err)
	s, err := ssh.ParsePrivateKey(text)
	require.NoError(w.t, err)
	return s
}

// A pack that arrives a byte at a time is accepted; one that stops arriving is abandoned, and leaves nothing behind.
func TestSlowPack(t *testing.T) {
	w := newWorld(t, func(w *world) { w.server.Limits = sshd.Limits{ReadIdle: 5 * time.Second} })
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	packer := exec.Command("git", "pack-objects", "--stdout", "--revs", "-q")
	packer.Dir, packer.Stdin = dir, strings.NewReader(head+"\n")
	data, err := packer.Output()
	require.NoError(t, err)
	session := func() (*ssh.Session, io.WriteCloser, *strings.Builder) {
		c, err := ssh.Dial("tcp", w.addr, w.clientConfig("marie"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		s, err := c.NewSession()
		require.NoError(t, err)
		var out strings.Builder
		s.Stdout, s.Stderr = &out, io.Discard
		in, err := s.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, s.Start("git-receive-pack 'app/project.git'"))
		_, err = io.WriteString(in, pkt(project.ZeroCommit+" "+head+" refs/heads/main\x00 report-status")+"0000")
		require.NoError(t, err)
		return s, in, &out
	}
	stopped, in, _ := session()
	_, err = in.Write(data[:len(data)/2])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(w.quarantines("app", project.Code)) == 1 }, time.Minute, 5*time.Millisecond)

	slow, sin, out := session()
	for _, b := range data {
		_, err := sin.Write([]byte{b})
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, slow.Wait())
	require.Contains(t, out.String(), "ok refs/heads/main")

	require.Error(t, stopped.Wait(), "the session was ended without a status, or with a bad one")
	require.Eventually(t, func() bool { return len(w.quarantines("app", project.Code)) == 0 }, time.Minute, 5*time.Millisecond)
	require.Equal(t, head, w.remoteRefs(dir)["refs/heads/main"])
	require.Len(t, w.deployer.started(), 1)
}

// A thousand connections that do nothing: those over the limits are told so and disconnected, and a pusher is served.
func TestManyIdleConnections(t *testing.T) {
	const many = 1000
	// Both ends of each are in this process.
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	if files.Max < 2*many+500 {
		t.Skipf("this needs %d open files, and %d are allowed", 2*many+500, files.Max)
	}
	files.Cur = max(files.Cur, 2*many+500)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &files))
	w := newWorld(t, func(w *world) {
		w.server.Limits = sshd.Limits{Connections: 2 * many, PerSource: 2 * many, Unauthenticated: many + 40, UnauthenticatedPerSource: many, LoginGrace: time.Minute, KeyExchange: time.Minute}
		w.server.Log = zerolog.New(w.log)
	})
	dir := w.clone("a", "app/project.git")
	push, release := w.heldPush(dir)
	var idle []net.Conn
	for range many {
		c := w.dial()
		// The server's version shows that the connection was accepted.
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		b := make([]byte, 4)
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
		require.Equal(t, "SSH-", string(b))
		idle = append(idle, c)
	}
	for range 50 {
		require.Contains(t, closed(t, w.dial()), "too many connections from your address that have not logged in: 1000 (limits.max_unauthenticated_per_source), try again later")
	}
	release()
	o := <-push
	require.Zero(t, o.exit, o.all())
	require.Equal(t, 1, strings.Count(w.log.String(), `"level":"warn"`), "one line for fifty that were turned away: %s", w.log)
	// When they disconnect, others are accepted.
	for _, c := range idle {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return w.push("marie", dir, "prod", "HEAD:refs/deploy/now").exit == 0 }, time.Minute, 20*time.Millisecond)
}

// Somebody tries keys. After some attempts the source is refused, with one line in the log and in the audit log for many attempts; a
// running push from the same source is not disturbed, and after the penalty the source is accepted again.
func TestKeyGuessing(t *testing.T) {
	start := time.Now()
	var later atomic.Int64
	w := newWorld(t, func(w *world) {
		w.server.Now = func() time.Time { return start.Add(time.Duration(later.Load())) }
		w.server.Limits = sshd.Limits{Failures: 5, Penalty: time.Minute, AuthTries: 3}
		w.server.Log = zerolog.New(w.log)
	})
	dir := w.clone("a", "app/project.git")
	push, release := w.heldPush(dir)
	var guesses []ssh.Signer
	for i := range 10 {
		w.writeKey(fmt.Sprint("guess", i))
		guesses = append(guesses, w.signer(fmt.Sprint("guess", i)))
	}
	turned := false
	for range 20 {
		_, err := ssh.Dial("tcp", w.addr, &ssh.ClientConfig{User: "root", HostKeyCallback: ssh.FixedHostKey(w.hostKey.PublicKey()), Auth: []ssh.AuthMethod{ssh.PublicKeys(guesses...)}})
		require.Error(t, err, "never logged in")
		if turned = strings.Contains(w.log.String(), "too many failed logins"); turned {
			break
		}
	}
	require.True(t, turned, "the source is turned away")
	release()
	o := <-push
	require.Zero(t, o.exit, o.all())
	es, err := w.audit.List(context.Background(), "", 100)
	require.NoError(t, err)
	logins := 0
	for _, e := range es {
		if e.Action == "login" {
			logins++
			require.Equal(t, "refused", e.Outcome)
			require.Equal(t, "'root'", e.Object)
		}
	}
	require.Equal(t, 1, logins, "told once within a penalty, not once for each try")
	require.NotZero(t, w.push("marie", dir, "prod", "HEAD:refs/deploy/now").exit)
	later.Store(int64(time.Minute))
	o = w.push("marie", dir, "prod", "HEAD:refs/deploy/now")
	require.Zero(t, o.exit, o.all())
}

// heldPush starts a push whose deployment waits for release; its outcome is sent on the channel.
func (w *world) heldPush(dir string) (push <-chan outcome, release func()) {
	began, release := w.hold()
	ended := make(chan outcome, 1)
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	go func() { ended <- finish(w.t, cmd) }()
	<-began
	return ended, release
}
