package bundled_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/bundle/local"
	"corpus-git/cmd/corpus-git/bundled"
	"corpus-git/git/pack"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/inherit"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/receive"
)

var _ local.Repository = bundled.Repository{}

// machine has projects below a folder.
type machine struct {
	t     *testing.T
	dir   string
	repos *receive.Repositories
	limit int64
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "state"), 0o755))
	return &machine{t: t, dir: dir, repos: &receive.Repositories{Root: layout.Root(dir)}}
}

func (m *machine) state() layout.State { return layout.State(filepath.Join(m.dir, "state")) }

func (m *machine) project(name project.Name) bundled.Repository {
	require.NoError(m.t, os.MkdirAll(m.repos.Root.Project(name.String()).Git(), 0o755))
	_, err := m.repos.Open(name, project.Code).Create(m.t.Context())
	require.NoError(m.t, err)
	return m.open(name)
}

func (m *machine) open(name project.Name) bundled.Repository {
	return bundled.Repository{
		Repository: m.repos.Open(name, project.Code), Limits: func() pack.Limits { return pack.Limits{PackBytes: m.limit} },
		Pins: extends.Pins{FS: vfs.OS{}, Path: m.state().Extends(name.String())},
	}
}

func (m *machine) server() inherit.Server {
	return inherit.Server{
		FS: vfs.OS{}, Root: m.repos.Root, State: m.state(),
		Code:     func(n project.Name) inherit.Repository { return m.repos.Open(n, project.Code) },
		Upstream: func(n project.Name) inherit.Upstream { return m.repos.Open(n, project.Code) },
	}
}

