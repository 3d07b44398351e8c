package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"corpus-git/access"
	"corpus-git/project/status"
)

// schemaName names the schemas of the document by type, with the package if two packages have a type of that name.
func schemaName(t reflect.Type, hint string) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.PkgPath() + "." + t.Name() {
	case "corpus-git/project/status.Check":
		return "Diagnosis"
	case "corpus-git/internal/audit.Entry":
		return "AuditEntry"
	case "corpus-git/signals.Document":
		return "Waits"
	case "corpus-git/signals.WaitStatus":
		return "Wait"
	case "corpus-git/signals.Answer":
		return "SignalAnswer"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// OnProject is the input of operations whose only parameter is a project.
type OnProject struct {
	Name string `path:"name" maxLength:"128" doc:"The project"`
}

type paged struct {
	Name   string `path:"name" maxLength:"128" doc:"The project"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
	Cursor string `query:"cursor" maxLength:"64" doc:"As in the Link header of the page before"`
}

// nothing is the input of operations without parameters.
type nothing struct{}

// register adds all operations.
func (a *API) register() {
	a.projects()
	a.deployments()
	a.runs()
	a.jobs()
	a.rollouts()
	a.nodes()
	a.archives()
	a.units()
	a.waits()
	a.approvals()
	a.configs()
	a.notifications()
	a.users()
	a.server()
	a.streams()
	a.exports()
}

func (a *API) projects() {
	type createProject struct {
		Body struct {
			Name       string `json:"name" maxLength:"128"`
			Env        string `json:"env,omitempty" doc:"The environment; absent: the project's own configuration decides"`
			RemoteLess bool   `json:"remote_less,omitempty" doc:"No repositories: deployed by hand from the working copy"`
		}
	}
	type skeleton struct {
		OnProject
		Body struct {
			Skeleton string `json:"skeleton" minLength:"1"`
		}
	}
	type destroy struct {
		OnProject
		Data        bool `query:"data" doc:"Remove data/ too"`
		KeepOutside bool `query:"keep_outside" doc:"Do not undeploy"`
	}
	type cfg struct {
		OnProject
		Key string `query:"key" maxLength:"1000" doc:"A part of it, such as data.port"`
	}
	add[nothing, status.Projects](a, operation{method: http.MethodGet, path: "/projects", id: "listProjects", tag: "projects", summary: "List the projects"},
		func(*nothing) call { return do("project list") })
	add[createProject, status.ProjectDocument](a, operation{method: http.MethodPost, path: "/projects", id: "createProject", tag: "projects", summary: "Create a project", status: http.StatusCreated,
		about: "Harmless for a project that exists: what is missing is made again, and its environment is changed."},
		func(in *createProject) call {
			c := do("project create", in.Body.Name).option("env", in.Body.Env).option("remote-less", in.Body.RemoteLess)
			c.location = func([]byte) string { return "/projects/" + url.PathEscape(in.Body.Name) }
			return c
		})
	add[OnProject, status.ProjectDocument](a, operation{method: http.MethodGet, path: "/projects/{name}", id: "getProject", tag: "projects", summary: "Show a project"},
		func(in *OnProject) call { return do("project show", in.Name) })
	add[skeleton, status.DeploymentDocument](a, operation{method: http.MethodPost, path: "/projects/{name}/skeleton", id: "beginProject", tag: "projects", summary: "Begin a project with a skeleton",
		about: "Creates the project where it is missing, makes its first commits and deploys them. The answer comes when the deployment has ended."},
		func(in *skeleton) call {
			return do("project create", in.Name).option("skeleton", in.Body.Skeleton)
		})
	add[destroy, Text](a, operation{method: http.MethodDelete, path: "/projects/{name}", id: "destroyProject", tag: "projects", summary: "Undeploy a project and delete it"},
		func(in *destroy) call {
			return command("project destroy", in.Name).option("yes", true).option("data", in.Data).option("keep-outside", in.KeepOutside)
		})
	for verb, method := range map[string]string{"link": http.MethodPut, "unlink": http.MethodDelete} {
		add[OnProject, Text](a, operation{method: method, path: "/projects/{name}/link", id: verb + "Project", tag: "projects", summary: map[string]string{"link": "Link a project into Salt's trees", "unlink": "Take a project out of Salt's trees"}[verb]},
			func(in *OnProject) call { return command("project "+verb, in.Name) })
	}
	add[OnProject, status.Reports](a, operation{method: http.MethodGet, path: "/projects/{name}/report", id: "reportProject", tag: "projects", summary: "Status in full: queue, newest deployments, archives, disk"},
		func(in *OnProject) call { return do("report", in.Name) })
	add[nothing, status.Reports](a, operation{method: http.MethodGet, path: "/report", id: "report", tag: "projects", summary: "Status in full of all projects"},
		func(*nothing) call { return do("report") })
	add[cfg, Cfg](a, operation{method: http.MethodGet, path: "/projects/{name}/cfg", id: "getCfg", tag: "projects", summary: "The configuration of what is live; values of the pillar are hidden"},
		func(in *cfg) call {
			c := do("cfg", in.Name)
			if in.Key != "" {
				c.args = append(c.args, in.Key)
			}
			return c
		})
}

func (a *API) deployments() {
	type one struct {
		OnProject
		ID string `path:"id" pattern:"^[0-9a-fA-F-]{4,36}$" doc:"The deployment; the first four or more digits do"`
	}
	ids := func(doc []byte) (out []string) {
		var d status.Deployments
		_ = json.Unmarshal(doc, &d) // of our own making
		for _, r := range d.Deployments {
			out = append(out, string(r.ID))
		}
		return out
	}
	seqs := func(doc []byte) (out []string) {
		var d status.Audit
		_ = json.Unmarshal(doc, &d) // of our own making
		for _, e := range d.Entries {
			out = append(out, strconv.FormatInt(e.Seq, 10))
		}
		return out
	}
	add[paged, status.Deployments](a, operation{method: http.MethodGet, path: "/projects/{name}/deployments", id: "listDeployments", tag: "deployments", summary: "List the deployments, newest first"},
		func(in *paged) call {
			c := do("deployments", in.Name).option("limit", in.Limit).option("before", in.Cursor)
			c.page = next(in.Limit, ids)
			return c
		})
	type counted struct {
		OnProject
		Limit int `query:"limit" minimum:"1" maximum:"1000" default:"500" doc:"The newest deployments that are counted"`
	}
	add[counted, status.StatisticsDocument](a, operation{method: http.MethodGet, path: "/projects/{name}/statistics", id: "getStatistics", tag: "deployments", summary: "How often deployments succeed, and how long they and their steps take"},
		func(in *counted) call { return do("statistics", in.Name).option("limit", in.Limit) })
	add[one, status.DeploymentDocument](a, operation{method: http.MethodGet, path: "/projects/{name}/deployments/{id}", id: "getDeployment", tag: "deployments", summary: "Show a deployment", lookup: true},
		func(in *one) call { return do("deployments", in.Name, in.ID) })
	add[one, Text](a, operation{method: http.MethodPost, path: "/projects/{name}/deployments/{id}/cancel", id: "cancelDeployment", tag: "deployments", summary: "Cancel a deployment that runs or waits", lookup: true, status: http.StatusAccepted},
		func(in *one) call { return command("cancel", in.Name, in.ID) })
	add[OnProject, Text](a, operation{method: http.MethodPost, path: "/projects/{name}/cancel", id: "cancel", tag: "deployments", summary: "Cancel the deployment that runs", status: http.StatusAccepted},
		func(in *OnProject) call { return command("cancel", in.Name) })
	add[paged, status.Audit](a, operation{method: http.MethodGet, path: "/projects/{name}/audit", id: "auditProject", tag: "audit", summary: "The audit log of a project, newest first"},
		func(in *paged) call {
			c := do("audit", in.Name).option("limit", in.Limit).option("before", in.Cursor)
			c.page = next(in.Limit, seqs)
			return c
		})
	type all struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
		Cursor string `query:"cursor" maxLength:"64" doc:"As in the Link header of the page before"`
	}
	add[all, status.Audit](a, operation{method: http.MethodGet, path: "/audit", id: "audit", tag: "audit", summary: "The audit log, newest first"},
		func(in *all) call {
			c := do("audit").option("limit", in.Limit).option("before", in.Cursor)
			c.page = next(in.Limit, seqs)
			return c
		})
}

// Settings is the body of operations that accept KEY=VALUE.
type Settings struct {
	Set map[string]string `json:"set,omitempty" doc:"Stands in the configuration above the pillar, for this run only; values are YAML"`
}

// args returns the settings as arguments.
func (s Settings) args() (out []string) {
	for k, v := range s.Set {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// started returns a call that starts a deployment and responds with its location.
func started(name string, c call) call {
	c = c.option("detach", true)
	c.location = func(doc []byte) string {
		var d status.DeploymentDocument
		_ = json.Unmarshal(doc, &d) // of our own making
		return "/projects/" + url.PathEscape(name) + "/deployments/" + string(d.Deployment.ID)
	}
	return c
}

// queued describes an operation that starts a deployment.
func queued(path, id, summary string) operation {
	return operation{method: http.MethodPost, path: "/projects/{name}" + path, id: id, tag: "deployments", summary: summary, status: http.StatusAccepted,
		about: "Answers when the deployment is in the queue; Location is where it is, and /events below that follows it."}
}

// runs registers the operations that start a deployment; they respond when it is in the queue. It is long as it is one list of them.
func (a *API) runs() {
	type deploy struct {
		OnProject
		Body *struct {
			Settings
			Only      []string `json:"only,omitempty" doc:"Only these procedures"`
			OnlySteps []string `json:"only_steps,omitempty" doc:"Only these steps of install"`
			Skip      []string `json:"skip,omitempty" doc:"All procedures but these"`
			Force     bool     `json:"force,omitempty" doc:"In dev: overwrite files that were changed by hand"`
			Resume    string   `json:"resume,omitempty" doc:"Go on at the step at which this deployment failed and stayed in place; last is the last one"`
		}
	}
	add[deploy, status.DeploymentDocument](a, queued("/deploy", "deploy", "Redeploy the live commit"), func(in *deploy) call {
		c := do("deploy", in.Name)
		if b := in.Body; b != nil {
			c.args = append(c.args, b.args()...)
			c = c.csv("only", b.Only).csv("only-steps", b.OnlySteps).csv("skip", b.Skip).option("force", b.Force).option("resume", b.Resume)
		}
		return started(in.Name, c)
	})
	type set struct {
		OnProject
		Body *Settings
	}
	add[set, status.DeploymentDocument](a, queued("/plan", "plan", "Show what a deployment would change, and change nothing"), func(in *set) call {
		c := do("plan", in.Name)
		if in.Body != nil {
			c.args = append(c.args, in.Body.args()...)
		}
		return started(in.Name, c)
	})
	type promote struct {
		OnProject
		Body *struct {
			Settings
			To          string `json:"to,omitempty" maxLength:"128" doc:"The project in which it goes live; absent with environment"`
			Environment string `json:"environment,omitempty" maxLength:"64" doc:"The environment of the same project in which it goes live"`
			Pillar      bool   `json:"pillar,omitempty" doc:"The commit of the pillar, too"`
			Force       bool   `json:"force,omitempty" doc:"Even where what is live there is not part of it"`
			Plan        bool   `json:"plan,omitempty" doc:"Show what it would change, and change nothing"`
		}
	}
	add[promote, status.DeploymentDocument](a, queued("/promote", "promote", "Bring what is live in the project live in another one, or in another environment"), func(in *promote) call {
		c, name := do("promote", in.Name), in.Name
		if b := in.Body; b != nil {
			if b.To != "" {
				c.args, name = append(c.args, b.To), b.To
			}
			c.args = append(c.args, b.args()...)
			c = c.option("env", b.Environment).option("pillar", b.Pillar).option("force", b.Force).option("plan", b.Plan)
		}
		return started(name, c)
	})
	type task struct {
		OnProject
		Task string `path:"task" maxLength:"200" doc:"The task in .salt/task_TASK.sls"`
		Body *Settings
	}
	add[task, status.DeploymentDocument](a, queued("/tasks/{task}", "runTask", "Run a task"), func(in *task) call {
		c := do("task", in.Name, in.Task)
		if in.Body != nil {
			c.args = append(c.args, in.Body.args()...)
		}
		return started(in.Name, c)
	})
	type rollback struct {
		OnProject
		Body *struct {
			Deployment string `json:"deployment,omitempty" maxLength:"36" doc:"Make live again what this one brought; absent: what was live before the commits of now"`
		}
	}
	add[rollback, status.DeploymentDocument](a, queued("/rollback", "rollback", "Roll back to an earlier deployment"), func(in *rollback) call {
		c := do("rollback", in.Name)
		if in.Body != nil && in.Body.Deployment != "" {
			c.args = append(c.args, in.Body.Deployment)
		}
		return started(in.Name, c)
	})
	add[OnProject, status.DeploymentDocument](a, queued("/check", "check", "Run the checks of the live release"), func(in *OnProject) call { return started(in.Name, do("check", in.Name)) })
	type converge struct {
		OnProject
		Body *struct {
			Report bool `json:"report,omitempty" doc:"Tell what would change, and change nothing"`
		}
	}
	add[converge, status.DeploymentDocument](a, queued("/converge", "converge", "Apply the live release again"), func(in *converge) call {
		return started(in.Name, do("converge", in.Name).option("report", in.Body != nil && in.Body.Report))
	})
	add[OnProject, status.DeploymentDocument](a, queued("/undeploy", "undeploy", "Stop a project and undo what its deployments changed outside of its tree"),
		func(in *OnProject) call { return started(in.Name, do("undeploy", in.Name).option("yes", true)) })
	type archive struct {
		OnProject
		Archive string `path:"archive" maxLength:"200" doc:"The archive: its name, or its deployment"`
	}
	add[archive, status.DeploymentDocument](a, queued("/archives/{archive}/restore", "restoreArchive", "Restore an archive"),
		func(in *archive) call { return started(in.Name, do("archives restore", in.Name, in.Archive)) })
}

func (a *API) archives() {
	type one struct {
		OnProject
		Archive string `path:"archive" maxLength:"200" doc:"The archive: its name, or its deployment"`
	}
	type prune struct {
		OnProject
		Body *struct {
			Keep   int  `json:"keep,omitempty" minimum:"0" doc:"Keep so many archives of good deployments; absent: as configured"`
			DryRun bool `json:"dry_run,omitempty"`
		}
	}
	add[OnProject, status.Archives](a, operation{method: http.MethodGet, path: "/projects/{name}/archives", id: "listArchives", tag: "archives", summary: "List the archives, newest first"},
		func(in *OnProject) call { return do("archives list", in.Name) })
	add[one, status.ArchiveDocument](a, operation{method: http.MethodGet, path: "/projects/{name}/archives/{archive}", id: "getArchive", tag: "archives", summary: "Show an archive", lookup: true},
		func(in *one) call { return do("archives show", in.Name, in.Archive) })
	for verb, method := range map[string]string{"pin": http.MethodPut, "unpin": http.MethodDelete} {
		add[one, Text](a, operation{method: method, path: "/projects/{name}/archives/{archive}/pin", id: verb + "Archive", tag: "archives", summary: map[string]string{"pin": "Keep an archive until it is unpinned", "unpin": "Unpin an archive"}[verb], lookup: true},
			func(in *one) call { return command("archives "+verb, in.Name, in.Archive) })
	}
	add[prune, status.Pruned](a, operation{method: http.MethodPost, path: "/projects/{name}/archives/prune", id: "pruneArchives", tag: "archives", summary: "Remove archives beyond the retention limits"},
		func(in *prune) call {
			c := do("archives prune", in.Name)
			if in.Body != nil {
				c = c.option("keep", in.Body.Keep).option("dry-run", in.Body.DryRun)
			}
			return c
		})
}

func (a *API) units() {
	type act struct {
		OnProject
		Body *struct {
			Units []string `json:"units,omitempty" doc:"Absent: all"`
		}
	}
	type history struct {
		OnProject
		Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many periods at most"`
	}
	add[OnProject, status.Units](a, operation{method: http.MethodGet, path: "/projects/{name}/units", id: "listUnits", tag: "units", summary: "List what a project runs"},
		func(in *OnProject) call { return do("ps", in.Name) })
	for _, verb := range []string{"start", "stop", "restart"} {
		add[act, status.Units](a, operation{method: http.MethodPost, path: "/projects/{name}/units/" + verb, id: verb + "Units", tag: "units", summary: "Units: " + verb},
			func(in *act) call {
				c := do(verb, in.Name)
				if in.Body != nil {
					c.args = append(c.args, in.Body.Units...)
				}
				return c
			})
	}
	add[history, status.Checks](a, operation{method: http.MethodGet, path: "/projects/{name}/checks", id: "listChecks", tag: "units", summary: "The checks that run periodically, and their history"},
		func(in *history) call {
			return do("check", in.Name).option("history", true).option("limit", in.Limit)
		})
}

