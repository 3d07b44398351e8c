package receive_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/receive"
)

func TestNoRightNoKnowledge(t *testing.T) {
	w := newWorld(t)
	w.addProject("secret")
	dir := w.clone("a", "app/project.git")
	texts := map[string]bool{}
	for _, name := range []string{"secret", "nothing"} {
		for _, repo := range []string{"project", "pillar"} {
			for _, verb := range [][]string{{"push", w.url(name + "/" + repo + ".git"), "main"}, {"ls-remote", w.url(name + "/" + repo + ".git")}} {
				o := finish(t, w.gitCmd("marie", dir, verb...))
				require.NotZero(t, o.exit)
				require.Contains(t, o.err, "fatal: remote error: no project "+name+", or marie has no permission on it")
				texts[strings.ReplaceAll(o.err, name, "X")] = true
			}
		}
	}
	require.Len(t, texts, 1, "one answer for all")
	// The response time revealed whether a project was unknown or forbidden, because the settings of the latter were read: now
	// neither is looked up.
	w.projects.mu.Lock()
	require.Empty(t, w.projects.looked)
	w.projects.mu.Unlock()
	es, err := w.audit.List(context.Background(), "secret", 10)
	require.NoError(t, err)
	require.Len(t, es, 4)
	require.Equal(t, "refused", es[0].Outcome)
	require.Empty(t, w.deployer.started())
}

func TestRights(t *testing.T) {
	w := newWorld(t)
	w.newKey("reader", false)
	require.NoError(t, w.keys.Grant(context.Background(), access.Local("root"), "app", "reader", project.Read))
	dir := w.clone("a", "app/project.git")
	require.Zero(t, w.push("marie", dir, "prod", "main").exit)
	require.Zero(t, finish(t, w.gitCmd("reader", dir, "ls-remote", "prod")).exit)
	w.commit(dir, "README", "two\n")
	o := w.push("reader", dir, "prod", "main")
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, `reader may not push to project.git of app: it requires deploy permission`)
	o = finish(t, w.gitCmd("reader", dir, "ls-remote", w.url("app/pillar.git")))
	require.NotZero(t, o.exit, "reading the code is not reading the pillar")
	o = finish(t, w.gitCmd("marie", dir, "ls-remote", w.url("../../etc")))
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, "is not a repository path")
	w.projects.set("app", receive.Settings{RemoteLess: true})
	o = w.push("marie", dir, "prod", "main")
	require.Contains(t, o.err, "app has no remotes: it is deployed by hand")
}

func TestWrongKey(t *testing.T) {
	w := newWorld(t)
	w.writeKey("stranger")
	dir := w.clone("a", "app/project.git")
	o := w.push("stranger", dir, "prod", "main")
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, "Permission denied (publickey)")
	require.Eventually(t, func() bool {
		es, err := w.audit.List(context.Background(), "", 10)
		require.NoError(t, err)
		for _, e := range es {
			if e.Action == "login" {
				return e.Outcome == "refused" && strings.HasPrefix(e.Fingerprint, "SHA256:") && e.Object == "'deploy'"
			}
		}
		return false
	}, 10*time.Second, 10*time.Millisecond)
}

