package api

import (
	"encoding/json"
	"net/http"

	"corpus-git/signals"
)

// waits registers the operations on waits and signals of users. Senders without an account use the address of a signal.
func (a *API) waits() {
	type list struct {
		OnProject
		Limit int `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many at most"`
	}
	type signal struct {
		OnProject
		Wait string `path:"wait" maxLength:"100" doc:"What is waited for"`
		Body *struct {
			Status     string          `json:"status,omitempty" enum:"SUCCESS,FAILURE" doc:"Absent: SUCCESS"`
			Reason     string          `json:"reason,omitempty" maxLength:"1000"`
			Data       json.RawMessage `json:"data,omitempty" doc:"For the steps that follow: any JSON"`
			ID         string          `json:"id,omitempty" maxLength:"100" doc:"Who signals, as the wait calls it; absent: the next number"`
			Deployment string          `json:"deployment,omitempty" maxLength:"36" doc:"Absent: the newest that has such a wait"`
		}
	}
	add[list, signals.Document](a, operation{method: http.MethodGet, path: "/projects/{name}/waits", id: "listWaits", tag: "waits", summary: "List what deployments wait for, newest first"},
		func(in *list) call { return do("waits", in.Name).option("limit", in.Limit) })
	add[signal, signals.Answer](a, operation{method: http.MethodPost, path: "/projects/{name}/waits/{wait}/signals", id: "signal", tag: "waits", summary: "Send a signal to a waiting deployment", lookup: true,
		about: "409 where the wait has ended, or where the same sender has said something else before."},
		func(in *signal) call {
			c := do("signal", in.Name, in.Wait)
			if b := in.Body; b != nil {
				c = c.option("status", b.Status).option("reason", b.Reason).option("data", string(b.Data)).option("id", b.ID).option("deployment", b.Deployment)
			}
			return c
		})
}
