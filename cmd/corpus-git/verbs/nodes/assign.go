package nodes

import (
	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/project"
)

func nodeAssign(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "assign NAME PROJECT", Short: "Run a project on this node, without a nodes.yaml", Args: s.Exactly("NAME", "PROJECT"),
		Long: "From its next deployment on, the project runs on the node and not on this machine. A nodes.yaml in its pillar has priority. What runs on this\n" +
			"machine stays there: end it first with  corpus-git undeploy PROJECT .",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node assign", args[0]); err != nil {
				return err
			}
			name, err := s.Project("node assign", args[1], project.Read)
			if err != nil {
				return err
			}
			return assign(s, "node assign", name, args[0])
		},
	}
}

func nodeUnassign(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "unassign PROJECT", Short: "Run a project on this machine again, from its next deployment on", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node unassign", args[0]); err != nil {
				return err
			}
			name, err := s.Project("node unassign", args[0], project.Read)
			if err != nil {
				return err
			}
			return assign(s, "node unassign", name, "")
		},
	}
}

func assign(s Session, verb string, name project.Name, node string) error {
	changed, err := s.Fleet.Assign(s.Context, name, node)
	if err := s.Audited(audit.Entry{Action: verb, Project: string(name), Object: node}, err); err != nil {
		return err
	}
	is := "on the node " + node
	if node == "" {
		is = "on this machine"
	}
	p := s.Printer()
	if changed {
		p.Line("%s runs %s, from its next deployment on", name, is)
	} else {
		p.Line("%s already runs %s", name, is)
	}
	return p.Err()
}
