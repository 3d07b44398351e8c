package status

import (
	"time"

	"corpus-git/project"
)

// Node is a machine that projects are deployed to.
type Node struct {
	Name string `json:"name"`
	// Agent reports that the node connects to this server; otherwise SSH and SSHOptions are those for ssh(1).
	Agent      bool     `json:"agent,omitempty"`
	SSH        string   `json:"ssh,omitempty"`
	SSHOptions []string `json:"ssh_options,omitempty"`
	Root       string   `json:"root,omitempty"`
	Drained    bool     `json:"drained,omitempty"`
	// Slots is how many projects are deployed there at the same time; absent for no limit.
	Slots int `json:"slots,omitempty"`
	// Connected reports, of an agent, that it is connected now.
	Connected bool      `json:"connected,omitempty"`
	Added     time.Time `json:"added"`
	AddedBy   string    `json:"added_by,omitempty"`
	// Release, Facts, Addresses and HostKeys are what the node reported when it was last reached, at Seen.
	Release   string            `json:"release,omitempty"`
	Addresses []string          `json:"addresses,omitempty"`
	Facts     map[string]string `json:"facts,omitempty"`
	Seen      time.Time         `json:"seen,omitzero"`
	HostKeys  []string          `json:"host_keys,omitempty"`
	// Projects are the projects that are deployed there.
	Projects []NodeProject `json:"projects,omitempty"`
}

// NodeProject is a project on a node.
type NodeProject struct {
	Project project.Name `json:"project"`
	Roles   []string     `json:"roles,omitempty"`
	// State is the node's state in Deployment, the last rollout of the project to it.
	State      string     `json:"state,omitempty"`
	Deployment project.ID `json:"deployment,omitempty"`
	// Behind reports that the node has another release than the live one, Release which, absent if that is not known.
	Behind  bool           `json:"behind,omitempty"`
	Release project.Commit `json:"release,omitempty"`
}

// Text says, for people, which release a node has that is behind; "" if it is not.
func (p NodeProject) Text() string {
	switch {
	case !p.Behind:
		return ""
	case p.Release == "":
		return "not the live release"
	}
	return "has " + p.Release.Short() + ", not the live release"
}

// Nodes is what node list --json and node show --json print.
type Nodes struct {
	Version int    `json:"version"`
	Nodes   []Node `json:"nodes"`
}
