package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// bare makes a repository as an empty folder.
type bare struct {
	root layout.Root
	fail error
}

// repository is one of a bare's.
type repository struct {
	*bare
	name project.Name
	repo project.Repo
}

func (b *bare) open(name project.Name, repo project.Repo) registry.Repository {
	return repository{b, name, repo}
}

func (b repository) Create(context.Context) (bool, error) {
	if b.fail != nil {
		return false, b.fail
	}
	dir := b.root.Project(string(b.name)).ProjectGit()
	if b.repo == project.PillarRepo {
		dir = b.root.Project(string(b.name)).PillarGit()
	}
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	return true, os.Mkdir(dir, 0o700)
}

type links map[project.Name]bool

func (l links) Link(_ context.Context, n project.Name) ([]string, error) {
	l[n] = true
	return []string{"linked"}, nil
}

func (l links) Unlink(_ context.Context, n project.Name) ([]string, error) {
	delete(l, n)
	return []string{"unlinked"}, nil
}

type queue struct {
	forgot []project.Name
	q      project.Queue
	seen   func()
}

func (q *queue) Exclusive(context.Context, project.Name, string, project.Pusher) (func(), error) {
	if q.seen != nil {
		q.seen()
	}
	if q.q.Running != nil {
		return nil, fault.New(fault.Busy, "project destroy", "a deployment is running")
	}
	return func() {}, nil
}

func (q *queue) Forget(_ context.Context, name project.Name) error {
	q.forgot = append(q.forgot, name)
	return nil
}

type house struct {
	*registry.Registry
	bare  *bare
	links links
	queue *queue
}

func open(t *testing.T) house {
	t.Helper()
	root := layout.Root(t.TempDir())
	state := root.DefaultState()
	d, err := db.Open(t.Context(), state.Database())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r, err := registry.Open(t.Context(), d, root, state, func() time.Time { return at })
	require.NoError(t, err)
	h := house{r, &bare{root: root}, links{}, &queue{}}
	r.Repository, r.Linker, r.Deployments = h.bare.open, h.links, h.queue
	return h
}

func TestCreateIsIdempotent(t *testing.T) {
	h := open(t)
	c, err := h.Create(t.Context(), "app", registry.Settings{Env: "prod"})
	require.NoError(t, err)
	require.True(t, c.New)
	require.Equal(t, []project.Repo{project.Code, project.PillarRepo}, c.Repos)
	require.Equal(t, []string{"linked"}, c.Linked)
	require.True(t, h.links["app"])
	l := h.Root.Project("app")
	for _, d := range []string{l.Live(), l.Pillar(), l.Data(), l.Archives(), l.ProjectGit(), l.PillarGit()} {
		require.DirExists(t, d)
	}
	require.NoError(t, os.RemoveAll(l.PillarGit()))
	c, err = h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	require.False(t, c.New)
	require.Equal(t, []project.Repo{project.PillarRepo}, c.Repos)
	require.Equal(t, "prod", c.Project.Env)
	require.Empty(t, c.Changed)
	c, err = h.Create(t.Context(), "app", registry.Settings{Env: "dev"})
	require.NoError(t, err)
	require.Equal(t, []string{"env"}, c.Changed)
	p, err := h.Get(t.Context(), "app")
	require.NoError(t, err)
	require.Equal(t, "dev", p.Env)
	require.False(t, p.Missing)
}

func TestCreateRefuses(t *testing.T) {
	h := open(t)
	_, err := h.Create(t.Context(), "../x", registry.Settings{})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = h.Create(t.Context(), "app", registry.Settings{Env: "production"})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	_, err = h.Create(t.Context(), "app", registry.Settings{RemoteLess: true})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.NoError(t, os.WriteFile(filepath.Join(h.Root.Projects(), "file"), nil, 0o600))
	_, err = h.Create(t.Context(), "file", registry.Settings{})
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

func TestCreateThatFailsHalfwayIsNoProject(t *testing.T) {
	h := open(t)
	h.bare.fail = errors.New("disk full")
	_, err := h.Create(t.Context(), "app", registry.Settings{})
	require.Error(t, err)
	ok, err := h.Exists(t.Context(), "app")
	require.NoError(t, err)
	require.False(t, ok)
	h.bare.fail = nil
	c, err := h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	require.True(t, c.New)
}

func TestRemoteLess(t *testing.T) {
	h := open(t)
	c, err := h.Create(t.Context(), "hand", registry.Settings{RemoteLess: true})
	require.NoError(t, err)
	require.Empty(t, c.Repos)
	require.NoDirExists(t, h.Root.Project("hand").Git())
	c, err = h.Create(t.Context(), "hand", registry.Settings{})
	require.NoError(t, err)
	require.Equal(t, []string{"remote_less"}, c.Changed)
	require.Len(t, c.Repos, 2)
}

func TestDestroyKeepsData(t *testing.T) {
	for _, data := range []bool{false, true} {
		h := open(t)
		_, err := h.Create(t.Context(), "app", registry.Settings{})
		require.NoError(t, err)
		l := h.Root.Project("app")
		require.NoError(t, os.WriteFile(filepath.Join(l.Data(), "precious"), []byte("x"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(l.Live(), "index.html"), []byte("x"), 0o600))
		h.links["app"] = true
		d, err := h.Destroy(t.Context(), "app", data)
		require.NoError(t, err)
		require.Empty(t, h.links)
		require.FileExists(t, filepath.Join(d.Trash, "project", "index.html"))
		if data {
			require.NoDirExists(t, l.Dir())
			require.Empty(t, d.Kept)
		} else {
			require.FileExists(t, filepath.Join(d.Kept, "precious"))
		}
		adopted, err := h.Reconcile(t.Context())
		require.NoError(t, err)
		require.Empty(t, adopted, "what is left is not a project")
		require.NoError(t, h.EmptyTrash(t.Context()))
		require.NoDirExists(t, d.Trash)
		require.Equal(t, []project.Name{"app"}, h.queue.forgot, "a project of the same name begins anew")
		_, err = h.Destroy(t.Context(), "app", data)
		require.Equal(t, fault.Refused, fault.KindOf(err))
	}
}

// The state directory of a sandboxed service is a mount of its own, of the same file system: nothing can be renamed to there.
func TestDestroyAcrossMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	h := open(t)
	_, err := h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(h.State.Path(), 0o700))
	require.NoError(t, unix.Mount(h.State.Path(), h.State.Path(), "", unix.MS_BIND, ""))
	defer func() { require.NoError(t, unix.Unmount(h.State.Path(), unix.MNT_DETACH)) }()
	l := h.Root.Project("app")
	require.NoError(t, os.WriteFile(filepath.Join(l.Live(), "index.html"), []byte("x"), 0o600))
	d, err := h.Destroy(t.Context(), "app", true)
	require.NoError(t, err)
	require.NoDirExists(t, l.Dir())
	require.FileExists(t, filepath.Join(d.Trash, "project", "index.html"))
	require.NoError(t, h.EmptyTrash(t.Context()))
	require.NoDirExists(t, d.Trash)
}

