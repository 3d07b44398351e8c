package receive_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"iter"
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

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/receive"
	"corpus-git/receive/sshd"
)

// deployer is a Deployer that runs a function for each deployment.
type deployer struct {
	dir   string
	repos *receive.Repositories

	mu     sync.Mutex
	script func(d project.Deployment, log *event.Log) project.Result
	runs   map[project.ID]*fakeRun
	began  []project.Deployment
	ins    []project.Incoming
}

type fakeRun struct {
	d    project.Deployment
	log  *event.Log
	done chan struct{}
	res  project.Result
}

type plainText struct{}

func (plainText) String(s string) string { return s }

func live(d project.Deployment, log *event.Log) project.Result {
	log.Append(event.Event{Kind: event.Head, Text: string(d.Project) + "  " + d.Change.Old.Short() + ".." + d.Change.New.Short() + "  by " + d.Pusher.Key})
	log.Append(event.Event{Kind: event.ProcedureDone, Procedure: "install", Status: event.OK, Duration: time.Millisecond, Text: "1 step"})
	log.Append(event.Event{Kind: event.Verdict, Status: event.OK, Text: "live: app is " + d.Code.Short()})
	return project.Result{State: project.Live}
}

func broken(d project.Deployment, log *event.Log) project.Result {
	log.Append(event.Event{Kind: event.Head, Text: string(d.Project)})
	log.Append(event.Event{Kind: event.Failure, Status: event.Bad, Text: "2/4 0100_build  failed after 12.4s", Lines: []string{"npm-install  cmd.run"}})
	log.Append(event.Event{Kind: event.Verdict, Status: event.Bad, Text: "rolled back"})
	log.Append(event.Event{Kind: event.Hint, Text: "see it whole"})
	return project.Result{State: project.RolledBack, Procedure: "install", Step: "0100_build", StateID: "npm-install"}
}

func (f *deployer) set(s func(project.Deployment, *event.Log) project.Result) {
	f.mu.Lock()
	f.script = s
	f.mu.Unlock()
}

func (f *deployer) started() []project.Deployment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]project.Deployment(nil), f.began...)
}

func (f *deployer) Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error) {
	if d.Change.Ref != "" && d.Trigger == project.TriggerPush {
		have, err := f.repos.Open(d.Project, d.Repo).Get(ctx, d.Change.Ref)
		if err != nil {
			return "", err
		}
		if have != d.Change.Old {
			return "", fault.New(fault.Refused, "", "fetch first")
		}
	}
	d.ID = project.NewID()
	log, err := event.Create(filepath.Join(f.dir, string(d.ID)), time.Now, plainText{})
	if err != nil {
		return "", err
	}
	r := &fakeRun{d: d, log: log, done: make(chan struct{})}
	f.mu.Lock()
	f.runs[d.ID] = r
	f.began = append(f.began, d)
	f.ins = append(f.ins, in)
	script := f.script
	f.mu.Unlock()
	go func() {
		defer close(r.done)
		defer log.Close()
		ctx := context.Background()
		if in != nil {
			if err := in.Migrate(ctx); err != nil {
				r.res = project.Result{State: project.Failed, Reason: err.Error()}
				return
			}
			defer func() { _ = in.Discard() }()
		}
		r.res = script(d, log)
		if r.res.State != project.Live || d.Change.New == "" {
			return
		}
		err := f.repos.Open(d.Project, d.Repo).CompareAndSwap(ctx, d.Change)
		if err == nil {
			err = f.repos.Open(d.Project, d.Repo).SetDeployed(ctx, d.Change.Ref)
		}
		if err != nil {
			r.res = project.Result{State: project.Failed, Reason: err.Error()}
		}
	}()
	return d.ID, nil
}

func (f *deployer) ids() (out []project.ID) {
	for _, d := range f.started() {
		out = append(out, d.ID)
	}
	return out
}

func (f *deployer) run(id project.ID) *fakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[id]
}

func (f *deployer) Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error] {
	return f.run(id).log.Follow(ctx, seq)
}

func (f *deployer) Wait(ctx context.Context, id project.ID) (project.Result, error) {
	r := f.run(id)
	select {
	case <-r.done:
		return r.res, nil
	case <-ctx.Done():
		return project.Result{}, ctx.Err()
	}
}

