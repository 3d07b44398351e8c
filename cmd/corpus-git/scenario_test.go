package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/testutil"
)

// The scenarios under testdata/script run the real program with real git and ssh clients. Beside
// testscript's own commands they know:
//
//	serve [ARG...]       start a server on a free port; $ADDR, $PORT, $REMOTE (ssh://…/) and $SERVER_PID are set
//	recovered            wait until nothing runs in any project: what a crash left is ended in the background
//	halt [-9]            end it: SIGTERM and wait, or SIGKILL; $WORK/server.stderr gets what it wrote on standard error
//	manifest FILE DIR    write every entry of DIR with type, mode, size, mtime, link and content hash
//	await FILE [TEXT]    wait until FILE exists (and holds TEXT)
//	removes-accounts P   when the scenario ends, remove the user and the group that project P got
//	git-http DIR         serve the repositories below DIR on $HTTP; see submodule_test.go
//	service-manager FILE  take what servers tell a service manager; see systemd_test.go
//	web-hook FILE        take notifications on $HOOK; see webhook_test.go
//	sshd                 start an OpenSSH server that lets us in; $NODE are the options and the host; see remote_test.go
//	slapd FILE|start|stop  an OpenLDAP server with what FILE holds, on $LDAP; see ldap_test.go
//	broker start|stop [HUB]  the NATS server of $ROOT, at $NATS, or of the further hub in $WORK/HUB; see nats_test.go
//	broker address HUB   set $HUB_SSH, $HUB_NATS and $HUB_ROUTE to addresses on which nothing listens
//	visitors start|stop  ask an address 50 times a second, and want every answer; see downtime_test.go
//	small-disk DIR MB    mount a new ext4 of that size (condition: loop)
//
// and those of interop_test.go.

// The scenarios wait for processes and for the disk more than they compute; -parallel on the command line still has its say.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"corpus-git": crashable, "socket-holder": socketHolder, "nats-server": natsServer})
}

func TestScenarios(t *testing.T) {
	for _, prog := range []string{"git", "ssh"} {
		if _, err := exec.LookPath(prog); err != nil {
			t.Fatalf("the scenarios need %s: %v", prog, err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setupScenario,
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "loop":
				return loopMounts(), nil
			case "sshd":
				return hasSSHD()
			case "slapd":
				return hasSlapd()
			}
			if holds, known, err := interopCondition(cond); known {
				return holds, err
			}
			return false, fmt.Errorf("unknown condition %s", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": cmdServe,
			"halt":  cmdHalt,

			"recovered": cmdRecovered,
			"manifest":  cmdManifest,
			"await":     cmdAwait,
			"visit":     cmdVisit,
			"visitors":  cmdVisitors,

			"removes-accounts": cmdRemovesAccounts,
			"small-disk":       cmdSmallDisk,

			"git-http": cmdGitHTTP,
			"web-hook": cmdWebHook,

			"api":       cmdAPI,
			"api-reads": cmdAPIReads,

			"service-manager": cmdServiceManager,
			"sshd":            cmdSSHD,
			"slapd":           cmdSlapd,
			"broker":          cmdBroker,

			"same-history": cmdSameHistory,
			"python":       cmdPython,
			"jgit":         cmdJGit,
		},
	})
}

