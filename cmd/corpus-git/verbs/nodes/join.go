package nodes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/fleet"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/quantity"
)

// principal is who a node's agent logs in as; tokenKey and agentKey are the names of its two keys.
func principal(node string) string { return "node-" + node }
func tokenKey(node string) string  { return principal(node) + "-token" }
func agentKey(node string) string  { return principal(node) + "-agent" }

// TokenLife is how long a join token lasts where nobody says, and at most.
const (
	TokenLife    = "1h"
	maxTokenLife = 7 * 24 * time.Hour
)

// HasKey returns the fingerprint of the key of a name, "" if there is none.
func HasKey(s Session, name string) (fingerprint string, err error) {
	k, err := s.Access.FindByName(s.Context, name)
	if fault.KindOf(err) == fault.Refused {
		return "", nil
	}
	return k.Fingerprint, err
}

// DropKey removes a key, where it is there.
func DropKey(s Session, name string) error {
	fp, err := HasKey(s, name)
	if err != nil || fp == "" {
		return err
	}
	return s.Access.RemoveKey(s.Context, s.Caller, name)
}

// ParseLife reads how long a token is valid.
func ParseLife(text string) (time.Duration, error) {
	lasts, err := quantity.ParseDuration(text)
	if err != nil || lasts <= 0 || lasts > maxTokenLife {
		return 0, fault.New(fault.Usage, "", "--for %q: a duration such as 1h, at most %d days", text, maxTokenLife/(24*time.Hour))
	}
	return lasts, nil
}

// forget takes away what a node's agent logs in with.
func forget(s Session, node string) error {
	if _, err := s.Access.FindPrincipal(s.Context, principal(node)); fault.KindOf(err) == fault.Refused {
		return nil
	}
	err := s.Access.RemovePrincipal(s.Context, s.Caller, principal(node))
	s.Fleet.Drop(node)
	return err
}

// token makes a join token, and the node where it is new. What was made for the node before joins no more.
func token(s Session, verb, node, life, hub string) (string, error) {
	if err := s.Admin(verb, node); err != nil {
		return "", err
	}
	lasts, err := ParseLife(life)
	if err != nil {
		return "", err
	}
	hostKey, err := s.HostKey()
	if err != nil {
		return "", err
	}
	if hub == "" {
		hub = s.Address()
	}
	if !strings.Contains(hub, ":") {
		hub += ":22"
	}
	n, err := s.Fleet.Get(s.Context, node)
	if err != nil {
		err = s.Fleet.Add(s.Context, fleet.Node{Name: node, Agent: true, Added: s.Now(), AddedBy: s.Caller.Name})
	} else if !n.Agent {
		err = fault.New(fault.Refused, "", "the node %s is reached by ssh", node).WithHint("corpus-git node remove %s  first", node)
	}
	if err != nil {
		return "", err
	}
	if _, err := s.Access.FindPrincipal(s.Context, principal(node)); err != nil {
		if _, err := s.Access.AddPrincipal(s.Context, s.Caller, access.Principal{Name: principal(node), Kind: access.Agent}); err != nil {
			return "", err
		}
	}
	if err := DropKey(s, tokenKey(node)); err != nil {
		return "", err
	}
	text, public, err := agent.NewToken(hub, s.NATS, hostKey, node)
	if err != nil {
		return "", err
	}
	_, err = s.Access.AddKeyTo(s.Context, s.Caller, access.NewKey{Name: tokenKey(node), Principal: principal(node), Text: []byte(public), Expires: s.Now().Add(lasts)})
	return text, err
}

func nodeToken(s Session) *cobra.Command {
	var life, hub string
	c := &cobra.Command{
		Use: "token NAME", Short: "Create a token for a machine to join as a node",
		Long: "On that machine  corpus-git agent --join TOKEN  generates a key and joins with it. The token is valid once, until --for has passed.\n" +
			"It is secret and shown only once. An earlier token for the node becomes invalid.",
		Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := token(s, "node token", args[0], life, hub)
			if err := s.Audited(audit.Entry{Action: "node token", Object: args[0]}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("%s", text)
			return p.Err()
		},
	}
	c.Flags().StringVar(&life, "for", TokenLife, "how long the token is valid, such as 1h; at most seven days")
	c.Flags().StringVar(&hub, "hub", "", "`HOST:PORT` at which the machine reaches this server's ssh port (default: its public address)")
	return c
}

// cloudConfig is the user data of a machine (cloud-init, "Cloud config data"). %[1]s is the URL of the program, %[2]s its SHA-256, %[3]s the token.
const cloudConfig = `#cloud-config
package_update: true
packages: [git, ca-certificates, curl]
write_files:
- path: /etc/corpus-git/join
  permissions: '0600'
  content: '%[3]s'
- path: /etc/systemd/system/corpus-git-agent.service
  content: |
    [Unit]
    Description=corpus-git agent
    Wants=network-online.target
    After=network-online.target
    [Service]
    ExecStart=/usr/local/bin/corpus-git agent --join-file /etc/corpus-git/join --idle 0
    Restart=always
    KillMode=process
    [Install]
    WantedBy=multi-user.target
runcmd:
- [sh, -c, "curl -fsSL --retry 10 --retry-connrefused -o /usr/local/bin/corpus-git.new '%[1]s' && echo '%[2]s  /usr/local/bin/corpus-git.new' | sha256sum -c && chmod 755 /usr/local/bin/corpus-git.new && mv /usr/local/bin/corpus-git.new /usr/local/bin/corpus-git"]
- [systemctl, daemon-reload]
- [systemctl, enable, --now, corpus-git-agent.service]
`

