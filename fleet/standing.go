package fleet

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"corpus-git/project"
)

// Behind is a node that has another release of a project than the live one.
type Behind struct {
	Node string
	// Release is what it has; "" if that is not known.
	Release project.Commit
}

// standing is what the ended rollouts of a project have left on its nodes: an index of their files, which are read once.
type standing struct {
	// started is when the newest rollout was begun; code and pillar are those of the newest that went live.
	started      int64
	code, pillar project.Commit
	// whole means that every rollout of the project is in it.
	whole   bool
	running bool
	nodes   map[string]*nodeStanding
}

// nodeStanding is what is known of one node of a project.
type nodeStanding struct {
	// roles, state and deployment are from the newest rollout that included it.
	roles      []string
	state      string
	deployment project.ID
	// code and pillar are what it has, if known; told means that a rollout says so.
	code, pillar project.Commit
	told, known  bool
	// named: the newest rollout names it, also if it was left out.
	named bool
}

// add adds a rollout that is newer than the others.
func (s *standing) add(p *Progress) {
	s.started = p.Started.UnixNano()
	if s.running = !p.Complete(); p.State == Live {
		s.code, s.pillar = p.Deployment.Code, p.Deployment.Pillar
	}
	if s.nodes == nil {
		s.nodes = map[string]*nodeStanding{}
	}
	of := func(name string) *nodeStanding {
		if s.nodes[name] == nil {
			s.nodes[name] = &nodeStanding{}
		}
		return s.nodes[name]
	}
	for _, n := range s.nodes {
		n.named = false
	}
	for _, name := range slices.Concat(Names(p.Plan.Nodes()), p.Plan.Left, p.Plan.Skipped) {
		of(name).named = true
	}
	for _, n := range p.Nodes {
		at := of(n.Name)
		at.roles, at.state, at.deployment = n.Roles, n.State, p.Deployment.ID
		switch {
		case n.State == NodeLive:
			at.told, at.known, at.code, at.pillar = true, true, p.Deployment.Code, p.Deployment.Pillar
		case n.State == Applying, n.State == NodeFailed && n.Touched:
			at.told, at.known, at.code, at.pillar = true, false, "", ""
		}
	}
}

// behind reports whether a node has another release than the live one, or another pillar; none has while a rollout runs.
func (s *standing) behind(n *nodeStanding) bool {
	known := n.known || !n.told && s.whole // what came before the first rollouts that are known is not
	return !s.running && (!known || n.code != s.code || n.code != "" && n.pillar != s.pillar)
}

// standings are the migration of the tables.
const standings = `CREATE TABLE rollouts (id TEXT PRIMARY KEY, project TEXT NOT NULL) WITHOUT ROWID;
	CREATE TABLE standings (project TEXT PRIMARY KEY, started INTEGER NOT NULL, code TEXT NOT NULL, pillar TEXT NOT NULL, whole INTEGER NOT NULL) WITHOUT ROWID;
	CREATE TABLE node_standings (project TEXT NOT NULL, node TEXT NOT NULL, roles TEXT NOT NULL, state TEXT NOT NULL, deployment TEXT NOT NULL, code TEXT NOT NULL, pillar TEXT NOT NULL,
		told INTEGER NOT NULL, known INTEGER NOT NULL, named INTEGER NOT NULL, PRIMARY KEY (node, project)) WITHOUT ROWID;
	CREATE INDEX node_standings_project ON node_standings (project)`

// indexed is what this process knows of the index.
type indexed struct {
	mu sync.Mutex
	// of are the projects of the rollouts in it, by their IDs; nil before it is read.
	of map[string]project.Name
	// at is when the folder of the files was last changed, zero if it has to be read again.
	at time.Time
}