// setupScenario gives each scenario a home of its own: three keys, an ssh client that knows only them, a git identity.
func setupScenario(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		return err
	}
	// A step may run as another user, who has to get there.
	if os.Geteuid() == 0 {
		for _, dir := range []string{env.WorkDir, filepath.Dir(env.WorkDir)} {
			if err := os.Chmod(dir, 0o711); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"dev", "ci", "stranger"} {
		if err := writeKey(filepath.Join(home, ".ssh", name), name); err != nil {
			return err
		}
	}
	sshLine := func(key string) string {
		return fmt.Sprintf("ssh -F none -i %s/.ssh/%s -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=%s/.ssh/known_hosts -o LogLevel=ERROR", home, key, home)
	}
	gitconfig := "[user]\n\tname = Marie\n\temail = marie@example.org\n[init]\n\tdefaultBranch = master\n[push]\n\tdefault = simple\n[advice]\n\tpushUpdateRejected = false\n[gc]\n\tauto = 0\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o600); err != nil {
		return err
	}
	// What testscript put in front, and the system's: a person's own folders change what is found, and what a shell says where one cannot be read.
	bin, _, _ := strings.Cut(env.Getenv("PATH"), ":")
	for k, v := range map[string]string{
		"PATH":                bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL":              "C.UTF-8",
		"HOME":                home,
		"USER":                "marie",
		"LOGNAME":             "marie",
		"ROOT":                filepath.Join(env.WorkDir, "srv"),
		"GIT_SSH_COMMAND":     sshLine("dev"),
		"SSH_CI":              sshLine("ci"),
		"SSH_STRANGER":        sshLine("stranger"),
		"GIT_CONFIG_NOSYSTEM": "1",
		"GIT_TERMINAL_PROMPT": "0",
		"GIT_AUTHOR_DATE":     "2026-01-02T03:04:05Z",
		"GIT_COMMITTER_DATE":  "2026-01-02T03:04:05Z",
		"CORPUS_GIT_ROOT":     filepath.Join(env.WorkDir, "srv"),
		"TZ":                  "UTC",
		// The machine's users are left alone; root.txtar turns this on.
		"CORPUS_GIT_ACCOUNTS": "off",
	} {
		env.Setenv(k, v)
	}
	if err := interopSetup(env); err != nil {
		return err
	}
	env.Values[serverKey{}] = &server{}
	env.Values[slapdKey{}] = &testutil.Slapd{}
	env.Values[visitorsKey{}] = map[string]*visitors{}
	env.Values[brokerKey{}] = map[string]*exec.Cmd{}
	env.Defer(func() {
		if s := env.Values[serverKey{}].(*server); s.cmd != nil {
			_ = s.end(syscall.SIGKILL)
		}
		for _, c := range env.Values[brokerKey{}].(map[string]*exec.Cmd) {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return nil
}

func writeKey(path, name string) error {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, name)
	if err != nil {
		return err
	}
	spub, err := ssh.NewPublicKey(pub)
	if err != nil {
		return err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(spub))) + " " + name + "\n"
	return errors.Join(os.WriteFile(path, pem.EncodeToMemory(block), 0o600), os.WriteFile(path+".pub", []byte(line), 0o644))
}

type serverKey struct{}

// server is the one server of a scenario.
type server struct {
	cmd    *exec.Cmd
	done   chan error
	stderr bytes.Buffer
}

func (s *server) end(sig syscall.Signal) error {
	_ = s.cmd.Process.Signal(sig)
	var err error
	select {
	case err = <-s.done:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		err = errors.New("the server did not end within a minute")
	}
	s.cmd = nil
	return err
}

var readyLine = regexp.MustCompile(`listening on (127\.0\.0\.1:(\d+)) \(ssh\)`)

