package verbs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/quantity"
	"corpus-git/project"
	"corpus-git/project/status"
)

// ExportFlag names the file that archives show writes; who runs it on the machine opens the file itself.
const ExportFlag = "export"

func archivesCommand(s *session) *cobra.Command {
	return group(s, "archives", "List, show, restore, pin and prune archives",
		archivesList(s), archivesShow(s), archivesRestore(s), archivesPin(s, true), archivesPin(s, false), archivesPrune(s))
}

func archivesList(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "list PROJECT", Short: "List the archives, newest first", Args: exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("archives list", args[0], project.Read)
			if err != nil {
				return err
			}
			all, err := s.b.Archives.List(s.ctx, name)
			if err != nil {
				return err
			}
			keeping, err := s.b.Archives.Keeping(s.ctx, name)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(status.Archives{Version: status.Version, Project: name, Archives: append([]status.Archive{}, all...), Keeping: &keeping})
			}
			p := s.printer()
			if len(all) == 0 {
				p.line("no archives yet: each deployment archives the release that was live before it")
				return p.err
			}
			s.archiveTable(p, all, "")
			p.line("")
			p.line("%s", diskUse(all, keeping.Spare))
			p.line("%s", keeps(keeping))
			return p.err
		},
	})
}

// archiveTable lists archives. The column of what is shared is there where something is.
func (s *session) archiveTable(p *printer, all []status.Archive, indent string) {
	shares := slices.ContainsFunc(all, func(a status.Archive) bool { return a.Shared > 0 })
	t := table{heads: []string{"ARCHIVE", "WHEN", "HOLDS", "PILLAR", "ITS DEPLOYMENT", "BY", "FILES", "SIZE", "ON DISK"}, flexible: []int{4, 5}, indent: indent}
	if shares {
		t.heads = append(t.heads, "SHARED")
	}
	t.flexible = append(t.flexible, len(t.heads))
	t.heads = append(t.heads, "NOTES")
	for _, a := range all {
		// What it held went live again: it has no tree any more.
		code, pillar, files, size := "-", "-", "-", "-"
		if a.Tree {
			code, pillar, files, size = commit(a.Code), commit(a.Pillar), humanize.Count(a.Files), humanize.Bytes(a.Bytes)
		}
		row := []cell{
			painted(bold, a.ID.Short()), plain(s.when(a.At)), plain(code), plain(pillar),
			painted(stateColour(a.Verdict), resultWord(a.Verdict)), plain(orNone(a.Pusher)), number(files), number(size), number(onDisk(a)),
		}
		if shares {
			row = append(row, number(humanize.Bytes(a.Shared)))
		}
		t.add(append(row, plain(archiveNotes(a)))...)
	}
	t.print(p, s.who.Term)
}

// onDisk returns what an archive takes; a guess has a tilde.
func onDisk(a status.Archive) string {
	if a.Estimated {
		return "~" + humanize.Bytes(a.Own)
	}
	return humanize.Bytes(a.Own)
}

// diskUse returns what all archives take together.
func diskUse(all []status.Archive, spare int64) string {
	var own, shared int64
	seen := map[string]bool{}
	for _, a := range all {
		own += a.Own
		if a.SharedFile == "" || !seen[a.SharedFile] {
			shared += a.Shared
		}
		seen[a.SharedFile] = true
	}
	text := fmt.Sprintf("%s, %s on disk", humanize.Plural(len(all), "archive"), humanize.Bytes(own))
	if shared > 0 {
		text += fmt.Sprintf(" and %s shared", humanize.Bytes(shared))
	} else {
		text += ", none of it shared"
	}
	if spare > 0 {
		text += fmt.Sprintf("; %s more kept for the next archive", humanize.Bytes(spare))
	}
	return text
}

// keeps is retention in one line.
func keeps(k status.Keeping) string {
	text := fmt.Sprintf("kept: %d of good deployments", k.Good)
	if k.MaxAge > 0 {
		text += " for " + quantity.FormatDuration(k.MaxAge)
	}
	if k.Failed == 0 {
		text += ", none of failed ones"
	} else {
		text += fmt.Sprintf(", %d of failed ones", k.Failed)
		if k.FailedMaxAge > 0 {
			text += " for " + quantity.FormatDuration(k.FailedMaxAge)
		}
	}
	if k.MaxBytes > 0 {
		text += ", " + humanize.Bytes(k.MaxBytes) + " at most"
	}
	return text + ", and what is pinned"
}

