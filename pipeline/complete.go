package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/retention"
	"corpus-git/pipeline/texts"
	"corpus-git/project"
)

// newest is the number of ended deployments that recovery examines; more than can end at the same time.
const newest = 50

// completeRecords adds what is missing after a crash in finish, once the record was final: the verdict in the event log, the audit entry.
func (p *Pipeline) completeRecords(ctx context.Context) error {
	list, err := p.records.Ended(ctx, newest)
	errs := []error{err}
	for _, rec := range list {
		if rec.Result == nil {
			continue
		}
		path := p.cfg.State.EventLog(rec.Project.String(), string(rec.ID))
		e, ok, err := event.Last(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // old logs may have been removed
		case err != nil:
			errs = append(errs, err)
			continue
		case ok && e.Kind == event.Verdict:
			continue
		}
		log, err := p.cfg.Logs.Create(path, p.cfg.Now, p.known.Live(ctx, rec.Deployment, nil))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// The verdict comes last, so if it exists the log is complete.
		errs = append(errs, p.cfg.Audit.RecordOnce(ctx, texts.Audit(rec)))
		texts.Result(log, rec)
		errs = append(errs, log.Close())
	}
	return errors.Join(errs...)
}

// Sweep removes event logs whose project or deployment no longer exists.
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
		id, ok := strings.CutSuffix(f.Name(), retention.LogSuffix)
		if !ok {
			continue
		}
		if _, err := p.records.Get(ctx, project.ID(id)); fault.KindOf(err) == fault.Usage && err != nil {
			removeQuietly(filepath.Join(dir, f.Name()))
		}
	}
	return nil
}
