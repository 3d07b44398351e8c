package verbs

import (
	"io"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// keys is printed by  key list --json.
type keysDocument struct {
	Version int          `json:"version"`
	Keys    []access.Key `json:"keys"`
}

// accessDocument is printed by  access list --json.
type accessDocument struct {
	Version int            `json:"version"`
	Project project.Name   `json:"project"`
	Grants  []access.Grant `json:"grants"`
}

// maxKey bounds what is read of a key file.
const maxKey = 64 << 10

func keyCommand(s *session) *cobra.Command {
	return group(s, "key", "Add, list and remove the SSH keys that may log in", keyAdd(s), keyList(s), keyRemove(s))
}

func keyAdd(s *session) *cobra.Command {
	var file string
	var admin bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Add an SSH key",
		Long: "Reads one public key, as in a .pub file, from --file or from standard input. It may do nothing yet:\nsee  corpus-git access grant.  An admin key may do everything.",
		Example: "  corpus-git key add marie --file ~/.ssh/id_ed25519.pub\n" +
			"  ssh -p 2222 deploy@host key add marie < id_ed25519.pub",
		Args: exactly("NAME"), Annotations: map[string]string{ReadsStdin: "yes", Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("key add", args[0]); err != nil {
				return err
			}
			if file != "-" {
				return usage("--file names a file of this machine, and you are on another").WithHint("give the key on standard input:  … key add %s < %s", args[0], file)
			}
			text, err := io.ReadAll(io.LimitReader(s.in, maxKey+1))
			if err != nil {
				return err
			}
			if len(text) > maxKey {
				return usage("more than %d bytes: not a public key", maxKey)
			}
			k, err := s.b.Access.AddKey(s.ctx, s.who.Identity, args[0], text, admin)
			if err != nil {
				return err
			}
			p := s.printer()
			p.line("added %s  %s  %s%s", k.Name, k.Type, k.Fingerprint, map[bool]string{true: "  (admin)"}[k.Admin])
			if !k.Admin {
				p.line("  it may do nothing yet:  corpus-git access grant PROJECT %s deploy", k.Name)
			}
			return p.err
		},
	}
	c.Flags().StringVar(&file, "file", "-", "the public key; - is standard input")
	c.Flags().BoolVar(&admin, "admin", false, "may do everything, on all projects")
	return c
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
				return s.document(keysDocument{Version: 1, Keys: append([]access.Key{}, keys...)})
			}
			p := s.printer()
			if len(keys) == 0 {
				p.line("no keys yet; add one with  corpus-git key add NAME --file FILE --admin")
				return p.err
			}
			t := table{heads: []string{"KEY", "FINGERPRINT", "ADMIN", "ADDED", "USED"}, flexible: []int{0}}
			for _, k := range keys {
				t.add(painted(bold, k.Name), plain(k.Fingerprint), plain(map[bool]string{true: "admin", false: "-"}[k.Admin]),
					plain(s.when(k.Added)), plain(s.when(k.LastUsed)))
			}
			t.print(p, s.who.Term)
			return p.err
		},
	})
}

func keyRemove(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove an SSH key and all its permissions", Args: exactly("NAME"),
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
	verb, short := "grant", "Grant a key permission on a project"
	if !grant {
		verb, short = "revoke", "Revoke a permission of a key"
	}
	return &cobra.Command{
		Use: verb + " PROJECT KEY read|deploy|configure|admin", Short: short,
		Long: short + ":\n  read       clone and fetch the project, see its records, logs and archives\n" +
			"  deploy     push the project, redeploy, roll back, run tasks, cancel (and read)\n" +
			"  configure  read and push the pillar, see the configuration\n  admin      all of it, and who may do what",
		Args: exactly("PROJECT", "KEY", "RIGHT"),
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
			p.line("%s %s %s", args[1], did, phrase(right, name))
			return p.err
		},
	}
}

func phrase(r project.Right, name project.Name) string {
	switch r {
	case project.Admin:
		return "do everything with " + string(name)
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
				return s.document(accessDocument{Version: 1, Project: name, Grants: append([]access.Grant{}, grants...)})
			}
			keys, err := s.b.Access.ListKeys(s.ctx)
			if err != nil {
				return err
			}
			p := s.printer()
			t := table{heads: []string{"KEY", "RIGHT", "SINCE", "BY"}, flexible: []int{0, 3}}
			for _, g := range grants {
				t.add(painted(bold, g.Key), plain(string(g.Right)), plain(s.when(g.Added)), plain(g.AddedBy))
			}
			admins := 0
			for _, k := range keys {
				if k.Admin {
					admins++
					t.add(painted(bold, k.Name), plain("admin key"), plain(s.when(k.Added)), plain(k.AddedBy))
				}
			}
			if len(t.rows) == 0 {
				p.line("no key has a right on %s:  corpus-git access grant %s KEY deploy", name, name)
				return p.err
			}
			t.print(p, s.who.Term)
			if admins > 0 {
				p.line("(%s every right on every project)", humanize.Plural(admins, "admin key has", "admin keys have"))
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
