package pipeline_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/pipeline"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/receive"
	"corpus-git/sls/grains"
	"corpus-git/sls/host"
	"corpus-git/sls/run"
)

// machine is a whole server but for ssh: real repositories, real archives, real steps.
type machine struct {
	t    *testing.T
	root layout.Root
	p    *pipeline.Pipeline
	rep  *receive.Repositories
	db   *sql.DB
	env  string
	mu   sync.Mutex
	at   func(string)

	deadline time.Duration
	patience time.Duration
	// panics, when set, is called where the runner of steps checks a step, and again where it applies one.
	panics func(call string)
	// lost: nothing says at the next start that something is to be recovered.
	lost bool
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: layout.Root(t.TempDir()), env: "prod"}
	_, err := procedures.EnsureDirs(vfs.OS{}, m.root.Project("app"), true)
	require.NoError(t, err)
	m.start()
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		_, err := m.rep.Open("app", repo).Create(t.Context())
		require.NoError(t, err)
	}
	return m
}

// start makes a pipeline on what is on disk, as a server that starts does.
func (m *machine) start() {
	t := m.t
	state := m.root.DefaultState()
	d, err := db.Open(t.Context(), state.Database())
	require.NoError(t, err)
	m.db = d
	t.Cleanup(func() { _ = d.Close() })
	log, err := audit.Open(t.Context(), d, time.Now)
	require.NoError(t, err)
	rep := &receive.Repositories{Root: m.root, Log: zerolog.Nop()} // of this pipeline: one before it may still be at its upkeep
	m.rep = rep
	t.Cleanup(func() { _ = rep.Close() })
	programs := execx.OS{Notes: state.Processes()}
	stores := map[project.Name]*archive.Store{}
	h := host.New(programs)
	h.EUID = 1000 // users and owners have a test of their own
	tools := &procedures.Tools{
		Repository: func(n project.Name, r project.Repo) procedures.Repository { return rep.Open(n, r) },
		Root:       m.root, State: state, Steps: panicking{&run.Builtin{}, m}, Scripts: run.Script{}, Host: h,
		Archives: func(n project.Name) *archive.Store {
			m.mu.Lock()
			defer m.mu.Unlock()
			if stores[n] == nil {
				stores[n] = archive.New(m.root.Project(n.String()), archive.Config{Reserve: archive.Reserve{Percent: -1}})
				t.Cleanup(func() {
					m.settled()
					_ = stores[n].Wait()
				})
			}
			return stores[n]
		},
		Hooks: &hooks.Runner{Exec: programs, State: state}, FS: vfs.OS{}, Exec: programs, Now: time.Now,
		Grains: func() *py.Dict { return grains.Collect(grains.Source{}) },
	}
	m.p, err = pipeline.New(t.Context(), pipeline.Config{
		Repository: func(n project.Name, r project.Repo) pipeline.Repository { return rep.Open(n, r) },
		Root:       m.root, State: state, DB: d, Tools: tools, Audit: log, Now: time.Now, NewID: project.NewID, Deadline: m.deadline, StopTimeout: m.patience, Logger: zerolog.New(zerolog.NewTestWriter(t)),
		Settings: func(context.Context, project.Name) (pipeline.Settings, error) {
			return pipeline.Settings{Environment: m.env}, nil
		},
		May: func(_ context.Context, who project.Pusher, _ project.Name, want project.Right) (bool, error) {
			return who.Key != "deployer" || want == project.Deploy, nil
		},
		Boundary: func(_ project.Name, s string) {
			if m.at != nil {
				m.at(s)
			}
		},
	})
	require.NoError(t, err)
	if m.lost {
		return
	}
	bad, err := m.p.Recover(t.Context(), nil, true)
	require.NoError(t, err)
	require.Empty(t, bad)
}

// settled waits until what the last deployment left is durable: that follows its verdict.
func (m *machine) settled() {
	if release, err := m.p.Exclusive(context.Background(), "app", "the end of the test", project.Pusher{}); err == nil {
		release()
	}
}

// commit makes a commit of these files in one of the bare repositories, as if its objects had been pushed.
func (m *machine) commit(repo project.Repo, parent project.Commit, files map[string]string) project.Commit {
	t := m.t
	t.Helper()
	dir := m.root.Project("app").ProjectGit()
	if repo == project.PillarRepo {
		dir = m.root.Project("app").PillarGit()
	}
	index := filepath.Join(t.TempDir(), "index")
	git := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_NAME=m", "GIT_AUTHOR_EMAIL=m@x", "GIT_COMMITTER_NAME=m", "GIT_COMMITTER_EMAIL=m@x")
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	for name, text := range files {
		mode := "100644"
		if strings.HasSuffix(name, ".sh") {
			mode = "100755"
		}
		git("", "update-index", "--add", "--cacheinfo", mode+","+git(text, "hash-object", "-w", "--stdin")+","+name)
	}
	args := []string{"commit-tree", git("", "write-tree"), "-m", "a commit"}
	if parent != "" {
		args = append(args, "-p", string(parent))
	}
	return project.Commit(git("", args...))
}

