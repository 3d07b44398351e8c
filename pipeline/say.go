package pipeline

import (
	"context"
	"os"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
	"corpus-git/pipeline/texts"
	"corpus-git/project"
)

func removeQuietly(path string) { _ = os.Remove(path) }

// printWaiting tells the followers of dep what it waits for.
func (dep *deployment) printWaiting(before []*deployment, now time.Time) {
	running, ahead := before[0].shown(), len(before)
	dep.log.Append(event.Event{Kind: event.Waiting, Text: texts.Waiting(running, ahead, turnIn(before, now), now)})
}

// turnIn estimates how long the deployments in before will take, from past ones; 0 if one of them has no estimate.
func turnIn(before []*deployment, now time.Time) (left time.Duration) {
	for i, x := range before {
		rec := x.record()
		if rec.Estimate == nil {
			return 0
		}
		takes := rec.Estimate.Median
		if i == 0 && rec.State == project.Running {
			takes = max(0, takes-now.Sub(rec.At))
		}
		left += takes
	}
	return left
}

// printEstimate reports the estimated duration.
func (dep *deployment) printEstimate() {
	e := dep.record().Estimate
	if e == nil || e.Median < time.Second {
		return
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: e.Text()})
}

// printSettings tells the pusher what was set. The values are redacted like all output.
func (dep *deployment) printSettings() {
	d := dep.record().Deployment
	if len(d.Set) == 0 {
		return
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: "set on the command line: " + project.ShowSettings(d.Set)})
}

// Redactor hides the secrets of a project, those of its live and its recent pillars, in what is shown outside of a deployment.
func (p *Pipeline) Redactor(ctx context.Context, name project.Name) *redact.Redactor {
	return p.known.Redactor(ctx, name)
}
