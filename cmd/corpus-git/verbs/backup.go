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
		Long: "Writes a tar.zst while the server serves; - is standard output. A deployment to a project waits while that project is read.\n" +
			"What is in it is secret: host keys, pillars, generated passwords. Archives and data/ are in it only where you say so.",
		Example: "  corpus-git backup /var/backups/corpus-git.tar.zst\n  corpus-git backup --with-archives --with-data - | ssh elsewhere 'cat > corpus-git.tar.zst'\n" +
			"  corpus-git backup verify /var/backups/corpus-git.tar.zst",
		Args: exactly("FILE"), Annotations: map[string]string{WritesFile: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("backup", ""); err != nil {
				return err
			}
			if s.who.Remote {
				return fault.New(fault.Refused, "", "a backup holds the host keys: it is written on the machine itself").
					WithHint("log in to the machine and type  corpus-git backup FILE")
			}
			if args[0] != "-" {
				return usage("FILE is a file of this machine, and you are on another")
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
	c.Flags().BoolVar(&what.Archives, "with-archives", false, "the archives too: a restored server can roll back to them")
	c.Flags().BoolVar(&what.Data, "with-data", false, "the data/ of each project too, as it is while it is read")
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
