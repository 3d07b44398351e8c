package project

import "encoding/json"

// Node says that a project is deployed on this machine by another server, its hub, and as which of that one's nodes.
type Node struct {
	// Hub is the name of the machine whose bundles are deployed here.
	Hub string `json:"hub"`
	// Name and Roles are what the hub's nodes.yaml says of this machine; "" and none if it has none.
	Name  string   `json:"name,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// Exports are what the nodes of earlier stages wrote by the last rollout: a JSON object by role, node and name.
	Exports json.RawMessage `json:"exports,omitempty"`
	// KV are the keys of the hub that the project sees, with their values, as they were at the last rollout.
	KV map[string]string `json:"kv,omitempty"`
}