// The library tells a server of every key that a client offers. A client that offers the administrator's public key, for
// which it has no private one, and then logs in with its own, must not become the administrator (CVE-2024-45337).
func TestOfferedKeyIsNotIdentity(t *testing.T) {
	w := newWorld(t)
	public := w.path("only-public.pub")
	text, err := os.ReadFile(w.path("key-boss.pub"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(public, text, 0o600))
	cmd := w.ssh("marie")
	cmd.Args = append([]string{"ssh", "-v", "-i", public}, cmd.Args[1:]...)
	o := finish(t, cmd)
	require.Zero(t, o.exit, o.all())
	require.Regexp(t, `(?s)Server accepts key.*only-public.*Server accepts key.*key-marie`, o.err, "both keys were offered and accepted")
	require.Contains(t, o.out, "Hello marie ")
}

func TestCommands(t *testing.T) {
	w := newWorld(t)
	o := finish(t, w.ssh("marie", "echo", "a", "'b c'", "\"d'e\"", `f\ g`))
	require.Zero(t, o.exit, o.all())
	require.Equal(t, `["a" "b c" "d'e" "f g"] colour=false columns=0`+"\n", o.out)
	o = finish(t, w.ssh("marie", "nonsense"))
	require.Equal(t, 2, o.exit)
	require.Contains(t, o.err, "unknown command")
	o = finish(t, w.ssh("marie", "echo a; rm -rf /"))
	require.Equal(t, 2, o.exit)
	require.Contains(t, o.err, "commands are not run by a shell")
	o = finish(t, w.ssh("marie", "boom"))
	require.Equal(t, 70, o.exit)
	require.NotContains(t, o.err, "goroutine")
	o = finish(t, w.ssh("marie"))
	require.Zero(t, o.exit)
	require.Equal(t, "Hello marie pty=false term=\n", o.out)
	cmd := w.ssh("marie", "cat")
	cmd.Stdin = strings.NewReader(strings.Repeat("0123456789abcdef", 1<<16))
	o = finish(t, cmd)
	require.Zero(t, o.exit)
	require.Len(t, o.out, 1<<20)
	cmd = w.ssh("marie", "echo")
	cmd.Env = append(cmd.Env, "CORPUS_COLOR=always")
	require.Contains(t, finish(t, cmd).out, "colour=true")
	cmd = w.ssh("marie")
	cmd.Args = append([]string{"ssh", "-tt"}, cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	o = finish(t, cmd)
	require.Equal(t, "Hello marie pty=true term=xterm\r\n", o.out)
}

// Some clients are configured with the path of git's programs on the server, as sshd needs it, and some users try to open a
// shell.
func TestProgramsByTheirPath(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := finish(t, w.gitCmd("marie", dir, "push", "--receive-pack=/usr/lib/git-core/git-receive-pack", "prod", "main"))
	require.Zero(t, o.exit, o.all())
	for _, program := range []string{"/usr/bin/git-upload-pack", "/opt/git/bin/git upload-pack"} {
		o = finish(t, w.gitCmd("marie", dir, "ls-remote", "--upload-pack="+program, "prod"))
		require.Zero(t, o.exit, o.all())
		require.Contains(t, o.out, "refs/heads/main")
	}
	for _, command := range []string{"sh -c id", "/bin/bash -l", "sudo id"} {
		o = finish(t, w.ssh("marie", command))
		require.Equal(t, 3, o.exit, command)
		require.Equal(t, "error: this server has no shell: cannot run "+command+"\n"+
			"hint: use git and the commands listed by  help ; for a shell, log in to the machine's own ssh server\n", o.err)
	}
}

func TestNothingElse(t *testing.T) {
	w := newWorld(t)
	cmd := w.ssh("marie", "sftp")
	cmd.Args = append([]string{"ssh", "-s"}, cmd.Args[1:]...)
	o := finish(t, cmd)
	require.Equal(t, 3, o.exit)
	require.Contains(t, o.err, "not sftp, scp or a shell")
	o = finish(t, w.ssh("marie", "scp", "-t", "."))
	require.Equal(t, 3, o.exit)
	cmd = w.ssh("marie")
	cmd.Args = append([]string{"ssh", "-W", "127.0.0.1:" + w.port}, cmd.Args[1:]...)
	o = finish(t, cmd)
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, "forwarding is not supported")
	cmd = w.ssh("marie", "echo")
	cmd.Args = append([]string{"ssh", "-R", "0:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes"}, cmd.Args[1:]...)
	require.NotZero(t, finish(t, cmd).exit)
	o = finish(t, w.ssh("marie", "git-receive-pack"))
	require.Equal(t, 2, o.exit)
	require.Contains(t, o.all(), "takes one path", "as an ERR line, which a git client shows")
	cmd = w.ssh("marie", "git-upload-pack", "app")
	cmd.Args = append([]string{"ssh", "-tt"}, cmd.Args[1:]...)
	o = finish(t, cmd)
	require.Contains(t, o.all(), "without a terminal")
}

// hold makes deployments wait until they are released; the end of the test releases them, too.
func (w *world) hold() (began chan struct{}, release func()) {
	began, goOn := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(goOn) })
	w.t.Cleanup(release)
	start := sync.OnceFunc(func() { close(began) })
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		log.Append(event.Event{Kind: event.ProcedureStart, Procedure: "install", Text: "1 step"})
		start()
		<-goOn
		return live(d, log)
	})
	return began, release
}