// index adds the rollouts that have ended since to the index, and returns those that have not, the oldest first. A file that cannot be read is skipped.
func (s *Store) index(ctx context.Context, dir string) (running []*Progress, err error) {
	s.rolled.mu.Lock()
	defer s.rolled.mu.Unlock()
	began := time.Now()
	folder, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !s.rolled.at.IsZero() && folder.ModTime().Equal(s.rolled.at) {
		return nil, nil
	}
	if err := s.readIndex(ctx); err != nil {
		return nil, err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	there, ended, skipped := map[string]bool{}, []*Progress(nil), false
	for _, e := range names {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		there[id] = true
		if _, known := s.rolled.of[id]; known {
			continue
		}
		p, ok, err := ReadProgress(filepath.Join(dir, e.Name()))
		switch {
		case err != nil || !ok || p.Plan == nil:
			skipped = true
		case p.Complete():
			ended = append(ended, p)
		default:
			running = append(running, p)
		}
	}
	var gone []string
	for id := range s.rolled.of {
		if !there[id] {
			gone = append(gone, id)
		}
	}
	oldest := func(a, b *Progress) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Deployment.ID, b.Deployment.ID))
	}
	slices.SortFunc(ended, oldest)
	slices.SortFunc(running, oldest)
	if len(ended)+len(gone) > 0 {
		if err := s.addEnded(ctx, ended, gone); err != nil {
			s.rolled.of = nil
			return nil, err
		}
	}
	s.rolled.at = time.Time{}
	if len(running) == 0 && !skipped && began.Sub(folder.ModTime()) > settling {
		s.rolled.at = folder.ModTime()
	}
	return running, nil
}

// settling is how long after a change of a folder a further one might not show in its time.
const settling = 50 * time.Millisecond

func (s *Store) readIndex(ctx context.Context) error {
	if s.rolled.of != nil {
		return nil
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, project FROM rollouts`)
	if err != nil {
		return err
	}
	defer rows.Close()
	of := map[string]project.Name{}
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		of[id] = project.Name(name)
	}
	s.rolled.of = of
	return rows.Err()
}

// addEnded adds ended rollouts, the oldest first, and forgets the files that are gone.
func (s *Store) addEnded(ctx context.Context, ended []*Progress, gone []string) error {
	by, of := map[project.Name][]*Progress{}, map[string]project.Name{}
	for _, p := range ended {
		by[p.Deployment.Project] = append(by[p.Deployment.Project], p)
		of[string(p.Deployment.ID)] = p.Deployment.Project
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for name, list := range by {
		if err := addTo(ctx, tx, name, list); err != nil {
			return err
		}
	}
	for id, name := range of {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO rollouts (id, project) VALUES (?, ?)`, id, string(name)); err != nil {
			return err
		}
	}
	for _, id := range gone {
		if _, err := tx.ExecContext(ctx, `DELETE FROM rollouts WHERE id = ?`, id); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for id, name := range of {
		s.rolled.of[id] = name
	}
	for _, id := range gone {
		delete(s.rolled.of, id)
	}
	return nil
}

