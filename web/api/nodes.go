package api

import (
	"net/http"

	"corpus-git/project/status"
)

// nodes registers the operations on nodes.
func (a *API) nodes() {
	type one struct {
		Node string `path:"node" maxLength:"64" doc:"The node"`
	}
	add[nothing, status.Nodes](a, operation{method: http.MethodGet, path: "/nodes", id: "listNodes", tag: "nodes", summary: "List the nodes, with what they reported and their projects"},
		func(*nothing) call { return do("node list") })
	add[one, status.Nodes](a, operation{method: http.MethodGet, path: "/nodes/{node}", id: "getNode", tag: "nodes", summary: "Show a node", lookup: true},
		func(in *one) call { return do("node show", in.Node) })
}
