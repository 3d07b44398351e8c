package verbs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// maxKey bounds what is read of a key file.
const maxKey = 64 << 10

func keyCommand(s *session) *cobra.Command {
	return group(s, "key", "Manage SSH keys", keyAdd(s), keyList(s), keyRemove(s))
}

func keyAdd(s *session) *cobra.Command {
	var file, user, life, from string
	var admin bool
	var chosen []string
	c := &cobra.Command{
		Use: "add NAME", Short: "Add an SSH key",
		Long: "Reads a public key, as in a .pub file, from --file or standard input. It is added to --user, or to a new\nuser of the same name, who is removed with the key. A new user has no permissions: see  corpus-git access grant.\nWith --admin the user is an administrator.\n" +
			"--from shows the keys published at a URL, and adds those given by --fingerprint, as NAME, NAME-2 and so on.",
		Example: "  corpus-git key add marie --file ~/.ssh/id_ed25519.pub\n" +
			"  corpus-git key add marie-phone --user marie --expires 90d --file phone.pub\n" +
			"  corpus-git key add marie-gh --user marie --from https://github.com/marie.keys\n" +
			"  ssh -p 2222 deploy@host key add marie < id_ed25519.pub",
		Args: exactly("NAME"), Annotations: map[string]string{ReadsStdin: "yes", Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("key add", args[0]); err != nil {
				return err
			}
			end, err := s.expires(life)
			if err != nil {
				return err
			}
			if from != "" {
				return s.addPublished(access.NewKey{Name: args[0], Principal: user, Admin: admin, Expires: end}, from, chosen)
			}
			if file != "-" {
				return usage("--file names a file on this machine, but you are connected over ssh").WithHint("give the key on standard input:  … key add %s < %s", args[0], file)
			}
			text, err := io.ReadAll(io.LimitReader(s.in, maxKey+1))
			if err != nil {
				return err
			}
			if len(text) > maxKey {
				return usage("more than %d bytes: not a public key", maxKey)
			}
			k, err := s.b.Access.AddKeyTo(s.ctx, s.who.Identity, access.NewKey{Name: args[0], Principal: user, Text: text, Admin: admin, Expires: end})
			if err != nil {
				return err
			}
			p := s.printer()
			p.line("added %s  %s  %s%s", k.Name, k.Type, k.Fingerprint, map[bool]string{true: "  (admin)"}[k.Admin])
			if !k.Admin && user == "" {
				p.line("  no permissions yet:  corpus-git access grant PROJECT %s deploy", k.Name)
			}
			return p.err
		},
	}
	c.Flags().StringVar(&file, "file", "-", "the public key; - is standard input")
	c.Flags().StringVar(&from, "from", "", "a URL of public keys, such as https://HOST/USER.keys")
	c.Flags().StringSliceVar(&chosen, "fingerprint", nil, "with --from: add this key; can be repeated")
	c.Flags().StringVar(&user, "user", "", "the user of the key (default: a new user of the same name)")
	c.Flags().StringVar(&life, "expires", "", "expire after this time, such as 12h or 90d (default: never)")
	c.Flags().BoolVar(&admin, "admin", false, "make the new user an administrator")
	return c
}

// addPublished shows the keys that a host publishes, or adds those that were chosen of what was shown.
func (s *session) addPublished(k access.NewKey, from string, chosen []string) error {
	if s.b.PublishedKeys == nil {
		return need(nil, "key add --from")
	}
	found, err := s.b.PublishedKeys(s.ctx, from)
	if err != nil {
		return err
	}
	p := s.printer()
	if len(chosen) == 0 {
		p.line("%s gives:", from)
		for _, f := range found {
			p.line("  %s  %s  %s", f.Fingerprint, f.Type, f.Comment)
		}
		p.line("nothing was added; to add a key, run the command again with  --fingerprint %s", found[0].Fingerprint)
		return p.err
	}
	var texts [][]byte
	for _, c := range chosen {
		i := slices.IndexFunc(found, func(f access.Published) bool { return f.Fingerprint == c })
		if i < 0 {
			return fault.New(fault.Refused, "key add", "%s has no key with the fingerprint %s", from, c).WithHint("leave out --fingerprint to list the keys")
		}
		texts = append(texts, found[i].Text)
	}
	name := k.Name
	for i, text := range texts {
		if i > 0 {
			k.Name = fmt.Sprintf("%.60s-%d", name, i+1)
			if k.Principal == "" {
				k.Principal, k.Admin = name, false // the user that the first one made
			}
		}
		k.Text = text
		added, err := s.b.Access.AddKeyTo(s.ctx, s.who.Identity, k)
		if err != nil {
			return err
		}
		p.line("added %s  %s  %s", added.Name, added.Type, added.Fingerprint)
	}
	return p.err
}

func keyList(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "list", Short: "List the keys", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.admin("key list", ""); err != nil {
				return err
			}
			keys, err := s.b.Access.ListKeys(s.ctx)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(access.Keys{Version: 1, Keys: append([]access.Key{}, keys...)})
			}
			p := s.printer()
			if len(keys) == 0 {
				p.line("no keys yet; add one with  corpus-git key add NAME --file FILE --admin")
				return p.err
			}
			t := s.keyTable(keys)
			t.print(p, s.who.Term)
			return p.err
		},
	})
}