// projects is a receive.Projects in memory.
type projects struct {
	repos *receive.Repositories
	mu    sync.Mutex
	all   map[project.Name]receive.Settings
	// looked holds the names that were looked up.
	looked []project.Name
}

func (p *projects) Lookup(_ context.Context, name project.Name) (receive.Settings, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.all[name]
	p.looked = append(p.looked, name)
	return s, ok, nil
}

func (p *projects) Create(ctx context.Context, _ access.Identity, name project.Name) error {
	for _, r := range []project.Repo{project.Code, project.PillarRepo} {
		if _, err := p.repos.Open(name, r).Create(ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = receive.Settings{}
	return nil
}

func (p *projects) set(name project.Name, s receive.Settings) {
	p.mu.Lock()
	p.all[name] = s
	p.mu.Unlock()
}

// echo is a receive.Commands that prints what it was given.
type echo struct{}

func (echo) Run(ctx context.Context, who access.Identity, argv []string, stdin io.Reader, stdout, stderr io.Writer, term sshd.Terminal) int {
	if len(argv) == 0 {
		fmt.Fprintf(stdout, "Hello %s pty=%v term=%s\n", who.Name, term.Pty, term.Term)
		return 0
	}
	switch argv[0] {
	case "echo":
		fmt.Fprintf(stdout, "%q colour=%v columns=%d\n", argv[1:], term.Colour, term.Columns)
		return 0
	case "cat":
		_, err := io.Copy(stdout, stdin)
		if err != nil {
			return 1
		}
		return 0
	case "wait":
		fmt.Fprintln(stdout, "waiting")
		<-ctx.Done()
		return 5
	case "boom":
		panic("boom")
	}
	fmt.Fprintf(stderr, "error: unknown command %q\n", argv[0])
	return 2
}

// world is a server, its state and a client's home.
type world struct {
	t        *testing.T
	dir      string
	addr     string
	host     string
	port     string
	keys     *access.Store
	audit    *audit.Log
	repos    *receive.Repositories
	projects *projects
	deployer *deployer
	service  *receive.Service
	server   *sshd.Server
	hostKey  ssh.Signer
	log      *testutil.Buffer
}

func newWorld(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	t.Parallel()
	for _, tool := range []string{"git", "ssh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH", tool)
		}
	}
	ctx := context.Background()
	dir := t.TempDir()
	root := layout.Root(filepath.Join(dir, "srv"))
	d, err := db.Open(ctx, root.DefaultState().Database())
	require.NoError(t, err)
	log, err := audit.Open(ctx, d, time.Now)
	require.NoError(t, err)
	keys, err := access.Open(ctx, d, log, time.Now)
	require.NoError(t, err)
	repos := &receive.Repositories{Root: root}
	w := &world{t: t, dir: dir, keys: keys, audit: log, repos: repos, log: &testutil.Buffer{}}
	w.projects = &projects{repos: repos, all: map[project.Name]receive.Settings{}}
	w.deployer = &deployer{dir: filepath.Join(dir, "events"), repos: repos, runs: map[project.ID]*fakeRun{}, script: live}
	w.service = &receive.Service{Root: root, Repos: repos, Access: keys, Projects: w.projects, Deployer: w.deployer, Commands: echo{}, Audit: log, Version: "test", Log: zerolog.New(w.log)}
	w.service.Limits.DrainIdle = 200 * time.Millisecond
	w.hostKey, _, err = sshd.HostKey(vfs.OS{}, root.DefaultState().HostKey(), ssh.KeyAlgoED25519, rand.Reader)
	require.NoError(t, err)
	w.server = &sshd.Server{HostKeys: []ssh.Signer{w.hostKey}, Keys: keys, Handler: w.service, Refuse: w.service.Refuse, Version: "test", RefusedLogin: w.service.RefusedLogin, LoggedIn: w.service.LoggedIn}
	for _, c := range change {
		c(w)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.addr = l.Addr().String()
	w.host, w.port, err = net.SplitHostPort(w.addr)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, w.server.Shutdown(ctx))
		require.ErrorIs(t, <-served, sshd.ErrClosed)
		for _, r := range w.deployer.runs {
			<-r.done
		}
		require.NoError(t, repos.Close())
		require.NoError(t, d.Close())
	})
	require.NoError(t, os.WriteFile(w.path("known_hosts"), fmt.Appendf(nil, "[%s]:%s %s", w.host, w.port, ssh.MarshalAuthorizedKey(w.hostKey.PublicKey())), 0o600))
	w.addProject("app")
	w.newKey("boss", true)
	w.newKey("marie", false)
	require.NoError(t, keys.Grant(ctx, access.Local("root"), "app", "marie", project.Deploy))
	return w
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

