package records

import (
	"context"
	"encoding/json"
	"time"

	"corpus-git/project"
)

// Estimated reports whether Estimates has an answer without a query.
func (r *Store) Estimated(name project.Name) bool {
	_, _, ok := r.usual.get(name)
	return ok
}

// Estimates returns the durations of the parts of the last good deployments, and of the whole; deployments that skipped something do not count. The caller does not change them. They are
// remembered until a final record is written or removed.
func (r *Store) Estimates(ctx context.Context, name project.Name) (map[string]project.Estimate, error) {
	of, since, ok := r.usual.get(name)
	if ok {
		return of, nil
	}
	runs, err := r.good(ctx, name)
	of = project.EstimatesOf(runs)
	if err == nil {
		r.usual.keep(name, of, since)
	}
	return of, err
}

// good returns the results of the last good deployments, the newest first: how long they took, and nothing else.
func (r *Store) good(ctx context.Context, name project.Name) (runs []project.Result, err error) {
	rows, err := r.db.QueryContext(ctx, `SELECT facts, result FROM deployments WHERE project = ? AND state = ? AND trigger <> ? ORDER BY rowid DESC LIMIT ?`,
		name, project.Live, project.TriggerRollback, 2*project.EstimateRuns)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() && len(runs) < project.EstimateRuns {
		var facts, result []byte
		if err := rows.Scan(&facts, &result); err != nil {
			return runs, err
		}
		var of struct {
			Select project.Selection `json:"select"`
			Resume project.ID        `json:"resume"`
		}
		if err := json.Unmarshal(facts, &of); err != nil {
			return runs, err
		}
		if len(of.Select.Only)+len(of.Select.OnlySteps)+len(of.Select.Skip) > 0 || of.Resume != "" {
			continue
		}
		var took *struct {
			Unhealthy string           `json:"unhealthy"`
			Started   time.Time        `json:"started"`
			Ended     time.Time        `json:"ended"`
			Timings   []project.Timing `json:"timings"`
		}
		if err := json.Unmarshal(result, &took); err != nil {
			return runs, err
		}
		if took != nil && took.Unhealthy == "" {
			runs = append(runs, project.Result{Started: took.Started, Ended: took.Ended, Timings: took.Timings})
		}
	}
	return runs, rows.Err()
}
