package verbs

import (
	"cmp"
	"corpus-git/cmd/corpus-git/verbs/diagnose"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/recipes"
	"corpus-git/internal/audit"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
)

func cfgCommand(s *session) *cobra.Command {
	var reveal, explain bool
	c := &cobra.Command{
		Use: "cfg PROJECT [KEY]", Short: "Show the configuration of a project, with the source of each value",
		Long: "Pillar values are shown as [pillar:key]; --reveal shows them. With a KEY\n" +
			"(data:domain) only that part is printed, a string without quotes. --explain shows the value in each layer, from the\n" +
			"weakest to the strongest, with file and line.",
		Example: "  corpus-git cfg app\n  corpus-git cfg app data:domain\n  corpus-git cfg app data --explain",
		Args:    exactly("PROJECT", "[KEY]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("cfg", args[0], project.Configure)
			if err != nil {
				return err
			}
			c, err := s.b.Cfg.Cfg(s.ctx, name)
			if reveal {
				err = s.audited(audit.Entry{Action: "cfg reveal", Project: string(name), Object: arg(args, 1)}, err)
			}
			if err != nil {
				return err
			}
			path := cfgPath(c, arg(args, 1))
			show := project.Show{Secrets: reveal}
			if explain {
				return s.explainCfg(name, path, show)
			}
			if s.json {
				doc, err := c.JSON(path, show)
				if err == nil {
					s.printed = true
					_, err = s.out.Write(append(printable.JSON(doc), '\n'))
				}
				return err
			}
			// A text alone is what a shell wants: without quotes.
			if v, ok := c.Get(path); ok && path != "" && (reveal || !c.IsSecret(path)) {
				if text, ok := v.(string); ok {
					if s.who.Term.Width > 0 { // a person reads it, no program
						text = printable.Text(text)
					}
					_, err := io.WriteString(s.out, text+"\n")
					return err
				}
			}
			text, err := c.Tree(path, show)
			if err != nil {
				return err
			}
			_, err = io.WriteString(s.out, printable.Text(text))
			return err
		},
	}
	c.Flags().BoolVar(&explain, "explain", false, "show the value in each layer, with file and line")
	c.Flags().BoolVar(&reveal, "reveal", false, "show pillar values")
	return s.jsonFlag(c)
}

// ExplainDocument is what cfg --explain --json prints.
type ExplainDocument struct {
	Version int                 `json:"version"`
	Project project.Name        `json:"project"`
	Values  []project.Explained `json:"values"`
}

// explainCfg prints the values at a path with what each layer says.
func (s *session) explainCfg(name project.Name, path string, show project.Show) error {
	values, err := s.b.Cfg.Explain(s.ctx, name, path, show)
	if err != nil {
		return err
	}
	if s.json {
		return s.document(ExplainDocument{Version: status.Version, Project: name, Values: append([]project.Explained{}, values...)})
	}
	p := s.printer()
	for _, line := range recipes.Explained(values) {
		p.line("%s", printable.Text(line))
	}
	return p.err
}

// cfgPath takes dots for colons where that names a key and the text itself does not.
func cfgPath(c *project.Cfg, path string) string {
	if path == "" {
		return ""
	}
	dotted := strings.ReplaceAll(path, ".", ":")
	if c.Origin(path) == "" && c.Origin(dotted) != "" {
		return dotted
	}
	return path
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "⏎") }

func reportCommand(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "report [PROJECT]", Short: "Show status: live commit, deployments, queue, archives, disk", Args: exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			var names []project.Name
			if len(args) == 1 {
				name, err := s.project("report", args[0], project.Read)
				if err != nil {
					return err
				}
				names = append(names, name)
			} else {
				all, err := s.readable()
				if err != nil {
					return err
				}
				for _, p := range all {
					names = append(names, p.Name)
				}
			}
			doc := status.Reports{Version: status.Version, Reports: []status.Report{}}
			for _, n := range names {
				r, err := s.b.Status.Report(s.ctx, n, 5)
				if err != nil && (len(args) == 1 || s.ctx.Err() != nil) {
					return err
				}
				if err != nil {
					r = status.ProblemReport(n, err)
				}
				doc.Reports = append(doc.Reports, r)
			}
			if err := nodes.Behind(s.ctx, s.b.Fleet, doc.Reports); err != nil {
				return err
			}
			if s.json {
				return s.document(doc)
			}
			p := s.printer()
			if len(doc.Reports) == 0 {
				p.line("no projects yet; create one with  corpus-git project create NAME")
			}
			for i, r := range doc.Reports {
				if i > 0 {
					p.line("")
				}
				s.interrupted(r.Deployments)
				s.report(p, r)
			}
			if len(args) == 1 && doc.Reports[0].Server != nil {
				s.reached(p, *doc.Reports[0].Server)
			}
			return p.err
		},
	})
}

