package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/cmd/corpus-git/serverlog"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/registry"
)

// env is an environment in which nothing of the machine's shows.
func env(root string) Environment {
	return Environment{UID: os.Geteuid(), Env: []string{"PATH=" + os.Getenv("PATH"), "CORPUS_GIT_ROOT=" + root, "CORPUS_GIT_ACCOUNTS=off", "CORPUS_GIT_CONFIG=" + os.DevNull}}
}

// program runs Main with files as its streams.
func program(t *testing.T, e Environment, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	require.NoError(t, os.WriteFile(in, []byte(stdin), 0o600))
	fin, err := os.Open(in)
	require.NoError(t, err)
	defer fin.Close()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		return f
	}
	out, errw := open("out"), open("err")
	defer out.Close()
	defer errw.Close()
	code = Main(Process{Args: args, Environment: e, Stdin: fin, Stdout: out, Stderr: errw})
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(text)
	}
	return code, read("out"), read("err")
}

// running starts a server for root and stops it at the end.
func running(t testing.TB, root string, flags map[string]string) *server {
	t.Helper()
	e := env(root)
	load := func() (*config.Config, error) {
		return settings{env: e, flags: flags}.load()
	}
	cfg, err := load()
	require.NoError(t, err)
	s, err := start(t.Context(), cfg, e.Env, zerolog.Nop(), &serverlog.Level{}, load)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.shutdown(context.Background(), time.Minute)) })
	return s
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f marie@laptop"

// The same commands, without a server and with one, must give the same answers.
func TestVerbsHereAndThroughTheServer(t *testing.T) {
	script := func(t *testing.T, root string) string {
		var all strings.Builder
		keyFile := filepath.Join(t.TempDir(), "key.pub")
		require.NoError(t, os.WriteFile(keyFile, []byte(publicKey), 0o600))
		for _, c := range []struct{ in, args string }{
			{"", "project create app --env prod"}, {publicKey, "key add marie"}, {"", "key add again --file " + keyFile}, {"", "access grant app marie deploy"},
			{"", "access list app"}, {"", "project list"}, {"", "deploy app"}, {"", "logs app nothex"}, {"", "project unlink app"}, {"", "project destroy app"}, {"", "project destroy app --yes"},
			{"", "project list"}, {"", "nonsense"}, {"", "deployments"}, {"", "key add x --file /nonexistent"},
		} {
			code, out, errs := program(t, env(root), c.in, strings.Fields(c.args)...)
			all.WriteString("$ " + c.args + "\n" + string(rune('0'+code)) + "\n" + out + errs)
		}
		// What differs: the folder, the port, the deployment's ID and the time.
		text := strings.ReplaceAll(all.String(), keyFile, "KEY")
		var lines []string
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "ssh://") && !strings.Contains(line, "deployment ") && !strings.Contains(line, "ago") && !strings.Contains(line, "just now") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	alone := script(t, t.TempDir())
	root := t.TempDir()
	running(t, root, map[string]string{"listen": "127.0.0.1:0"})
	require.Equal(t, alone, script(t, root))
	require.Contains(t, alone, "created app")
	require.Contains(t, alone, "destroyed app")
}

