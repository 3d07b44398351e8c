package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// Project is one project and its settings.
type Project struct {
	Name project.Name `json:"name"`
	// Env is the name of an environment; "" leaves it to the project's own configuration.
	Env string `json:"env,omitempty"`
	// RemoteLess projects have no repositories and are deployed by hand.
	RemoteLess bool `json:"remote_less"`
	// Linked reports whether Salt's trees are to know the project.
	Linked  bool      `json:"linked"`
	Created time.Time `json:"created"`
	// Skeleton is the name of the skeleton that its first commits were made of, "" if there was none.
	Skeleton string `json:"skeleton,omitempty"`
	// Node says that another server deploys the project here; nil if it is pushed to.
	Node *project.Node `json:"node,omitempty"`
	// Missing reports that the folder of a known project is gone.
	Missing bool `json:"missing,omitempty"`
}

// Settings are what Create is asked for.
type Settings struct {
	// Env is the name of an environment, or "" to keep what is.
	Env        string
	RemoteLess bool
	// Skeleton is what the project begins with, or "" to keep what is.
	Skeleton string
	// Node says that another server deploys the project here; nil keeps what is.
	Node *project.Node
	// By is who asks for it.
	By project.Pusher
}

// Repository is one bare repository of a project; receive's satisfies it.
type Repository interface {
	// Create makes the bare repository if it is missing. Idempotent.
	Create(ctx context.Context) (made bool, err error)
}

// Linker makes and removes the two links and the entry of the top file; procedures satisfies it. Both are idempotent, and
// tell what they changed.
type Linker interface {
	Link(ctx context.Context, name project.Name) (did []string, err error)
	Unlink(ctx context.Context, name project.Name) (did []string, err error)
}

// Deployments keeps them out, and forgets those of a project that is gone; pipeline satisfies it.
type Deployments interface {
	// Exclusive is fault.Busy while a deployment runs or waits; else others wait until release.
	Exclusive(ctx context.Context, name project.Name, what string, by project.Pusher) (release func(), err error)
	Forget(ctx context.Context, name project.Name) error
}

// Registry is the table of projects. Repository, Linker and Deployments may be nil until the first call that
// needs them; such a call then fails.
type Registry struct {
	Root  layout.Root
	State layout.State
	// Repository opens a repository of a project.
	Repository  func(project.Name, project.Repo) Repository
	Linker      Linker
	Deployments Deployments
	// OnCreate is told in the transaction that makes a project known; nil tells nobody.
	OnCreate func(ctx context.Context, tx db.Execer, p Project, by project.Pusher) error
	// Environments are those of the server; nil is dev, staging and prod.
	Environments func() project.Environments

	db  *sql.DB
	now func() time.Time
	mu  sync.Mutex // one create, destroy, link or adoption at a time
}

// Open prepares the table. Nothing on disk is looked at; see Reconcile.
func Open(ctx context.Context, d *sql.DB, root layout.Root, state layout.State, now func() time.Time) (*Registry, error) {
	err := db.Migrate(ctx, d, "registry", []string{
		`CREATE TABLE projects (name TEXT PRIMARY KEY, env TEXT NOT NULL, remote_less INTEGER NOT NULL, linked INTEGER NOT NULL,
			created INTEGER NOT NULL, destroying INTEGER NOT NULL DEFAULT 0)`,
		`ALTER TABLE projects ADD COLUMN skeleton TEXT NOT NULL DEFAULT ''`,
		`ALTER TABLE projects ADD COLUMN node TEXT NOT NULL DEFAULT ''`,
	})
	return &Registry{Root: root, State: state, db: d, now: now}, err
}

// checkEnv validates an environment; "" is allowed and means "not said".
func (r *Registry) checkEnv(s string) error {
	if s == "" {
		return nil
	}
	var envs project.Environments
	if r.Environments != nil {
		envs = r.Environments()
	}
	_, err := envs.Class(s)
	return err
}

const columns = `name, env, remote_less, linked, created, skeleton, node`

type scanner interface{ Scan(...any) error }

func scan(s scanner) (Project, error) {
	var p Project
	var created int64
	var node string
	if err := s.Scan(&p.Name, &p.Env, &p.RemoteLess, &p.Linked, &created, &p.Skeleton, &node); err != nil {
		return Project{}, err
	}
	p.Created = time.Unix(0, created)
	if node != "" {
		if err := json.Unmarshal([]byte(node), &p.Node); err != nil {
			return Project{}, fmt.Errorf("project %s: %w", p.Name, err)
		}
	}
	return p, nil
}

// inspect reports whether a project's folder is there.
func (r *Registry) inspect(p *Project) {
	_, err := os.Stat(r.Root.Project(string(p.Name)).Dir())
	p.Missing = errors.Is(err, os.ErrNotExist)
}