func TestClientKilled(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	began, release := w.hold()
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	<-began
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	// The session notices; the deployment does not.
	require.Eventually(t, func() bool { return strings.Contains(w.log.String(), "the client disconnected") }, 20*time.Second, 10*time.Millisecond)
	release()
	require.Eventually(t, func() bool { return w.remoteRefs(dir)["refs/heads/main"] == head }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return len(w.quarantines("app", project.Code)) == 0 }, 20*time.Second, 10*time.Millisecond)
}

// Behind a master connection a client's end closes its channel and nothing else: the session must still end.
func TestMultiplexedClientInterrupted(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	// A socket's path is at most 108 bytes long.
	sock, err := os.MkdirTemp("", "cm")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(sock)) })
	control := []string{"-o", "ControlPath=" + filepath.Join(sock, "s")}
	master := w.ssh("marie")
	master.Args = append(append([]string{"ssh", "-M", "-N"}, control...), master.Args[1:]...)
	require.NoError(t, master.Start())
	defer func() { _ = master.Process.Kill(); _ = master.Wait() }()
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(sock, "s")); return err == nil }, 20*time.Second, 10*time.Millisecond)

	began, release := w.hold()
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	for i, e := range cmd.Env {
		if strings.HasPrefix(e, "GIT_SSH_COMMAND=") {
			cmd.Env[i] = e + " " + strings.Join(control, " ")
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	<-began
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return strings.Contains(w.log.String(), "the client disconnected") }, 20*time.Second, 10*time.Millisecond)
	again := w.ssh("marie", "echo", "still here")
	again.Args = append(append([]string{"ssh"}, control...), again.Args[1:]...)
	require.Contains(t, finish(t, again).out, `["still" "here"]`, "the master lives on")
	release()
	require.Eventually(t, func() bool { return w.remoteRefs(dir)["refs/heads/main"] == head }, 20*time.Second, 20*time.Millisecond)
}

func TestSilenceIsFilled(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.service.Keepalive = 20 * time.Millisecond
		w.service.ProgressAfter = 50 * time.Millisecond
	})
	dir := w.clone("a", "app/project.git")
	began, release := w.hold()
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	cmd.Env = append(cmd.Env, "GIT_TRACE_PACKET="+w.path("trace"))
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	<-began
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "still in install") {
		n, err := pipe.Read(buf)
		require.NoError(t, err, seen.String())
		seen.Write(buf[:n])
	}
	release()
	rest, err := io.ReadAll(pipe)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), seen.String()+string(rest))
	trace, err := os.ReadFile(w.path("trace"))
	require.NoError(t, err)
	require.Contains(t, string(trace), "sideband< \\1", "empty packets on band 1")
}

func TestNoSideBand(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	raw := func(caps, ref string, pack []byte) (out, errs string) {
		cmd := w.ssh("marie", "git-receive-pack 'app/project.git'")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Start())
		line := project.ZeroCommit + " " + head + " " + ref + "\x00" + caps
		_, err = io.WriteString(in, pkt(line)+"0000")
		require.NoError(t, err)
		_, err = in.Write(pack)
		require.NoError(t, err)
		// Not closed before the end: the end of a pack is its trailer.
		_ = cmd.Wait()
		return stdout.String(), stderr.String()
	}
	packer := exec.Command("git", "pack-objects", "--stdout", "--revs", "-q")
	packer.Dir, packer.Stdin = dir, strings.NewReader(head+"\n")
	pack, err := packer.Output()
	require.NoError(t, err)
	out, errs := raw(" report-status", "refs/heads/master", pack)
	require.Contains(t, out, "000eunpack ok\n0019ok refs/heads/master\n0000")
	require.Contains(t, errs, "=====> live", "progress goes to standard error")
	require.Equal(t, head, w.remoteRefs(dir)["refs/heads/master"])
	out, errs = raw(" report-status", "refs/heads/master", pack)
	require.Contains(t, out, "ng refs/heads/master is at this commit already")
	require.Contains(t, errs, "another push of this commit has ended meanwhile")
	out, errs = raw(" report-status side-band-64k", "refs/heads/x", pack[:len(pack)-3])
	require.Contains(t, out+errs, "is not the deployed branch")
}

func pkt(s string) string {
	const hex = "0123456789abcdef"
	n := len(s) + 4
	return string([]byte{hex[n>>12&15], hex[n>>8&15], hex[n>>4&15], hex[n&15]}) + s
}

