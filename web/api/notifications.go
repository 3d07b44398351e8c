package api

import (
	"net/http"

	"corpus-git/project/status"
)

// notifications are deliveries to sinks.
func (a *API) notifications() {
	type list struct {
		Project string `query:"project" maxLength:"128" doc:"Only what is about this project"`
		Failed  bool   `query:"failed" doc:"Only deliveries that were given up"`
		Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many at most"`
	}
	type sink struct {
		Sink string `path:"sink" maxLength:"100" doc:"The sink, as the configuration names it"`
	}
	type one struct {
		ID string `path:"id" maxLength:"100" doc:"The notification"`
	}
	add[list, status.Notifications](a, operation{method: http.MethodGet, path: "/notifications", id: "listNotifications", tag: "notifications", summary: "List the sinks and the newest deliveries"},
		func(in *list) call {
			c := do("notify list").option("limit", in.Limit).option("failed", in.Failed)
			if in.Project != "" {
				c.args = append(c.args, in.Project)
			}
			return c
		})
	add[sink, status.NotificationTest](a, operation{method: http.MethodPost, path: "/notifications/sinks/{sink}/test", id: "testSink", tag: "notifications", summary: "Send a test notification to a sink", lookup: true,
		about: "It waits for the first attempt, and answers 200 where the sink did not take it, too: state and error say so."},
		func(in *sink) call { return do("notify test", in.Sink) })
	add[nothing, Text](a, operation{method: http.MethodPost, path: "/notifications/retry", id: "retryNotifications", tag: "notifications", summary: "Deliver now what waits or was given up"},
		func(*nothing) call { return command("notify retry") })
	add[one, Text](a, operation{method: http.MethodPost, path: "/notifications/{id}/retry", id: "retryNotification", tag: "notifications", summary: "Deliver one notification now, to the sinks that did not get it", lookup: true},
		func(in *one) call { return command("notify retry", in.ID) })
}