// cmdVisit serves the files of a folder over HTTP, as an application of the project would; VISIT is its HOST:PORT. The folder is opened again
// for each request.
func cmdVisit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: visit DIR")
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(srv.Close)
	ts.Setenv("VISIT", srv.Listener.Addr().String())
}

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	if s.cmd != nil {
		ts.Fatalf("the server runs already")
	}
	exe := filepath.Join(os.Getenv("TESTSCRIPT_BIN"), "corpus-git")
	if p, err := exec.LookPath("corpus-git"); err == nil {
		exe = p
	}
	s.stderr.Reset()
	// A context of its own: the scenario ends it.
	s.cmd = exec.CommandContext(context.Background(), exe, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = environ(ts)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	s.cmd.Stderr = &s.stderr
	ts.Check(s.cmd.Start())
	s.done = make(chan error, 1)
	ready := make(chan []string, 1)
	go func() {
		var seen bytes.Buffer
		buf := make([]byte, 4096)
		told := false
		for {
			n, err := out.Read(buf)
			seen.Write(buf[:n])
			if m := readyLine.FindStringSubmatch(seen.String()); m != nil && !told {
				told = true
				ready <- m
			}
			if err != nil {
				break
			}
		}
		s.done <- s.cmd.Wait()
	}()
	select {
	case m := <-ready:
		ts.Setenv("SERVER_PID", strconv.Itoa(s.cmd.Process.Pid))
		ts.Setenv("ADDR", m[1])
		ts.Setenv("PORT", m[2])
		ts.Setenv("REMOTE", "ssh://deploy@"+m[1]+"/")
		if neg {
			ts.Fatalf("the server started, and should not")
		}
	case err := <-s.done:
		s.cmd = nil
		ts.Logf("[server]\n%s", s.stderr.String())
		if !neg {
			ts.Fatalf("the server ended: %v", err)
		}
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		ts.Fatalf("the server is not ready after a minute:\n%s", s.stderr.String())
	}
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, k := range []string{"HOME", "ROOT", "CORPUS_GIT_ROOT", "PATH", "TZ", "WORK", "TMPDIR", "CORPUS_GIT_ACCOUNTS"} {
		env = append(env, k+"="+ts.Getenv(k))
	}
	for _, k := range []string{"CORPUS_GIT_NOTIFY_URL", "NOTIFY_SOCKET", "WATCHDOG_USEC"} {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// cmdRecovered needs no other sign than that: what was left open has its place in the queue before the server listens.
func cmdRecovered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: recovered")
	}
	for range 60_000 / 20 {
		ts.Check(ts.Exec("corpus-git", "project", "list", "--json"))
		if !strings.Contains(ts.ReadFile("stdout"), `"running":`) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("something still runs after a minute")
}

func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	if s.cmd == nil {
		ts.Fatalf("no server is running")
	}
	sig := syscall.SIGTERM
	if len(args) == 1 && args[0] == "-9" {
		sig = syscall.SIGKILL
	}
	err := s.end(sig)
	ts.Check(os.WriteFile(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "server.stderr")), s.stderr.Bytes(), 0o600))
	ts.Logf("[server]\n%s", s.stderr.String())
	if sig == syscall.SIGTERM && (err != nil) != neg {
		ts.Fatalf("the server ended with %v", err)
	}
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [TEXT]")
	}
	for range 60_000 / 5 {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && (len(args) == 1 || strings.Contains(string(data), args[1])) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	ts.Fatalf("%s did not come within a minute", strings.Join(args, " with "))
}

func cmdRemovesAccounts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: removes-accounts PROJECT")
	}
	user, group := args[0]+"-user", args[0]+"-grp"
	remove := func() {
		_ = exec.Command("userdel", "--remove", user).Run()
		_ = exec.Command("groupdel", group).Run()
	}
	remove() // left by a run that was killed
	ts.Defer(remove)
}

func cmdManifest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: manifest FILE DIR")
	}
	text, err := manifest(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// manifest lists every entry below dir: type and mode, owner, size, modification time to the nanosecond, target of a link,
// hash of the content. Times of folders are left out: making an entry in one and removing it again changes them.
func manifest(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d:%d links=%s", strconv.Quote(rel), fi.Mode(), st.Uid, st.Gid, nlinks(fi, st))
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %q %d", to, fi.ModTime().UnixNano())
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %d %x", fi.Size(), fi.ModTime().UnixNano(), sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String(), err
}

func nlinks(fi fs.FileInfo, st *syscall.Stat_t) string {
	if fi.IsDir() {
		return "-"
	}
	return strconv.Itoa(int(st.Nlink))
}
