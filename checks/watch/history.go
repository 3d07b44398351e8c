package watch

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"corpus-git/internal/db"
	"corpus-git/project"
)

// keep is how many periods of each check stay.
const keep = 100

// period is a row of the history.
type period struct {
	project.CheckPeriod
	id int64
	// notified reports that the beginning of the period was notified.
	notified bool
	dirty    bool
}

// everyProject, in the table of watched projects, records that all projects were examined once.
const everyProject = "*"

func migrate(ctx context.Context, d *sql.DB) error {
	return db.Migrate(ctx, d, "checks", []string{
		`CREATE TABLE checks_watched (project TEXT PRIMARY KEY) WITHOUT ROWID`,
		`CREATE TABLE check_periods (
			id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, good INTEGER NOT NULL, since INTEGER NOT NULL, last INTEGER NOT NULL,
			runs INTEGER NOT NULL, took INTEGER NOT NULL, reason TEXT NOT NULL, answer TEXT NOT NULL, code TEXT NOT NULL, notified INTEGER NOT NULL)`,
		`CREATE INDEX check_periods_of ON check_periods (project, name, id)`,
	})
}

// watched returns the projects whose live release has periodic checks; all reports that every project was examined once.
func watched(ctx context.Context, d *sql.DB) (names []project.Name, all bool, err error) {
	rows, err := d.QueryContext(ctx, `SELECT project FROM checks_watched`)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, false, err
		}
		if name == everyProject {
			all = true
			continue
		}
		names = append(names, project.Name(name))
	}
	return names, all, rows.Err()
}

// setWatched records durably whether a project has periodic checks.
func setWatched(ctx context.Context, d *sql.DB, name project.Name, has bool) error {
	q := `DELETE FROM checks_watched WHERE project = ?`
	if has {
		q = `INSERT INTO checks_watched(project) VALUES(?) ON CONFLICT DO NOTHING`
	}
	_, err := d.ExecContext(ctx, q, name)
	return err
}

const columns = `id, name, good, since, last, runs, took, reason, answer, code, notified`

// periods reads rows of a project, the newest first.
func periods(ctx context.Context, d *sql.DB, where string, args ...any) ([]period, error) {
	rows, err := d.QueryContext(ctx, `SELECT `+columns+` FROM check_periods `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []period
	for rows.Next() {
		var p period
		var since, last int64
		var answer string
		if err := rows.Scan(&p.id, &p.Check, &p.Good, &since, &last, &p.Runs, &p.Took, &p.Reason, &answer, &p.Code, &p.notified); err != nil {
			return nil, err
		}
		p.Since, p.Last = time.Unix(0, since).UTC(), time.Unix(0, last).UTC()
		if err := json.Unmarshal([]byte(answer), &p.Answer); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// newest returns the newest period of each check of a project.
func newest(ctx context.Context, d *sql.DB, name project.Name) (map[string]*period, error) {
	list, err := periods(ctx, d, `WHERE id IN (SELECT max(id) FROM check_periods WHERE project = ? GROUP BY name)`, name)
	out := map[string]*period{}
	for i := range list {
		out[list[i].Check] = &list[i]
	}
	return out, err
}

// add inserts the row of a new period, and removes rows beyond the limit. It is durable on return.
func (p *period) add(ctx context.Context, d *sql.DB, name project.Name) error {
	answer, err := json.Marshal(p.Answer)
	if err != nil {
		return err
	}
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	res, err := tx.ExecContext(ctx, `INSERT INTO check_periods(project, name, good, since, last, runs, took, reason, answer, code, notified) VALUES(?,?,?,?,?,?,?,?,?,?,?)`,
		name, p.Check, p.Good, p.Since.UnixNano(), p.Last.UnixNano(), p.Runs, p.Took, p.Reason, string(answer), p.Code, p.notified)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM check_periods WHERE project = ?1 AND name = ?2 AND id <=
		(SELECT id FROM check_periods WHERE project = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)`, name, p.Check, keep); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	p.id = id
	return nil
}

// save writes what changed of periods, in one transaction.
func save(ctx context.Context, d *sql.DB, list []period) error {
	if len(list) == 0 {
		return nil
	}
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, p := range list {
		answer, err := json.Marshal(p.Answer)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE check_periods SET last = ?, runs = ?, took = ?, reason = ?, answer = ?, notified = ? WHERE id = ?`,
			p.Last.UnixNano(), p.Runs, p.Took, p.Reason, string(answer), p.notified, p.id); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// forget removes everything that is recorded of a project.
func forget(ctx context.Context, d *sql.DB, name project.Name) error {
	_, err := d.ExecContext(ctx, `DELETE FROM check_periods WHERE project = ?`, name)
	return errors.Join(err, setWatched(ctx, d, name, false))
}

func (w *Watcher) flushOften(ctx context.Context) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush writes the counts of all projects.
func (w *Watcher) flush(ctx context.Context) {
	w.mu.Lock()
	var of []*target
	for _, x := range w.all {
		of = append(of, x)
	}
	w.mu.Unlock()
	var list []period
	for _, x := range of {
		x.mu.Lock()
		for _, p := range x.now {
			if p.dirty {
				p.dirty = false
				list = append(list, *p)
			}
		}
		x.mu.Unlock()
	}
	if err := save(ctx, w.cfg.DB, list); err != nil && ctx.Err() == nil {
		w.cfg.Log.Error().Err(err).Msg("periodic checks: write the history")
	}
}

// States returns the current states of a project's periodic checks; none if nothing is watched.
func (w *Watcher) States(name project.Name) []project.CheckState {
	w.mu.Lock()
	x := w.all[name]
	w.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.view()
}

// History returns the periods of a project's checks, the newest first, at most limit.
func (w *Watcher) History(ctx context.Context, name project.Name, limit int) ([]project.CheckPeriod, error) {
	list, err := periods(ctx, w.cfg.DB, `WHERE project = ? ORDER BY since DESC, id DESC LIMIT ?`, name, limit)
	if err != nil {
		return nil, err
	}
	now := map[string]project.CheckPeriod{}
	for _, s := range w.States(name) {
		if s.Now != nil {
			now[s.Name] = *s.Now
		}
	}
	out := make([]project.CheckPeriod, 0, len(list))
	for _, p := range list {
		if n, ok := now[p.Check]; ok && n.Since.Equal(p.Since) {
			p.CheckPeriod = n
		}
		out = append(out, p.CheckPeriod)
	}
	return out, nil
}
