package nodes

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/fleet"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project/status"
)

// NodeCommand returns the verb node.
func NodeCommand(s Session) *cobra.Command {
	c := &cobra.Command{
		Use: "node", Short: "Manage the machines that projects are deployed to",
		Long: "A project whose pillar contains nodes.yaml is deployed to the machines it names, each with its own pipeline (docs/guide/nodes.md). Administrators\n" +
			"register the machines here. The server connects to them by ssh, as its own user.",
	}
	c.AddCommand(nodeAdd(s), nodeList(s), nodeShow(s), nodeDrain(s, true), nodeDrain(s, false), nodeSlots(s), nodeRemove(s), nodeAssign(s), nodeUnassign(s), nodeToken(s), nodeCloudInit(s), nodeUpgrade(s), nodeKnownHosts(s), nodeJoin(s), nodeAttach(s), nodePublish(s))
	return c
}

func nodeAdd(s Session) *cobra.Command {
	var n fleet.Node
	var ssh SSHFlags
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a node",
		Long: "The node's host key must be in known_hosts of the server's user, and the login must work without a password:\n" +
			"ssh -o BatchMode=yes USER@HOST true  must succeed as that user.",
		Example: "  corpus-git node add web1 --ssh root@web1.example.org\n  corpus-git node add web2 --ssh deploy@10.0.0.2 -p 2222 -i /root/.ssh/nodes",
		Args:    s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Local("node add", args[0]); err != nil {
				return err
			}
			if n.Target == "" {
				return fault.New(fault.Usage, "", "--ssh USER@HOST is required")
			}
			n.Options = ssh.Options()
			n.Name, n.Added, n.AddedBy = args[0], s.Now(), s.Caller.Name
			if err := s.Audited(audit.Entry{Action: "node add", Object: n.Name, Detail: n.Target}, s.Fleet.Add(s.Context, n)); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("added %s  %s", n.Name, printable.Text(n.Target))
			p.Line("  to deploy a project there, add the node to nodes.yaml of its pillar")
			return p.Err()
		},
	}
	f := c.Flags()
	f.StringVar(&n.Target, "ssh", "", "destination of ssh: [user@]host, or a name of ssh_config")
	ssh.Register(f)
	f.StringVar(&n.Root, "remote-root", "", "the root directory there (default: /srv for root, otherwise ~/srv)")
	return c
}

func nodeList(s Session) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the nodes", Args: s.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.Admin("node list", ""); err != nil {
				return err
			}
			known, err := s.Fleet.List(s.Context)
			if err != nil {
				return err
			}
			list, err := inventory(s, known)
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(status.Nodes{Version: 1, Nodes: list})
			}
			p := s.Printer()
			if len(list) == 0 {
				p.Line("no nodes yet:  corpus-git node add NAME --ssh USER@HOST")
			}
			width := widthOf(list, func(n status.Node) string { return n.Name })
			for _, n := range list {
				version, drained := cmp.Or(n.Release, "-"), ""
				if n.Drained {
					drained = "  drained"
				}
				if n.Slots > 0 {
					drained = "  " + humanize.Plural(n.Slots, "slot") + drained
				}
				p.Line("%-*s %-30s %-12s %s%s", width, n.Name, printable.Text(connection(n)), printable.Text(version), cmp.Or(printable.Text(roles(n)), "-"), drained)
			}
			return p.Err()
		},
	}
	return s.JSONFlag(c)
}

func nodeShow(s Session) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a node", Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node show", args[0]); err != nil {
				return err
			}
			known, err := s.Fleet.Get(s.Context, args[0])
			if err != nil {
				return err
			}
			list, err := inventory(s, []fleet.Node{known})
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(status.Nodes{Version: 1, Nodes: list})
			}
			return show(s.Printer(), list[0])
		},
	}
	return s.JSONFlag(c)
}

