package hubs

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

// principal is who a machine logs in as while it joins; tokenKey and ownKey are the names of its two keys.
func principal(hub string) string { return "hub-" + hub }
func tokenKey(hub string) string  { return principal(hub) + "-token" }
func ownKey(hub string) string    { return principal(hub) + "-key" }

// token makes the token of a hub. What was made for it before joins no more.
func token(s Session, name, life string) (string, error) {
	lasts, err := nodes.ParseLife(life)
	if err != nil {
		return "", err
	}
	hostKey, err := s.HostKey()
	if err != nil {
		return "", err
	}
	if err := forget(s, name); err != nil {
		return "", err
	}
	if _, err := s.Access.AddPrincipal(s.Context, s.Caller, access.Principal{Name: principal(name), Kind: access.Agent}); err != nil {
		return "", err
	}
	text, public, err := agent.NewHubToken(s.Address(), hostKey, name)
	if err != nil {
		return "", err
	}
	_, err = s.Access.AddKeyTo(s.Context, s.Caller, access.NewKey{Name: tokenKey(name), Principal: principal(name), Text: []byte(public), Expires: s.Now().Add(lasts)})
	return text, err
}

// forget takes away what a machine logs in with to join.
func forget(s Session, name string) error {
	p, err := s.Access.FindPrincipal(s.Context, principal(name))
	switch {
	case fault.KindOf(err) == fault.Refused:
		return nil
	case err != nil:
		return err
	case p.Kind != access.Agent:
		return fault.New(fault.Refused, "", "the user %s is not a machine that joins", p.Name).WithHint("give the hub another name")
	}
	return s.Access.RemovePrincipal(s.Context, s.Caller, p.Name)
}

// requireOwn refuses callers other than the machine that joins as a hub.
func requireOwn(s Session, name string) error {
	if s.Caller.Name != principal(name) || s.Caller.Fingerprint == "" {
		return fault.New(fault.Refused, "", "only the machine that joins as %s can do this", name)
	}
	return nil
}

// requireOwnKey is requireOwn, and refuses a token that was not exchanged.
func requireOwnKey(s Session, name string) error {
	err := requireOwn(s, name)
	if err == nil {
		var fp string
		if fp, err = nodes.HasKey(s.Session, ownKey(name)); err == nil && fp != s.Caller.Fingerprint {
			err = fault.New(fault.Refused, "", "that is not the key of the machine that joins as %s", name)
		}
	}
	return err
}

func exchangeCommand(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "exchange NAME KEY", Short: "Exchange the token of a hub for its machine's own key", Hidden: true, Args: s.Exactly("NAME", "KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			err := requireOwn(s, name)
			var k access.Key
			if err == nil {
				if k, err = s.Access.FindByName(s.Context, tokenKey(name)); err == nil && k.Fingerprint != s.Caller.Fingerprint {
					err = fault.New(fault.Refused, "", "a token can be used once")
				}
			}
			s := s
			s.Context = context.WithoutCancel(s.Context) // a machine that is gone by now asks with its own key
			if err == nil {
				// The token's key goes first: what dies in between joins nobody. The machine's key expires with the token, as it is of no use afterwards.
				if err = s.Access.RemoveKey(s.Context, s.Caller, tokenKey(name)); err == nil {
					err = nodes.DropKey(s.Session, ownKey(name))
				}
			}
			if err == nil {
				_, err = s.Access.AddKeyTo(s.Context, s.Caller, access.NewKey{Name: ownKey(name), Principal: principal(name), Text: []byte(args[1]), Expires: k.Expires})
			}
			return s.Audited(audit.Entry{Action: "hub exchange", Object: name}, err)
		},
	}
}

func knownCommand(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "known NAME", Short: "Print what was added of a hub", Hidden: true, Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := requireOwnKey(s, args[0]); err != nil {
				return s.Audited(audit.Entry{Action: "hub known", Object: args[0]}, err)
			}
			l, err := member.Load(s.State)
			if err != nil {
				return err
			}
			at := l.Find(args[0])
			if at < 0 {
				return fault.New(fault.Refused, "", "%s is not one of the hubs", args[0])
			}
			return json.NewEncoder(s.Out).Encode(l.Hubs[at])
		},
	}
}

// maxRequest limits what a machine that joins sends.
const maxRequest = 64 << 10

func admitCommand(s Session, reads map[string]string) *cobra.Command {
	return &cobra.Command{
		Use: "admit NAME", Short: "Give a machine that joins as a hub what it needs", Hidden: true, Args: s.Exactly("NAME"), Annotations: reads,
		RunE: func(_ *cobra.Command, args []string) error {
			err := requireOwnKey(s, args[0])
			var q member.Request
			if err == nil {
				if err = json.NewDecoder(io.LimitReader(s.In, maxRequest)).Decode(&q); err != nil {
					err = fault.New(fault.Usage, "", "the request is not valid: %w", err)
				}
			}
			var a member.Answer
			if err == nil {
				a, err = s.Admission.Admit(args[0], q)
			}
			// It is recorded before a secret leaves this machine.
			if err := s.Audited(audit.Entry{Action: "hub admit", Object: args[0]}, err); err != nil {
				return err
			}
			return json.NewEncoder(s.Out).Encode(a)
		},
	}
}

func joinedCommand(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "joined NAME", Short: "Record that a machine has joined as a hub", Hidden: true, Args: s.Exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := requireOwnKey(s, args[0]); err != nil {
				return s.Audited(audit.Entry{Action: "hub joined", Object: args[0]}, err)
			}
			before, err := member.Load(s.State)
			if err != nil {
				return err
			}
			l, err := s.Admission.Joined(args[0])
			if at := before.Find(args[0]); at < 0 || !before.Hubs[at].Joined || err != nil { // it is asked again and again
				err = s.Audited(audit.Entry{Action: "hub joined", Object: args[0]}, err)
			}
			if err != nil {
				return err
			}
			return json.NewEncoder(s.Out).Encode(l)
		},
	}
}