func TestDamagedPack(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	packer := exec.Command("git", "pack-objects", "--stdout", "--revs", "-q")
	packer.Dir, packer.Stdin = dir, strings.NewReader(head+"\n")
	pack, err := packer.Output()
	require.NoError(t, err)
	flipped := append([]byte(nil), pack...)
	flipped[len(flipped)/2] ^= 0x40
	for name, data := range map[string][]byte{"cut": pack[:len(pack)-30], "flipped": flipped, "none": nil, "text": []byte("hello")} {
		cmd := w.ssh("marie", "git-receive-pack 'app/project.git'")
		cmd.Stdin = strings.NewReader(pkt(project.ZeroCommit+" "+head+" refs/heads/master\x00 report-status") + "0000" + string(data))
		o := finish(t, cmd)
		require.Zero(t, o.exit, name)
		require.NotContains(t, o.out, "unpack ok", name)
		require.Contains(t, o.out, "ng refs/heads/master unpacker error", name)
	}
	require.Empty(t, w.deployer.started())
	require.Empty(t, w.quarantines("app", project.Code))
	require.Empty(t, w.remoteRefs(dir))
}

func TestShutdown(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	began, release := w.hold()
	done := make(chan outcome, 1)
	cmd := w.gitCmd("marie", dir, "push", "prod", "main")
	go func() { done <- finish(t, cmd) }()
	<-began
	// An existing connection: new sessions on it are refused, in git's own words to git.
	sock, err := os.MkdirTemp("", "sock") // a socket's path must be short
	require.NoError(t, err)
	defer os.RemoveAll(sock)
	socket := filepath.Join(sock, "s")
	defer func() { _ = w.ssh("marie", "-S", socket, "-O", "exit").Run() }() // where the server has not closed it
	require.NoError(t, w.ssh("marie", "-M", "-S", socket, "-f", "-N").Run())
	down := make(chan error, 1)
	go func() { down <- w.server.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", w.addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, 20*time.Second, 10*time.Millisecond, "nobody listens any more")
	select {
	case err := <-down:
		t.Fatalf("shut down while a session ran: %v", err)
	default:
	}
	for _, args := range [][]string{{"ls-remote", "prod"}, {"push", "prod", "main:other"}} {
		late := w.gitCmd("marie", dir, args...)
		late.Env = append(late.Env, "GIT_SSH_COMMAND=ssh -S "+socket)
		require.Equal(t, "fatal: remote error: the server is shutting down\nhint: try again in a minute\n", finish(t, late).err)
	}
	release()
	o := <-done
	require.Zero(t, o.exit, o.all())
	require.NoError(t, <-down)
}

// A stopped client reads nothing more. The deployment that it started does not wait for it.
func TestStoppedClientHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	head := w.git(dir, "rev-parse", "HEAD")
	began, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	w.deployer.set(func(d project.Deployment, log *event.Log) project.Result {
		log.Append(event.Event{Kind: event.ProcedureStart, Procedure: "install", Text: "1 step"})
		close(began)
		<-goOn
		for range 5000 { // more than every window and buffer on the way holds
			log.Append(event.Event{Kind: event.Output, Text: strings.Repeat("x", 1000)})
		}
		return live(d, log)
	})
	cmd := w.gitCmd("marie", dir, "push", "-o", "verbose", "prod", "main")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	<-began
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
	release()
	<-w.deployer.run(w.deployer.ids()[0]).done
	require.Equal(t, head, w.remoteRefs(dir)["refs/heads/main"])
	w.deployer.set(live)
	o := w.push("marie", dir, "prod", "HEAD:refs/deploy/now")
	require.Zero(t, o.exit, "others are served: %s", o.all())
}

func TestSignedAndMirror(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("a", "app/project.git")
	o := w.push("marie", dir, "--signed=true", "prod", "main")
	require.NotZero(t, o.exit)
	require.Contains(t, o.err, "does not support --signed push")
	w.git(dir, "tag", "v1")
	w.git(dir, "branch", "topic")
	o = w.push("marie", dir, "--mirror", "prod")
	require.Equal(t, 1, o.exit, o.all())
	require.Contains(t, o.err, "topic is not the deployed branch")
	refs := w.remoteRefs(dir)
	require.Contains(t, refs, "refs/heads/main")
	require.Contains(t, refs, "refs/tags/v1")
	require.NotContains(t, refs, "refs/heads/topic")
}
