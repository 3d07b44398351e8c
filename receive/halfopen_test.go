package receive_test

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/project"
	"corpus-git/receive/sshd"
)

// cable is a way to the server that can be cut: from then on nothing passes in either direction, and neither end is notified. A connection whose
// other end lost power, or whose packets a firewall drops, behaves the same.
type cable struct {
	addr string
	cut  func()
}

func (w *world) cable() *cable {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	gone := make(chan struct{})
	c := &cable{addr: l.Addr().String(), cut: sync.OnceFunc(func() { close(gone) })}
	var mu sync.Mutex
	ends := []io.Closer{l}
	carry := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			select {
			case <-gone:
				return // it was read, and is lost
			default:
			}
			if n > 0 {
				_, _ = to.Write(buf[:n])
			}
			if err != nil {
				_ = to.Close()
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", w.addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			ends = append(ends, client, server)
			mu.Unlock()
			go carry(server, client)
			go carry(client, server)
		}
	}()
	w.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range ends {
			_ = e.Close()
		}
	})
	return c
}

// login opens an SSH connection through a cable.
func (w *world) login(c *cable) *ssh.Client {
	w.t.Helper()
	client, err := ssh.Dial("tcp", c.addr, w.clientConfig("marie"))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// logged waits for a line of the log that has all of these.
func (w *world) logged(want ...string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		for line := range strings.Lines(w.log.String()) {
			all := true
			for _, s := range want {
				all = all && strings.Contains(line, s)
			}
			if all {
				return true
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond, "%q in the log", want)
}

// hurried accepts a victim with its own limits: those that set makes short, and others that are too long to matter. Earlier and later connections
// have the server's limits.
func (w *world) hurried(set func(l *sshd.Limits), come func()) {
	l := sshd.Limits{LoginGrace: time.Hour, Idle: time.Hour, Keepalive: time.Hour, Answer: time.Hour, ReadIdle: time.Hour, WriteIdle: time.Hour}
	set(&l)
	w.server.SetLimits(l)
	come()
	w.server.SetLimits(sshd.Limits{})
}

// Peers that vanish without notice, at any point of a conversation, are detected, disconnected and logged with the limit's key. What they began is
// removed, except a deployment, which continues; a push that runs meanwhile is not affected.
func TestHalfOpenConnections(t *testing.T) {
	w := newWorld(t, func(w *world) { w.server.Log = zerolog.New(w.log) })
	other := w.clone("other", "app/project.git")
	push, release := w.heldPush(other)
	soon := 300 * time.Millisecond

	t.Run("before logging in", func(t *testing.T) {
		c := w.cable()
		w.hurried(func(l *sshd.Limits) { l.LoginGrace = soon }, func() {
			n, err := net.Dial("tcp", c.addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = n.Close() })
			_, err = io.ReadFull(n, make([]byte, 4)) // the server's version
			require.NoError(t, err)
		})
		c.cut()
		w.logged("connection ended", "limits.auth_timeout")
	})
	t.Run("logged in", func(t *testing.T) {
		c := w.cable()
		w.hurried(func(l *sshd.Limits) { l.Idle = soon }, func() { w.login(c) })
		c.cut()
		w.logged("connection ended", "limits.idle_timeout")
	})
	t.Run("in the middle of a pack", func(t *testing.T) {
		head := w.git(other, "rev-parse", "HEAD")
		packer := exec.Command("git", "pack-objects", "--stdout", "--revs", "-q")
		packer.Dir, packer.Stdin = other, strings.NewReader(head+"\n")
		data, err := packer.Output()
		require.NoError(t, err)
		c := w.cable()
		var s *ssh.Session
		w.hurried(func(l *sshd.Limits) { l.Keepalive, l.Answer = soon, 3*time.Second }, func() {
			s, err = w.login(c).NewSession()
			require.NoError(t, err)
		})
		in, err := s.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, s.Start("git-receive-pack 'app/project.git'"))
		_, err = io.WriteString(in, pkt(project.ZeroCommit+" "+head+" refs/heads/main\x00 report-status")+"0000"+string(data[:len(data)/2]))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(w.quarantines("app", project.Code)) == 1 }, time.Minute, 5*time.Millisecond)
		c.cut()
		w.logged("connection ended", "limits.keepalive_timeout")
		require.Eventually(t, func() bool { return len(w.quarantines("app", project.Code)) == 0 }, time.Minute, 5*time.Millisecond)
	})
	release()
	o := <-push
	require.Zero(t, o.exit, o.all())

	t.Run("while its deployment runs", func(t *testing.T) {
		began, release := w.hold()
		before := strings.Count(w.log.String(), "limits.keepalive_timeout")
		c := w.cable()
		head := w.commit(other, "README", "two\n")
		cmd := w.gitCmd("marie", other, "push", strings.Replace(w.url("app/project.git"), w.addr, c.addr, 1), "main")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		for i, e := range cmd.Env {
			if strings.HasPrefix(e, "GIT_SSH_COMMAND=") {
				_, port, err := net.SplitHostPort(c.addr)
				require.NoError(t, err)
				cmd.Env[i] = strings.Replace(e, "'"+w.port+"'", "'"+port+"' '-o' 'HostKeyAlias=["+w.host+"]:"+w.port+"'", 1)
			}
		}
		var said bytes.Buffer
		cmd.Stderr = &said
		ended := make(chan struct{})
		w.hurried(func(l *sshd.Limits) { l.Keepalive, l.Answer = soon, 3*time.Second }, func() {
			require.NoError(t, cmd.Start())
			go func() { defer close(ended); _ = cmd.Wait() }()
			select {
			case <-began:
			case <-ended:
				require.Fail(t, "the push came to no deployment", said.String())
			}
		})
		// Its ssh would wait forever, too.
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); <-ended }()
		c.cut()
		require.Eventually(t, func() bool { return strings.Count(w.log.String(), "limits.keepalive_timeout") > before }, time.Minute, 5*time.Millisecond)
		require.NotEqual(t, head, w.remoteRefs(other)["refs/heads/main"])
		release()
		require.Eventually(t, func() bool { return w.remoteRefs(other)["refs/heads/main"] == head }, time.Minute, 20*time.Millisecond, "it went live without its client")
		w.deployer.set(live)
	})
}