// Get is one project. An unknown one, and one that is being destroyed, is fault.Refused.
func (r *Registry) Get(ctx context.Context, name project.Name) (Project, error) {
	p, err := scan(r.db.QueryRowContext(ctx, `SELECT `+columns+` FROM projects WHERE name = ? AND destroying = 0`, string(name)))
	if errors.Is(err, sql.ErrNoRows) {
		return Project{}, Unknown(name)
	}
	if err == nil {
		r.inspect(&p)
	}
	return p, err
}

// Unknown is the error for a project that does not exist.
func Unknown(name project.Name) error {
	return fault.New(fault.Refused, "", "no project %s", name).WithHint("create it with  corpus-git project create %s", name)
}

// Exists reports whether name is a project.
func (r *Registry) Exists(ctx context.Context, name project.Name) (bool, error) {
	var n int
	err := r.db.QueryRowContext(ctx, `SELECT count(*) FROM projects WHERE name = ? AND destroying = 0`, string(name)).Scan(&n)
	return n > 0, err
}

// List returns all projects by name.
func (r *Registry) List(ctx context.Context) ([]Project, error) {
	out, err := r.rows(ctx)
	if err != nil {
		return nil, err
	}
	// One look for all that are there.
	entries, err := os.ReadDir(r.Root.Projects())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = e.Type()&os.ModeSymlink == 0 // where a link leads, a look at it tells
	}
	for i := range out {
		if !there[string(out[i].Name)] {
			r.inspect(&out[i])
		}
	}
	return out, nil
}