func TestServerOwnsTheState(t *testing.T) {
	root := t.TempDir()
	s := running(t, root, map[string]string{"listen": "127.0.0.1:0", "http-listen": "127.0.0.1:0"})
	cfg := s.cfg.Load()
	_, err := start(t.Context(), cfg, nil, zerolog.Nop(), &serverlog.Level{}, nil)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.Contains(t, err.Error(), "a corpus-git server")
	require.NotEmpty(t, fault.HintOf(err))

	a, err := statedir.ReadAddresses(layout.State(cfg.StateDir))
	require.NoError(t, err)
	require.Equal(t, s.sshAddr.Addr().String(), a.SSH)
	var out bytes.Buffer
	statedir.Announce(&out, s.sshAddr, s.webAddr)
	require.Equal(t, "listening on "+a.SSH+" (ssh)\nlistening on "+a.HTTP+" (http)\n", out.String())
	for _, f := range []string{"control.sock", "lock", "corpus-git.db", "ssh_host_ed25519_key", "addr.json"} {
		fi, err := os.Stat(filepath.Join(cfg.StateDir, f))
		require.NoError(t, err)
		require.Zero(t, fi.Mode().Perm()&0o077, f)
	}
	token, err := s.webToken()
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTP+"/api/v1/projects", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"projects":[]}`, string(body))
}

func TestStopAndStartAgain(t *testing.T) {
	root := t.TempDir()
	e := env(root)
	cfg, err := settings{env: e, flags: map[string]string{"listen": "127.0.0.1:0"}}.load()
	require.NoError(t, err)
	var key []byte
	for range 2 {
		s, err := start(t.Context(), cfg, e.Env, zerolog.Nop(), &serverlog.Level{}, nil)
		require.NoError(t, err)
		now, err := os.ReadFile(s.state.HostKey())
		require.NoError(t, err)
		if key != nil {
			require.Equal(t, key, now, "the host key stays")
		}
		key = now
		require.NoError(t, s.shutdown(context.Background(), time.Minute))
		require.NoFileExists(t, s.state.Addresses())
		_, err = control.Dial(s.state.Socket())
		require.ErrorIs(t, err, control.ErrNoServer)
	}
}

func TestReload(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("create_on_push: false\n")
	e := env(root)
	load := func() (*config.Config, error) {
		return settings{env: e, file: file, flags: map[string]string{"listen": "127.0.0.1:0"}}.load()
	}
	cfg, err := load()
	require.NoError(t, err)
	var logged bytes.Buffer
	s, err := start(t.Context(), cfg, e.Env, zerolog.New(&logged), &serverlog.Level{}, load)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.shutdown(context.Background(), time.Minute)) }()

	write("create_on_push: true\nkeep_archives: 7\ndisk_reserve: 1GiB\ndeadline: 1h\ndefault_env: dev\nrequire: {approvals: [prod]}\nadmin_keys: ['" + publicKey + "']\n")
	s.reload(t.Context())
	require.True(t, s.service.Load().CreateOnPush)
	require.Contains(t, logged.String(), "keep_archives")
	for key, later := range map[string]bool{"keep_archives": false, "default_env": false, "require.approvals": false, "disk_reserve": true, "deadline": true} {
		require.Regexp(t, `"key":"`+key+`",[^\n]*"message":"configuration changed`+map[bool]string{true: "; restart the server to apply it", false: ""}[later]+`"`, logged.String())
	}
	keys, err := s.access.ListKeys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.True(t, keys[0].Admin)
	require.Equal(t, "marie@laptop", keys[0].Name)

	write("create_on_push: true\nnonsense: 1\n")
	s.reload(t.Context())
	require.True(t, s.service.Load().CreateOnPush)
	require.Contains(t, logged.String(), "it has an error")

	write("")
	s.reload(t.Context())
	keys, err = s.access.ListKeys(t.Context())
	require.NoError(t, err)
	require.Empty(t, keys, "a key that admin_keys gave goes with it")
}

func TestNothingThereYet(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	code, _, errs := program(t, env(root), "", "deployments", "app")
	require.Equal(t, 3, code)
	require.Contains(t, errs, "does not exist yet")
	require.NoDirExists(t, root, "looking makes nothing")
	code, out, _ := program(t, env(root), "", "doctor", "--json")
	require.Equal(t, 0, code, out)
	var doc struct{ Version int }
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.NoDirExists(t, root)
}

func TestExportLeavesNoHalfFile(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	code, _, errs := program(t, env(root), "", "project", "create", "app")
	require.Equal(t, 0, code, errs)
	code, _, _ = program(t, env(root), "", "archives", "show", "app", "abcd", "--export", filepath.Join(dir, "x.tar.zst"))
	require.Equal(t, 3, code)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPrintConfig(t *testing.T) {
	root := t.TempDir()
	e := env(root)
	e.Env = append(e.Env, "CORPUS_GIT_LISTEN=127.0.0.1:3333", "CORPUS_GIT_NONSENSE=1")
	code, out, errs := program(t, e, "", "serve", "--print-config", "--keep-archives", "9")
	require.Equal(t, 0, code)
	require.Regexp(t, `(?m)^listen: 127.0.0.1:3333 +# CORPUS_GIT_LISTEN$`, out)
	require.Regexp(t, `(?m)^keep_archives: 9 +# --keep-archives$`, out)
	require.Contains(t, errs, "CORPUS_GIT_NONSENSE")
	code, _, errs = program(t, e, "", "serve", "--print-config", "--config", filepath.Join(root, "missing"))
	require.Equal(t, 2, code, errs)
}