// A client that requests much and reads nothing, but answers keepalives, is disconnected, with a line in the log; a push that runs meanwhile is not
// affected, and clients that keep reading are served.
func TestClientThatDoesNotRead(t *testing.T) {
	w := newWorld(t, func(w *world) { w.server.Log = zerolog.New(w.log) })
	dir := w.clone("a", "app/project.git")
	noise := make([]byte, 8<<20) // more than the window of an SSH channel
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	head := w.commit(dir, "noise", string(noise))
	o := w.push("marie", dir, "prod", "main")
	require.Zero(t, o.exit, o.all())
	w.commit(dir, "README", "two\n")
	push, release := w.heldPush(dir)

	for name, key := range map[string]func(*sshd.Limits){
		"limits.write_timeout":     func(l *sshd.Limits) { l.WriteIdle = 500 * time.Millisecond },
		"limits.keepalive_timeout": func(l *sshd.Limits) { l.Keepalive, l.Answer = 100*time.Millisecond, 3*time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			c := w.cable()
			var ch ssh.Channel
			var reqs <-chan *ssh.Request
			var err error
			w.hurried(key, func() {
				ch, reqs, err = w.login(c).OpenChannel("session", nil)
				require.NoError(t, err)
			})
			go ssh.DiscardRequests(reqs)
			_, err = ch.SendRequest("exec", true, ssh.Marshal(struct{ S string }{"git-upload-pack 'app/project.git'"}))
			require.NoError(t, err)
			_, err = io.WriteString(ch, pkt("want "+head+" ofs-delta\n")+"0000"+pkt("done\n"))
			require.NoError(t, err)
			// The beginning of the answer, and no more.
			_, err = io.ReadFull(ch, make([]byte, 4))
			require.NoError(t, err)
			if name == "limits.keepalive_timeout" {
				c.cut()
			}
			w.logged("ended", name)
		})
	}
	require.Equal(t, head, w.remoteRefs(dir)["refs/heads/main"], "others are served")
	w.git(dir, "clone", "-q", w.url("app/project.git"), w.path("clone"))
	release()
	o = <-push
	require.Zero(t, o.exit, o.all())
	w.logged("session ended", `"key":"marie"`)
}

// A session that waits too long for input is logged.
func TestSilentSessionIsLogged(t *testing.T) {
	w := newWorld(t, func(w *world) { w.server.Log = zerolog.New(w.log) })
	dir := w.clone("a", "app/project.git")
	push, release := w.heldPush(dir)
	var s *ssh.Session
	var err error
	w.hurried(func(l *sshd.Limits) { l.ReadIdle = 300 * time.Millisecond }, func() {
		s, err = w.login(&cable{addr: w.addr}).NewSession()
		require.NoError(t, err)
	})
	_, err = s.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start("git-receive-pack 'app/project.git'"))
	w.logged("session ended", "limits.read_timeout")
	require.Error(t, s.Wait())
	release()
	o := <-push
	require.Zero(t, o.exit, o.all())
}
