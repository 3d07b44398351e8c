package nodes

import (
	"net/netip"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
)

// inventory returns the documents of nodes, with their projects.
func inventory(s Session, list []fleet.Node) ([]status.Node, error) {
	node := ""
	if len(list) == 1 {
		node = list[0].Name
	}
	uses, err := s.Fleet.Uses(s.Context, node)
	if err != nil {
		return nil, err
	}
	there := map[project.Name]bool{}
	out := make([]status.Node, len(list))
	for i, n := range list {
		d := status.Node{
			Name: n.Name, Agent: n.Agent, SSH: n.Target, SSHOptions: n.Options, Root: n.Root, Drained: n.Drained, Slots: n.Slots, Connected: n.Agent && s.Fleet.Connected(n.Name), Added: n.Added, AddedBy: n.AddedBy,
			Release: n.Release, Addresses: addresses(n.Facts), Facts: n.Facts, Seen: n.Seen, HostKeys: n.HostKeys,
		}
		for _, u := range uses[n.Name] {
			// The rollouts of a destroyed project are kept for a while.
			if _, ok := there[u.Project]; !ok {
				_, err := s.Project("node show", string(u.Project), project.Read)
				if err != nil && fault.KindOf(err) != fault.Refused {
					return nil, err
				}
				there[u.Project] = err == nil
			}
			if !there[u.Project] {
				continue
			}
			d.Projects = append(d.Projects, status.NodeProject{Project: u.Project, Roles: u.Roles, State: u.State, Deployment: u.Deployment, Behind: u.Behind, Release: u.Release})
		}
		out[i] = d
	}
	return out, nil
}

// addresses returns the addresses in facts at which others may reach a machine.
func addresses(facts map[string]string) (out []string) {
	for _, fact := range []string{"ipv4", "ipv6"} {
		for _, text := range strings.FieldsFunc(facts[fact], func(r rune) bool { return strings.ContainsRune("[]', ", r) }) {
			if a, err := netip.ParseAddr(text); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				out = append(out, a.String())
			}
		}
	}
	return out
}

// connection describes, for people, how a node is reached.
func connection(n status.Node) string {
	switch {
	case !n.Agent:
		return n.SSH
	case n.Connected:
		return "dials in, connected"
	}
	return "dials in"
}

// roles returns the projects of a node with its roles, and the release if it is not the live one, as in "app (web, cache)".
func roles(n status.Node) string {
	var out []string
	for _, p := range n.Projects {
		text := string(p.Project)
		about := strings.Join(p.Roles, ", ")
		if behind := p.Text(); behind != "" {
			about = strings.TrimPrefix(about+"; "+behind, "; ")
		}
		if about != "" {
			text += " (" + about + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