func show(p Printer, n status.Node) error {
	p.Line("name     %s", n.Name)
	if n.Agent {
		p.Line("agent    %s", connection(n))
	} else {
		p.Line("ssh      %s", printable.Text(strings.Join(append(append([]string{}, n.SSHOptions...), n.SSH), " ")))
	}
	if n.Root != "" {
		p.Line("root     %s", printable.Text(n.Root))
	}
	p.Line("drained  %t", n.Drained)
	if n.Slots > 0 {
		p.Line("slots    %d", n.Slots)
	}
	p.Line("added    %s by %s", n.Added.Format(timeFormat), n.AddedBy)
	if !n.Seen.IsZero() {
		p.Line("seen     %s, with corpus-git %s", n.Seen.Format(timeFormat), printable.Text(n.Release))
	}
	if len(n.Addresses) > 0 {
		p.Line("address  %s", strings.Join(n.Addresses, ", "))
	}
	for _, u := range n.Projects {
		p.Line("project  %s  %s", u.Project, strings.TrimRight(strings.Join([]string{cmp.Or(strings.Join(u.Roles, ", "), "no roles"), cmp.Or(u.State, "not deployed there yet"), string(u.Deployment), u.Text()}, "  "), " "))
	}
	for _, k := range slices.Sorted(maps.Keys(n.Facts)) {
		p.Line("  %-16s %s", printable.Text(k), printable.Text(n.Facts[k]))
	}
	return p.Err()
}

// timeFormat is how times are shown.
const timeFormat = "2006-01-02 15:04:05Z07:00"

func nodeDrain(s Session, drained bool) *cobra.Command {
	verb, short, is := "drain", "Exclude a node from deployments", "excluded from deployments"
	if !drained {
		verb, short, is = "undrain", "Include a node in deployments again", "included in deployments"
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node "+verb, args[0]); err != nil {
				return err
			}
			changed, err := s.Fleet.Drain(s.Context, args[0], drained)
			if err := s.Audited(audit.Entry{Action: "node " + verb, Object: args[0]}, err); err != nil {
				return err
			}
			p := s.Printer()
			already := "now"
			if !changed {
				already = "already"
			}
			p.Line("%s is %s %s", args[0], already, is)
			return p.Err()
		},
	}
}

func nodeSlots(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "slots NAME N", Short: "Limit how many projects are deployed to a node at the same time",
		Long: "From the next rollouts on, at most N projects are deployed to the node at the same time; others wait. 0 removes the limit.",
		Args: s.Exactly("NAME", "N"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node slots", args[0]); err != nil {
				return err
			}
			n, err := strconv.ParseUint(args[1], 10, 15)
			if err != nil {
				return fault.New(fault.Usage, "node slots", "%q is not a number of projects", args[1])
			}
			changed, err := s.Fleet.SetSlots(s.Context, args[0], int(n))
			if err := s.Audited(audit.Entry{Action: "node slots", Object: args[0], Detail: args[1]}, err); err != nil {
				return err
			}
			p := s.Printer()
			switch {
			case !changed:
				p.Line("unchanged: %s", args[0])
			case n == 0:
				p.Line("%s has no limit now", args[0])
			default:
				p.Line("%s takes %s at the same time", args[0], humanize.Plural(n, "project"))
			}
			return p.Err()
		},
	}
}

func nodeRemove(s Session) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a node, and leave what is deployed there", Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node remove", args[0]); err != nil {
				return err
			}
			if _, err := s.Fleet.Get(s.Context, args[0]); err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Refused, "node remove", "%s would be removed; what is deployed there stays", args[0]).
					WithHint("confirm with --yes:  corpus-git node remove %s --yes", args[0])
			}
			err := s.Fleet.Remove(s.Context, args[0])
			if err == nil {
				err = forget(s, args[0])
			}
			if err := s.Audited(audit.Entry{Action: "node remove", Object: args[0]}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("removed %s", args[0])
			return p.Err()
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}
