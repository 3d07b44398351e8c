package api

import (
	"net/http"

	"corpus-git/project/status"
)

// jobs registers the operations on jobs: stages of their own for a project's nodes.
func (a *API) jobs() {
	type one struct {
		OnProject
		Job string `path:"job" maxLength:"100" doc:"The job; JOB@REVISION is an earlier one"`
	}
	type set struct {
		OnProject
		Job  string `path:"job" maxLength:"64" doc:"The job"`
		Body struct {
			Text string `json:"text" minLength:"1" maxLength:"65536" doc:"The document, in YAML"`
		}
	}
	type run struct {
		OnProject
		Job  string `path:"job" maxLength:"100" doc:"The job; JOB@REVISION is an earlier one"`
		Body *Settings
	}
	add[OnProject, status.Jobs](a, operation{method: http.MethodGet, path: "/projects/{name}/jobs", id: "listJobs", tag: "jobs", summary: "List the jobs of a project"},
		func(in *OnProject) call { return do("job list", in.Name) })
	add[one, status.JobDocument](a, operation{method: http.MethodGet, path: "/projects/{name}/jobs/{job}", id: "getJob", tag: "jobs", summary: "Show a job", lookup: true},
		func(in *one) call { return do("job show", in.Name, in.Job) })
	add[set, status.JobDocument](a, operation{method: http.MethodPut, path: "/projects/{name}/jobs/{job}", id: "setJob", tag: "jobs", summary: "Store a job, as a new revision unless it is unchanged"},
		func(in *set) call {
			c := do("job set", in.Name, in.Job)
			c.stdin = in.Body.Text
			return c
		})
	add[one, Text](a, operation{method: http.MethodDelete, path: "/projects/{name}/jobs/{job}", id: "removeJob", tag: "jobs", summary: "Remove a job", lookup: true},
		func(in *one) call { return command("job remove", in.Name, in.Job) })
	add[run, status.DeploymentDocument](a, queued("/jobs/{job}/run", "runJob", "Deploy the live commits in the stages of a job"), func(in *run) call {
		c := do("run", in.Name+"/"+in.Job)
		if in.Body != nil {
			c.args = append(c.args, in.Body.args()...)
		}
		return started(in.Name, c)
	})
}

// rollouts registers the operations on rollouts to nodes.
func (a *API) rollouts() {
	for verb, summary := range map[string]string{"pause": "Start no further node", "resume": "Resume a paused rollout", "cancel": "Cancel a rollout, and roll back nodes according to on_failure"} {
		add[OnProject, Text](a, operation{method: http.MethodPost, path: "/projects/{name}/rollout/" + verb, id: verb + "Rollout", tag: "jobs", summary: summary},
			func(in *OnProject) call { return command("rollout "+verb, in.Name) })
	}
	add[OnProject, status.DeploymentDocument](a, queued("/rollout/retry", "retryRollout", "Deploy the newest rollout to the nodes where it is not live"),
		func(in *OnProject) call { return started(in.Name, do("rollout retry", in.Name)) })
}