// push deploys a commit and waits; it returns the result and what the pusher would have read.
func (m *machine) push(repo project.Repo, old, new project.Commit) (project.Result, string) {
	m.t.Helper()
	return m.pushTo(repo, "refs/heads/master", old, new)
}

func (m *machine) pushTo(repo project.Repo, ref string, old, new project.Commit) (project.Result, string) {
	m.t.Helper()
	id, err := m.p.Start(m.t.Context(), project.Deployment{
		Project: "app", Trigger: project.TriggerPush, Repo: repo, Pusher: project.Pusher{Key: "marie"},
		Change: project.Change{Ref: ref, Old: old, New: new},
	}, nil)
	require.NoError(m.t, err)
	return m.follow(id)
}

func (m *machine) follow(id project.ID) (project.Result, string) {
	m.t.Helper()
	var b strings.Builder
	c := event.NewConsole(&b, event.Style{})
	for e, err := range m.p.Follow(m.t.Context(), id, 0) {
		require.NoError(m.t, err)
		_, err = c.Show(e)
		require.NoError(m.t, err)
	}
	res, err := m.p.Wait(m.t.Context(), id)
	require.NoError(m.t, err)
	return res, b.String()
}

func (m *machine) live(name string) string {
	data, err := os.ReadFile(filepath.Join(m.root.Project("app").Live(), name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (m *machine) branch(repo project.Repo) project.Commit {
	c, err := m.rep.Open("app", repo).Get(m.t.Context(), "refs/heads/master")
	require.NoError(m.t, err)
	return c
}

const okStep = "ok:\n  cmd.run:\n    - name: echo ran > ran\n    - cwd: {{opts.ms_project.project_root}}\n"
const badStep = "bad:\n  cmd.run:\n    - name: rm page; echo junk > junk; exit 3\n    - cwd: {{opts.ms_project.project_root}}\n"

func TestGoodPushGoesLiveAndABadOneRollsBack(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one", ".salt/010_ok.sls": okStep})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "one", m.live("page"))
	require.Equal(t, "ran\n", m.live("ran"))
	require.Equal(t, one, m.branch(project.Code))
	require.Contains(t, out, "=====> live in")

	two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010_ok.sls": okStep, ".salt/020_bad.sls": badStep, ".salt/030_never.sls": okStep})
	res, out = m.push(project.Code, one, two)
	require.Equal(t, project.RolledBack, res.State, out)
	require.Equal(t, "020_bad", res.Step)
	require.Equal(t, "bad", res.StateID)
	require.Equal(t, "one", m.live("page"))
	require.Contains(t, m.live("junk"), "no such file")
	require.Equal(t, one, m.branch(project.Code))
	require.Contains(t, out, "steps not run: 030_never")
	require.Contains(t, out, "exit status 3")

	list, err := m.p.Deployments(t.Context(), "app", 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, project.RolledBack, list[0].State)
}

func TestRefusedBeforeAnythingRan(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one", ".salt/010_ok.sls": okStep, ".salt/020_bad.sls": "x:\n  no.such: []\n"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Refused, res.State, out)
	require.Contains(t, out, ".salt/020_bad.sls:2")
	require.NotContains(t, out, "-----> archive")
	require.Empty(t, m.branch(project.Code))
	archives, err := os.ReadDir(m.root.Project("app").Archives())
	require.NoError(t, err)
	require.Empty(t, archives)
}

func TestCancelEndsTheStepAndRollsBack(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010_wait.sls": "wait:\n  cmd.run:\n    - name: touch started; sleep 600\n    - cwd: {{opts.ms_project.data_root}}\n"})
	id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Pusher: project.Pusher{Key: "marie"},
		Change: project.Change{Ref: "refs/heads/master", Old: one, New: two}}, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(m.root.Project("app").Data(), "started"))
		return err == nil
	}, time.Minute, time.Millisecond)
	got, err := m.p.Cancel(t.Context(), "app", "", project.Pusher{Key: "ops"})
	require.NoError(t, err)
	require.Equal(t, id, got)
	res, out = m.follow(id)
	require.Equal(t, project.RolledBack, res.State, out)
	require.Equal(t, "cancelled by ops", res.Reason)
	require.Equal(t, "one", m.live("page"))
}

