package project

import "encoding/json"

// Node says that a project is deployed on this machine by another server, its hub, and as which of the hub's nodes.
type Node struct {
	// Hub is the name of the machine whose bundles are deployed here.
	Hub string `json:"hub"`
	// Name and Roles are those of this machine in the hub's nodes.yaml; "" and none if it is not listed.
	Name  string   `json:"name,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// Exports are the values that the nodes of earlier stages wrote in the last rollout: a JSON object by role, node
	// and name.
	Exports json.RawMessage `json:"exports,omitempty"`
	// KV are the hub's keys that the project can see, with their values, as they were at the last rollout.
	KV map[string]string `json:"kv,omitempty"`
}
