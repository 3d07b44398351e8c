package project

// Node says that a project is deployed on this machine by another server, its hub, and as which of that one's nodes.
type Node struct {
	// Hub is the name of the machine whose bundles are deployed here.
	Hub string `json:"hub"`
	// Name and Roles are what the hub's nodes.yaml says of this machine; "" and none where it has none.
	Name  string   `json:"name,omitempty"`
	Roles []string `json:"roles,omitempty"`
}