func resultWord(v project.State) string {
	switch v {
	case project.Live:
		return "went live"
	case project.RolledBack:
		return "was rolled back"
	case project.Failed:
		return "failed"
	}
	return "has not ended"
}

func archiveNotes(a status.Archive) string {
	var notes []string
	if a.Pinned {
		notes = append(notes, "pinned")
	}
	if a.Packed {
		notes = append(notes, "packed")
	}
	switch {
	case a.Failed && !a.Tree:
		notes = append(notes, "failed tree")
	case a.Failed:
		notes = append(notes, "failed tree too")
	case !a.Tree:
		notes = append(notes, "tree live again")
	}
	return strings.Join(notes, ", ")
}

// archive finds the archive that a person means by a prefix of its ID or its folder's name.
func (s *session) archive(name project.Name, prefix string) (status.Archive, error) {
	all, err := s.b.Archives.List(s.ctx, name)
	if err != nil {
		return status.Archive{}, err
	}
	var found []status.Archive
	var names []string
	for _, a := range all {
		if string(a.ID) == prefix || a.Name == prefix {
			return a, nil
		}
		if len(prefix) >= 4 && (strings.HasPrefix(string(a.ID), prefix) || strings.HasPrefix(a.Name, prefix)) {
			found, names = append(found, a), append(names, a.Name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return status.Archive{}, fault.New(fault.Refused, "", "%s has no archive %s", name, printable.Shorten(prefix, 60)).
			WithHint("see  corpus-git archives list %s ; give at least 4 digits", name)
	}
	return status.Archive{}, ambiguous(prefix, names)
}

func archivesShow(s *session) *cobra.Command {
	var export string
	c := &cobra.Command{
		Use: "show PROJECT ARCHIVE", Short: "Show one archive, or write it as tar.zst",
		Example: "  corpus-git archives show app 0198c2f4\n  corpus-git archives show app 0198c2f4 --export app.tar.zst\n" +
			"  ssh -p 2222 deploy@host archives show app 0198c2f4 --export - > app.tar.zst",
		Args: exactly("PROJECT", "ARCHIVE"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("archives show", args[0], project.Read)
			if err != nil {
				return err
			}
			if export != "" {
				// An archive holds what a working copy holds: passwords in rendered files too.
				if _, err := s.project("archives export", args[0], project.Configure); err != nil {
					return err
				}
			}
			a, err := s.archive(name, args[1])
			if err != nil {
				return err
			}
			switch export {
			case "":
			case "-":
				err := s.b.Archives.Export(s.ctx, name, a.ID, s.out)
				return s.audited(audit.Entry{Action: "archives export", Project: string(name), Object: a.Name}, err)
			default:
				return usage("--export names a file on this machine, but you are connected over ssh").WithHint("write it to standard output:  … --export - > FILE")
			}
			if s.json {
				return s.document(status.ArchiveDocument{Version: status.Version, Project: name, Archive: a})
			}
			p := s.printer()
			p.line("%s", s.who.Term.paint(bold, a.Name))
			holds := "holds"
			if !a.Tree {
				holds = "held " // it is live again, or was
			}
			p.line("  %s     %s, pillar %s: what was live before deployment %s", holds, a.Code.Short(), a.Pillar.Short(), a.ID.Short())
			p.line("  made      %s by %s's deployment, which %s", s.when(a.At), orNone(a.Pusher), resultWord(a.Verdict))
			if a.Tree {
				p.line("  size      %s, %s", humanize.Plural(a.Files, "file"), humanize.Bytes(a.Bytes))
			}
			if a.Shared > 0 {
				p.line("  on disk   %s of its own, %s shared with others", onDisk(a), humanize.Bytes(a.Shared))
			} else {
				p.line("  on disk   %s, none of it shared: removing it frees as much", onDisk(a))
			}
			switch {
			case a.Incremental:
				p.line("  packed    in two files, one of them shared: --export writes one that tar reads")
			case a.Packed:
				p.line("  packed    tar --zstd -xf %s", filepath.Join(s.b.Status.Root.Project(string(name)).Archives(), a.Name, "project.tar.zst"))
			}
			if n := archiveNotes(a); n != "" {
				p.line("  notes     %s", n)
			}
			if a.Tree {
				p.line("  restore   corpus-git archives restore %s %s", name, a.ID.Short())
			}
			return p.err
		},
	}
	c.Flags().StringVar(&export, ExportFlag, "", "write the archive as tar.zst to `FILE`; - is standard output (also requires configure permission)")
	return s.listFlags(c)
}

func archivesRestore(s *session) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use: "restore PROJECT ARCHIVE", Short: "Restore an archive", Args: exactly("PROJECT", "ARCHIVE"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("archives restore", args[0], project.Deploy)
			if err != nil {
				return err
			}
			a, err := s.archive(name, args[1])
			if err != nil {
				return err
			}
			if !a.Tree {
				return fault.New(fault.Refused, "", "%s contains no tree to restore", a.Name).WithHint("see  corpus-git archives list %s", name)
			}
			return s.deploy("archives restore", project.Deployment{Project: name, Trigger: project.TriggerRollback, Restore: project.ID(a.Name)}, verbose)
		},
	}
	return s.runFlags(c, &verbose)
}

