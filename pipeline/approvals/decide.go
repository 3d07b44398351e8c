package approvals

import (
	"context"
	"errors"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// Vote counts a vote, and returns the request with all votes. It is fault.Refused if the request has ended, if the voter may not vote, has voted before or made
// the request, or if the requester no longer has the permission. Every vote is audited; a break-glass vote is also notified.
func (s *Store) Vote(ctx context.Context, r approval.Request, v approval.Vote) (_ approval.Request, err error) {
	defer func() {
		action := "approve"
		if v.BreakGlass {
			action = "approve break-glass"
		}
		err = s.record(ctx, r, v.By, action, v.Reason, err)
	}()
	want, by := project.Approve, v.By.Key
	switch {
	case v.BreakGlass && v.Reason == "":
		return r, fault.New(fault.Usage, "approve", "--break-glass requires a reason").WithHint("--reason TEXT")
	case v.BreakGlass:
		want = project.Admin
	case r.Deployment.Pusher.Key == by:
		return r, fault.New(fault.Refused, "approve", "%s requested it, so somebody else has to approve it", by).
			WithHint("an administrator of the project can deploy without approval:  corpus-git approve %s %s --break-glass --reason TEXT", r.Project, r.ID.Short())
	}
	if err := r.Closed(); err != nil {
		return r, err
	}
	if ok, err := s.May(ctx, v.By, r.Project, want); err != nil || !ok {
		return r, errors.Join(err, fault.New(fault.Refused, "approve", "%s is not allowed to: this requires %s permission on %s", by, want, r.Project).
			WithHint("an administrator can grant it:  corpus-git access grant %s %s %s", r.Project, by, want))
	}
	if ok, err := s.May(ctx, r.Deployment.Pusher, r.Project, r.Right()); err != nil || !ok {
		return r, errors.Join(err, s.Void(ctx, r, r.Deployment.Pusher.Key+" no longer has the permission "+string(r.Right())))
	}
	r, err = s.count(ctx, r, v)
	if err == nil && v.BreakGlass && s.Notify != nil {
		err = s.Notify(ctx, s.db, project.Notification{ID: "approval_" + string(r.ID) + "_" + project.EventBreakGlass, Event: project.EventBreakGlass, At: s.now(), Project: r.Project, Deployment: &r.Deployment.Deployment, By: &v.By})
	}
	return r, err
}

// Void ends a request that would not do what was approved, and returns the error that says so.
func (s *Store) Void(ctx context.Context, r approval.Request, why string) error {
	_, err := s.End(ctx, r.ID, approval.Void, "corpus-git", why, "")
	return errors.Join(err, fault.New(fault.Refused, "", "the approval request %s is void: %s", r.ID.Short(), why).WithHint("push the commit again to request approval"))
}

// Reject ends a request without a deployment: for somebody who may approve, or who requested it. It is audited.
func (s *Store) Reject(ctx context.Context, name project.Name, request string, by project.Pusher, reason string) (r approval.Request, err error) {
	if r, err = s.Find(ctx, name, request); err != nil {
		return r, err
	}
	ok, err := s.May(ctx, by, name, project.Approve)
	switch {
	case err != nil:
	case !ok && by.Key != r.Deployment.Pusher.Key:
		err = fault.New(fault.Refused, "reject", "%s is not allowed to: this requires approve permission on %s", by.Key, name)
	default:
		if err = r.Closed(); err == nil {
			_, err = s.End(ctx, r.ID, approval.Rejected, by.Key, reason, "")
		}
	}
	if err := s.record(ctx, r, by, "reject", reason, err); err != nil {
		return r, err
	}
	return s.Find(ctx, name, string(r.ID))
}

// record audits a decision about a request, and returns err, which says whether it was refused, joined with its own error.
func (s *Store) record(ctx context.Context, r approval.Request, by project.Pusher, action, detail string, err error) error {
	e := audit.Entry{Actor: by.Key, Fingerprint: by.Fingerprint, From: by.From, Action: action, Project: r.Project.String(), Outcome: "ok", Detail: detail, Deployment: string(r.ID),
		Object: r.Commit().Short() + " of " + r.Deployment.Pusher.Key}
	if err != nil {
		e.Outcome, e.Detail = "refused", fault.Cause(err)
	}
	return errors.Join(err, s.Audit.Record(context.WithoutCancel(ctx), e))
}
