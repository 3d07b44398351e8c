package fleet

import (
	"slices"

	"corpus-git/project"
)

// Behind is a node that has another release of a project than the live one.
type Behind struct {
	Node string
	// Release is what it has; "" if that is not known.
	Release project.Commit
}

// BehindLive returns the nodes of a project's newest rollout that have another release than the live one, or another pillar, in the order of their names. history is that of the project, the newest
// first; while its newest runs there are none.
func BehindLive(history []*Progress) (out []Behind) {
	if len(history) == 0 || !history[0].Complete() {
		return nil
	}
	var live project.Deployment
	if i := slices.IndexFunc(history, func(p *Progress) bool { return p.State == Live }); i >= 0 {
		live = history[i].Deployment
	}
	newest := history[0].Plan
	names := slices.Concat(Names(newest.Nodes()), newest.Left, newest.Skipped)
	slices.SortFunc(names, natural)
	for _, name := range names {
		code, pillar, known := releaseOf(name, history)
		if !known || code != live.Code || code != "" && pillar != live.Pillar {
			out = append(out, Behind{Node: name, Release: code})
		}
	}
	return out
}

// releaseOf returns the commits that a node has, by the newest rollout that left it with some; "" if it has none.
func releaseOf(node string, history []*Progress) (code, pillar project.Commit, known bool) {
	for _, p := range history {
		i := slices.IndexFunc(p.Nodes, func(n NodeProgress) bool { return n.Name == node })
		if i < 0 {
			continue
		}
		switch n := p.Nodes[i]; {
		case n.State == NodeLive:
			return p.Deployment.Code, p.Deployment.Pillar, true
		case n.State == Applying, n.State == NodeFailed && n.Touched:
			return "", "", false
		}
	}
	return "", "", len(history) < kept // what came before is no longer known
}
