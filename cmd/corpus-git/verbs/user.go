package verbs

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
)

func userCommand(s *session) *cobra.Command {
	c := group(s, "user", "Manage users: people, bots and agents", userAdd(s), userSet(s), userList(s), userShow(s),
		userDisable(s, true), userDisable(s, false), userRemove(s))
	c.Aliases = []string{"principal"}
	return c
}

func userAdd(s *session) *cobra.Command {
	var kind, email string
	var admin bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a user",
		Long: "A user has permissions, and keys and tokens to log in with. New users have none:\nsee  corpus-git key add --user,  corpus-git token create  and  corpus-git access grant.\n" +
			"A user that  key add  created becomes independent of its key.",
		Example: "  corpus-git user add marie --email marie@example.org\n  corpus-git user add jenkins --kind bot",
		Args:    exactly("NAME"), Annotations: map[string]string{Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("user add", args[0]); err != nil {
				return err
			}
			k, err := access.ParseKind(kind)
			if err != nil {
				return err
			}
			u, err := s.b.Access.AddPrincipal(s.ctx, s.who.Identity, access.Principal{Name: args[0], Kind: k, Email: email, Admin: admin})
			if err != nil {
				return err
			}
			p := s.printer()
			p.line("added %s  (%s%s)", u.Name, string(u.Kind), map[bool]string{true: ", admin"}[u.Admin])
			return p.err
		},
	}
	userFlags(c, &kind, &email, &admin)
	return c
}

func userFlags(c *cobra.Command, kind, email *string, admin *bool) {
	c.Flags().StringVar(kind, "kind", string(access.Person), "person, bot or agent")
	c.Flags().StringVar(email, "email", "", "e-mail address")
	c.Flags().BoolVar(admin, "admin", false, "make the user an administrator")
}

func userSet(s *session) *cobra.Command {
	var kind, email string
	var admin bool
	c := &cobra.Command{
		Use: "set USER", Short: "Change a user", Args: exactly("USER"),
		Example: "  corpus-git user set marie --email marie@example.org\n  corpus-git user set marie --admin=false",
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.admin("user set", args[0]); err != nil {
				return err
			}
			var change access.Change
			if c.Flags().Changed("kind") {
				k, err := access.ParseKind(kind)
				if err != nil {
					return err
				}
				change.Kind = &k
			}
			if c.Flags().Changed("email") {
				change.Email = &email
			}
			if c.Flags().Changed("admin") {
				change.Admin = &admin
			}
			if change == (access.Change{}) {
				return usage("nothing to change").WithHint("see  corpus-git user set --help")
			}
			return s.changeUser(args[0], change, "changed")
		},
	}
	userFlags(c, &kind, &email, &admin)
	return c
}

func (s *session) changeUser(name string, change access.Change, did string) error {
	u, err := s.b.Access.SetPrincipal(s.ctx, s.who.Identity, name, change)
	if err != nil {
		return err
	}
	p := s.printer()
	p.line("%s %s", did, u.Name)
	return p.err
}

func userDisable(s *session, disable bool) *cobra.Command {
	verb, short, did := "disable", "Disable a user; keys, tokens and permissions are kept", "disabled"
	if !disable {
		verb, short, did = "enable", "Enable a disabled user", "enabled"
	}
	return &cobra.Command{
		Use: verb + " USER", Short: short, Args: exactly("USER"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("user "+verb, args[0]); err != nil {
				return err
			}
			return s.changeUser(args[0], access.Change{Disabled: &disable}, did)
		},
	}
}

func userRemove(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "remove USER", Short: "Remove a user with its keys, tokens and permissions", Args: exactly("USER"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("user remove", args[0]); err != nil {
				return err
			}
			if err := s.b.Access.RemovePrincipal(s.ctx, s.who.Identity, args[0]); err != nil {
				return err
			}
			p := s.printer()
			p.line("removed %s", args[0])
			return p.err
		},
	}
}

func userList(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "list", Short: "List the users", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.admin("user list", ""); err != nil {
				return err
			}
			users, err := s.b.Access.ListPrincipals(s.ctx)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(access.Users{Version: 1, Users: append([]access.Principal{}, users...)})
			}
			p := s.printer()
			if len(users) == 0 {
				p.line("no users yet; add one with  corpus-git user add NAME")
				return p.err
			}
			t := table{heads: []string{"USER", "KIND", "ADMIN", "STATE", "EMAIL", "ADDED"}, flexible: []int{0, 4}}
			for _, u := range users {
				state := plain("enabled")
				if u.Disabled {
					state = painted(yellow, "disabled")
				}
				t.add(painted(bold, u.Name), plain(string(u.Kind)), plain(adminWord(u.Admin)), state, plain(orNone(u.Email)), plain(s.when(u.Added)))
			}
			t.print(p, s.who.Term)
			return p.err
		},
	})
}