func (w *world) addProject(name project.Name) {
	w.t.Helper()
	require.NoError(w.t, w.projects.Create(context.Background(), access.Identity{}, name))
}

// newKey generates a key pair; with name "" it is not added.
func (w *world) newKey(name string, admin bool) (file string) {
	w.t.Helper()
	file = w.writeKey(name)
	text, err := os.ReadFile(file + ".pub")
	require.NoError(w.t, err)
	_, err = w.keys.AddKey(context.Background(), access.Local("root"), name, text, admin)
	require.NoError(w.t, err)
	return file
}

func (w *world) writeKey(name string) (file string) {
	w.t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(w.t, err)
	block, err := ssh.MarshalPrivateKey(priv, "")
	require.NoError(w.t, err)
	spub, err := ssh.NewPublicKey(pub)
	require.NoError(w.t, err)
	file = w.path("key-" + name)
	require.NoError(w.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	require.NoError(w.t, os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(spub), 0o600))
	return file
}

func (w *world) sshArgs(key string) []string {
	return []string{"-F", "none", "-i", w.path("key-" + key), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "BatchMode=yes",
		"-o", "UserKnownHostsFile=" + w.path("known_hosts"), "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes", "-o", "SendEnv=CORPUS_COLOR", "-p", w.port}
}

// outcome is the result of a client.
type outcome struct {
	exit int
	out  string
	err  string
}

func (o outcome) all() string { return o.out + o.err }

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errb bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errb
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		require.NoError(t, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errb.String()}
}

// ssh runs an ssh client.
func (w *world) ssh(key string, args ...string) *exec.Cmd {
	cmd := exec.Command("ssh", append(append(w.sshArgs(key), "deploy@"+w.host), args...)...)
	cmd.Env = append(os.Environ(), "HOME="+w.dir)
	return cmd
}

// gitCmd prepares a git client in dir.
func (w *world) gitCmd(key, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	quoted := make([]string, 0, 20)
	for _, a := range w.sshArgs(key) {
		quoted = append(quoted, "'"+a+"'")
	}
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Marie", "GIT_AUTHOR_EMAIL=marie@example.org", "GIT_COMMITTER_NAME=Marie", "GIT_COMMITTER_EMAIL=marie@example.org",
		"GIT_SSH_COMMAND=ssh "+strings.Join(quoted, " "))
	return cmd
}

// git runs git as marie, which must succeed.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	o := finish(w.t, w.gitCmd("marie", dir, args...))
	require.Zero(w.t, o.exit, "git %v\n%s", args, o.all())
	return strings.TrimSpace(o.out)
}

// push runs git push as key.
func (w *world) push(key, dir string, args ...string) outcome {
	w.t.Helper()
	return finish(w.t, w.gitCmd(key, dir, append([]string{"push"}, args...)...))
}

func (w *world) url(path string) string {
	return fmt.Sprintf("ssh://deploy@%s:%s/%s", w.host, w.port, path)
}

// clone makes a repository with one commit on branch main and the remote prod.
func (w *world) clone(name, path string) string {
	w.t.Helper()
	dir := w.path(name)
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	w.git(dir, "init", "-q", "-b", "main")
	w.git(dir, "remote", "add", "prod", w.url(path))
	w.commit(dir, "README", "one\n")
	return dir
}

func (w *world) commit(dir, file, text string) string {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "-m", "Change "+file)
	return w.git(dir, "rev-parse", "HEAD")
}

func (w *world) remoteRefs(dir string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git(dir, "ls-remote", "prod")) {
		h, n, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[n] = h
	}
	return out
}

// quarantines lists what is in a repository's quarantine.
func (w *world) quarantines(name project.Name, repo project.Repo) []string {
	w.t.Helper()
	list, err := filepath.Glob(filepath.Join(w.repos.Open(name, repo).Dir(), "objects", "incoming-*"))
	require.NoError(w.t, err)
	return list
}