func nodeCloudInit(s Session) *cobra.Command {
	var life, hub, from, sum string
	c := &cobra.Command{
		Use: "cloud-init NAME", Short: "Print cloud-init user data that turns a new machine into a node",
		Long: "Prints a #cloud-config that downloads the program from --program, checks its --sha256, and starts an agent that joins with a new token.",
		Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") || strings.ContainsAny(from, "'\"\\ \n") || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
				return fault.New(fault.Usage, "", "--program URL  and  --sha256 SUM  of the program corpus-git are required")
			}
			text, err := token(s, "node cloud-init", args[0], life, hub)
			if err := s.Audited(audit.Entry{Action: "node cloud-init", Object: args[0]}, err); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, cloudConfig, from, sum, text)
			return err
		},
	}
	c.Flags().StringVar(&life, "for", "24h", "how long the token is valid; at most seven days")
	c.Flags().StringVar(&hub, "hub", "", "`HOST:PORT` at which the machine reaches this server's ssh port (default: its public address)")
	c.Flags().StringVar(&from, "program", "", "`URL` of the program corpus-git for the machine")
	c.Flags().StringVar(&sum, "sha256", "", "its SHA-256, in hexadecimal")
	return c
}

// requireOwnNode refuses callers other than the agent of the node.
func requireOwnNode(s Session, node string) error {
	if s.Caller.Name != principal(node) || s.Caller.Fingerprint == "" {
		return fault.New(fault.Refused, "", "only the agent of the node %s can do this", node)
	}
	return nil
}

func nodeJoin(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "join NAME KEY", Short: "Exchange a join token for the agent's own key", Hidden: true, Args: s.Exactly("NAME", "KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			node := args[0]
			err := requireOwnNode(s, node)
			if err == nil {
				var fp string
				if fp, err = HasKey(s, tokenKey(node)); err == nil && fp != s.Caller.Fingerprint {
					err = fault.New(fault.Refused, "", "a token can be used once")
				}
			}
			s := s
			s.Context = context.WithoutCancel(s.Context) // an agent that is gone by now asks with its own key
			if err == nil {
				// The token's key goes first: what dies in between joins nobody, and an administrator makes another token.
				if err = s.Access.RemoveKey(s.Context, s.Caller, tokenKey(node)); err == nil {
					err = DropKey(s, agentKey(node))
					s.Fleet.Drop(node)
				}
			}
			if err == nil {
				_, err = s.Access.AddKeyTo(s.Context, s.Caller, access.NewKey{Name: agentKey(node), Principal: principal(node), Text: []byte(args[1])})
			}
			return s.Audited(audit.Entry{Action: "node join", Object: node}, err)
		},
	}
}

// The verbs of agents that are connected: many run at a time, some for long. See Direct.
const (
	attachVerb  = "attach"
	publishVerb = "publish"
	acceptFlag  = "accept"
)

// Direct gives what runs a verb of agents without the tree of the commands, which takes 250 kB; nil for other command lines.
func Direct(argv []string) func(s Session) error {
	if len(argv) < 3 || argv[0] != "node" || strings.HasPrefix(argv[2], "-") {
		return nil
	}
	switch {
	case argv[1] == attachVerb && len(argv) == 3:
		return func(s Session) error { return attach(s, argv[2], false) }
	case argv[1] == attachVerb && len(argv) == 4 && argv[3] == "--"+acceptFlag:
		return func(s Session) error { return attach(s, argv[2], true) }
	case argv[1] == publishVerb && len(argv) == 3:
		return func(s Session) error { return publish(s, argv[2]) }
	}
	return nil
}

// attach offers a stream, or accepts streams that the hub opens over the connection.
func attach(s Session, node string, accept bool) error {
	refused := requireOwnNode(s, node)
	var err error
	if refused == nil {
		valid := func() error { refused = OfAgent(s, node); return refused }
		if accept {
			var ok bool
			if ok, err = s.Fleet.Accept(s.Context, node, s.Caller.From, valid, s.In); !ok {
				err = fault.New(fault.Refused, "", "no streams can be opened over this connection")
			}
		} else {
			err = s.Fleet.Attach(s.Context, node, s.Caller.From, valid, s.In, s.Out)
		}
	}
	if refused != nil {
		return s.Audited(audit.Entry{Action: "node attach", Object: node}, refused)
	}
	return err
}

func nodeAttach(s Session) *cobra.Command {
	var accept bool
	c := &cobra.Command{
		Use: attachVerb + " NAME", Short: "Offer a stream of an agent", Hidden: true, Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error { return attach(s, args[0], accept) },
	}
	c.Flags().BoolVar(&accept, acceptFlag, false, "accept streams that the hub opens over this connection, in place of offering one")
	return c
}