// rows returns those of all projects; nobody has looked whether they are there.
func (r *Registry) rows(ctx context.Context) ([]Project, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT `+columns+` FROM projects WHERE destroying = 0 ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []Project{}
	for rows.Next() {
		p, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// Created says what Create did.
type Created struct {
	Project Project
	// New reports that the project was not known before; Repos which repositories were made.
	New   bool
	Repos []project.Repo
	// Changed names the settings that an existing project changed.
	Changed []string
	// Linked says how Salt's trees came to know the project.
	Linked []string
}

// Create makes a project, completes a half made one, adopts a folder that is there already, and
// changes the environment of an existing project where s names another. Salt's trees get to know it, unless it was unlinked.
// The directories, the repositories and the row are durable on return.
func (r *Registry) Create(ctx context.Context, name project.Name, s Settings) (Created, error) {
	if _, err := project.ParseName(string(name)); err != nil {
		return Created{}, err
	}
	if err := r.checkEnv(s.Env); err != nil {
		return Created{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.Get(ctx, name)
	out := Created{New: err != nil}
	switch {
	case err == nil:
		if s.RemoteLess && !p.RemoteLess {
			return Created{}, fault.New(fault.Refused, "project create", "%s exists and has repositories", name).
				WithHint("leave out --remote-less, or destroy the project first:  corpus-git project destroy %s", name)
		}
		if s.Env != "" && s.Env != p.Env {
			p.Env, out.Changed = s.Env, append(out.Changed, "env")
		}
		if p.RemoteLess && !s.RemoteLess {
			p.RemoteLess, out.Changed = false, append(out.Changed, "remote_less")
		}
		if s.Skeleton != "" {
			p.Skeleton = s.Skeleton
		}
		if s.Node != nil {
			p.Node = s.Node
		}
	case fault.KindOf(err) == fault.Refused:
		if busy, err := r.destroying(ctx, name); err != nil || busy {
			if err == nil {
				err = fault.New(fault.Busy, "project create", "%s is being destroyed", name).
					WithHint("finish that first:  corpus-git project destroy %s --yes", name)
			}
			return Created{}, err
		}
		p = Project{Name: name, Env: s.Env, RemoteLess: s.RemoteLess, Linked: true, Created: r.now(), Skeleton: s.Skeleton, Node: s.Node}
	default:
		return Created{}, err
	}
	if err := r.directories(p); err != nil {
		return Created{}, err
	}
	if !p.RemoteLess {
		for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
			made, err := r.Repository(name, repo).Create(ctx)
			if err != nil {
				return Created{}, err
			}
			if made {
				out.Repos = append(out.Repos, repo)
			}
		}
	}
	if p.Linked {
		if out.Linked, err = r.Linker.Link(ctx, name); err != nil {
			return Created{}, cannot("project create", err)
		}
	}
	if out.New {
		err = r.add(ctx, p, s.By)
	} else {
		err = r.put(ctx, p)
	}
	if err != nil {
		return Created{}, err
	}
	p.Missing = false
	out.Project = p
	return out, nil
}

// add makes a new project known, and reports it in the same transaction.
func (r *Registry) add(ctx context.Context, p Project, by project.Pusher) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := putRow(ctx, tx, p); err != nil {
		return err
	}
	if r.OnCreate != nil {
		if err := r.OnCreate(ctx, tx, p, by); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (r *Registry) put(ctx context.Context, p Project) error { return putRow(ctx, r.db, p) }

func putRow(ctx context.Context, to db.Execer, p Project) error {
	node := ""
	if p.Node != nil {
		text, err := json.Marshal(p.Node)
		if err != nil {
			return err
		}
		node = string(text)
	}
	_, err := to.ExecContext(ctx, `INSERT INTO projects(name, env, remote_less, linked, created, skeleton, node) VALUES(?,?,?,?,?,?,?)
		ON CONFLICT(name) DO UPDATE SET env = excluded.env, remote_less = excluded.remote_less, linked = excluded.linked, skeleton = excluded.skeleton, node = excluded.node`,
		string(p.Name), p.Env, p.RemoteLess, p.Linked, p.Created.UnixNano(), p.Skeleton, node)
	return err
}

// Destroying returns the projects whose destruction was begun and has not ended.
func (r *Registry) Destroying(ctx context.Context) ([]project.Name, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT name FROM projects WHERE destroying = 1 ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []project.Name
	for rows.Next() {
		var n project.Name
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

func (r *Registry) destroying(ctx context.Context, name project.Name) (bool, error) {
	var n int
	err := r.db.QueryRowContext(ctx, `SELECT count(*) FROM projects WHERE name = ? AND destroying = 1`, string(name)).Scan(&n)
	return n > 0, err
}

// directories makes what is missing of the folder. Owners and modes are enforced later, by fixperms;
// what may hold secrets starts closed.
func (r *Registry) directories(p Project) error {
	l := r.Root.Project(string(p.Name))
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{l.Dir(), 0o755}, {l.Live(), 0o755}, {l.Pillar(), 0o700}, {l.Data(), 0o750}, {l.Archives(), 0o750}, {l.Git(), 0o700}} {
		if d.path == l.Git() && p.RemoteLess {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
			return cannot("project create", err)
		}
		if err := os.Mkdir(d.path, d.mode); err != nil && !errors.Is(err, os.ErrExist) {
			return cannot("project create", err)
		}
		if fi, err := os.Stat(d.path); err != nil || !fi.IsDir() {
			return fault.New(fault.Refused, "project create", "%s is in the way: it is not a directory", d.path)
		}
	}
	return syncDir(l.Dir(), r.Root.Projects())
}

// cannot explains an error of the file system that the person at the machine can fix.
func cannot(op string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fault.New(fault.Refused, op, "%w", err).WithHint("run as the user who owns the root, or choose another with --root")
	}
	return fault.New(fault.Internal, op, "%w", err)
}

// syncDir makes the entries of directories durable.
func syncDir(dirs ...string) error {
	for _, d := range dirs {
		f, err := os.Open(d)
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// Link makes Salt's trees know the project, and remembers that they should.
func (r *Registry) Link(ctx context.Context, name project.Name) (changed bool, err error) {
	return r.setLinked(ctx, name, true)
}

// Unlink makes Salt's trees forget the project; later deployments leave it so.
func (r *Registry) Unlink(ctx context.Context, name project.Name) (changed bool, err error) {
	return r.setLinked(ctx, name, false)
}

func (r *Registry) setLinked(ctx context.Context, name project.Name, linked bool) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.Get(ctx, name)
	if err != nil {
		return false, err
	}
	changed := p.Linked != linked
	p.Linked = linked
	// The wish first: a deployment that starts now already honours it.
	if err := r.put(ctx, p); err != nil {
		return false, err
	}
	if linked {
		_, err = r.Linker.Link(ctx, name)
	} else {
		_, err = r.Linker.Unlink(ctx, name)
	}
	return changed, err
}

// Reconcile takes up the projects that are on disk and are not in the table (restored from a backup,
// or made by the original corpus), and reports which it adopted. A folder is a project when its name is
// valid and it holds a repository or a recipe; what only holds data is not.
func (r *Registry) Reconcile(ctx context.Context) (adopted []project.Name, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries, err := os.ReadDir(r.Root.Projects())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, err := project.ParseName(e.Name())
		if err != nil || !e.IsDir() || strings.HasPrefix(e.Name(), ".") || known[name] {
			continue
		}
		l := r.Root.Project(string(name))
		bare, recipe := isDir(l.ProjectGit()), isDir(l.Salt())
		if !bare && !recipe {
			continue
		}
		p := Project{Name: name, RemoteLess: !bare, Linked: true, Created: r.now()}
		if fi, err := e.Info(); err == nil {
			p.Created = fi.ModTime()
		}
		if err := r.put(ctx, p); err != nil {
			return adopted, err
		}
		adopted = append(adopted, name)
	}
	return adopted, nil
}

// names returns those of all rows, of projects that are being destroyed too.
func (r *Registry) names(ctx context.Context) (map[project.Name]bool, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT name FROM projects`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]bool{}
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out[project.Name(n)] = true
	}
	return out, rows.Err()
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