func TestRollbackRestoresAnEarlierTreeAndMovesTheBranchBack(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	two := m.commit(project.Code, one, map[string]string{"page": "two"})
	_, _ = m.push(project.Code, "", one)
	res, out := m.push(project.Code, one, two)
	require.Equal(t, project.Live, res.State, out)
	id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerRollback, Pusher: project.Pusher{Key: "ops"}}, nil)
	require.NoError(t, err)
	res, out = m.follow(id)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "one", m.live("page"))
	require.Equal(t, one, m.branch(project.Code))
}

// A rollback to before the first pillar takes its branch away, the next one brings it back under its old name, and so on; who
// may not push the pillar can do neither.
func TestRollbackTakesThePillarAwayAndBringsItBack(t *testing.T) {
	for _, branch := range []string{"refs/heads/master", "refs/heads/main"} {
		m := newMachine(t)
		back := func(who string, to project.ID) (project.Result, string) {
			id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerRollback, Restore: to, Pusher: project.Pusher{Key: who}}, nil)
			require.NoError(t, err)
			return m.follow(id)
		}
		code := m.commit(project.Code, "", map[string]string{"page": "one"})
		res, out := m.push(project.Code, "", code)
		require.Equal(t, project.Live, res.State, out)
		pillar := m.commit(project.PillarRepo, "", map[string]string{"init.sls": "a: 1\n"})
		res, out = m.pushTo(project.PillarRepo, branch, "", pillar)
		require.Equal(t, project.Live, res.State, out)
		list, err := m.p.Deployments(t.Context(), "app", 1)
		require.NoError(t, err)
		with := list[0].ID
		for range 3 {
			res, out = back("deployer", "")
			require.Equal(t, project.Refused, res.State, out)
			require.Contains(t, out, "the pillar would be rolled back too")
			res, out = back("ops", "")
			require.Equal(t, project.Live, res.State, out)
			got, err := m.rep.Open("app", project.PillarRepo).Get(t.Context(), branch)
			require.NoError(t, err)
			require.Empty(t, got)
			require.NoFileExists(t, filepath.Join(m.root.Project("app").Pillar(), "init.sls"))

			res, out = back("deployer", with)
			require.Equal(t, project.Refused, res.State, out)
			res, out = back("ops", with)
			require.Equal(t, project.Live, res.State, out)
			got, err = m.rep.Open("app", project.PillarRepo).Get(t.Context(), branch)
			require.NoError(t, err)
			require.Equal(t, pillar, got)
			require.FileExists(t, filepath.Join(m.root.Project("app").Pillar(), "init.sls"))
		}
	}
}

// History is replaced by force, again and again, and what nothing refers to is removed at once: what an archive holds is there to go back
// to as long as the archive is, and gone after it.
func TestPinsFollowTheArchives(t *testing.T) {
	m := newMachine(t)
	names := func() (out []string) {
		refs, err := m.rep.Open("app", project.Code).List(t.Context(), "refs/corpus/")
		require.NoError(t, err)
		for r := range refs {
			out = append(out, r)
		}
		return out
	}
	has := func(c project.Commit) bool {
		ctx, done := context.WithCancel(t.Context())
		defer done()
		_, err := m.rep.Open("app", project.Code).Tree(ctx, c, nil)
		return err == nil
	}
	prune := func() {
		for range 2 {
			_, err := m.rep.Open("app", project.Code).Maintain(t.Context(), receive.Maintenance{All: true, Grace: 1})
			require.NoError(t, err)
		}
	}
	var commits []project.Commit
	old := project.Commit("")
	for i := range 6 {
		c := m.commit(project.Code, "", map[string]string{"page": fmt.Sprint(i)})
		res, out := m.push(project.Code, old, c)
		require.Equal(t, project.Live, res.State, out)
		commits, old = append(commits, c), c
		prune()
	}
	// Three archives, which hold 2, 3 and 4, made by the deployments of 3, 4 and 5.
	require.Len(t, names(), 3)
	for i, c := range commits {
		require.Equal(t, i >= 2, has(c), "commit %d", i)
	}
	list, err := m.p.Deployments(t.Context(), "app", 10)
	require.NoError(t, err)
	id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerRollback, Restore: list[3].ID, Pusher: project.Pusher{Key: "ops"}}, nil)
	require.NoError(t, err)
	res, out := m.follow(id)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "2", m.live("page"))
	require.Equal(t, commits[2], m.branch(project.Code))
	prune()
	require.True(t, has(commits[2]))
	require.True(t, has(commits[5]), "it was live before, and its archive is the newest")
}

