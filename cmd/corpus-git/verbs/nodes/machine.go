package nodes

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/fleet"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// maxPublished bounds what an agent says of its machine, in bytes.
const maxPublished = 64 << 10

// OfAgent refuses who has not the key of a node's agent.
func OfAgent(s Session, node string) error {
	if err := requireOwnNode(s, node); err != nil {
		return err
	}
	fp, err := HasKey(s, agentKey(node))
	if err == nil && fp != s.Caller.Fingerprint {
		err = fault.New(fault.Refused, "", "this is not the key of the agent of %s", node)
	}
	return err
}

func nodePublish(s Session) *cobra.Command {
	return &cobra.Command{
		Use: publishVerb + " NAME", Short: "Report the facts of an agent's machine, as JSON on standard input", Hidden: true, Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return publish(s, args[0]) },
	}
}

func publish(s Session, node string) error {
	if err := OfAgent(s, node); err != nil {
		return s.Audited(audit.Entry{Action: "node publish", Object: node}, err)
	}
	text, err := io.ReadAll(io.LimitReader(s.In, maxPublished+1))
	if err != nil {
		return err
	}
	var said struct {
		fleet.NodeReport
		Process string `json:"process"`
	}
	if err := json.Unmarshal(text, &said); err != nil || len(text) > maxPublished {
		return fault.New(fault.Refused, "", "the report of %s is not a JSON object of at most %d bytes", node, maxPublished)
	}
	said.Seen = s.Now()
	s.Fleet.Announce(node, s.Caller.From, said.Process)
	if err := s.Fleet.RecordReport(s.Context, node, said.NodeReport); err != nil {
		return err
	}
	hubs, err := s.Hubs()
	if err != nil {
		return err
	}
	return json.NewEncoder(s.Out).Encode(agent.Published{Hubs: hubs, Accept: true})
}

func nodeKnownHosts(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "known-hosts [NAME]", Short: "Print the ssh host keys of nodes, as lines for known_hosts",
		Long: "The host keys that each node reported over its authenticated connection. So you can log in to a machine set up by cloud-init\n" +
			"without trusting the network.",
		Example: "  corpus-git node known-hosts web1 >> ~/.ssh/known_hosts", Args: s.Exactly("[NAME]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("node known-hosts", arg(args, 0)); err != nil {
				return err
			}
			list, err := s.Fleet.List(s.Context)
			if len(args) > 0 {
				var n fleet.Node
				n, err = s.Fleet.Get(s.Context, args[0])
				list = []fleet.Node{n}
			}
			if err != nil {
				return err
			}
			p := s.Printer()
			for _, n := range list {
				if len(args) > 0 && len(n.HostKeys) == 0 {
					return fault.New(fault.Refused, "", "%s has not reported its host keys yet", n.Name).WithHint("it does so when its agent connects, or with the next deployment there")
				}
				for _, k := range n.HostKeys {
					f := strings.Fields(k)
					p.Line("%s %s %s", n.Name, printable.Text(f[0]), printable.Text(f[1]))
				}
			}
			return p.Err()
		},
	}
}

func nodeUpgrade(s Session) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "upgrade NAME", Short: "Upgrade the program of a node's agent",
		Long: "Sends this server's program, signed. The agent starts it, and it must connect to this server within two minutes; otherwise the agent continues with the old program, and the command fails with\n" +
			"the reason. Refused while a deployment runs on the node. Nodes reached by ssh get the program with each deployment.",
		Args: s.Exactly("NAME"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := s.Local("node upgrade", args[0]); err != nil {
			return err
		}
		var in io.Reader
		if c.Flags().Changed("file") {
			in = s.In
		}
		release, err := s.Fleet.Upgrade(s.Context, args[0], in)
		if err := s.Audited(audit.Entry{Action: "node upgrade", Object: args[0]}, err); err != nil {
			return err
		}
		p := s.Printer()
		p.Line("%s runs corpus-git %s", args[0], printable.Text(release))
		return p.Err()
	}
	c.Flags().StringVar(&file, "file", "", "use the program `FILE` (for the node's architecture) instead of this server's")
	return c
}