func TestDestroyIsRefusedWhileDeploying(t *testing.T) {
	h := open(t)
	_, err := h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	h.queue.q.Running = &project.Record{}
	h.queue.seen = func() {
		half, err := h.Destroying(context.Background())
		require.NoError(t, err)
		require.Equal(t, []project.Name{"app"}, half)
		ok, err := h.Exists(context.Background(), "app")
		require.NoError(t, err)
		require.False(t, ok, "nothing may start while we look")
	}
	_, err = h.Destroy(t.Context(), "app", false)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	ok, err := h.Exists(t.Context(), "app")
	require.NoError(t, err)
	require.True(t, ok)
	require.DirExists(t, h.Root.Project("app").ProjectGit())
}

func TestLinkIsRemembered(t *testing.T) {
	h := open(t)
	_, err := h.Create(t.Context(), "app", registry.Settings{})
	require.NoError(t, err)
	changed, err := h.Unlink(t.Context(), "app")
	require.NoError(t, err)
	require.True(t, changed)
	p, err := h.Get(t.Context(), "app")
	require.NoError(t, err)
	require.False(t, p.Linked)
	changed, err = h.Link(t.Context(), "app")
	require.NoError(t, err)
	require.True(t, changed)
	require.True(t, h.links["app"])
	_, err = h.Link(t.Context(), "nope")
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

func TestReconcileAdopts(t *testing.T) {
	h := open(t)
	for _, d := range []string{"old/git/project.git", "hand/project/.salt", "rest/data", "Bad/git/project.git", ".trash/x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(h.Root.Projects(), d), 0o755))
	}
	adopted, err := h.Reconcile(t.Context())
	require.NoError(t, err)
	require.Equal(t, []project.Name{"hand", "old"}, adopted)
	all, err := h.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.True(t, all[0].RemoteLess)
	require.False(t, all[1].RemoteLess)
	adopted, err = h.Reconcile(t.Context())
	require.NoError(t, err)
	require.Empty(t, adopted)
	require.NoError(t, os.RemoveAll(h.Root.Project("old").Dir()))
	p, err := h.Get(t.Context(), "old")
	require.NoError(t, err)
	require.True(t, p.Missing)
	all, err = h.List(t.Context())
	require.NoError(t, err)
	for _, x := range all {
		require.Equal(t, x.Name == p.Name, x.Missing, x.Name)
	}
	// A link to a folder elsewhere counts as existing; a dangling link does not.
	elsewhere := t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, h.Root.Project(string(p.Name)).Dir()))
	for _, gone := range []bool{false, true} {
		if gone {
			require.NoError(t, os.Remove(elsewhere))
		}
		all, err = h.List(t.Context())
		require.NoError(t, err)
		for _, x := range all {
			require.Equal(t, gone && x.Name == p.Name, x.Missing, x.Name)
		}
	}
}

// A table of the version before projects could begin with a skeleton is still read.
func TestTableWithoutSkeletons(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, db.Migrate(t.Context(), d, "registry", []string{
		`CREATE TABLE projects (name TEXT PRIMARY KEY, env TEXT NOT NULL, remote_less INTEGER NOT NULL, linked INTEGER NOT NULL,
			created INTEGER NOT NULL, destroying INTEGER NOT NULL DEFAULT 0)`,
	}))
	_, err = d.ExecContext(t.Context(), `INSERT INTO projects(name, env, remote_less, linked, created) VALUES('old', 'prod', 0, 1, 7)`)
	require.NoError(t, err)
	root := layout.Root(t.TempDir())
	open := func() *registry.Registry {
		r, err := registry.Open(t.Context(), d, root, layout.State(root), time.Now)
		require.NoError(t, err)
		r.Repository, r.Linker = (&bare{root: root}).open, links{}
		return r
	}
	r := open()
	p, err := r.Get(t.Context(), "old")
	require.NoError(t, err)
	require.Equal(t, "prod", p.Env)
	require.Empty(t, p.Skeleton)
	require.NoError(t, os.MkdirAll(root.Projects(), 0o755))
	_, err = r.Create(t.Context(), "new", registry.Settings{Skeleton: "static"})
	require.NoError(t, err)
	_, err = r.Create(t.Context(), "new", registry.Settings{Env: "dev"})
	require.NoError(t, err)
	p, err = open().Get(t.Context(), "new")
	require.NoError(t, err)
	require.Equal(t, "static", p.Skeleton, "kept by what does not name another")
}