func TestRecoveryAtEveryBoundary(t *testing.T) {
	var points []string
	probe := newMachine(t)
	probe.at = func(s string) { points = append(points, s) }
	files := map[string]string{"page": "one", ".salt/010_ok.sls": okStep}
	one := probe.commit(project.Code, "", files)
	res, out := probe.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	require.Contains(t, points, "committing")
	require.GreaterOrEqual(t, len(points), 9, points)

	for i, point := range points {
		t.Run(point, func(t *testing.T) {
			m := newMachine(t)
			one := m.commit(project.Code, "", files)
			res, out := m.push(project.Code, "", one)
			require.Equal(t, project.Live, res.State, out)
			two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010_ok.sls": okStep})
			// The process dies right after the i-th journal entry: this goroutine never comes back.
			n, dead := 0, make(chan struct{})
			m.at = func(string) {
				if n == i {
					close(dead)
					select {}
				}
				n++
			}
			_, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
				Change: project.Change{Ref: "refs/heads/master", Old: one, New: two}}, nil)
			require.NoError(t, err)
			<-dead
			m.at = nil
			m.start()
			list, err := m.p.Deployments(t.Context(), "app", 1)
			require.NoError(t, err)
			want, page := project.RolledBack, "one"
			if point == "committing" || point == "ended" {
				want, page = project.Live, "two"
			}
			require.Equal(t, want, list[0].State, list[0].Result)
			require.Equal(t, page, m.live("page"))
			if page == "one" {
				require.Equal(t, one, m.branch(project.Code))
			} else {
				require.Equal(t, two, m.branch(project.Code))
			}
			m.start() // a second recovery changes nothing
			again, err := m.p.Deployments(t.Context(), "app", 1)
			require.NoError(t, err)
			require.Equal(t, list[0].Result.Ended.UnixNano(), again[0].Result.Ended.UnixNano())
			if page == "one" {
				res, out := m.push(project.Code, one, two)
				require.Equal(t, project.Live, res.State, out)
			}
		})
	}
}

// diesAt begins a push of code, and returns when it has come to a point of the journal, where it stays, as if the process had died.
func (m *machine) diesAt(point string, old, new project.Commit) project.ID {
	m.t.Helper()
	dead := make(chan struct{})
	m.at = func(at string) {
		if at == point {
			close(dead)
			select {}
		}
	}
	id, err := m.p.Start(m.t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
		Change: project.Change{Ref: "refs/heads/master", Old: old, New: new}}, nil)
	require.NoError(m.t, err)
	<-dead
	m.at = nil
	return id
}

// The journal is the truth, whatever a start was told: the next deployment finds in it what was left open, and ends that.
func TestAnUnendedJournalIsRecoveredBeforeTheNextDeployment(t *testing.T) {
	m := newMachine(t)
	files := map[string]string{"page": "one", ".salt/010_ok.sls": okStep}
	one := m.commit(project.Code, "", files)
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	files["page"] = "two"
	two := m.commit(project.Code, one, files)
	id := m.diesAt("begin install", one, two)
	m.lost = true
	m.start()
	require.Equal(t, "two", m.live("page"), "nobody has looked yet")
	res, out = m.push(project.Code, one, two)
	require.Equal(t, project.Refused, res.State, out)
	require.Contains(t, res.Reason, "unfinished")
	require.Equal(t, "one", m.live("page"), "the old tree came back")
	rec, err := m.p.Find(t.Context(), "app", string(id))
	require.NoError(t, err)
	require.Equal(t, project.RolledBack, rec.State)
	res, out = m.push(project.Code, one, two)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "two", m.live("page"))
}

// Only what was under way is looked at, and what the table of deployments has open.
func TestRecoverLooksAtWhatIsNamed(t *testing.T) {
	m := newMachine(t)
	state := m.root.DefaultState()
	leave := func(name string) string {
		require.NoError(t, os.MkdirAll(state.Events(name), 0o700))
		left := state.EventLog(name, string(project.NewID()))
		require.NoError(t, os.WriteFile(left, nil, 0o600))
		return left
	}
	a, b := leave("a"), leave("b")
	bad, err := m.p.Recover(t.Context(), []project.Name{"a"}, false)
	require.NoError(t, err)
	require.Empty(t, bad)
	require.NoFileExists(t, a)
	require.FileExists(t, b)
	require.NoFileExists(t, state.Journal("a"), "looking makes nothing")
	// A project that can't be fixed is told, and the others are fixed all the same.
	require.NoError(t, os.MkdirAll(state.Journals(), 0o700))
	require.NoError(t, os.Mkdir(state.Journal("broken"), 0o700))
	bad, err = m.p.Recover(t.Context(), nil, true)
	require.Error(t, err)
	require.Equal(t, map[project.Name]bool{"broken": true}, bad)
	require.NoFileExists(t, b)
}