func (a *API) server() {
	type gc struct {
		Body *struct {
			Project string `json:"project,omitempty" maxLength:"128" doc:"Absent: all"`
			DryRun  bool   `json:"dry_run,omitempty"`
			All     bool   `json:"all,omitempty" doc:"Consolidate everything and search now"`
		}
	}
	op := func(path, id, summary string) operation {
		return operation{method: http.MethodGet, path: path, id: id, tag: "server", summary: summary}
	}
	add[nothing, status.Doctor](a, op("/doctor", "doctor", "Check the server and its data for problems"), func(*nothing) call { return do("doctor") })
	add[nothing, status.Build](a, op("/version", "version", "The server's version"), func(*nothing) call { return do("version") })
	add[nothing, status.HostKeys](a, op("/host-keys", "hostKeys", "The server's SSH host keys"), func(*nothing) call { return do("host-key") })
	add[nothing, access.UserDocument](a, op("/user", "whoAmI", "Whose request this is"), func(*nothing) call { return do("user show") })
	add[gc, status.Maintenance](a, operation{method: http.MethodPost, path: "/gc", id: "gc", tag: "server", summary: "Consolidate packs and remove unreachable objects"},
		func(in *gc) call {
			c := do("gc")
			if b := in.Body; b != nil {
				if c = c.option("dry-run", b.DryRun).option("all", b.All); b.Project != "" {
					c.args = append(c.args, b.Project)
				}
			}
			return c
		})
}
