package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/pipeline/sources"
	"corpus-git/pipeline/texts"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/demands"
)

// approved reports whether a deployment may go on: either no approval is needed, or enough was given and it would do what the approvers have seen. Otherwise its
// result is set: it is parked, or its push counted as an approval and more are needed. An error refuses it.
func (dep *deployment) approved(ctx context.Context) (ok bool, err error) {
	p, d := dep.p, dep.record().Deployment
	if dep.need == 0 && d.Approval == nil {
		return true, nil
	}
	var r approval.Request
	found := false
	if d.Approval != nil {
		if r, err = p.approvals.Find(ctx, d.Project, d.Approval.Request); err == nil {
			err = r.Closed()
		}
	} else {
		r, found, err = dep.asked(ctx)
		if err == nil && !found {
			return false, dep.park(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	if !r.Enough() {
		dep.refuse(r.Waits())
		dep.res.Reason = demands.Waiting + string(r.ID)
		return false, nil
	}
	sum, basis, _, err := dep.sum(ctx, false)
	if err != nil {
		return false, err
	}
	dep.env.CloseRecipes()
	if why := r.Changed(d, sum, basis); why != "" {
		return false, p.approvals.Void(ctx, r, why)
	}
	if done, err := p.approvals.End(ctx, r.ID, approval.Deployed, "", "", d.ID); err != nil || !done {
		return false, errors.Join(err, fault.New(fault.Refused, "", "%s is no longer waiting", r.ID.Short()))
	}
	a := &demands.Approval{Request: string(r.ID), RequestedBy: r.Deployment.Pusher.Key, By: r.Names(), Plan: r.Plan}
	text := "approved by " + strings.Join(r.Names(), ", ")
	if v := r.Broken(); v != nil {
		a.BreakGlass, text = v.Reason, "approved by nobody else: "+v.By.Key+" deployed without approval: "+v.Reason
	}
	dep.env.Deployment.Approval = a
	dep.update(func(rec *project.Record) { rec.Approval = a })
	dep.log.Append(event.Event{Kind: event.Note, Text: text})
	return true, nil
}

// asked finds the open request for exactly this deployment. A push by somebody else who may approve counts as an approval.
func (dep *deployment) asked(ctx context.Context) (r approval.Request, found bool, err error) {
	p, d := dep.p, dep.record().Deployment
	open, err := p.approvals.List(ctx, d.Project, true, -1)
	if err != nil {
		return r, false, err
	}
	i := slices.IndexFunc(open, func(r approval.Request) bool { return r.Asks(d) })
	if i < 0 {
		return r, false, nil
	}
	r = open[i]
	if r.Deployment.Pusher.Key == d.Pusher.Key {
		return r, true, nil
	}
	r, err = p.approvals.Vote(ctx, r, approval.Vote{By: d.Pusher})
	return r, true, err
}

// park plans a deployment, pins its commits, and records that it waits for approval. It is durable on return.
func (dep *deployment) park(ctx context.Context) error {
	p, d := dep.p, dep.record().Deployment
	for _, s := range d.Set {
		if s.Secret {
			return fault.New(fault.Refused, "", "the setting %s is secret and cannot be stored while waiting for approval", s.Key).WithHint("set it in the pillar")
		}
	}
	sum, basis, n, err := dep.sum(ctx, true)
	if err != nil {
		return err
	}
	code, pillar := d.Code, d.Pillar
	if code == d.LiveCode {
		code = ""
	}
	if pillar == d.LivePillar {
		pillar = ""
	}
	keep, err := dep.stage(ctx, pins(approvalPins+string(d.ID), code, pillar))
	if err != nil {
		return fault.New(fault.Internal, "pin commits", "%w", err)
	}
	defer keep.Abort()
	if err = keep.Sync(0); err == nil {
		err = keep.Publish() // right before the objects, as in publish
	}
	if err == nil && dep.in != nil {
		err = dep.in.Migrate(ctx)
	}
	if err == nil {
		err = keep.Settle(0)
	}
	r := approval.Request{ID: d.ID, Project: d.Project, At: p.cfg.Now(), Expires: p.cfg.Now().Add(p.cfg.ApprovalTime()), Need: dep.need, Plan: sum, Basis: basis, Deployment: approval.Facts{Deployment: dep.shown().Deployment}}
	if err == nil {
		err = p.approvals.Add(ctx, r)
	}
	if err != nil {
		return fault.New(fault.Internal, "keep what waits for approval", "%w", err)
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: fmt.Sprintf("would change %s; plan %s", humanize.Plural(n, "thing"), sum[:12])})
	dep.refuse(r.Waits())
	dep.res.Reason = demands.Waiting + string(r.ID)
	return nil
}

// sum shows the plan of a deployment, with head below the first line, and returns its hash, what the deployment depends on and how many things it would change.
func (dep *deployment) sum(ctx context.Context, head bool) (sum string, basis approval.Basis, n int, err error) {
	d := dep.env.Deployment
	var desc project.Description
	var of *project.Description // nil for a pillar without code
	if d.Code != "" {
		if desc, err = dep.p.cfg.Repository(d.Project, project.Code).Describe(ctx, d.LiveCode, d.Code, sources.Incoming(d, dep.in, project.Code)); err != nil {
			return "", basis, 0, err
		}
		of = &desc
	}
	if head {
		dep.log.Append(texts.Headline(d, of, dep.redact.String))
	}
	env, plan := *dep.env, approval.NewPlan()
	env.Report = shownPlan{dep, plan}
	err = dep.recoverPanic("plan", func() (err error) {
		if n, err = procedures.Plan(ctx, &env, desc); err == nil {
			basis, err = env.Basis(ctx)
		}
		return err
	})
	return plan.Sum(), basis, n, err
}

// shownPlan hashes a plan as it is shown, without its secrets.
type shownPlan struct {
	*deployment
	plan approval.Plan
}

func (r shownPlan) Append(e event.Event) uint64 {
	shown := e
	shown.Text, shown.Lines = r.redact.String(e.Text), make([]string, len(e.Lines))
	for i, l := range e.Lines {
		shown.Lines[i] = r.redact.String(l)
	}
	r.plan.Add(shown)
	return r.deployment.Append(e)
}

// Approve counts an approval of a request, by its ID or a prefix of it, and starts its deployment when there are enough: id is the ID of that deployment, "" while
// more are needed.
func (p *Pipeline) Approve(ctx context.Context, name project.Name, request string, v approval.Vote) (r approval.Request, id project.ID, err error) {
	if r, err = p.approvals.Find(ctx, name, request); err != nil {
		return r, "", err
	}
	if r, err = p.approvals.Vote(ctx, r, v); err != nil || !r.Enough() {
		return r, "", err
	}
	d := r.Deployment.Deployment
	d.ID, d.Approval = "", &demands.Approval{Request: string(r.ID)}
	id, err = p.Start(ctx, d, nil)
	if fault.KindOf(err) == fault.Refused {
		err = p.approvals.Void(ctx, r, fault.Cause(err))
	}
	return r, id, err
}

// Reject ends a request without a deployment: it is called for somebody who may approve, or who requested it.
func (p *Pipeline) Reject(ctx context.Context, name project.Name, request string, by project.Pusher, reason string) (approval.Request, error) {
	r, err := p.approvals.Reject(ctx, name, request, by, reason)
	if err == nil {
		p.SweepPins(ctx, name)
	}
	return r, err
}

// Approvals lists the requests of a project, newest first; with open only those that are open.
func (p *Pipeline) Approvals(ctx context.Context, name project.Name, open bool, limit int) ([]approval.Request, error) {
	return p.approvals.List(ctx, name, open, limit)
}

// Requested returns the branch for which a commit waits for approval, "" for none.
func (p *Pipeline) Requested(ctx context.Context, name project.Name, repo project.Repo, commit project.Commit) string {
	open, err := p.approvals.List(ctx, name, true, -1)
	if err != nil {
		p.cfg.Logger.Error().Err(err).Str("project", name.String()).Msg("read what waits for approval")
	}
	for _, r := range open {
		if r.Deployment.Repo == repo && r.Commit() == commit {
			return r.Deployment.Change.Ref
		}
	}
	return ""
}
