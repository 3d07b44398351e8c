// Package hostkeys has the verb host-key: it prints the server's host keys, and replaces them.
//
// It owns the texts of the verb. It changes no key itself.
package hostkeys

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project/status"
)

// Backend replaces host keys.
type Backend interface {
	// Rotation returns how far the replacement is.
	Rotation(ctx context.Context) (status.HostKeyRotation, error)
	// Rotate makes and announces the next keys; began reports that there were none. Durable on return.
	Rotate(ctx context.Context) (began bool, err error)
	// Retire replaces the present keys by the next ones; with force also if agents do not know these. Durable on return.
	Retire(ctx context.Context, force bool) error
}

// Session is one run of the verb.
type Session struct {
	nodes.Session
	Backend Backend
	// Server returns the addresses and the keys of the server.
	Server func() status.Server
	// Err is for what is not part of the lines.
	Err io.Writer
}

// Command returns the verb host-key.
func Command(s Session) *cobra.Command {
	c := s.JSONFlag(&cobra.Command{
		Use: "host-key", Short: "Print the server's host keys, as lines for known_hosts, or replace them", Args: s.Exactly(),
		Long: "Prints a known_hosts line for each host key of the server, and the fingerprints on standard error.\n" +
			"With these lines a CI system can push without confirming the host key. While a key is being replaced the lines contain the next one, too.",
		Example: "  corpus-git host-key >> ~/.ssh/known_hosts\n  ssh -p 2222 deploy@server host-key",
		RunE:    func(*cobra.Command, []string) error { return show(s) },
	})
	c.AddCommand(list(s), rotate(s), retire(s))
	return c
}

func show(s Session) error {
	at := s.Server()
	if len(at.HostKeys) == 0 {
		return fault.New(fault.Refused, "", "the server has no host key yet").WithHint("its first start generates one:  corpus-git serve")
	}
	if s.JSON() {
		return s.Document(status.HostKeys{Version: status.Version, SSH: at.SSH, HostKeys: at.HostKeys})
	}
	p := s.Printer()
	for _, k := range at.HostKeys {
		p.Line("%s", k.KnownHosts)
		if _, err := fmt.Fprintf(s.Err, "# %s %s\n", k.Type, k.Fingerprint); err != nil {
			return err
		}
	}
	return p.Err()
}

func list(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "list", Short: "Show the present, next and retired host keys, and which agents do not know the next one", Args: s.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.Admin("host-key list", ""); err != nil {
				return err
			}
			r, err := s.Backend.Rotation(s.Context)
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(r)
			}
			p := s.Printer()
			for _, k := range r.Keys {
				p.Line("%-8s %s %s", k.State, k.Type, k.Fingerprint)
			}
			if !r.Since.IsZero() {
				p.Line("announced since %s; %d of %s know the next key", r.Since.Format("2006-01-02 15:04Z"), r.Agents-len(r.Unaware), humanize.Plural(r.Agents, "agent"))
			}
			for _, name := range r.Unaware {
				p.Line("  %s does not", name)
			}
			return p.Err()
		},
	})
}

func rotate(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Generate the next host keys, and announce them to clients and agents", Args: s.Exactly(),
		Long: "Generates the keys that will replace the present host keys. The server goes on with the present ones, and announces the next ones: agents learn them at once or when\n" +
			"they connect, clients of OpenSSH add them to their known_hosts when they connect (UpdateHostKeys in ssh_config), nodes reached by ssh need not be told. After some days, when\n" +
			"everybody has connected,  corpus-git host-key retire  replaces the keys.",
		RunE: func(*cobra.Command, []string) error {
			if err := s.Admin("host-key rotate", ""); err != nil {
				return err
			}
			began, err := s.Backend.Rotate(s.Context)
			if err = s.Audited(audit.Entry{Action: "host-key rotate"}, err); err != nil {
				return err
			}
			p := s.Printer()
			if !began {
				p.Line("the next host keys are there already, and announced:  corpus-git host-key list")
				return p.Err()
			}
			p.Line("the next host keys are announced; replace the present ones when everybody has connected:  corpus-git host-key retire")
			return p.Err()
		},
	}
}

func retire(s Session) *cobra.Command {
	var force, yes bool
	c := &cobra.Command{
		Use: "retire", Short: "Replace the host keys by the next ones", Args: s.Exactly(),
		Long: "Replaces the present host keys by those that  corpus-git host-key rotate  has made. From then on bundles are signed with the new key, and nodes do not accept the old one any more.\n" +
			"Clients that did not connect since are told by ssh that the key has changed: give them the lines of  corpus-git host-key . Agents that do not know the next key would have to join\n" +
			"again, so it is refused while there are any.",
		RunE: func(*cobra.Command, []string) error {
			if err := s.Admin("host-key retire", ""); err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Usage, "host-key retire", "clients that have not connected since  corpus-git host-key rotate  will be refused by their ssh").WithHint("if that is meant, add --yes")
			}
			err := s.Backend.Retire(s.Context, force)
			if err = s.Audited(audit.Entry{Action: "host-key retire"}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("the host keys were replaced; those that were used before are not used any more")
			return p.Err()
		},
	}
	c.Flags().BoolVar(&force, "force", false, "although there are agents that would have to join again")
	c.Flags().BoolVar(&yes, "yes", false, "confirm it")
	return c
}
