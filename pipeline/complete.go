package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// newest is how many ended deployments recovery looks at; more than can end in one moment.
const newest = 50

// completeRecords adds what a crash in finish, after the record was final, left out: the verdict in the event log, the
// audit entry.
func (p *Pipeline) completeRecords(ctx context.Context) error {
	list, err := p.records.ended(ctx, newest)
	errs := []error{err}
	for _, rec := range list {
		if rec.Result == nil {
			continue
		}
		path := p.cfg.State.EventLog(rec.Project.String(), string(rec.ID))
		e, ok, err := event.Last(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // old logs may go
		case err != nil:
			errs = append(errs, err)
			continue
		case ok && e.Kind == event.Verdict:
			continue
		}
		log, err := event.Create(path, p.cfg.Now, p.liveRedactor(ctx, rec.Deployment, nil))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// The verdict comes last, so where it is all is said.
		errs = append(errs, p.cfg.Audit.RecordOnce(ctx, auditEntry(rec)))
		printResult(log, rec)
		errs = append(errs, log.Close())
	}
	return errors.Join(errs...)
}

// Sweep removes what belongs to no project and no deployment any more: event logs without a record.
func (p *Pipeline) Sweep(ctx context.Context, name project.Name) error {
	dir := p.cfg.State.Events(name.String())
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), logSuffix)
		if !ok {
			continue
		}
		if _, err := p.records.get(ctx, project.ID(id)); fault.KindOf(err) == fault.Usage && err != nil {
			removeQuietly(filepath.Join(dir, f.Name()))
		}
	}
	return nil
}
