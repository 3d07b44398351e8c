package verbs

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/internal/quantity"
	"corpus-git/project"
)

func tokenCommand(s *session) *cobra.Command {
	return group(s, "token", "Manage API tokens", tokenCreate(s), tokenList(s), tokenRevoke(s))
}

// expires returns the moment that a duration of now ends; "" is never.
func (s *session) expires(life string) (time.Time, error) {
	if life == "" {
		return time.Time{}, nil
	}
	d, err := quantity.ParseDuration(life)
	if err != nil {
		return time.Time{}, usage("--expires %q %w", life, err)
	}
	return s.b.Now().Add(d), nil
}

func tokenCreate(s *session) *cobra.Command {
	var user, life string
	var projects, rights []string
	var readOnly bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Create an API token, and show it once",
		Long: "A token has the permissions of its user, limited by --project, --right and --read-only. It is shown only once;\n" +
			"the server stores a hash. Tokens cannot create tokens.",
		Example: "  corpus-git token create ci --user jenkins --project app --right deploy --expires 90d\n" +
			"  ssh -p 2222 deploy@host token create laptop --read-only",
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := s.self("token create", user)
			if err != nil {
				return err
			}
			t := access.Token{Name: args[0], Principal: who, Scope: access.Scope{ReadOnly: readOnly}}
			if t.Expires, err = s.expires(life); err != nil {
				return err
			}
			for _, p := range projects {
				name, err := s.project("token create", p, project.Read)
				if err != nil {
					return err
				}
				t.Projects = append(t.Projects, name)
			}
			for _, r := range rights {
				right, err := project.ParseRight(r)
				if err != nil {
					return err
				}
				t.Rights = append(t.Rights, right)
			}
			t, secret, err := s.b.Access.AddToken(s.ctx, s.who.Identity, t)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(access.TokenDocument{Version: 1, Token: t, Secret: secret})
			}
			p := &printer{w: s.err}
			p.line("token %s (%s) of %s: %s, %s; it is not shown again", t.Name, t.ID, t.Principal, scopeWords(t.Scope), s.expiry(t.Expires))
			out := s.printer()
			out.line("%s", secret)
			return out.err
		},
	}
	c.Flags().StringVar(&user, "user", "", "create it for this user (administrators only)")
	c.Flags().StringSliceVar(&projects, "project", nil, "limit it to this project; can be repeated")
	c.Flags().StringSliceVar(&rights, "right", nil, "it may do this only: read, deploy, configure, shell, approve, admin; may be given several times")
	c.Flags().BoolVar(&readOnly, "read-only", false, "limit it to reading")
	c.Flags().StringVar(&life, "expires", "90d", "expire after this time, such as 12h or 90d; at most a year")
	return s.jsonFlag(c)
}

// scopeWords says what a token is for.
func scopeWords(sc access.Scope) string {
	var words []string
	if sc.ReadOnly {
		words = append(words, "read-only")
	}
	for _, r := range sc.Rights {
		words = append(words, string(r))
	}
	if len(words) == 0 {
		words = append(words, "all permissions")
	}
	var on []string
	for _, p := range sc.Projects {
		on = append(on, string(p))
	}
	if len(on) == 0 {
		return strings.Join(words, ", ") + " on all projects"
	}
	return strings.Join(words, ", ") + " on " + strings.Join(on, ", ")
}

func tokenList(s *session) *cobra.Command {
	var user string
	c := s.listFlags(&cobra.Command{
		Use: "list", Short: "List API tokens: your own, or all for administrators", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			of := user
			admin, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity)
			if err != nil {
				return err
			}
			if !admin {
				if of, err = s.self("token list", user); err != nil {
					return err
				}
			}
			tokens, err := s.b.Access.ListTokens(s.ctx, of)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(access.Tokens{Version: 1, Tokens: append([]access.Token{}, tokens...)})
			}
			p := s.printer()
			if len(tokens) == 0 {
				p.line("no tokens; create one with  corpus-git token create NAME")
				return p.err
			}
			t := table{heads: []string{"TOKEN", "USER", "ID", "MAY", "EXPIRES", "USED"}, flexible: []int{0, 1, 3}}
			for _, k := range tokens {
				t.add(painted(bold, k.Name), plain(k.Principal), plain(k.ID), plain(scopeWords(k.Scope)), s.endCell(k.Expires), plain(s.when(k.LastUsed)))
			}
			t.print(p, s.who.Term)
			return p.err
		},
	})
	c.Flags().StringVar(&user, "user", "", "tokens of this user")
	return c
}

func tokenRevoke(s *session) *cobra.Command {
	var user string
	c := &cobra.Command{
		Use: "revoke TOKEN", Short: "Revoke an API token, by name or ID", Args: exactly("TOKEN"),
		RunE: func(_ *cobra.Command, args []string) error {
			who, err := s.tokenOwner(user, args[0])
			if err != nil {
				return err
			}
			if err := s.b.Access.RevokeToken(s.ctx, s.who.Identity, who, args[0]); err != nil {
				return err
			}
			p := s.printer()
			p.line("revoked %s of %s", args[0], who)
			return p.err
		},
	}
	c.Flags().StringVar(&user, "user", "", "the user of the token, if the name is ambiguous")
	return c
}

// tokenOwner is whose token a word means. Administrators need not say whose it is where only one has it.
func (s *session) tokenOwner(user, word string) (string, error) {
	admin, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity)
	if err != nil {
		return "", err
	}
	if user != "" || !admin {
		return s.self("token revoke", user)
	}
	tokens, err := s.b.Access.ListTokens(s.ctx, "")
	if err != nil {
		return "", err
	}
	var owners []string
	for _, t := range tokens {
		if (t.Name == word || t.ID == word) && !slices.Contains(owners, t.Principal) {
			owners = append(owners, t.Principal)
		}
	}
	switch len(owners) {
	case 0:
		return s.who.Name, nil // which is told that it has none
	case 1:
		return owners[0], nil
	}
	return "", usage("%s have a token %s", strings.Join(owners, ", "), word).WithHint("give the user:  --user %s", owners[0])
}