func TestRemotes(t *testing.T) {
	for _, c := range []struct{ listen, public, want string }{
		{"127.0.0.1:2222", "", "ssh://deploy@127.0.0.1:2222/app/project.git"},
		{":2222", "git.example.org", "ssh://deploy@git.example.org:2222/app/project.git"},
		{":2222", "git.example.org:22", "ssh://deploy@git.example.org/app/project.git"},
		{"[::1]:2022", "", "ssh://deploy@[::1]:2022/app/project.git"},
	} {
		co := &core{state: layout.State(t.TempDir())}
		co.cfg.Store(&config.Config{Listen: c.listen, Public: c.public})
		require.Equal(t, c.want, co.remotes(project.Name("app")).Project)
	}
}

func TestReach(t *testing.T) {
	co := &core{state: layout.State(t.TempDir())}
	_, err := hostKeys(co.state, zerolog.Nop())
	require.NoError(t, err)
	for _, c := range []struct{ listen, public, http, ssh, host, port, page string }{
		{"127.0.0.1:2222", "", "", "127.0.0.1:2222", "127.0.0.1", "2222", ""},
		{":2222", "git.example.org:22", "127.0.0.1:8080", "git.example.org", "git.example.org", "22", "http://127.0.0.1:8080/projects/app"},
		{"[::1]:22", "", "[::1]:8080", "[::1]", "::1", "22", "http://[::1]:8080/projects/app"},
		{"[::1]:2022", "", "", "[::1]:2022", "::1", "2022", ""},
	} {
		co.cfg.Store(&config.Config{Listen: c.listen, Public: c.public, HTTP: c.http})
		at := co.reach("app")
		require.Equal(t, c.ssh, at.SSH)
		require.Equal(t, c.page, at.HTTP)
		require.Regexp(t, `^Host app\n    HostName `+regexp.QuoteMeta(c.host)+`\n    Port `+c.port+`\n    User deploy\n    # host key ssh-ed25519 SHA256:\S{43}\n    # host key ecdsa-sha2-nistp256 SHA256:\S{43}\n$`, at.SSHConfig)
	}
}

func TestDocs(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := program(t, env(t.TempDir()), "", "docs", "--dir", dir)
	require.Equal(t, 0, code, errs)
	for _, f := range []string{"man/corpus-git.1", "man/corpus-git-project-create.1", "completions/corpus-git.bash", "completions/_corpus-git", "completions/corpus-git.fish", "commands/corpus-git_deploy.md", "configuration.md", "cfg-keys.md"} {
		require.FileExists(t, filepath.Join(dir, f))
	}
}

// Every verb that changes or shows a project is one that the server can be asked for.
func TestEveryVerbIsAdopted(t *testing.T) {
	c := &command{Process: Process{Environment: env(t.TempDir())}}
	names := map[string]bool{}
	for _, sub := range c.tree().Commands() {
		names[sub.Name()] = true
	}
	for _, sub := range verbs.Describe().Commands() {
		require.True(t, names[sub.Name()], sub.Name())
	}
	for _, local := range verbs.LocalOnly() {
		if local != "completion" { // cobra adds it when it runs
			require.True(t, names[local], local)
		}
	}
}

// The demo goes through everything with a real git and a real ssh: live, pillar, rolled back. It may be run again in the same place, and what its
// user did meanwhile in the working copy is kept.
func TestDemo(t *testing.T) {
	root := t.TempDir()
	work := filepath.Join(root, "demo", "sample")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", work, "-c", "user.name=me", "-c", "user.email=me@localhost"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	for i := range 3 {
		switch i {
		case 1: // work of the user's that is not pushed, committed and not
			require.NoError(t, os.WriteFile(filepath.Join(work, "src", "40_mine.css"), []byte("p { color: blue; }\n"), 0o644))
			git("add", "-A")
			git("commit", "-qm", "Mine")
			require.NoError(t, os.WriteFile(filepath.Join(work, "notes.txt"), []byte("to do\n"), 0o644))
		case 2:
			require.Equal(t, "Mine", git("log", "-1", "--format=%s"))
			require.FileExists(t, filepath.Join(work, "src", "40_mine.css"))
			require.Equal(t, "?? notes.txt", git("status", "--short"))
			require.NotEqual(t, "Mine", git("log", "-1", "--format=%s", "prod/master"))
		}
		code, out, errs := program(t, env(t.TempDir()), "", "demo", "--exit", "--root", root)
		require.Equal(t, 0, code, out+errs)
		require.Contains(t, out, "=====> live in")
		require.Contains(t, out, "=====> rolled back")
		require.Contains(t, out, "! [remote rejected]")
		require.Contains(t, out, "| The pillar said this")
		require.Contains(t, out, "everything worked")
	}
}

