package containers

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/container"
	"corpus-git/container/names"
	"corpus-git/internal/fault"
)

// nameServer are the flags of a name server.
type nameServer struct {
	server, zone, key string
	reverse           []string
}

func (n *nameServer) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.server, "dns-server", "", "`HOST[:PORT]` of a name server that takes updates (RFC 2136)")
	f.StringVar(&n.zone, "dns-zone", "", "the zone there")
	f.StringArrayVar(&n.reverse, "dns-reverse", nil, "a `ZONE` there in which addresses lead to names, such as 2.0.192.in-addr.arpa; repeatable")
	f.StringVar(&n.key, "dns-key", "", "`FILE` with the key of the updates, as tsig-keygen prints it")
}

// open gives what the flags name, nil for nothing.
func (n *nameServer) open() (*names.DNS, error) {
	if n.server == "" && n.zone == "" && n.key == "" && len(n.reverse) == 0 {
		return nil, nil //nolint:nilnil // none was named
	}
	if n.server == "" || n.zone == "" || n.key == "" {
		return nil, fault.New(fault.Usage, "", "a name server needs --dns-server, --dns-zone and --dns-key")
	}
	return names.ReadDNS(n.server, n.zone, n.key, n.reverse...)
}

// needed is open for commands that need a name server, and a name in its zone.
func (n *nameServer) needed(name string) (*names.DNS, error) {
	if err := container.CheckName(name); err != nil {
		return nil, err
	}
	d, err := n.open()
	if err == nil && d == nil {
		err = fault.New(fault.Usage, "", "a name server needs --dns-server, --dns-zone and --dns-key")
	}
	return d, err
}

// DNSCommand is the command dns.
func DNSCommand(s Surroundings) *cobra.Command {
	var n nameServer
	cmd := &cobra.Command{
		Use: "dns", Short: "Tell a name server the addresses of machines",
		Long: "Sends updates (RFC 2136) that a key signs (RFC 8945), as bind9 takes them with  allow-update { key \"NAME\"; };  tsig-keygen NAME  makes a key.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	add := &cobra.Command{
		Use: "add NAME ADDRESS...", Short: "Have a name in the zone lead to addresses, and to no others", Args: cobra.MinimumNArgs(2),
		Long:    "The addresses may be IPv4 and IPv6. With --dns-reverse, the addresses in these zones lead to the name, too.",
		Example: "  corpus-git dns add web1 10.213.77.2 --dns-server ns.example.org --dns-zone example.org --dns-key /etc/corpus-git/dns.key",
		RunE: func(_ *cobra.Command, args []string) error {
			var list []netip.Addr
			var said []string
			for _, text := range args[1:] {
				a, err := netip.ParseAddr(text)
				if err != nil {
					return fault.New(fault.Usage, "", "%w", err)
				}
				list, said = append(list, a), append(said, a.Unmap().String())
			}
			d, err := n.needed(args[0])
			if err != nil {
				return err
			}
			ctx, end := s.Stop()
			defer end()
			if err := d.Add(ctx, args[0], list...); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s is %s\n", d.Full(args[0]), strings.Join(said, ", "))
			return nil
		},
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Take the addresses of a name away", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := n.needed(args[0])
			if err != nil {
				return err
			}
			ctx, end := s.Stop()
			defer end()
			if err := d.Remove(ctx, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "%s has no address\n", d.Full(args[0]))
			return nil
		},
	}
	n.register(add)
	n.register(remove)
	cmd.AddCommand(add, remove)
	return cmd
}