// Whatever a procedure makes of the end of its context, the result says what ended it.
func TestCancelInAProcedure(t *testing.T) {
	for _, point := range []string{"begin archive", "begin release-sync", "begin fixperms"} {
		m := newMachine(t)
		one := m.commit(project.Code, "", map[string]string{"page": "one"})
		res, out := m.push(project.Code, "", one)
		require.Equal(t, project.Live, res.State, out)
		var once sync.Once
		m.at = func(s string) {
			if s == point {
				once.Do(func() {
					_, err := m.p.Cancel(t.Context(), "app", "", project.Pusher{Key: "ops"})
					assert.NoError(t, err)
				})
			}
		}
		res, out = m.push(project.Code, one, m.commit(project.Code, one, map[string]string{"page": "two"}))
		require.Equal(t, project.RolledBack, res.State, out)
		require.Equal(t, "cancelled by ops", res.Reason)
		require.NotContains(t, out, "internal error")
		require.Equal(t, "one", m.live("page"))
	}
}

func TestDeadlineRollsBack(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	m.settled()
	m.deadline = 2 * time.Second
	m.start()
	two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010_wait.sls": "wait:\n  cmd.run:\n    - name: sleep 600\n"})
	res, out = m.push(project.Code, one, two)
	require.Equal(t, project.RolledBack, res.State, out)
	require.Equal(t, "deadline of 2s exceeded", res.Reason)
	require.Equal(t, "one", m.live("page"))
}

func TestExclusiveKeepsDeploymentsInLine(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	release, err := m.p.Exclusive(t.Context(), "app", "archives prune", project.Pusher{Key: "ops"})
	require.NoError(t, err)
	_, err = m.p.Exclusive(t.Context(), "app", "project destroy", project.Pusher{Key: "ops"})
	require.Equal(t, fault.Busy, fault.KindOf(err))
	id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
		Change: project.Change{Ref: "refs/heads/master", New: one}}, nil)
	require.NoError(t, err)
	q, err := m.p.Queue(t.Context(), "app")
	require.NoError(t, err)
	require.Len(t, q.Waiting, 1)
	release()
	res, out := m.follow(id)
	require.Equal(t, project.Live, res.State, out)
	require.Contains(t, out, "waiting for")
}

func TestShutdownRefusesNewDeployments(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	require.NoError(t, m.p.Shutdown(t.Context()))
	_, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
		Change: project.Change{Ref: "refs/heads/master", New: one}}, nil)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.NotEmpty(t, fault.HintOf(err))
}

// asked is a context that reports when somebody waits for its end.
type asked struct {
	context.Context
	told func()
}

func (a asked) Done() <-chan struct{} {
	a.told()
	return a.Context.Done()
}

// TestRecordingHoldsUpNobodyElse: while a deployment's record waits for the disk, other projects go on; a shutdown that comes meanwhile
// finds it, and the same push that comes once more is joined.
func TestRecordingHoldsUpNobodyElse(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	busy, err := m.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = busy.Rollback() }()
	waits := m.db.Stats().WaitCount
	type started struct {
		id  project.ID
		err error
	}
	starts := make(chan started, 2)
	for range 2 {
		go func() {
			id, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
				Change: project.Change{Ref: "refs/heads/master", New: one}}, nil)
			starts <- started{id, err}
		}()
	}
	require.Eventually(t, func() bool { return m.db.Stats().WaitCount > waits }, time.Minute, time.Millisecond)
	free := make(chan project.Queue)
	go func() {
		q, err := m.p.Queue(t.Context(), "other")
		require.NoError(t, err)
		free <- q
	}()
	select {
	case <-free:
	case <-time.After(time.Minute):
		t.Fatal("what one project's record waits for, all projects wait for")
	}
	waiting, ended := make(chan struct{}), make(chan error, 1)
	ctx := asked{context.Background(), sync.OnceFunc(func() { close(waiting) })}
	go func() { ended <- m.p.Shutdown(ctx) }()
	<-waiting
	require.NoError(t, busy.Rollback())
	var refused error
	var id project.ID
	for range 2 {
		s := <-starts
		if s.err != nil {
			refused = s.err
			continue
		}
		id = s.id
	}
	require.Equal(t, fault.Busy, fault.KindOf(refused), "the second came after the shutdown: %v", refused)
	require.NoError(t, <-ended)
	res, err := m.p.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, project.Refused, res.State)
	require.Contains(t, res.Reason, "shutting down")
}
