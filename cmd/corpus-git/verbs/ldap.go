package verbs

import (
	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/project"
)

func ldapCommand(s *session) *cobra.Command {
	return group(s, "ldap", "Test the LDAP directory", ldapTest(s))
}

// ldapDocument is printed by  ldap test --json.
type ldapDocument struct {
	Version  int                 `json:"version"`
	DN       string              `json:"dn"`
	Name     string              `json:"name"`
	Email    string              `json:"email,omitempty"`
	Keys     []string            `json:"keys"`
	Unusable int                 `json:"unusable_keys"`
	Groups   []string            `json:"groups"`
	Rights   []access.GroupRight `json:"rights"`
}

func ldapTest(s *session) *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use: "test NAME", Short: "Look up a user in the LDAP directory",
		Long: "Looks up a user in the configured directory (ldap.*) and shows the entry, keys, groups and resulting permissions.\nIt changes nothing.",
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("ldap test", args[0]); err != nil {
				return err
			}
			u, err := s.b.Access.LookupUser(s.ctx, args[0])
			if err != nil {
				return err
			}
			if s.json {
				return s.document(ldapDocument{
					Version: 1, DN: u.DN, Name: u.Name, Email: u.Email, Keys: append([]string{}, u.Fingerprints...), Unusable: u.Unusable,
					Groups: append([]string{}, u.Groups...), Rights: append([]access.GroupRight{}, u.Rights...),
				})
			}
			p := s.printer()
			p.line("%s  %s", s.who.Term.paint(bold, u.Name), u.DN)
			if u.Email != "" {
				p.line("  e-mail  %s", u.Email)
			}
			for _, k := range u.Fingerprints {
				p.line("  key     %s", k)
			}
			if u.Unusable > 0 {
				p.line("  (%d more that cannot be used here)", u.Unusable)
			}
			for _, g := range u.Groups {
				p.line("  group   %s", g)
			}
			for _, r := range u.Rights {
				p.line("  may     %s", phraseOf(r))
			}
			if len(u.Rights) == 0 {
				p.line("  may     nothing: none of the groups is in ldap.groups")
			}
			return p.err
		},
	})
}

func phraseOf(r access.GroupRight) string {
	switch {
	case r.Project != "":
		return rightText(r.Right, r.Project)
	case r.Right == project.Admin:
		return "do everything"
	}
	return string(r.Right) + " every project"
}
