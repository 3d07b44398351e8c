package pipeline

import (
	"context"
	"database/sql"
	"path/filepath"

	"corpus-git/pipeline/retention"
	"corpus-git/project"
)

// leastKept is the number of a project's newest deployments that are kept whatever the limits: running ones, for example.
const leastKept = 10

// PruneHistory applies the limits on the records of a project's deployments: it removes the oldest records beyond a count, with their logs,
// and of the others the oldest logs beyond a size. It keeps, with their logs, the newest ones, the live one, and those with an archive or a
// kept undo log. It may run at the same time as deployments.
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
		old, err := p.records.Beyond(ctx, name, max(h.Deployments, leastKept), keep)
		if err != nil {
			return done, err
		}
		for _, id := range old {
			// The log first: a log without a record is swept, and a record without a log says so.
			removeQuietly(filepath.Join(dir, id+retention.LogSuffix))
		}
		if err := p.records.Remove(ctx, old); err != nil {
			return done, err
		}
		done.Deployments = len(old)
	}
	if h.LogBytes > 0 {
		done.Logs, err = retention.PruneLogs(dir, h.LogBytes, keep)
	}
	return done, err
}

// pruneUndo removes the oldest undo logs of deployments that went live beyond a count, unless something is running in the project: then it
// is left to a later call.
func (p *Pipeline) pruneUndo(name project.Name, most int) (int, error) {
	_, end, ok := p.Quiet(name)
	if !ok {
		return 0, nil
	}
	defer end()
	return p.cfg.Tools.UndoLogs().Prune(name, most)
}

// CountRecords returns how many deployments of all projects a server's database records.
func CountRecords(ctx context.Context, d *sql.DB) (n int64, err error) {
	err = d.QueryRowContext(ctx, `SELECT count(*) FROM deployments`).Scan(&n)
	return n, err
}

// keptRecords returns the deployments whose records and logs are all kept.
func (p *Pipeline) keptRecords(ctx context.Context, name project.Name) (map[string]bool, error) {
	keep := map[string]bool{}
	list, err := p.records.List(ctx, name, leastKept)
	if err != nil {
		return nil, err
	}
	live, err := p.records.Live(ctx, []project.Name{name})
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
	// A rollback finds the undo logs of the deployments that it reverts through their records.
	undone, err := p.cfg.Tools.UndoLogs().List(name)
	if err != nil {
		return nil, err
	}
	for _, l := range undone {
		keep[string(l.ID)] = true
	}
	return keep, nil
}

// Deployments lists the newest deployments first, at most limit.
func (p *Pipeline) Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error) {
	list, err := p.records.List(ctx, name, limit)
	for i := range list {
		p.addRunning(&list[i])
	}
	return list, err
}

// Before returns the deployments of a project that are older than one of them, the newest first.
func (p *Pipeline) Before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error) {
	list, err := p.records.Before(ctx, name, id, limit)
	for i := range list {
		p.addRunning(&list[i])
	}
	return list, err
}

// Last returns the newest deployment that has ended, of each of the projects that have one.
func (p *Pipeline) Last(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	list, err := p.records.Last(ctx, names)
	return byProject(list), err
}

// Find resolves an ID or a prefix of one; "" is the newest deployment.
func (p *Pipeline) Find(ctx context.Context, name project.Name, prefix string) (project.Record, error) {
	rec, err := p.records.Find(ctx, name, prefix)
	p.addRunning(&rec)
	return rec, err
}
