package converge

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// row is the record of a project.
type row struct {
	// boot is the boot (BootOf) during which the live release was last applied.
	boot  string
	state project.ConvergeState
}

func migrate(ctx context.Context, d *sql.DB) error {
	return db.Migrate(ctx, d, "converge", []string{
		`CREATE TABLE converge (project TEXT PRIMARY KEY, boot TEXT NOT NULL, state TEXT NOT NULL) WITHOUT ROWID`,
	})
}

func loadRows(ctx context.Context, d *sql.DB) (map[project.Name]row, error) {
	rows, err := d.QueryContext(ctx, `SELECT project, boot, state FROM converge`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[project.Name]row{}
	for rows.Next() {
		var name project.Name
		var r row
		var state []byte
		if err := rows.Scan(&name, &r.boot, &state); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(state, &r.state); err != nil {
			return nil, err
		}
		out[name] = r
	}
	return out, rows.Err()
}

// save writes the record of a project, and the notification in the same transaction. It is durable on return.
func (s *Scheduler) save(ctx context.Context, name project.Name, r row, news ...project.Notification) error {
	state, err := json.Marshal(r.state)
	if err != nil {
		return err
	}
	tx, err := s.cfg.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `INSERT INTO converge(project, boot, state) VALUES(?,?,?)
		ON CONFLICT(project) DO UPDATE SET boot = excluded.boot, state = excluded.state`, name, r.boot, state); err != nil {
		return err
	}
	for _, n := range news {
		if err := s.cfg.Notify(ctx, tx, n); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// next returns the state after a converge has ended. news reports whether the state has changed and must be notified; keep whether the run's
// record contains something new.
func next(old project.ConvergeState, rec project.Record) (now project.ConvergeState, ran, news, keep bool) {
	res, run := rec.Result, rec.Converge
	now, keep = old, run.Occasion == "" || res.Changed > 0 && run.Mode != project.ConvergeReport
	switch {
	case res.Kind == fault.Busy.String():
		now.Skipped++
		return now, false, false, keep
	case res.Kind == fault.Refused.String() && (res.Code == "" || res.Procedure == string(project.TriggerConverge)): // it has no live release here
		return now, false, false, keep
	}
	now.Runs++
	now.Last, now.Code, now.Changed, now.Drift, now.Reason, now.Deployment = res.Ended, res.Code, res.Changed, res.Drift, "", ""
	now.State = project.InSync
	switch {
	case !res.State.Good():
		now.State, now.Reason = project.ConvergeFailing, res.Reason
		now.Failed++
	case run.Mode == project.ConvergeReport && res.Changed > 0:
		now.State = project.Drifted
	default:
		now.Changed, now.Drift = 0, nil
	}
	if now.State != old.State {
		now.Since = res.Ended
		news = old.State != "" || now.State != project.InSync // the first "in sync" is not notified
	}
	keep = keep || now.State != old.State && (news || old.State != "") || now.Reason != old.Reason || !slices.Equal(now.Drift, old.Drift)
	if keep {
		now.Deployment = rec.ID
	} else {
		now.Deployment = old.Deployment
	}
	return now, true, news, keep
}

// notificationID returns the ID of the notification that a state has begun, the same each time.
func notificationID(name project.Name, s project.ConvergeState) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", name, s.State, s.Since.UnixNano()))
	return "converge_" + hex.EncodeToString(sum[:16])
}
