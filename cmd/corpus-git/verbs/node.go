package verbs

import (
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/fleet"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

func nodeCommand(s *session) *cobra.Command {
	c := &cobra.Command{
		Use: "node", Short: "The machines on which projects with nodes are deployed",
		Long: "A project whose pillar has a nodes.yaml is deployed on the machines that it names, each by its own pipeline (docs/guide/nodes.md). Which machines\n" +
			"there are, an administrator says here; they are reached by ssh, as the server's user.",
	}
	c.AddCommand(nodeAdd(s), nodeList(s), nodeShow(s), nodeDrain(s, true), nodeDrain(s, false), nodeRemove(s))
	return c
}

func nodeAdd(s *session) *cobra.Command {
	var n fleet.Node
	var port, identity, jump string
	var options []string
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a node",
		Long: "Its host key must be in the known_hosts of the server's user, and the login must need no password:\n" +
			"ssh -o BatchMode=yes USER@HOST true  as that user ends without a question.",
		Example: "  corpus-git node add web1 --ssh root@web1.example.org\n  corpus-git node add web2 --ssh deploy@10.0.0.2 -p 2222 -i /root/.ssh/nodes",
		Args:    exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.local("node add", args[0]); err != nil {
				return err
			}
			if n.Target == "" {
				return usage("--ssh USER@HOST says how the node is reached")
			}
			for _, o := range []struct{ flag, value string }{{"-p", port}, {"-i", identity}, {"-J", jump}} {
				if o.value != "" {
					n.Options = append(n.Options, o.flag, o.value)
				}
			}
			for _, o := range options {
				n.Options = append(n.Options, "-o", o)
			}
			n.Name, n.Added, n.AddedBy = args[0], s.b.Now(), s.who.Name
			if err := s.audited(audit.Entry{Action: "node add", Object: n.Name, Detail: n.Target}, s.b.Fleet.Add(s.ctx, n)); err != nil {
				return err
			}
			p := s.printer()
			p.line("added %s  %s", n.Name, printable.Text(n.Target))
			p.line("  a project is deployed there once the nodes.yaml of its pillar names it")
			return p.err
		},
	}
	f := c.Flags()
	f.StringVar(&n.Target, "ssh", "", "destination of ssh: [user@]host, or a name of ssh_config")
	f.StringVarP(&port, "port", "p", "", "port of ssh there")
	f.StringVarP(&identity, "identity", "i", "", "private key `FILE` of ssh")
	f.StringVarP(&jump, "jump", "J", "", "connect by way of this `HOST` (ProxyJump)")
	f.StringSliceVar(&options, "ssh-option", nil, "further options of ssh, as after its -o, separated by commas")
	f.StringVar(&n.Root, "remote-root", "", "the root there (default: /srv for root, srv in the home of others)")
	return c
}

// NodesDocument is what node list --json prints.
type NodesDocument struct {
	Version int          `json:"version"`
	Nodes   []fleet.Node `json:"nodes"`
}

func nodeList(s *session) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the nodes", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.admin("node list", ""); err != nil {
				return err
			}
			list, err := s.b.Fleet.List(s.ctx)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(NodesDocument{Version: 1, Nodes: append([]fleet.Node{}, list...)})
			}
			p := s.printer()
			if len(list) == 0 {
				p.line("no nodes yet:  corpus-git node add NAME --ssh USER@HOST")
			}
			for _, n := range list {
				p.line("%-20s %-30s %s", n.Name, printable.Text(n.Target), map[bool]string{true: "drained"}[n.Drained])
			}
			return p.err
		},
	}
	return s.jsonFlag(c)
}

func nodeShow(s *session) *cobra.Command {
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a node", Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("node show", args[0]); err != nil {
				return err
			}
			n, err := s.b.Fleet.Get(s.ctx, args[0])
			if err != nil {
				return err
			}
			if s.json {
				return s.document(NodesDocument{Version: 1, Nodes: []fleet.Node{n}})
			}
			p := s.printer()
			p.line("name     %s", n.Name)
			p.line("ssh      %s", printable.Text(strings.Join(append(append([]string{}, n.Options...), n.Target), " ")))
			if n.Root != "" {
				p.line("root     %s", printable.Text(n.Root))
			}
			p.line("drained  %t", n.Drained)
			p.line("added    %s by %s", n.Added.Format("2006-01-02 15:04:05Z07:00"), n.AddedBy)
			return p.err
		},
	}
	return s.jsonFlag(c)
}

func nodeDrain(s *session, drained bool) *cobra.Command {
	verb, short, is := "drain", "Leave a node out of deployments", "left out of deployments"
	if !drained {
		verb, short, is = "undrain", "Take a node into deployments again", "in deployments"
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("node "+verb, args[0]); err != nil {
				return err
			}
			changed, err := s.b.Fleet.Drain(s.ctx, args[0], drained)
			if err := s.audited(audit.Entry{Action: "node " + verb, Object: args[0]}, err); err != nil {
				return err
			}
			p := s.printer()
			already := "now"
			if !changed {
				already = "already"
			}
			p.line("%s is %s %s", args[0], already, is)
			return p.err
		},
	}
}

func nodeRemove(s *session) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a node; what is deployed there stays", Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("node remove", args[0]); err != nil {
				return err
			}
			if _, err := s.b.Fleet.Get(s.ctx, args[0]); err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Refused, "node remove", "%s would be forgotten; what is deployed there stays", args[0]).
					WithHint("confirm with --yes:  corpus-git node remove %s --yes", args[0])
			}
			if err := s.audited(audit.Entry{Action: "node remove", Object: args[0]}, s.b.Fleet.Remove(s.ctx, args[0])); err != nil {
				return err
			}
			p := s.printer()
			p.line("removed %s", args[0])
			return p.err
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}
