//go:build browser

package browser_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cmd/corpus-git/app"
)

// beProgram in the environment makes this test binary the program.
const beProgram = "BROWSER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		os.Exit(app.Main(app.Process{
			Args: os.Args[1:], Environment: app.Environment{Env: os.Environ(), UID: os.Geteuid()}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}

// machine is a server, and somebody who pushes to it.
type machine struct {
	t         *testing.T
	home      string
	ssh, http string
}

// newMachine starts a server that ends with the test.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, home: t.TempDir()}
	require.NoError(t, os.Chmod(m.home, 0o755))
	gitconfig := "[user]\n\tname = \"Marie &lt;b id=xss&gt;\"\n\temail = marie@example.org\n[init]\n\tdefaultBranch = master\n"
	require.NoError(t, os.WriteFile(filepath.Join(m.home, ".gitconfig"), []byte(gitconfig), 0o600))
	cmd := m.program("serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.ArtifactDir(), "server.log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for (m.ssh == "" || m.http == "") && lines.Scan() {
		if f := regexp.MustCompile(`listening on (\S+) \((ssh|http)\)`).FindStringSubmatch(lines.Text()); f != nil {
			map[string]func(string){"ssh": func(a string) { m.ssh = a }, "http": func(a string) { m.http = a }}[f[2]](f[1])
		}
	}
	require.NotEmpty(t, m.http, "the server did not start")
	go func() {
		for lines.Scan() {
		}
	}()
	return m
}

func (m *machine) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "CORPUS_GIT_ROOT=" + filepath.Join(m.home, "root"), "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_CONFIG=" + os.DevNull, "CORPUS_GIT_SHUTDOWN_GRACE=1s", "CORPUS_GIT_REQUIRE_APPROVALS=staging=1",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_SSH_COMMAND=ssh -F none -i " + m.home + "/key -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=" + m.home + "/known -o LogLevel=ERROR",
	}
}

func (m *machine) program(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), os.Args[0], args...)
	cmd.Env = append(m.environ(), beProgram+"=1")
	return cmd
}

// run runs a verb, and gives what it prints.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.program(args...).Output()
	require.NoError(m.t, err, "%q: %s", args, out)
	return string(out)
}

// shell runs a command in the home folder; ok is whether it succeeded.
func (m *machine) shell(script string) (out string, ok bool) {
	cmd := exec.CommandContext(m.t.Context(), "sh", "-euc", script)
	cmd.Dir, cmd.Env = m.home, m.environ()
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

func (m *machine) must(script string) string {
	m.t.Helper()
	out, ok := m.shell(script)
	require.True(m.t, ok, "%s\n%s", script, out)
	return out
}

// write puts a file below the home folder.
func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.home, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o644))
}

// loginLink lets one browser in.
func (m *machine) loginLink() string { return strings.TrimSpace(lastLine(m.run("web", "login"))) }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range lines {
		if i := strings.Index(l, "http://"); i >= 0 {
			return l[i:]
		}
	}
	return lines[len(lines)-1]
}

// patience is how long anything is waited for.
const patience = 20 * time.Second
