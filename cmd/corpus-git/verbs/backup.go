package verbs

import (
	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

// Backup says what a backup holds besides what a server can't do without.
type Backup struct{ Archives, Data bool }

func backupCommand(s *session) *cobra.Command {
	var what Backup
	c := &cobra.Command{
		Use: "backup FILE", Short: "Write repositories, live trees, database, keys and state to one file",
		Long: "Writes a tar.zst while the server is running; - is standard output. Deployments of a project wait while it is being read.\n" +
			"Backups contain secrets: host keys, pillars, generated passwords. Archives and data/ are included only on request.",
		Example: "  corpus-git backup /var/backups/corpus-git.tar.zst\n  corpus-git backup --with-archives --with-data - | ssh elsewhere 'cat > corpus-git.tar.zst'\n" +
			"  corpus-git backup verify /var/backups/corpus-git.tar.zst",
		Args: exactly("FILE"), Annotations: map[string]string{WritesFile: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("backup", ""); err != nil {
				return err
			}
			if s.who.Remote {
				return fault.New(fault.Refused, "", "backups contain the host keys, and can be written only on the machine itself").
					WithHint("log in to the machine and run  corpus-git backup FILE")
			}
			if args[0] != "-" {
				return usage("FILE is a file on this machine, but you are connected over ssh")
			}
			if s.b.Backup == nil {
				return fault.New(fault.Internal, "backup", "no state to back up")
			}
			if err := s.prepare(); err != nil {
				return err
			}
			// Standard output is the file.
			p := &printer{w: s.err}
			c, err := s.b.Backup(s.ctx, s.out, what, func(line string) { p.line("%s", line) })
			if err := s.audited(audit.Entry{Action: "backup", Detail: c.Summary()}, err); err != nil {
				return err
			}
			for _, n := range c.Notes {
				p.line("note: %s", n)
			}
			p.line("backed up %s", c.Summary())
			if !what.Archives || !what.Data {
				p.line("not in it: %s", left(what))
			}
			return p.err
		},
	}
	c.Flags().BoolVar(&what.Archives, "with-archives", false, "include archives, which a restored server needs for rollbacks")
	c.Flags().BoolVar(&what.Data, "with-data", false, "include data/ of each project, read while in use")
	return c
}

// left says what is not in a backup.
func left(what Backup) string {
	switch {
	case !what.Archives && !what.Data:
		return "archives (--with-archives) and data/ (--with-data)"
	case !what.Archives:
		return "archives (--with-archives)"
	}
	return "data/ (--with-data)"
}