func (s *session) report(p *printer, r status.Report) {
	s.projectHead(p, r.Project)
	if len(r.Behind) > 0 {
		p.line("  nodes     %s", s.who.Term.paint(yellow, nodes.BehindText(r.Project.Name, r.Behind)))
	}
	p.line("  disk      live %s, data %s, git %s, archives %s; %s free", humanize.Bytes(r.Disk.Live), humanize.Bytes(r.Disk.Data),
		humanize.Bytes(r.Disk.Git), humanize.Bytes(r.Disk.Archives), humanize.Bytes(r.Disk.Free))
	if r.Disk.Incomplete != "" {
		p.line("  %s", s.who.Term.paint(yellow, "could not measure everything: "+r.Disk.Incomplete))
	}
	for i, w := range r.Queue.Waiting {
		takes := ""
		if w.Estimate != nil {
			takes = ", usually " + humanize.Rough(w.Estimate.Median)
		}
		p.line("  waiting   %d. %s %s by %s, since %s%s", i+1, w.ID.Short(), w.What(), w.Pusher.Key, s.when(w.At), takes)
	}
	if len(r.Deployments) > 0 {
		p.line("")
		s.deploymentTable(p, r.Deployments, "  ")
	}
	if len(r.Archives) > 0 {
		p.line("")
		s.archiveTable(p, r.Archives, "  ")
	}
}

// reached prints where the server is, and what to copy for it. A report of all projects leaves it out: it is the same for each but for the page.
func (s *session) reached(p *printer, at status.Server) {
	p.line("")
	p.line("  ssh       %s", at.SSH)
	p.line("  page      %s", cmp.Or(at.HTTP, "off (http_listen is not set)"))
	p.line("")
	p.line("  for ~/.ssh/config:")
	for line := range strings.Lines(at.SSHConfig) {
		p.line("    %s", strings.TrimSuffix(line, "\n"))
	}
}

func auditCommand(s *session) *cobra.Command {
	var limit int
	var before int64
	c := &cobra.Command{
		Use: "audit [PROJECT]", Short: "List the audit log, newest first", Args: exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				n, err := s.auditProject(args[0])
				if err != nil {
					return err
				}
				name = string(n)
			} else if err := s.admin("audit", ""); err != nil {
				return err
			}
			if limit < 1 {
				return usage("--limit must be 1 or more")
			}
			entries, err := s.b.Audit.Before(s.ctx, name, before, limit)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(status.Audit{Version: status.Version, Entries: append([]audit.Entry{}, entries...)})
			}
			p := s.printer()
			if len(entries) == 0 {
				p.line("no entries yet")
				return p.err
			}
			t := table{heads: []string{"WHEN", "WHO", "FROM", "WHAT", "PROJECT", "OUTCOME", "DETAIL"}, flexible: []int{4, 2, 6}}
			for _, e := range entries {
				c := painted(green, e.Outcome)
				if e.Outcome != "ok" {
					c.paint = red
				}
				t.add(plain(s.when(e.Time)), painted(bold, orNone(e.Actor)), plain(e.From), plain(e.Action), plain(orNone(e.Project)), c,
					plain(oneLine(join(e.Object, short(e.Deployment), e.Detail))))
			}
			t.print(p, s.who.Term)
			return p.err
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 50, "show at most this many entries")
	c.Flags().Int64Var(&before, "before", math.MaxInt64, "show entries older than the one with this `SEQ` (see --json)")
	c.Flags().Lookup("before").DefValue = ""
	return s.listFlags(c)
}

// auditProject resolves a project for the audit log: an administrator may ask for one that is gone.
func (s *session) auditProject(arg string) (project.Name, error) {
	if ok, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity); err != nil || ok {
		if err != nil {
			return "", err
		}
		return project.ParseName(arg)
	}
	return s.project("audit", arg, project.Admin)
}

func short(id string) string { return project.ID(id).Short() }

// doctor is the verb's session.
func (s *session) doctor() diagnose.Session {
	return diagnose.Session{Session: s.nodes(), Doctor: s.b.Doctor, Remote: s.who.Remote, Err: s.err, Show: func(checks []status.Check) error {
		p := s.printer()
		marks := map[string]colour{"ok": green, "warning": yellow, "failed": red, "skipped": dim}
		for _, c := range checks {
			p.line("%s  %-14s %s", s.who.Term.paint(marks[c.Status], fmt.Sprintf("%-7s", c.Status)), c.Name, c.Text)
			if c.Hint != "" {
				p.line("         %-14s hint: %s", "", c.Hint)
			}
		}
		return p.err
	}}
}

func versionCommand(s *session) *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(), Annotations: map[string]string{Stateless: "yes"},
		RunE: func(*cobra.Command, []string) error {
			b := s.b.Build
			b.Version = status.Version
			if s.json {
				return s.document(b)
			}
			p := s.printer()
			p.line("corpus-git %s", join(b.Release, b.Revision, b.Go, b.Platform))
			return p.err
		},
	})
}