// The version that make gives reaches the program: the linker does not report a variable that does not exist.
func TestMakeBuildsItsVersionIn(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "corpus-git")
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "build", "VERSION=9.8.7-test", "BIN="+bin)
	cmd.Dir = filepath.Join("..", "..", "..")
	line, err := cmd.Output()
	require.NoError(t, err)
	// Without -trimpath the packages are those that this test was built from.
	build := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(string(line), "-trimpath ", ""))
	build.Dir = cmd.Dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := exec.CommandContext(t.Context(), bin, "version").Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "corpus-git 9.8.7-test")
}

func TestCompletionOffersProjects(t *testing.T) {
	root := t.TempDir()
	running(t, root, map[string]string{"listen": "127.0.0.1:0"})
	code, _, errs := program(t, env(root), "", "project", "create", "shop")
	require.Equal(t, 0, code, errs)
	for _, words := range []string{"deploy", "project show", "archives list", "access grant", "logs"} {
		_, out, _ := program(t, env(root), "", append(append([]string{"__complete"}, strings.Fields(words)...), "")...)
		require.True(t, strings.HasPrefix(out, "shop\n"), words+": "+out)
	}
	_, out, _ := program(t, env(t.TempDir()), "", "__complete", "deploy", "")
	require.NotContains(t, out, "shop")
}

// The completions after the project: its deployments, units, tasks and steps, the keys; and in lists what follows a comma.
func TestCompletionOffersWhatAProjectHas(t *testing.T) {
	root := t.TempDir()
	running(t, root, map[string]string{"listen": "127.0.0.1:0"})
	code, _, errs := program(t, env(root), "", "project", "create", "shop", "--remote-less")
	require.Equal(t, 0, code, errs)
	salt := filepath.Join(root, "projects", "shop", "project", ".salt")
	require.NoError(t, os.MkdirAll(salt, 0o755))
	for name, text := range map[string]string{
		"010_one.sls": "one:\n  test.nop: []\n", "020_two.sls": "two:\n  test.nop: []\n", "task_hello.sls": "hello:\n  test.nop: []\n",
		"PILLAR.sample": "makina-projects.shop:\n  units:\n    web: {status: 'true'}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(salt, name), []byte(text), 0o644))
	}
	for range 2 {
		code, _, errs = program(t, env(root), "", "deploy", "shop")
		require.Equal(t, 0, code, errs)
	}
	for words, stdin := range map[string]string{"kv set web/port 80": "", "key add laptop": publicKey} {
		code, _, errs = program(t, env(root), stdin, strings.Fields(words)...)
		require.Equal(t, 0, code, errs)
	}
	for _, c := range []struct{ words, want string }{
		{"rollback shop", `^[0-9a-f]{8}\tlive, redeploy\n[0-9a-f]{8}\tlive, redeploy\n:4\n`},
		{"logs shop", `^[0-9a-f]{8}\t`},
		{"archives show shop", `^[0-9a-f]{8}\t`},
		{"task shop", `^hello\n:4`},
		{"ps shop", `^web\tactive\n`},
		{"restart shop web", `^web\tactive\n`},
		{"deploy shop --only-steps", `^010_one\n020_two\n:6`},
		{"deploy shop --only", `^archive\nsync\nrelease-sync\n`},
		{"access grant shop", `^laptop\n:4`},
		{"access grant shop me", `^read\ndeploy\nconfigure\nshell\napprove\nadmin\n`},
		{"kv get", `^web/port\n`},
		{"cfg shop", `^:4`}, // a key of the configuration, no ssh key
		{"key remove", `^laptop\n`},
		{"key add", `^:4`},
		{"project create", `^:4`},
		{"project show", `^shop\n`},
		{"node show", `^:4`},
		{"approve shop", `^:4`},
		{"signal shop", `^:4`},
		{"logs shop 0 more", `^:4`},
		{"backup", `(?m)^:0$`},
	} {
		_, out, _ := program(t, env(root), "", append(append([]string{"__complete"}, strings.Fields(c.words)...), "")...)
		require.Regexp(t, c.want, out, c.words)
	}
	_, out, _ := program(t, env(root), "", "__complete", "deploy", "shop", "--only-steps", "010_one,")
	require.Contains(t, out, "010_one,020_two\n")
}

