// Package hubs is the verbs about the hubs of a cluster.
//
// It owns their words, flags and output, and who may use them. Which hubs there are is decided by cluster/member, which of them leads by cluster. It keeps nothing.
package hubs

import (
	"context"

	"corpus-git/cluster"
	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/layout"
)

// Cluster is what is known of the hubs that run.
type Cluster interface {
	Status(ctx context.Context) ([]cluster.Status, cluster.Log, error)
	Leader() (h cluster.Hub, epoch uint64, ok bool)
}

// Backend is what the verbs work with.
type Backend struct {
	State layout.State
	// Admission adds and removes hubs.
	Admission *member.Admission
	// Cluster is nil on a hub without others.
	Cluster Cluster
}

// Session is one run of a verb.
type Session struct {
	nodes.Session
	Backend
	// Host is the name of this machine.
	Host string
}

// New returns the backend of a hub with this state, without others.
func New(state layout.State) Backend {
	return Backend{State: state, Admission: &member.Admission{State: state}}
}

// Addresses returns the addresses of the ssh servers of the hubs that share their state; none before they do.
func (b Backend) Addresses() (out []string, err error) {
	l, err := member.Load(b.State)
	if err != nil || !l.Formed {
		return nil, err
	}
	for _, h := range l.Known() {
		out = append(out, h.SSH)
	}
	return out, nil
}