// addTo adds the rollouts of one project.
func addTo(ctx context.Context, tx *sql.Tx, name project.Name, list []*Progress) error {
	all, err := load(ctx, tx, `WHERE s.project = ?`, string(name))
	if err != nil {
		return err
	}
	at := all[name]
	if at == nil {
		at = &standing{whole: len(list) < kept}
	}
	for _, p := range list {
		if p.Started.UnixNano() >= at.started {
			at.add(p)
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO standings (project, started, code, pillar, whole) VALUES (?, ?, ?, ?, ?)`, string(name), at.started, string(at.code), string(at.pillar), at.whole)
	if err != nil {
		return err
	}
	for node, n := range at.nodes {
		roles, err := json.Marshal(n.roles)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO node_standings (project, node, roles, state, deployment, code, pillar, told, known, named) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(name), node, string(roles), n.state, string(n.deployment), string(n.code), string(n.pillar), n.told, n.known, n.named)
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads the rows that a condition selects.
func load(ctx context.Context, from interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, where string, args ...any) (map[project.Name]*standing, error) {
	rows, err := from.QueryContext(ctx, `SELECT s.project, s.started, s.code, s.pillar, s.whole, n.node, n.roles, n.state, n.deployment, n.code, n.pillar, n.told, n.known, n.named
		FROM standings s JOIN node_standings n ON n.project = s.project `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]*standing{}
	for rows.Next() {
		var s standing
		var n nodeStanding
		var name, node, roles string
		if err := rows.Scan(&name, &s.started, &s.code, &s.pillar, &s.whole, &node, &roles, &n.state, &n.deployment, &n.code, &n.pillar, &n.told, &n.known, &n.named); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(roles), &n.roles); err != nil {
			return nil, err
		}
		at := out[project.Name(name)]
		if at == nil {
			s.nodes = map[string]*nodeStanding{}
			at = &s
			out[project.Name(name)] = at
		}
		at.nodes[node] = &n
	}
	return out, rows.Err()
}

// standing returns the rows that a condition selects, with what the rollouts that run say of these projects.
func (s *Store) standing(ctx context.Context, dir string, only project.Name, where string, args ...any) (map[project.Name]*standing, error) {
	running, err := s.index(ctx, dir)
	if err != nil {
		return nil, err
	}
	all, err := load(ctx, s.db, where, args...)
	if err != nil {
		return nil, err
	}
	for _, p := range running {
		name := p.Deployment.Project
		if only != "" && name != only {
			continue
		}
		if all[name] == nil || !all[name].running { // it may name nodes that the condition leaves out
			one, err := load(ctx, s.db, `WHERE s.project = ?`, string(name))
			if err != nil {
				return nil, err
			}
			if all[name] = one[name]; all[name] == nil {
				all[name] = &standing{}
			}
		}
		if p.Started.UnixNano() >= all[name].started {
			all[name].add(p)
		}
	}
	return all, nil
}

// History is History of the package; files that the index knows as those of other projects are not read.
func (s *Store) History(ctx context.Context, dir string, name project.Name) ([]*Progress, error) {
	if _, err := s.index(ctx, dir); err != nil {
		return nil, err
	}
	s.rolled.mu.Lock()
	of := map[string]bool{}
	for id, other := range s.rolled.of {
		of[id] = name != "" && other != name
	}
	s.rolled.mu.Unlock()
	return history(dir, name, func(id string) bool { return !of[id] })
}

// Uses returns the projects of a node, of each for "", by the names of the nodes: those whose newest rollout names the node, also if it was left out, and those that are assigned to it. The files of
// rollouts in dir that have ended are read once.
func (s *Store) Uses(ctx context.Context, dir, node string) (map[string][]Use, error) {
	where, args := `WHERE n.named`, []any(nil)
	if node != "" {
		where, args = `WHERE n.node = ?`, []any{node}
	}
	all, err := s.standing(ctx, dir, "", where, args...)
	if err != nil {
		return nil, err
	}
	assigned, err := s.Assignments(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]Use{}
	for name, at := range all {
		for of, n := range at.nodes {
			if !n.named || node != "" && of != node {
				continue
			}
			u := Use{Project: name, Roles: n.roles, State: n.state, Deployment: n.deployment}
			if u.Behind = at.behind(n); u.Behind {
				u.Release = n.code
			}
			out[of] = append(out[of], u)
		}
	}
	for name, of := range assigned {
		if (node == "" || of == node) && !slices.ContainsFunc(out[of], func(u Use) bool { return u.Project == name }) {
			out[of] = append(out[of], Use{Project: name})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Use) int { return cmp.Compare(a.Project, b.Project) })
	}
	return out, nil
}

// Behind returns the nodes of a project, of all for "", that have another release than the live one, or another pillar, by the project, in the order of their names; none of a project whose rollout runs.
func (s *Store) Behind(ctx context.Context, dir string, of project.Name) (map[project.Name][]Behind, error) {
	where, args := `WHERE n.named`, []any(nil)
	if of != "" {
		where, args = `WHERE s.project = ?`, []any{string(of)}
	}
	all, err := s.standing(ctx, dir, of, where, args...)
	if err != nil {
		return nil, err
	}
	out := map[project.Name][]Behind{}
	for name, at := range all {
		for node, n := range at.nodes {
			if n.named && at.behind(n) {
				out[name] = append(out[name], Behind{Node: node, Release: n.code})
			}
		}
		slices.SortFunc(out[name], func(a, b Behind) int { return natural(a.Node, b.Node) })
	}
	return out, nil
}