func git(t *testing.T, dir string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=M", "-c", "user.email=m@example.org", "-c", "gc.auto=0"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// commit commits files to the branch main of a project, and returns the commit.
func (m *machine) commit(name project.Name, files map[string]string) project.Commit {
	m.project(name)
	work := filepath.Join(m.dir, "work", name.String())
	if _, err := os.Stat(work); err != nil {
		require.NoError(m.t, os.MkdirAll(work, 0o755))
		git(m.t, work, "init", "-q", "-b", "main")
	}
	for path, text := range files {
		require.NoError(m.t, os.MkdirAll(filepath.Dir(filepath.Join(work, path)), 0o755))
		require.NoError(m.t, os.WriteFile(filepath.Join(work, path), []byte(text), 0o644))
	}
	git(m.t, work, "add", "-A")
	git(m.t, work, "commit", "-q", "--allow-empty", "-m", "x")
	git(m.t, m.repos.Root.Project(name.String()).ProjectGit(), "fetch", "-q", work, "+main:refs/heads/main")
	return project.Commit(git(m.t, work, "rev-parse", "HEAD"))
}

// read reads the recipe of a commit as a deployment does, with those below it.
func (m *machine) read(name project.Name, c project.Commit) (fs.FS, *inherit.Recipes, error) {
	code, err := m.repos.Open(name, project.Code).Tree(m.t.Context(), c, nil)
	require.NoError(m.t, err)
	own, err := fs.Sub(code, layout.SaltDir)
	require.NoError(m.t, err)
	return m.server().Read(m.t.Context(), inherit.Request{Name: name, Commit: c}, own)
}

// deploy reads the recipe of a commit, and records it, as a deployment does.
func (m *machine) deploy(name project.Name, c project.Commit) (fs.FS, error) {
	files, in, err := m.read(name, c)
	if err != nil {
		return nil, err
	}
	return files, in.Keep(m.t.Context(), m.server(), name)
}

func signer(t *testing.T) ssh.Signer {
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	return s
}

// bundle makes the bundle of a commit of app for a machine.
func (m *machine) bundle(c project.Commit, have bundle.Tips) (bundle.Manifest, []byte, error) {
	var b bytes.Buffer
	got, err := bundle.Make(m.t.Context(), &b, bundle.Manifest{Release: bundle.Release{Project: "app", Code: c, CodeBranch: "refs/heads/main"}, Deployment: project.NewID()},
		func(project.Repo) bundle.Repository { return m.open("app") }, have, nil, signer(m.t), m.dir)
	return got, b.Bytes(), err
}

// tips returns what the machine has of app.
func (m *machine) tips() bundle.Tips {
	repo := m.project("app")
	t := bundle.Unknown()
	var err error
	t.Code, err = repo.Tips(m.t.Context())
	require.NoError(m.t, err)
	t.Recipes.Commits, err = repo.TakenRecipes()
	require.NoError(m.t, err)
	return t
}

func (m *machine) take(data []byte) error {
	m.project("app")
	r, err := bundle.Open(bytes.NewReader(data), bundle.Anybody)
	if err != nil {
		return err
	}
	return r.Take(m.t.Context(), func(project.Repo) bundle.Repository { return m.open("app") }, "refs/corpus/bundles/"+string(r.Manifest.Deployment))
}

// resigned is a bundle with another manifest.
func resigned(t *testing.T, data []byte, change func(*bundle.Manifest)) []byte {
	lines := bytes.SplitN(data, []byte("\n"), 4)
	var m bundle.Manifest
	require.NoError(t, json.Unmarshal(lines[1], &m))
	change(&m)
	var err error
	m.Digest, err = m.Release.Digest()
	require.NoError(t, err)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	sig, err := bundle.Sign("corpus-git bundle manifest\x00", text, signer(t))
	require.NoError(t, err)
	return bytes.Join([][]byte{lines[0], text, []byte(sig), lines[3]}, []byte("\n"))
}

func has(t *testing.T, files fs.FS, path, want string) {
	t.Helper()
	text, err := fs.ReadFile(files, path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

// world is a hub whose app extends base, and a node without anything.
func world(t *testing.T) (hub, node *machine, first project.Commit) {
	hub, node = newMachine(t), newMachine(t)
	hub.commit("base", map[string]string{".salt/010.sls": "base one", ".salt/files/large": strings.Repeat("stays\n", 1000), "secret": "not for nodes"})
	first = hub.commit("app", map[string]string{".salt/extends.yaml": "[base@main]", ".salt/020.sls": "app"})
	_, err := hub.deploy("app", first)
	require.NoError(t, err)
	return hub, node, first
}

// A node deploys with what the hub resolved, and nothing else: without the project, after the branch has moved, and when the node has a project of that name.
func TestRecipesTravel(t *testing.T) {
	hub, node, first := world(t)
	m, data, err := hub.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	require.Len(t, m.Release.Recipes, 1)
	require.Equal(t, "base@main", m.Release.Recipes[0].String())
	require.NoError(t, node.take(data))
	require.NoError(t, node.take(data), "again")
	_, err = os.Stat(node.repos.Root.Project("base").ProjectGit())
	require.ErrorIs(t, err, fs.ErrNotExist)
	files, err := node.deploy("app", first)
	require.NoError(t, err)
	has(t, files, "010.sls", "base one")
	has(t, files, "020.sls", "app")

	// The branch moves. The same release stays as it is; the next one gets what changed.
	hub.commit("base", map[string]string{".salt/010.sls": "base two"})
	node.commit("base", map[string]string{".salt/010.sls": "another project"})
	_, err = hub.deploy("app", first)
	require.NoError(t, err)
	m, data, err = hub.bundle(first, node.tips())
	require.NoError(t, err)
	require.Zero(t, m.Objects())
	require.NoError(t, node.take(data))
	second := hub.commit("app", nil)
	_, err = hub.deploy("app", second)
	require.NoError(t, err)
	m, data, err = hub.bundle(second, node.tips())
	require.NoError(t, err)
	require.Len(t, m.Packs, 2)
	require.Equal(t, bundle.Recipes, m.Packs[1].Repo)
	require.Equal(t, 4, m.Packs[1].Objects, "commit, two trees, one file")
	require.NoError(t, node.take(data))
	files, err = node.deploy("app", second)
	require.NoError(t, err)
	has(t, files, "010.sls", "base two")
	has(t, files, "files/large", strings.Repeat("stays\n", 1000))
	files, err = node.deploy("app", first)
	require.NoError(t, err)
	has(t, files, "010.sls", "base one")
	_, err = fs.Stat(files, "../secret")
	require.Error(t, err)

	// The node sends on what it has.
	other := newMachine(t)
	m, data, err = node.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	require.NoError(t, other.take(data))
	files, err = other.deploy("app", first)
	require.NoError(t, err)
	has(t, files, "010.sls", "base one")
	require.Equal(t, "base@main", m.Release.Recipes[0].String())
}

// A release that is not recorded, a recipe that is gone, and a machine of an older release.
func TestRecipesOfTheHub(t *testing.T) {
	hub, _, first := world(t)
	never := hub.commit("app", nil)
	_, _, err := hub.bundle(never, bundle.Unknown())
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "with which recipes "+never.Short()+" was released is not known here")
	m, _, err := hub.bundle(never, bundle.Tips{})
	require.NoError(t, err)
	require.Empty(t, m.Release.Recipes)
	plain := hub.commit("app", map[string]string{".salt/extends.yaml": "[]"})
	m, _, err = hub.bundle(plain, bundle.Unknown())
	require.NoError(t, err)
	require.Empty(t, m.Release.Recipes)
	require.NoError(t, os.RemoveAll(string(hub.repos.Root.Project("base").Git())))
	_, _, err = hub.bundle(first, bundle.Unknown())
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "the recipe of base at ")
}

// What cannot be deployed as the hub says is refused when the bundle is taken, and nothing of it is recorded.
func TestTakeRefuses(t *testing.T) {
	hub, _, first := world(t)
	good, data, err := hub.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	other := project.Commit(strings.Repeat("1", 40))
	recipe := good.Release.Recipes[0]
	with := func(change func(*bundle.Recipe)) []byte {
		return resigned(t, data, func(m *bundle.Manifest) {
			r := recipe
			change(&r)
			m.Release.Recipes = []bundle.Recipe{r}
			for i := range m.Packs {
				if m.Packs[i].Repo == bundle.Recipes {
					m.Packs[i].Commits = []project.Commit{r.Part}
				}
			}
		})
	}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	flip := func(b []byte) []byte { b = bytes.Clone(b); b[len(b)-30] ^= 1; return b }
	for name, c := range map[string]struct {
		data  []byte
		node  func(*machine)
		limit int64
		bad   string
	}{
		"no pack of it": {bad: "does not bring the recipe base@main, and it is not stored here", data: func() []byte {
			out := resigned(t, data, func(m *bundle.Manifest) { m.Packs = m.Packs[:1] })
			return out[:len(out)-int(good.Packs[1].Bytes)]
		}()},
		"another part than in the pack": {bad: "is not in it", data: with(func(r *bundle.Recipe) { r.Part = other })},
		"no URL that can be":            {bad: "recipe 1 is not one that a project can extend", data: with(func(r *bundle.Recipe) { r.Project, r.URL = "", "file:///etc" })},
		"a password":                    {bad: "recipe 1 is not one that a project can extend", data: with(func(r *bundle.Recipe) { r.Project, r.URL = "", "https://marie:hunter2@h/x" })},
		"no ref that can be":            {bad: "recipe 1 is not one that a project can extend", data: with(func(r *bundle.Recipe) { r.Ref = "--upload-pack=x" })},
		"cut off":                       {bad: "cut off", data: cut(data)},
		"damaged":                       {bad: "", data: flip(data)},
		"too large":                     {bad: "the pack of ", data: data, limit: 100},
		"it had other ones": {data: data, bad: "was deployed here before, with base@main at 1111111", node: func(m *machine) {
			_, err := m.open("app").Pins.Keep(first, extends.Release{Pins: map[string]project.Commit{"base@main": other}})
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			node := newMachine(t)
			node.project("app")
			if c.node != nil {
				c.node(node)
			}
			before, err := node.open("app").Pins.Of(first)
			require.NoError(t, err)
			node.limit = c.limit
			err = node.take(c.data)
			require.Equal(t, fault.Refused, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.bad)
			require.NotContains(t, err.Error(), "hunter2")
			after, err := node.open("app").Pins.Of(first)
			require.NoError(t, err)
			require.Equal(t, before, after)
			came, err := node.open("app").TakenRecipes()
			require.NoError(t, err)
			require.Empty(t, came)
			// The good one then is taken.
			if c.node == nil {
				node.limit = 0
				require.NoError(t, node.take(data))
				_, err = node.deploy("app", first)
				require.NoError(t, err)
			}
		})
	}
}

// A deployment of a release that lacks what the bundle brought, or extends more than it named, looks for it nowhere else.
func TestReadsOnlyWhatCame(t *testing.T) {
	hub, node, first := world(t)
	_, data, err := hub.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	require.NoError(t, node.take(data))
	node.commit("base", map[string]string{".salt/010.sls": "another project"})
	require.NoError(t, node.open("app").KeepRecipes(nil))
	_, err = node.deploy("app", first)
	require.Equal(t, fault.Failed, fault.KindOf(err))
	require.ErrorContains(t, err, "base@main: its recipe at ")
	require.ErrorContains(t, err, "is not stored")

	require.NoError(t, node.take(data))
	more := hub.commit("app", map[string]string{".salt/extends.yaml": "[base@main, base2]"})
	pins := map[string]project.Commit{}
	parts := map[project.Commit]project.Commit{}
	rel, err := node.open("app").Pins.Of(first)
	require.NoError(t, err)
	for e, c := range rel.Pins {
		pins[e], parts[c] = c, rel.Parts[c]
	}
	require.NoError(t, hub.open("app").Pins.Receive(more, extends.Release{Pins: pins, Parts: parts}))
	require.NoError(t, node.open("app").Pins.Receive(more, extends.Release{Pins: pins, Parts: parts}))
	var b bytes.Buffer
	n, err := hub.open("app").WritePack(t.Context(), &b, more, nil)
	require.NoError(t, err)
	require.NotZero(t, n)
	require.NoError(t, node.open("app").TakePack(t.Context(), &b, more, "refs/corpus/bundles/x", nil))
	node.commit("base2", map[string]string{".salt/010.sls": "a project of the node"})
	_, err = node.deploy("app", more)
	require.ErrorContains(t, err, "base2: the bundle that brought this commit does not name it")
}

// The recipes of recorded releases stay, also while others are recorded; those of releases that are not recorded go.
func TestKeptWhileNeeded(t *testing.T) {
	hub, node, first := world(t)
	_, data, err := hub.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	require.NoError(t, node.take(data))
	unneeded := []project.Commit{}
	for i := range 3 {
		hub.commit("base", map[string]string{".salt/010.sls": strings.Repeat("x", i)})
		next := hub.commit("app", nil)
		_, err = hub.deploy("app", next)
		require.NoError(t, err)
		_, data, err = hub.bundle(next, node.tips())
		require.NoError(t, err)
		if i == 1 { // what is stored and recorded nowhere, as after a crash between both
			r, err := bundle.Open(bytes.NewReader(data), bundle.Anybody)
			require.NoError(t, err)
			code := r.Manifest.Packs[0]
			at := bytes.Index(data, []byte("PACK")) + int(code.Bytes)
			parts := bundle.Parted(r.Manifest.Release.Recipes)
			err = node.open("app").Repository.TakeRecipes(t.Context(), bytes.NewReader(data[at:]), pack.Limits{}, map[project.Commit]string{parts[0]: "base"}, parts, nil, func() error { return io.ErrUnexpectedEOF })
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			unneeded = parts
			continue
		}
		require.NoError(t, node.take(data))
		_, err = node.deploy("app", next)
		require.NoError(t, err)
	}
	came, err := node.open("app").TakenRecipes()
	require.NoError(t, err)
	require.Len(t, came, 3)
	require.NotContains(t, came, unneeded[0])
	files, err := node.deploy("app", first)
	require.NoError(t, err)
	has(t, files, "010.sls", "base one")
}

// projects and deployments are those of a machine on which all that was deployed is live.
type projects struct{}

func (projects) Get(context.Context, project.Name) (registry.Project, error) {
	return registry.Project{}, nil
}
func (projects) Create(context.Context, project.Name, registry.Settings) (registry.Created, error) {
	return registry.Created{}, nil
}

type deployments map[project.Name]project.Commit

func (deployments) Begun(context.Context, project.Deployment) (bool, error) { return false, nil }
func (deployments) Undeployed(context.Context, project.Name) (bool, error)  { return false, nil }
func (deployments) Find(context.Context, project.Name, string) (r project.Record, err error) {
	return r, nil
}
func (d deployments) LastLive(context.Context, []project.Name) (map[project.Name]project.Record, error) {
	out := map[project.Name]project.Record{}
	for name, c := range d {
		out[name] = project.Record{Result: &project.Result{Code: c}}
	}
	return out, nil
}

// What came in a bundle is promoted with its recipes, which nothing else on the machine has; what the other project had with the same commit stays.
func TestPromoteWhatCame(t *testing.T) {
	hub, node, first := world(t)
	_, data, err := hub.bundle(first, bundle.Unknown())
	require.NoError(t, err)
	require.NoError(t, node.take(data))
	_, err = node.deploy("app", first)
	require.NoError(t, err)
	git(t, node.repos.Root.Project("app").ProjectGit(), "update-ref", "refs/heads/main", string(first))
	m := local.Machine{
		Projects: projects{}, Deployments: deployments{"app": first}, Temp: node.dir,
		Repository: func(name project.Name, _ project.Repo) local.Repository { return node.open(name) },
	}
	for _, to := range []project.Name{"live", "other"} {
		node.project(to)
	}
	moved := map[string]project.Commit{"base@main": project.Commit(strings.Repeat("1", 40))}
	_, err = node.open("other").Pins.Keep(first, extends.Release{Pins: moved})
	require.NoError(t, err)
	for _, to := range []project.Name{"live", "other", "live"} {
		_, err = m.Promote(t.Context(), local.Promotion{From: "app", To: to}, func(id project.ID) string { return "refs/corpus/bundles/" + string(id) })
		require.NoError(t, err)
	}
	read := func(to project.Name) (fs.FS, error) {
		code, err := node.repos.Open(to, project.Code).Tree(t.Context(), first, nil)
		require.NoError(t, err)
		own, err := fs.Sub(code, layout.SaltDir)
		require.NoError(t, err)
		files, in, err := node.server().Read(t.Context(), inherit.Request{Name: to, Commit: first, From: "app"}, own)
		if err != nil {
			return nil, err
		}
		return files, in.Keep(t.Context(), node.server(), to)
	}
	files, err := read("live")
	require.NoError(t, err)
	has(t, files, "010.sls", "base one")
	rel, err := node.open("live").Pins.Of(first)
	require.NoError(t, err)
	from, err := node.open("app").Pins.Of(first)
	require.NoError(t, err)
	require.Equal(t, from, rel)
	_, err = read("other")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "other had "+first.Short()+" before, with other commits of the recipes that it extends than app")
}
