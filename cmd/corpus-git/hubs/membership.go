package hubs

import (
	"slices"

	"corpus-git/cluster"
	"corpus-git/cluster/member"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// membership is what this machine knows of the hubs.
type membership struct {
	Self    cluster.Hub
	Hubs    []cluster.Hub
	Founder bool
	// Begun: this hub has led, or has a copy of the state of one that led.
	Begun bool
	// Active: there are, or were, three hubs, so that they share their state.
	Active bool
}

// load reads the files of package member.
func load(state layout.State) (m membership, err error) {
	self, there, err := member.LoadSelf(state)
	if err != nil || !there {
		return m, err
	}
	list, err := member.Load(state)
	if err != nil || !list.Formed {
		return m, err
	}
	m.Hubs, m.Founder, m.Active = list.Known(), self.Founder, true
	if m.Begun, err = vfs.Exists(vfs.OS{}, state.ClusterPosition()); err != nil {
		return m, err
	}
	i := slices.IndexFunc(m.Hubs, func(h cluster.Hub) bool { return h.Name == self.Name })
	if i < 0 {
		return m, fault.New(fault.Refused, "", "%s was removed from the hubs", self.Name).WithHint("this machine's copy of the state is in %s ; remove it to use the machine for something else", state.Path())
	}
	m.Self = m.Hubs[i]
	return m, nil
}

// known returns the hubs that have joined, as they are now.
func known(state layout.State) ([]cluster.Hub, error) {
	list, err := member.Load(state)
	return list.Known(), err
}
