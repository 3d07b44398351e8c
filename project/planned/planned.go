// Package planned holds what a plan found out about the nodes of a deployment: types, and nothing that runs.
package planned

// Readiness is what a plan found out about the nodes of a deployment, which it asked without changing anything on them.
type Readiness struct {
	Stages []StageReadiness `json:"stages"`
	// Drained nodes get nothing, nor do those that the deployment does not name.
	Drained      []string `json:"drained,omitempty"`
	NotRequested []string `json:"not_requested,omitempty"`
	// Refused is why the deployment would be refused now, in one line, Hint what to do about it; "" if it would not be refused for anything that was asked.
	Refused string `json:"refused,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// NotAsked names what a deployment finds out only on the nodes.
	NotAsked []string `json:"not_asked"`
}

// StageReadiness is a stage with its nodes, in their order.
type StageReadiness struct {
	Name  string          `json:"name"`
	Nodes []NodeReadiness `json:"nodes"`
}

// NodeReadiness is what is known of a node of a stage.
type NodeReadiness struct {
	Name string `json:"name"`
	// Ready: nothing that was asked keeps it from the deployment; otherwise Reason says what does, and Hint what to do about it.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// LeftOut: it is not ready, and the deployment would skip it.
	LeftOut bool `json:"left_out,omitempty"`
	// Live is the commit that is live there, "" for none, and if it was not asked (Notes then say why).
	Live string `json:"live,omitempty"`
	// Behind: another commit is live there than on the hub, or none.
	Behind bool `json:"behind,omitempty"`
	// Release is the release of corpus-git there.
	Release string `json:"corpus_git,omitempty"`
	// Notes are further lines.
	Notes []string `json:"notes,omitempty"`
}

// Count returns how many nodes there are, and how many of them are ready.
func (n Readiness) Count() (all, ready int) {
	for _, s := range n.Stages {
		for _, m := range s.Nodes {
			all++
			if m.Ready {
				ready++
			}
		}
	}
	return all, ready
}