func archivesPin(s *session, pin bool) *cobra.Command {
	verb, short := "pin", "Pin an archive: keep it until it is unpinned"
	if !pin {
		verb, short = "unpin", "Unpin an archive"
	}
	return &cobra.Command{
		Use: verb + " PROJECT ARCHIVE", Short: short, Args: exactly("PROJECT", "ARCHIVE"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("archives "+verb, args[0], project.Deploy)
			if err != nil {
				return err
			}
			a, err := s.archive(name, args[1])
			if err != nil {
				return err
			}
			err = s.b.Archives.Pin(s.ctx, name, a.ID, pin)
			if err := s.audited(audit.Entry{Action: "archives " + verb, Project: string(name), Object: a.Name}, err); err != nil {
				return err
			}
			p := s.printer()
			p.line("%sned %s", verb, a.Name)
			return p.err
		},
	}
}

func archivesPrune(s *session) *cobra.Command {
	var how Prune
	c := &cobra.Command{
		Use: "prune PROJECT", Short: "Remove archives beyond the retention limits", Args: exactly("PROJECT"),
		Example: "  corpus-git archives prune app --dry-run\n  corpus-git archives prune app --keep 1",
		RunE: func(_ *cobra.Command, args []string) error {
			right := project.Deploy
			if how.DryRun {
				right = project.Read
			}
			name, err := s.project("archives prune", args[0], right)
			if err != nil {
				return err
			}
			if how.Keep < 0 {
				return usage("--keep must be 1 or more")
			}
			if !how.DryRun {
				if err := s.prepare(); err != nil {
					return err
				}
			}
			done, err := s.b.Archives.Prune(s.ctx, name, how)
			if !how.DryRun {
				err = s.audited(audit.Entry{Action: "archives prune", Project: string(name), Object: humanize.Plural(len(done.Removed), "archive")}, err)
			}
			if err != nil {
				return err
			}
			if s.json {
				return s.document(done)
			}
			p := s.printer()
			if len(done.Removed) == 0 {
				p.line("nothing to remove: all archives are kept, %s", humanize.Plural(done.Kept, "archive"))
				return p.err
			}
			verb, total := "removed", "%s removed, about %s freed; %d kept"
			if how.DryRun {
				verb, total = "would remove", "%s would be removed and free about %s; %d would stay"
			}
			for _, a := range done.Removed {
				p.line("%s %s  %s  %s  %s  %s", verb, a.ID.Short(), s.when(a.At), commit(a.Code), resultWord(a.Verdict), onDisk(a))
			}
			p.line(total, humanize.Plural(len(done.Removed), "archive"), humanize.Bytes(done.Freed), done.Kept)
			return p.err
		},
	}
	c.Flags().IntVar(&how.Keep, "keep", 0, "keep `N` archives of successful deployments, overriding the configuration")
	c.Flags().BoolVarP(&how.DryRun, "dry-run", "n", false, "show what would be removed, without removing it")
	return s.jsonFlag(c)
}
