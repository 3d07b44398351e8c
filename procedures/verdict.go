package procedures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project"
)

// asideLimit is the time limit for a project's own parts of a rollback: its hooks, and its own rollback.sls and fixperms.sls. ownNotifyLimit
// is the limit of its notify.sls.
const (
	asideLimit     = 15 * time.Minute
	ownNotifyLimit = 5 * time.Minute
)

// aside returns the context for what runs next to native procedures that can no longer be cancelled. It ends at the limit, and when Hurry is closed.
func (e *Env) aside(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, timeout := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", limit))
	if e.Hurry == nil {
		return ctx, timeout
	}
	ctx, hurry := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		select {
		case <-e.Hurry:
			hurry(errHurried)
		case <-over:
		}
	}()
	return ctx, func() {
		close(over)
		hurry(nil)
		timeout()
	}
}

// errHurried ends what is running next to a rollback, or after a deployment.
var errHurried = errors.New("stopped: the deployment was cancelled, or the server is shutting down")

// ownContext returns the context of a project's own file for a procedure.
func (e *Env) ownContext(ctx context.Context, procedure string) (context.Context, func()) {
	switch {
	case procedure == NameNotify:
		return e.aside(ctx, ownNotifyLimit)
	case procedure == NameRollback, e.back:
		return e.aside(ctx, asideLimit)
	}
	return ctx, func() {}
}

// reportResult adds the deployment's result to cfg, for the project's own rollback.sls and notify.sls.
func (e *Env) reportResult(procedure string) {
	good := procedure != NameRollback
	if procedure == NameNotify {
		good = e.Result.State.Good()
	}
	comment := ""
	if e.Output != nil {
		comment = e.Output() + "\n"
	}
	if e.Result.Reason != "" {
		comment += e.Prepared.Redactor.String(e.Result.Reason) + "\n"
	}
	// A manual rollback is marked from its beginning.
	setVerdict(e.stepCfg().value, e.Deployment, e.back || e.Deployment.Trigger == project.TriggerRollback, good, comment)
}

// setVerdict sets the keys rollback, deploy_summary and deploy_ret of cfg.
// Source: makina-states, mc_states/modules/mc_project_2.py, deploy and _get_ret.
func setVerdict(cfg *py.Dict, d project.Deployment, rollback, good bool, comment string) {
	how := "failed"
	if good {
		how = "finished successfully"
	}
	summary := fmt.Sprintf("Deployment %s %s for %s", layout.ArchiveName(d.At, string(d.ID)), how, d.Project)
	comment += summary
	cfg.SetStr("rollback", rollback)
	cfg.SetStr("deploy_summary", summary)
	cfg.SetStr("deploy_ret", py.NewDict("name", d.Project.String(), "result", good, "changes", py.NewDict(), "comment", comment, "raw_comment", comment))
}