// The token is made once, and only the owner of the state can read it.
func TestWebToken(t *testing.T) {
	c := &core{state: layout.State(t.TempDir()), log: zerolog.Nop()}
	token, err := c.webToken()
	require.NoError(t, err)
	require.Len(t, token, 48)
	again, err := c.webToken()
	require.NoError(t, err)
	require.Equal(t, token, again)
	file := filepath.Join(c.state.Path(), tokenFile)
	fi, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	require.NoError(t, os.WriteFile(file, []byte("short\n"), 0o600))
	_, err = c.webToken()
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

// A project without repositories, and without a pillar, still has a configuration.
func TestCfgOfARemoteLessProject(t *testing.T) {
	root := t.TempDir()
	code, _, errs := program(t, env(root), "", "project", "create", "hand", "--remote-less")
	require.Equal(t, 0, code, errs)
	recipe := filepath.Join(root, "projects", "hand", "project", ".salt")
	require.NoError(t, os.MkdirAll(recipe, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(recipe, "PILLAR.sample"), []byte("makina-projects.hand:\n  data:\n    color: green\n"), 0o600))
	code, out, errs := program(t, env(root), "", "cfg", "hand", "data.color")
	require.Equal(t, 0, code, errs)
	require.Equal(t, "green\n", out)
}

func TestRightsDoNotComeBackWithAName(t *testing.T) {
	root := t.TempDir()
	s := running(t, root, map[string]string{"listen": "127.0.0.1:0"})
	by := access.Local("op")
	k, err := s.access.AddKey(t.Context(), by, "marie", []byte(publicKey), false)
	require.NoError(t, err)
	// As a crash leaves it: the project is gone, a permission on it is not.
	require.NoError(t, s.access.Grant(t.Context(), by, "app", "marie", project.Deploy))
	p := projects{s.registry, s.core}
	_, err = p.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	marie := access.Identity{Name: k.Name, Fingerprint: k.Fingerprint}
	can, err := s.access.Can(t.Context(), marie, "app", project.Read)
	require.NoError(t, err)
	require.False(t, can)
	// Creating again what exists removes nothing.
	require.NoError(t, s.access.Grant(t.Context(), by, "app", "marie", project.Deploy))
	_, err = p.Create(t.Context(), "app", registry.Settings{Env: "dev"})
	require.NoError(t, err)
	can, err = s.access.Can(t.Context(), marie, "app", project.Read)
	require.NoError(t, err)
	require.True(t, can)
}

// A state that was shut down cleanly is not examined again; one that was not is recovered in the projects with work in progress, whichever process
// opens it first.
func TestRecoveryLooksWhereSomethingWasUnderWay(t *testing.T) {
	root := t.TempDir()
	state := layout.Root(root).DefaultState()
	run := func(args ...string) {
		t.Helper()
		code, _, errs := program(t, env(root), "", args...)
		require.Zero(t, code, errs)
	}
	for _, name := range []string{"app", "unused", "pushed"} {
		run("project", "create", name)
	}
	run("gc", "app") // which recovers, as every command that works on what deployments left
	require.FileExists(t, state.Clean())
	// What a crash leaves in repositories.
	type leftover struct{ quarantine, lock, temp, log string }
	left := map[string]leftover{}
	leave := func(name string) {
		git := filepath.Join(root, "projects", name, "git")
		l := leftover{git + "/project.git/objects/incoming-x", git + "/pillar.git/refs/heads/master.lock", vfs.TempName(git + "/pillar.git/config"), state.EventLog(name, string(project.NewID()))}
		left[name] = l
		require.NoError(t, os.Mkdir(l.quarantine, 0o755))
		require.NoError(t, os.MkdirAll(filepath.Dir(l.log), 0o755))
		for _, f := range []string{l.lock, l.temp, l.log} {
			require.NoError(t, os.WriteFile(f, nil, 0o600))
		}
	}
	untouched := func(name string) {
		t.Helper()
		l := left[name]
		require.DirExists(t, l.quarantine)
		require.FileExists(t, l.lock)
		require.FileExists(t, l.temp)
		require.FileExists(t, l.log)
	}
	swept := func(name string) {
		t.Helper()
		l := left[name]
		require.NoDirExists(t, l.quarantine)
		require.NoFileExists(t, l.lock)
		require.NoFileExists(t, l.temp)
	}
	leave("unused")
	leave("pushed")
	// The file says that there was no crash: nothing is examined.
	run("gc", "app")
	untouched("pushed")

	require.NoError(t, os.Remove(state.Clean()))
	note := filepath.Join(state.Underway(), "pushed")
	require.NoError(t, os.WriteFile(note, nil, 0o600))
	// A command that changes nothing does not recover, and so does not mark the state as clean.
	run("key", "list")
	require.NoFileExists(t, state.Clean())
	require.FileExists(t, note)
	untouched("pushed")
	run("gc", "app")
	swept("pushed")
	require.NoFileExists(t, left["pushed"].log)
	require.NoFileExists(t, note)
	require.FileExists(t, state.Clean())
	untouched("unused") // no work was in progress there: not examined
	run("gc", "unused") // but using it examines it
	swept("unused")

	// Without notes, as left by a version before them, everything is examined once.
	leave("unused")
	leave("pushed")
	require.NoError(t, os.Remove(state.Clean()))
	require.NoError(t, os.RemoveAll(state.Underway()))
	run("gc", "app")
	swept("unused")
	swept("pushed")
	require.NoFileExists(t, left["unused"].log)
	leave("unused")
	require.NoError(t, os.Remove(state.Clean()))
	run("gc", "app")
	untouched("unused")
}

// A project that can't be recovered keeps its note, and no other project is examined because of it.
func TestWhatCannotBeRecoveredIsTriedAgain(t *testing.T) {
	root := t.TempDir()
	state := layout.Root(root).DefaultState()
	for _, name := range []string{"app", "broken"} {
		code, _, errs := program(t, env(root), "", "project", "create", name)
		require.Zero(t, code, errs)
	}
	// A folder where a journal should be.
	require.NoError(t, os.MkdirAll(state.Journal("broken"), 0o700))
	for _, first := range []bool{true, false} {
		code, _, _ := program(t, env(root), "", "gc", "app")
		require.NotZero(t, code)
		require.NoFileExists(t, state.Clean(), "first=%v", first)
		left, err := os.ReadDir(state.Underway())
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, "broken", left[0].Name())
	}
	require.NoError(t, os.Remove(state.Journal("broken")))
	code, _, errs := program(t, env(root), "", "gc", "app")
	require.Zero(t, code, errs)
	require.FileExists(t, state.Clean())
	left, err := os.ReadDir(state.Underway())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestNewerDatabase(t *testing.T) {
	root := t.TempDir()
	cfg := &config.Config{Root: root, StateDir: filepath.Join(root, ".corpus-git")}
	c, err := openCore(t.Context(), options{cfg: cfg, log: zerolog.Nop(), who: "test"})
	require.NoError(t, err)
	_, err = c.db.Exec(`UPDATE migrations SET applied = 99 WHERE room = 'pipeline'`)
	require.NoError(t, err)
	_, err = c.db.Exec(`UPDATE writer SET release = '99.1'`)
	require.NoError(t, err)
	require.NoError(t, c.close())
	_, err = openCore(t.Context(), options{cfg: cfg, log: zerolog.Nop(), who: "test"})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "the database was written by corpus-git 99.1, which is newer")
	require.ErrorContains(t, err, "this is corpus-git "+Build().Release)
	require.Contains(t, fault.HintOf(err), "corpus-git restore FILE")
}

// What git says of a URL, which may repeat it, is shown with every character visible.
func TestCloneErrorsArePrintable(t *testing.T) {
	missing := "file://" + filepath.Join(t.TempDir(), "no\x1b[31mwhere")
	for _, args := range [][]string{{"import", missing}, {"init", filepath.Join(t.TempDir(), "app"), "--skeleton", missing}} {
		code, _, stderr := program(t, env(t.TempDir()), "", args...)
		require.NotZero(t, code)
		require.Contains(t, stderr, "where")
		require.NotContains(t, stderr, "\x1b", args[0])
	}
}
