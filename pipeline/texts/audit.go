package texts

import (
	"fmt"

	"corpus-git/internal/audit"
	"corpus-git/project"
)

// Audit returns the entry of the audit log about a deployment that has ended.
func Audit(rec project.Record) audit.Entry {
	outcome := "ok"
	switch {
	case rec.State == project.Refused:
		outcome = "refused"
	case !rec.State.Good() || rec.Result != nil && !rec.Result.Good():
		outcome = "failed"
	}
	object := fmt.Sprintf("%s..%s", rec.LiveCode.Short(), rec.Code.Short())
	if rec.Repo == project.PillarRepo {
		object = fmt.Sprintf("pillar %s..%s", rec.LivePillar.Short(), rec.Pillar.Short())
	}
	if rec.Task != "" {
		object = rec.Task
	}
	return audit.Entry{
		Actor: rec.Pusher.Key, Fingerprint: rec.Pusher.Fingerprint, From: rec.Pusher.From, Action: string(rec.Trigger),
		Project: rec.Project.String(), Object: object, Outcome: outcome, Detail: rec.Result.Reason, Deployment: string(rec.ID),
	}
}
