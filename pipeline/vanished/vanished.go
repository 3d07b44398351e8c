// Package vanished keeps the results of converges that leave no record, for those who wait for them: a run may end before its caller waits.
//
// It keeps the last one of each project, in memory. A crash loses them, and their callers.
package vanished

import (
	"sync"

	"corpus-git/project"
)

// Results are kept results. The zero value is empty; its methods are safe for concurrent use.
type Results struct {
	mu sync.Mutex
	by map[project.Name]project.Record
}

// Keep keeps the result of a record that is about to be removed.
func (r *Results) Keep(rec project.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[project.Name]project.Record{}
	}
	r.by[rec.Project] = rec
}

// Of returns the result of a deployment without a record, or missing, the error of looking for its record.
func (r *Results) Of(id project.ID, missing error) (project.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.by {
		if rec.ID == id && rec.Result != nil {
			return *rec.Result, nil
		}
	}
	return project.Result{}, missing
}
