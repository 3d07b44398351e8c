package pages

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/demands"
)

// maxApprovals is how many requests for approval are read for a page.
const maxApprovals = 200

// approvalOf returns the request for approval that a deployment made, nil if it made none or it is no longer known.
func (p *Pages) approvalOf(ctx context.Context, rec project.Record) (*approval.Request, error) {
	if p.Approvals == nil || !asksApproval(rec) {
		return nil, nil
	}
	list, err := p.Approvals(ctx, rec.Project, false, maxApprovals)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(list, func(r approval.Request) bool { return r.ID == rec.ID }); i >= 0 {
		return &list[i], nil
	}
	return nil, nil
}

// asksApproval reports whether a deployment ended as a request for approval.
func asksApproval(rec project.Record) bool {
	return rec.State == project.Refused && rec.Result != nil && strings.HasPrefix(rec.Result.Reason, demands.Waiting)
}

// openApprovals returns the open requests of a project, the newest first.
func (p *Pages) openApprovals(ctx context.Context, name project.Name) ([]approval.Request, error) {
	if p.Approvals == nil {
		return nil, nil
	}
	return p.Approvals(ctx, name, true, maxApprovals)
}

// mayDecide is what a reader may do with a request for approval.
type mayDecide struct {
	// Approve counts for the request. Reject ends it, which who asked may do, too.
	Approve, Reject bool
	// BreakGlass: may deploy without approval by others.
	BreakGlass bool
	// Own: the reader asked for it.
	Own bool
}

// Any reports whether there is something that the reader may do.
func (m mayDecide) Any() bool { return m.Approve || m.Reject || m.BreakGlass }

func (p *Pages) mayDecide(r *http.Request, request *approval.Request, rights access.Rights) mayDecide {
	who := p.reader.Identity(r)
	if request == nil || request.State != approval.Open || who.ReadOnly {
		return mayDecide{}
	}
	m := mayDecide{Own: request.Deployment.Pusher.Key == who.Name, BreakGlass: rights.Can(request.Project, project.Admin)}
	approves := rights.Can(request.Project, project.Approve)
	voted := slices.Contains(request.Names(), who.Name)
	m.Approve, m.Reject = approves && !m.Own && !voted, approves || m.Own
	return m
}

// approveBody is the page on which somebody approves or rejects.
type approveBody struct {
	actionBody
	Request approval.Request
	Decide  mayDecide
	Pillar  project.Subject
}

func (p *Pages) deciding(r *http.Request) (approveBody, error) {
	rec, rights, err := p.record(r)
	if err != nil {
		return approveBody{}, err
	}
	b := approveBody{actionBody: actionBody{Typed: r.PostForm, Target: rec}}
	if b.projectHead.Project, err = p.Status.Project(r.Context(), rec.Project); err != nil {
		return b, err
	}
	request, err := p.approvalOf(r.Context(), rec)
	if err != nil {
		return b, err
	}
	if request == nil {
		return b, notFound("this deployment does not wait for approval")
	}
	b.Request, b.Decide = *request, p.mayDecide(r, request, rights)
	code, pillar := p.subjects(r.Context(), rec.Project, rights, b.Project, []project.Record{rec})
	b.Code, b.Pillar = code[rec.Code], pillar[rec.Pillar]
	return b, nil
}

func (p *Pages) approveForm(w http.ResponseWriter, r *http.Request) error {
	b, err := p.deciding(r)
	if err != nil {
		return err
	}
	return p.showApprove(w, r, b, nil)
}

func (p *Pages) showApprove(w http.ResponseWriter, r *http.Request, b approveBody, wrong error) error {
	status := http.StatusOK
	if wrong != nil {
		code, text := p.explain(r, wrong)
		status, b.Problem = code, &text
	}
	p.Show(w, r, status, "approve.html", page{Title: "Approve " + b.Target.ID.Short(), Body: b})
	return nil
}

func (p *Pages) approve(w http.ResponseWriter, r *http.Request) error {
	if err := p.Parse(w, r); err != nil {
		return err
	}
	b, err := p.deciding(r)
	if err != nil {
		return err
	}
	at := pathOf(b.Project.Name, "deployments", string(b.Target.ID))
	api := pathOf(b.Project.Name, "approvals", string(b.Target.ID))
	var body struct {
		BreakGlass bool   `json:"break_glass,omitempty"`
		Reason     string `json:"reason,omitempty"`
	}
	switch do := r.PostForm.Get("do"); do {
	case "approve":
		api += "/approve"
	case "reject":
		api, body.Reason = api+"/reject", strings.TrimSpace(r.PostForm.Get("reason"))
	case "break-glass":
		api, body.Reason, body.BreakGlass = api+"/approve", strings.TrimSpace(r.PostForm.Get("glass")), true
	default:
		return fault.New(fault.Usage, "", "%q is not approve, reject or break-glass", do)
	}
	out, err := p.ask(r, http.MethodPost, api, body)
	if err != nil {
		return p.showApprove(w, r, b, err)
	}
	var decision approval.Decision
	if err := json.Unmarshal(out.Body.Bytes(), &decision); err != nil {
		return fault.New(fault.Internal, api, "%w", err)
	}
	if decision.Deployment != "" {
		at = pathOf(b.Project.Name, "deployments", string(decision.Deployment))
	}
	return done(w, r, at)
}