// keyTable has a column for whose keys they are, and one for when they expire, where that is not the same for all.
func (s *session) keyTable(keys []access.Key) table {
	others := slices.ContainsFunc(keys, func(k access.Key) bool { return k.Principal != k.Name })
	ending := slices.ContainsFunc(keys, func(k access.Key) bool { return !k.Expires.IsZero() })
	t := table{heads: []string{"KEY"}, flexible: []int{0}}
	if others {
		t.heads, t.flexible = append(t.heads, "USER"), []int{0, 1}
	}
	t.heads = append(t.heads, "FINGERPRINT", "ADMIN", "ADDED", "USED")
	if ending {
		t.heads = append(t.heads, "EXPIRES")
	}
	for _, k := range keys {
		row := []cell{painted(bold, k.Name)}
		if others {
			row = append(row, plain(k.Principal))
		}
		row = append(row, plain(k.Fingerprint), plain(adminWord(k.Admin)), plain(s.when(k.Added)), plain(s.when(k.LastUsed)))
		if ending {
			row = append(row, s.endCell(k.Expires))
		}
		t.add(row...)
	}
	return t
}

// endCell is when something expires.
func (s *session) endCell(t time.Time) cell {
	switch {
	case t.IsZero():
		return plain("never")
	case !t.After(s.b.Now()):
		return painted(yellow, "expired")
	}
	return plain(strings.TrimPrefix(s.expiry(t), "expires "))
}

func keyRemove(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove an SSH key, and the user that was created for it", Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("key remove", args[0]); err != nil {
				return err
			}
			if err := s.b.Access.RemoveKey(s.ctx, s.who.Identity, args[0]); err != nil {
				return err
			}
			p := s.printer()
			p.line("removed %s", args[0])
			return p.err
		},
	}
}

func accessCommand(s *session) *cobra.Command {
	return group(s, "access", "Manage permissions on a project", accessChange(s, true), accessChange(s, false), accessList(s))
}

func accessChange(s *session, grant bool) *cobra.Command {
	verb, short := "grant", "Grant a user permission on a project"
	if !grant {
		verb, short = "revoke", "Revoke a permission of a user"
	}
	return &cobra.Command{
		Use: verb + " PROJECT USER read|deploy|configure|shell|approve|admin", Short: short,
		Long: short + ":\n  read       clone and fetch the project, see its records, logs and archives\n" +
			"  deploy     push the project, redeploy, roll back, run tasks, cancel (and read)\n" +
			"  configure  read and push the pillar, see the configuration\n  shell      open a shell as the project's user, where ssh_shell allows it (and read)\n" +
			"  approve    approve what others want to deploy (and read)\n  admin      all of it, and who may do what",
		Args: exactly("PROJECT", "USER", "RIGHT"),
		RunE: func(_ *cobra.Command, args []string) error {
			right, err := project.ParseRight(args[2])
			if err != nil {
				return err
			}
			name, err := s.project("access "+verb, args[0], project.Admin)
			if err != nil {
				return err
			}
			do, did := s.b.Access.Grant, "may now"
			if !grant {
				do, did = s.b.Access.Revoke, "may no longer"
			}
			if err := do(s.ctx, s.who.Identity, name, args[1], right); err != nil {
				return err
			}
			p := s.printer()
			p.line("%s %s %s", args[1], did, rightText(right, name))
			return p.err
		},
	}
}

func rightText(r project.Right, name project.Name) string {
	switch r {
	case project.Admin:
		return "do everything on " + string(name)
	default:
		return string(r) + " " + string(name)
	}
}

func accessList(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "list PROJECT", Short: "List permissions on a project", Args: exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("access list", args[0], project.Admin)
			if err != nil {
				return err
			}
			grants, err := s.b.Access.ListGrants(s.ctx, name)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(access.Grants{Version: 1, Project: name, Grants: append([]access.Grant{}, grants...)})
			}
			users, err := s.b.Access.ListPrincipals(s.ctx)
			if err != nil {
				return err
			}
			p := s.printer()
			t := table{heads: []string{"USER", "RIGHT", "SINCE", "BY"}, flexible: []int{0, 3}}
			for _, g := range grants {
				t.add(painted(bold, g.Principal), plain(string(g.Right)), plain(s.when(g.Added)), plain(g.AddedBy))
			}
			admins := 0
			for _, u := range users {
				if u.Admin {
					admins++
					t.add(painted(bold, u.Name), plain("administrator"), plain(s.when(u.Added)), plain(u.AddedBy))
				}
			}
			if len(t.rows) == 0 {
				p.line("no user has permissions on %s:  corpus-git access grant %s USER deploy", name, name)
				return p.err
			}
			t.print(p, s.who.Term)
			if admins > 0 {
				p.line("(%s all permissions on all projects)", humanize.Plural(admins, "administrator has", "administrators have"))
			}
			return p.err
		},
	})
}

// prepare recovers what a crash left, before a verb changes something.
func (s *session) prepare() error {
	if s.b.Prepare == nil {
		return nil
	}
	if err := s.b.Prepare(s.ctx); err != nil {
		return fault.New(fault.KindOf(err), "recovery", "%w", err)
	}
	return nil
}