func adminWord(admin bool) string {
	if admin {
		return "admin"
	}
	return "-"
}

// userShow shows a user to administrators, and everybody to themselves.
func userShow(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "show [USER]", Short: "Show a user: keys, tokens and permissions", Args: exactly("[USER]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := arg(args, 0)
			if name == "" {
				name = s.who.Name
			}
			if _, err := s.self("user show", name); err != nil {
				return err
			}
			doc := access.UserDocument{Version: 1}
			var err error
			if doc.User, err = s.b.Access.FindPrincipal(s.ctx, name); err != nil {
				return err
			}
			keys, err := s.b.Access.ListKeys(s.ctx)
			if err != nil {
				return err
			}
			doc.Keys = []access.Key{}
			for _, k := range keys {
				if k.Principal == name {
					doc.Keys = append(doc.Keys, k)
				}
			}
			certs, err := s.b.Access.ListCertificates(s.ctx, name)
			if err != nil {
				return err
			}
			doc.Certificates = append([]access.Certificate{}, certs...)
			tokens, err := s.b.Access.ListTokens(s.ctx, name)
			if err != nil {
				return err
			}
			grants, err := s.b.Access.GrantsOf(s.ctx, name)
			if err != nil {
				return err
			}
			doc.Tokens, doc.Grants = append([]access.Token{}, tokens...), append([]access.Grant{}, grants...)
			if s.json {
				return s.document(doc)
			}
			return s.showUser(doc)
		},
	})
}

func (s *session) showUser(doc access.UserDocument) error {
	p := s.printer()
	u := doc.User
	p.line("%s  %s%s%s", s.who.Term.paint(bold, u.Name), string(u.Kind), map[bool]string{true: ", admin"}[u.Admin], map[bool]string{true: ", disabled"}[u.Disabled])
	if u.Email != "" {
		p.line("  e-mail  %s", u.Email)
	}
	p.line("  added   %s by %s", s.when(u.Added), u.AddedBy)
	for _, k := range doc.Keys {
		p.line("  key     %s  %s  used %s%s", k.Name, k.Fingerprint, s.when(k.LastUsed), s.ends(k.Expires))
	}
	for _, c := range doc.Certificates {
		p.line("  cert    %s  serial %d of %s  used %s%s", c.KeyID, c.Serial, c.CA, s.when(c.LastUsed), s.ends(c.Expires))
	}
	for _, t := range doc.Tokens {
		p.line("  token   %s  %s  %s  used %s%s", t.Name, t.ID, scopeWords(t.Scope), s.when(t.LastUsed), s.ends(t.Expires))
	}
	for _, g := range doc.Grants {
		p.line("  may     %s", rightText(g.Right, g.Project))
	}
	if u.Admin {
		p.line("  may     do everything")
	} else if len(doc.Grants) == 0 {
		p.line("  may     do nothing yet:  corpus-git access grant PROJECT %s deploy", u.Name)
	}
	return p.err
}

// ends says when something expires, "" for never.
func (s *session) ends(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", " + s.expiry(t)
}

// expiry returns a moment to come, or one that is over.
func (s *session) expiry(t time.Time) string {
	left := t.Sub(s.b.Now())
	switch {
	case left <= 0:
		return "expired"
	case s.exact:
		return "expires " + t.UTC().Format(time.RFC3339)
	case left >= 48*time.Hour:
		return "expires in " + humanize.Plural(int(left.Round(24*time.Hour)/(24*time.Hour)), "day", "days")
	}
	return "expires in " + humanize.Rough(left)
}

// self is whose tokens a caller manages: those of who is named, for administrators, or the caller's own.
func (s *session) self(verb, named string) (string, error) {
	if named != "" && named != s.who.Name {
		return named, s.admin(verb, named)
	}
	if s.who.Fingerprint == "" && named == "" {
		return "", fault.New(fault.Usage, verb, "you are a local user of the machine, not a user of the server").WithHint("give the user:  --user USER")
	}
	if ok, err := s.b.Access.Valid(s.ctx, s.who.Identity); err != nil || !ok {
		return "", cmp.Or(err, error(fault.New(fault.Refused, verb, "%s may no longer log in", s.who.Name)))
	}
	return s.who.Name, nil
}
