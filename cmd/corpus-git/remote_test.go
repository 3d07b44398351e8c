package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const sshd = "/usr/sbin/sshd"

// hasSSHD is the condition of scenarios with an OpenSSH server. In CI it is there.
func hasSSHD() (bool, error) {
	_, err := os.Stat(sshd)
	if err != nil && os.Getenv("CI") == "true" {
		return false, fmt.Errorf("install openssh-server: %w", err)
	}
	return err == nil, nil
}

// cmdSSHD starts an OpenSSH server on a free port, which lets the scenario's user in with its key dev. NODE are the options and the host of
// remote deploy, SSHD_PID its process. What is copied there goes below $WORK/cache.
func cmdSSHD(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: sshd")
	}
	home, work := ts.Getenv("HOME"), ts.Getenv("WORK")
	dir := filepath.Join(work, "sshd")
	ts.Check(os.Mkdir(dir, 0o700))
	ts.Check(writeKey(filepath.Join(dir, "host"), "host"))
	pub, err := os.ReadFile(filepath.Join(home, ".ssh", "dev.pub"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "authorized_keys"), pub, 0o600))
	if os.Geteuid() == 0 {
		ts.Check(os.MkdirAll("/run/sshd", 0o755)) // where Debian's sshd separates its privileges
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	port := l.Addr().(*net.TCPAddr).Port
	ts.Check(l.Close())
	conf := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %[2]s/host\nAuthorizedKeysFile %[2]s/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n"+
		"SetEnv XDG_CACHE_HOME=%[3]s/cache CORPUS_GIT_ACCOUNTS=off\n", port, dir, work)
	ts.Check(os.WriteFile(filepath.Join(dir, "config"), []byte(conf), 0o600))
	cmd := exec.CommandContext(context.Background(), sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	log, err := os.Create(filepath.Join(dir, "log"))
	ts.Check(err)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = errors.Join(cmd.Process.Kill(), log.Close())
		_ = cmd.Wait()
		// The agents that were started there would stay until they are idle.
		roots, _ := filepath.Glob(filepath.Join(work, "*", ".corpus-git", "addr.json"))
		for _, file := range roots {
			var a struct{ PID int }
			text, err := os.ReadFile(file)
			if err == nil && json.Unmarshal(text, &a) == nil && a.PID > 1 {
				_ = syscall.Kill(a.PID, syscall.SIGTERM)
			}
		}
	})
	for range 500 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "known_hosts"), fmt.Appendf(nil, "[127.0.0.1]:%d %s", port, hostKey), 0o600))
	me, err := user.Current()
	ts.Check(err)
	ts.Setenv("SSHD_PID", strconv.Itoa(cmd.Process.Pid))
	// For the server, too, which reaches nodes as its own user, without our home.
	ts.Setenv("SSH_TO_NODE", strings.Join([]string{
		"-p", strconv.Itoa(port), "-i", filepath.Join(home, ".ssh", "dev"), "--ssh-option", "UserKnownHostsFile=" + filepath.Join(dir, "known_hosts"),
		"--ssh-option", "IdentitiesOnly=yes", "--ssh", me.Username + "@127.0.0.1",
	}, " "))
	ts.Setenv("NODE", strings.Join([]string{
		"-p", strconv.Itoa(port), "-i", filepath.Join(home, ".ssh", "dev"), "--ssh-option", "UserKnownHostsFile=" + filepath.Join(dir, "known_hosts"),
		"--ssh-option", "IdentitiesOnly=yes", "--remote-root", filepath.Join(work, "node"), me.Username + "@127.0.0.1",
	}, " "))
}
