package agents

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"corpus-git/fleet/broker"
	"corpus-git/layout"
)

// NATSCommand returns the command nats, which works on the state directory without the server.
func NATSCommand(state func() (layout.State, error), out io.Writer) *cobra.Command {
	c := &cobra.Command{Use: "nats", Short: "Let agents connect over NATS"}
	c.AddCommand(&cobra.Command{
		Use: "init tls://HOST:PORT", Short: "Generate the keys and the configuration of a NATS server for agents",
		Long: "Writes nats.conf , a certificate and keys to the directory nats of state_dir, for a NATS server (2.10 or newer) that listens on PORT, and that agents and this hub reach at\n" +
			"HOST. The NATS server asks the hub which agents it may let in. Start it with  nats-server -c FILE , then set  nats_url  and restart the hub.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := state()
			if err != nil {
				return err
			}
			file, err := broker.Setup(s.NATS(), args[0])
			if err == nil {
				_, err = fmt.Fprintf(out, "wrote %s\nstart the NATS server with  nats-server -c %s , set  nats_url: %s  in the configuration of the hub, and restart it\n", file, file, args[0])
			}
			return err
		},
	})
	return c
}
