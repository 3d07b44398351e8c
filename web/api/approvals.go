package api

import (
	"net/http"

	"corpus-git/project/approval"
)

func (a *API) approvals() {
	type list struct {
		OnProject
		All   bool `query:"all" doc:"Those that have ended, too"`
		Limit int  `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many at most"`
	}
	type approve struct {
		OnProject
		ID   string `path:"id" maxLength:"36" doc:"The deployment that waits, or the beginning of its ID"`
		Body *struct {
			BreakGlass bool   `json:"break_glass,omitempty" doc:"Deploy it without others: takes the permission admin, and a reason"`
			Reason     string `json:"reason,omitempty" maxLength:"1000" doc:"Why, for the audit log and who is told"`
		}
	}
	type reject struct {
		OnProject
		ID   string `path:"id" maxLength:"36" doc:"The deployment that waits, or the beginning of its ID"`
		Body *struct {
			Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why, for who asked"`
		}
	}
	add[list, approval.Document](a, operation{method: http.MethodGet, path: "/projects/{name}/approvals", id: "listApprovals", tag: "approvals", summary: "List deployments that wait for approval, newest first"},
		func(in *list) call { return do("approvals", in.Name).option("all", in.All).option("limit", in.Limit) })
	add[approve, approval.Decision](a, operation{method: http.MethodPost, path: "/projects/{name}/approvals/{id}/approve", id: "approve", tag: "approvals", summary: "Approve a waiting deployment", lookup: true,
		about: "With enough approvals the deployment begins, and its ID is in the answer. Who asked for it cannot approve it."},
		func(in *approve) call {
			c := do("approve", in.Name, in.ID)
			if b := in.Body; b != nil {
				c = c.option("break-glass", b.BreakGlass).option("reason", b.Reason)
			}
			return c
		})
	add[reject, approval.Decision](a, operation{method: http.MethodPost, path: "/projects/{name}/approvals/{id}/reject", id: "reject", tag: "approvals", summary: "Reject a deployment that waits for approval", lookup: true},
		func(in *reject) call {
			c := do("reject", in.Name, in.ID)
			if b := in.Body; b != nil {
				c = c.option("reason", b.Reason)
			}
			return c
		})
}
