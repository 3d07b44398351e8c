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
	// Linked reports whether the project is to be linked into Salt's trees.
	Linked  bool      `json:"linked"`
	Created time.Time `json:"created"`
	// Skeleton is the name of the skeleton that its first commits were made from, "" if there was none.
	Skeleton string `json:"skeleton,omitempty"`
	// Node says that another server deploys the project here; nil if it is pushed to.
	Node *project.Node `json:"node,omitempty"`
	// Missing reports that the folder of a known project is gone.
	Missing bool `json:"missing,omitempty"`
}

// Settings are the settings passed to Create.
type Settings struct {
	// Env is the name of an environment, or "" to keep the current one.
	Env        string
	RemoteLess bool
	// Skeleton is what the project starts from, or "" to keep the current one.
	Skeleton string
	// Node says that another server deploys the project here; nil keeps the current setting.
	Node *project.Node
	// By is who requests it.
	By project.Pusher
}

// Repository is one bare repository of a project; receive's satisfies it.
type Repository interface {
	// Create makes the bare repository if it is missing. Idempotent.
	Create(ctx context.Context) (made bool, err error)
}

// Linker makes and removes the two links and the entry of the top file; procedures satisfies it. Both are idempotent, and
// return what they changed.
type Linker interface {
	Link(ctx context.Context, name project.Name) (did []string, err error)
	Unlink(ctx context.Context, name project.Name) (did []string, err error)
}

// Deployments blocks deployments, and forgets those of a removed project; pipeline satisfies it.
type Deployments interface {
	// Exclusive returns fault.Busy while a deployment is running or waiting; otherwise new ones wait until release.
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
	// OnCreate is called in the transaction that adds a project; nil is not called.
	OnCreate func(ctx context.Context, tx db.Execer, p Project, by project.Pusher) error
	// Environments are those of the server; nil means dev, staging and prod.
	Environments func() project.Environments

	db  *sql.DB
	now func() time.Time
	mu  sync.Mutex // one create, destroy, link or adoption at a time
}

// Open prepares the table. It does not examine the disk; see Reconcile.
func Open(ctx context.Context, d *sql.DB, root layout.Root, state layout.State, now func() time.Time) (*Registry, error) {
	err := db.Migrate(ctx, d, "registry", []string{
		`CREATE TABLE projects (name TEXT PRIMARY KEY, env TEXT NOT NULL, remote_less INTEGER NOT NULL, linked INTEGER NOT NULL,
			created INTEGER NOT NULL, destroying INTEGER NOT NULL DEFAULT 0)`,
		`ALTER TABLE projects ADD COLUMN skeleton TEXT NOT NULL DEFAULT ''`,
		`ALTER TABLE projects ADD COLUMN node TEXT NOT NULL DEFAULT ''`,
	})
	return &Registry{Root: root, State: state, db: d, now: now}, err
}

// checkEnv validates an environment; "" is allowed and means "not set".
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

// inspect reports whether a project's folder exists.
func (r *Registry) inspect(p *Project) {
	_, err := os.Stat(r.Root.Project(string(p.Name)).Dir())
	p.Missing = errors.Is(err, os.ErrNotExist)
}

// Get returns one project. An unknown project, and one that is being destroyed, is fault.Refused.
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

// Unknown returns the error for a project that does not exist.
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
	// Reading the folder once shows all that exist.
	entries, err := os.ReadDir(r.Root.Projects())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = e.Type()&os.ModeSymlink == 0 // the target of a link has to be examined
	}
	for i := range out {
		if !there[string(out[i].Name)] {
			r.inspect(&out[i])
		}
	}
	return out, nil
}

// rows returns the rows of all projects; whether their folders exist is not checked.
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
	// New reports that the project was not known before; Repos lists the repositories that were made.
	New   bool
	Repos []project.Repo
	// Changed names the settings of an existing project that were changed.
	Changed []string
	// Linked lists what was linked into Salt's trees.
	Linked []string
}

// Create makes a project, completes a partly created one, adopts a folder that exists already, and changes the environment
// of an existing project if s names another. The project is linked into Salt's trees, unless it was unlinked.
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

// add adds a new project, and reports it in the same transaction.
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

// Destroying returns the projects whose destruction has begun and has not ended.
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

// directories creates what is missing in the folder. Owners and modes are set later, by fixperms; what may hold secrets is
// created with restricted modes.
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

// cannot explains a file system error that the administrator of the machine can fix.
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

// Link adds the project to Salt's trees, and records that it is to stay there.
func (r *Registry) Link(ctx context.Context, name project.Name) (changed bool, err error) {
	return r.setLinked(ctx, name, true)
}

// Unlink removes the project from Salt's trees; later deployments do not add it again.
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
	// Record the setting first: a deployment that starts now already respects it.
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

// Reconcile adopts the projects that are on disk and not in the table (restored from a backup, or made by the original
// corpus), and reports which it adopted. A folder is a project when its name is valid and it holds a repository or a recipe;
// a folder that only holds data is not one.
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

// names returns the names in all rows, including projects that are being destroyed.
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
