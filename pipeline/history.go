package pipeline

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"corpus-git/project"
)

// leastKept is how many of a project's newest deployments stay whatever the limits say: what runs and what was just seen is among them.
const leastKept = 10

// PruneHistory keeps the limits on what is recorded of a project's deployments: it removes the oldest records beyond a count, with their logs, and
// of the others the oldest logs beyond a size. What is live, what an archive or a kept undo log belongs to, and the newest ones stay, with their logs.
// It may run beside deployments.
func (p *Pipeline) PruneHistory(ctx context.Context, name project.Name, h project.History) (done project.Pruned, err error) {
	if h.UndoLogs > 0 {
		if done.UndoLogs, err = p.pruneUndo(name, h.UndoLogs); err != nil {
			return done, err
		}
	}
	keep, err := p.keptRecords(ctx, name)
	if err != nil {
		return done, err
	}
	dir := p.cfg.State.Events(name.String())
	if h.Deployments > 0 {
		old, err := p.records.beyond(ctx, name, max(h.Deployments, leastKept), keep)
		if err != nil {
			return done, err
		}
		for _, id := range old {
			// The log first: one without a record is swept, a record whose log is gone says so.
			removeQuietly(filepath.Join(dir, id+logSuffix))
		}
		if err := p.records.remove(ctx, old); err != nil {
			return done, err
		}
		done.Deployments = len(old)
	}
	if h.LogBytes > 0 {
		done.Logs, err = pruneLogs(dir, h.LogBytes, keep)
	}
	return done, err
}

// pruneUndo removes the oldest undo logs of what went live beyond a count, unless something of the project runs: then another time.
func (p *Pipeline) pruneUndo(name project.Name, most int) (int, error) {
	_, end, ok := p.Quiet(name)
	if !ok {
		return 0, nil
	}
	defer end()
	return p.cfg.Tools.PruneLiveUndo(name, most)
}

// CountRecords is how many deployments of all projects a server's database records.
func CountRecords(ctx context.Context, d *sql.DB) (n int64, err error) {
	err = d.QueryRowContext(ctx, `SELECT count(*) FROM deployments`).Scan(&n)
	return n, err
}

// keptRecords are the deployments of which everything stays.
func (p *Pipeline) keptRecords(ctx context.Context, name project.Name) (map[string]bool, error) {
	keep := map[string]bool{}
	list, err := p.records.list(ctx, name, leastKept)
	if err != nil {
		return nil, err
	}
	live, err := p.records.live(ctx, []project.Name{name})
	if err != nil {
		return nil, err
	}
	for _, rec := range append(list, live...) {
		keep[string(rec.ID)] = true
	}
	archives, err := p.cfg.Tools.Archives(name).List()
	if err != nil {
		return nil, err
	}
	for _, a := range archives {
		keep[a.ID] = true
	}
	// A rollback finds the undo logs that it goes back over by the records of their deployments.
	undone, err := p.cfg.Tools.LiveUndo(name)
	if err != nil {
		return nil, err
	}
	for _, l := range undone {
		keep[string(l.ID)] = true
	}
	return keep, nil
}

// logSuffix ends the name of an event log.
const logSuffix = ".jsonl"

// pruneLogs removes the oldest logs of a folder until the others take at most max bytes.
func pruneLogs(dir string, max int64, keep map[string]bool) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	type log struct {
		path string
		at   time.Time
		size int64
	}
	var old []log
	total := int64(0)
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), logSuffix)
		fi, err := e.Info()
		if !ok || err != nil {
			continue // somebody else's, or gone by now
		}
		total += fi.Size()
		if !keep[id] {
			old = append(old, log{filepath.Join(dir, e.Name()), fi.ModTime(), fi.Size()})
		}
	}
	slices.SortFunc(old, func(a, b log) int { return a.at.Compare(b.at) })
	for _, l := range old {
		if total <= max {
			break
		}
		if err := os.Remove(l.path); err != nil && !os.IsNotExist(err) {
			return removed, err
		}
		total -= l.size
		removed++
	}
	return removed, nil
}

// beyond are the IDs of a project's final records that are older than its newest n, those in keep left out.
func (r *records) beyond(ctx context.Context, name project.Name, n int, keep map[string]bool) (ids []string, err error) {
	rows, err := r.db.QueryContext(ctx, `SELECT id FROM deployments WHERE project = ? AND NOT `+isOpen+` ORDER BY rowid DESC LIMIT -1 OFFSET ?`, name, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if !keep[id] {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// remove deletes records, all or none.
func (r *records) remove(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	_, err = r.db.ExecContext(ctx, `DELETE FROM deployments WHERE id IN (SELECT value FROM json_each(?))`, string(list))
	return err
}
