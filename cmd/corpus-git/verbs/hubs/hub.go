package hubs

import (
	"cmp"
	"errors"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/fleet/broker"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

// Command returns the verb hub. reads are the annotations of a command that reads standard input.
func Command(s Session, reads map[string]string) *cobra.Command {
	return s.Group("hub", "Run three hubs that share their state, so that any one of them may fail",
		addCommand(s), listCommand(s), statusCommand(s), removeCommand(s), exchangeCommand(s), knownCommand(s), admitCommand(s, reads), joinedCommand(s))
}

// routePort is the port of NATS servers for each other, unless somebody says otherwise.
const routePort = "6222"

// routeOf returns the address for other NATS servers of one that agents reach at at.
func routeOf(at string) string {
	host, _, err := broker.Parse(at)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(host, routePort)
}

func addCommand(s Session) *cobra.Command {
	var m, own member.Member
	var life string
	c := &cobra.Command{
		Use: "add NAME --ssh HOST:PORT --nats tls://HOST:PORT", Short: "Create a token for a machine to join as a further hub",
		Long: "On the new machine  corpus-git hub join TOKEN  joins with it. The token is valid once, until --for has passed; it is secret and shown only once. An earlier token\n" +
			"for the hub becomes invalid. With three hubs the state is shared; with fewer this one works as before. The first time this hub gets a name, too (--as),\n" +
			"and needs NATS:  corpus-git nats init . See docs/guide/hubs.md.",
		Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("hub add", args[0]); err != nil {
				return err
			}
			m.Name = args[0]
			m.Route = cmp.Or(m.Route, routeOf(m.NATS))
			label, _, _ := strings.Cut(s.Host, ".")
			own.Name, own.SSH = cmp.Or(own.Name, strings.ToLower(label)), cmp.Or(own.SSH, s.Address())
			if own.NATS == "" && s.NATS != nil {
				own.NATS, _, _ = strings.Cut(s.NATS.URL, ",")
			}
			own.Route = cmp.Or(own.Route, routeOf(own.NATS))
			return add(s, own, m, life)
		},
	}
	f := c.Flags()
	f.StringVar(&m.SSH, "ssh", "", "`HOST:PORT` at which the other hubs and git clients reach the ssh server of the new hub")
	f.StringVar(&m.HTTP, "http", "", "`HOST:PORT` of its web listener, if it has one")
	f.StringVar(&m.NATS, "nats", "", "`tls://HOST:PORT` of the NATS server beside it, for hubs and agents")
	f.StringVar(&m.Route, "route", "", "`HOST:PORT` of the same, for the other NATS servers (default: the same host, port "+routePort+")")
	f.StringVar(&own.Name, "as", "", "the name of this hub, the first time (default: that of the machine)")
	f.StringVar(&own.SSH, "own-ssh", "", "its `HOST:PORT`, the first time (default: its public address)")
	f.StringVar(&own.HTTP, "own-http", "", "likewise of its web listener")
	f.StringVar(&own.NATS, "own-nats", "", "likewise `tls://HOST:PORT` of its NATS server (default: nats_url)")
	f.StringVar(&own.Route, "own-route", "", "likewise `HOST:PORT` for the other NATS servers")
	f.StringVar(&life, "for", nodes.TokenLife, "how long the token is valid, such as 1h; at most seven days")
	return c
}

func add(s Session, own, m member.Member, life string) error {
	_, err := nodes.ParseLife(life)
	before, berr := member.Load(s.State)
	if err = errors.Join(err, berr); err == nil && len(before.Hubs) == 0 && own.NATS == "" {
		err = fault.New(fault.Refused, "", "this hub has no NATS server").WithHint("corpus-git nats init tls://HOST:PORT  , and set  nats_url")
	}
	var l member.List
	var first, authority bool
	if err == nil && len(before.Hubs) == 0 {
		if _, err = broker.Load(s.State.NATS()); err == nil {
			authority, err = broker.Authorize(s.State.NATS())
		}
	}
	if err == nil {
		l, first, err = s.Admission.Add(own, m)
	}
	var text string
	if err == nil {
		text, err = token(s, m.Name, life)
	}
	if err := s.Audited(audit.Entry{Action: "hub add", Object: m.Name, Detail: m.SSH}, err); err != nil {
		return err
	}
	p := s.Printer()
	if first {
		p.Line("this hub is %s  ssh %s  %s", own.Name, own.SSH, own.NATS)
	}
	if authority {
		p.Line("its NATS server was set up without an authority: one was created, which signs the certificates of the others. Agents are told when this hub is restarted")
	}
	p.Line("added %s  ssh %s  %s", m.Name, m.SSH, m.NATS)
	p.Line("on the new machine, as the user that runs the server, within %s:", life)
	p.Line("  corpus-git hub join %s", text)
	switch {
	case l.Formed:
		p.Line("when it has joined, restart the NATS servers of the other hubs, one after the other, so that they accept its keys:")
		p.Line("  here  nats-server -c %s/nats.conf", s.State.NATS())
	case len(l.Hubs) < member.Size:
		p.Line("then add the third hub:  corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT")
	default:
		p.Line("when both have joined, on this machine:")
		p.Line("  restart the NATS server, which reads its new configuration:  nats-server -c %s/nats.conf", s.State.NATS())
		p.Line("  then restart the hub. Until then it works as before")
	}
	return p.Err()
}

func removeCommand(s Session) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a hub, to replace it by another one",
		Long: "Its keys and certificates are not accepted any more. Add another one soon: with two hubs none of them may fail.",
		Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.Admin("hub remove", args[0]); err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Refused, "hub remove", "%s would be removed; with two hubs none of them may fail", args[0]).
					WithHint("confirm with --yes:  corpus-git hub remove %s --yes", args[0])
			}
			l, err := s.Admission.Remove(args[0])
			if err == nil {
				err = forget(s, args[0])
			}
			if err := s.Audited(audit.Entry{Action: "hub remove", Object: args[0]}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("removed %s", args[0])
			if l.Formed {
				if err := member.Forget(s.Context, s.State, args[0]); err != nil {
					p.Line("its part of the log is not given to another hub yet: %s", err.Error())
				}
				if err := member.Reload(s.Context, s.State); err != nil {
					p.Line("restart the NATS server, so that it refuses %s: %s", args[0], err.Error())
				}
				p.Line("to replace it:  corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT")
			}
			return p.Err()
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "confirm")
	return c
}

func listCommand(s Session) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List the hubs: which one leads, and how far the others are behind", Args: s.Exactly(),
		RunE: func(*cobra.Command, []string) error { return shown(s, "hub list", list) },
	}
	return s.JSONFlag(c)
}

func statusCommand(s Session) *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show this hub among the others", Args: s.Exactly(),
		RunE: func(*cobra.Command, []string) error { return shown(s, "hub status", own) },
	}
	return s.JSONFlag(c)
}
