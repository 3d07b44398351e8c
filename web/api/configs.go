package api

import (
	"net/http"

	"corpus-git/project/status"
)

// configs are what was applied, and with which result.
func (a *API) configs() {
	type list struct {
		OnProject
		Server string `query:"server" maxLength:"255" doc:"On this server only"`
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many at most"`
	}
	type all struct {
		Server string `query:"server" maxLength:"255" doc:"On this server only"`
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many at most"`
	}
	type one struct {
		OnProject
		Config string `path:"config" pattern:"^[0-9a-f]{6,64}$" doc:"The config: six or more digits of its hash"`
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"How many of its deployments at most"`
	}
	add[list, status.Configs](a, operation{method: http.MethodGet, path: "/projects/{name}/configs", id: "listConfigs", tag: "configs", summary: "List what was applied of a project, newest first"},
		func(in *list) call {
			return do("configs", in.Name).option("server", in.Server).option("limit", in.Limit)
		})
	add[one, status.Configs](a, operation{method: http.MethodGet, path: "/projects/{name}/configs/{config}", id: "getConfig", tag: "configs", summary: "Show a config, and where it was applied", lookup: true},
		func(in *one) call {
			return do("configs", in.Name).option("show", in.Config).option("limit", in.Limit)
		})
	add[all, status.Configs](a, operation{method: http.MethodGet, path: "/configs", id: "listAllConfigs", tag: "configs", summary: "List what was applied of all projects, newest first"},
		func(in *all) call { return do("configs").option("server", in.Server).option("limit", in.Limit) })
}
