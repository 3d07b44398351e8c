package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Maintainer maintains the repositories of a project.
type Maintainer interface {
	// Maintain returns one entry for each repository that there is, with an error in it where that one could not be maintained.
	// It is fault.Busy while something is deployed.
	Maintain(ctx context.Context, name project.Name, all, dryRun bool) ([]status.Maintained, error)
}

// gcOptions are gc's.
type gcOptions struct {
	// All consolidates everything and searches now for what nothing refers to, whatever the configuration says of thresholds.
	All    bool
	DryRun bool
}

func gcCommand(s *session) *cobra.Command {
	var what gcOptions
	c := &cobra.Command{
		Use: "gc [PROJECT]", Short: "Consolidate packs and remove unreachable objects",
		Long: "The server maintains repositories automatically (the keys maintenance.* of its configuration); gc does it now,\n" +
			"for one project or all. Deployments have priority: gc stops, and unfinished work is discarded.",
		Example: "  corpus-git gc app\n  corpus-git gc --dry-run\n  corpus-git gc app --all",
		Args:    exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := need(s.b.Maintainer, "gc"); err != nil {
				return err
			}
			var names []project.Name
			if len(args) == 1 {
				name, err := s.project("gc", args[0], project.Configure)
				if err != nil {
					return err
				}
				names = []project.Name{name}
			} else {
				if err := s.admin("gc", ""); err != nil {
					return err
				}
				all, err := s.b.Projects.List(s.ctx)
				if err != nil {
					return err
				}
				for _, p := range all {
					if !p.RemoteLess && !p.Missing {
						names = append(names, p.Name)
					}
				}
			}
			return s.gc(names, what)
		},
	}
	c.Flags().BoolVar(&what.All, "all", false, "consolidate everything and search for unreachable objects, regardless of the thresholds")
	c.Flags().BoolVar(&what.DryRun, "dry-run", false, "show what would be done, without doing it")
	return s.jsonFlag(c)
}

func (s *session) gc(names []project.Name, what gcOptions) error {
	if !what.DryRun {
		if err := s.prepare(); err != nil {
			return err
		}
	}
	doc := status.Maintenance{Version: status.Version, DryRun: what.DryRun, Repositories: []status.Maintained{}}
	p := s.printer()
	failed := 0
	for _, name := range names {
		list, err := s.b.Maintainer.Maintain(s.ctx, name, what.All, what.DryRun)
		if err != nil && len(names) == 1 {
			return s.audited(audit.Entry{Action: "gc", Project: string(name)}, err)
		}
		if err != nil {
			list = []status.Maintained{{Project: name, Repo: project.Code, Error: s.explain(err)}}
		}
		var done []string
		for _, m := range list {
			doc.Repositories = append(doc.Repositories, m)
			if m.Error != "" {
				failed++
			}
			done = append(done, fmt.Sprintf("%s.git: %s", m.Repo, gcSummary(m)))
			if !s.json {
				p.line("%s  %s", s.who.Term.paint(bold, fmt.Sprintf("%s/%s.git", name, m.Repo)), gcSummary(m))
			}
			if sub := m.Submodules; sub != nil {
				text := gcSubmodules(sub)
				done = append(done, fmt.Sprintf("submodules of %s.git: %s", m.Repo, text))
				if !s.json {
					p.line("%s  %s", s.who.Term.paint(bold, fmt.Sprintf("%s/%s.git submodules", name, m.Repo)), text)
				}
			}
		}
		if !what.DryRun {
			if err := s.audited(audit.Entry{Action: "gc", Project: string(name), Detail: strings.Join(done, "; ")}, nil); err != nil {
				return err
			}
		}
	}
	if s.json {
		if err := s.document(doc); err != nil {
			return err
		}
	} else if what.DryRun {
		p.line("nothing was changed")
	}
	if failed > 0 {
		return fault.New(fault.Busy, "gc", "%s could not be maintained", humanize.Plural(failed, "repository", "repositories")).WithHint("see the lines above; a running server retries automatically")
	}
	return p.err
}

// gcSummary returns a line of what was done.
func gcSummary(m status.Maintained) string {
	if m.Error != "" {
		return "not done: " + m.Error
	}
	return gcParts(m, 0)
}

// gcSubmodules returns a line of what was done to the repositories of submodules.
func gcSubmodules(m *status.MaintainedSubmodules) string {
	return gcParts(status.Maintained{After: m.After, Consolidated: m.Consolidated, Packed: m.Packed, Pruned: m.Pruned, Young: m.Young, Left: m.Left}, m.Expired) +
		" in " + humanize.Plural(m.Repositories, "repository", "repositories")
}

// gcParts says what was done, with the submodules' commits that were let go.
func gcParts(m status.Maintained, expired int) string {
	var parts []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	say(m.Consolidated, "%s consolidated", humanize.Plural(m.Consolidated, "pack"))
	say(m.Packed, "%s packed", humanize.Plural(m.Packed, "loose object"))
	say(m.Refs, "%s packed", humanize.Plural(m.Refs, "ref"))
	say(expired, "%s unreferenced", humanize.Plural(expired, "commit"))
	say(m.Pruned, "%s removed", humanize.Plural(m.Pruned, "object"))
	say(m.Left, "%s left over by a crash removed", humanize.Plural(m.Left, "file"))
	if len(parts) == 0 {
		parts = append(parts, "nothing to do")
	}
	say(m.Young, "%s unreachable but too young", humanize.Plural(m.Young, "object"))
	now := fmt.Sprintf("%s of %s", humanize.Plural(m.After.Packs, "pack"), humanize.Bytes(m.After.Bytes))
	if m.After.Loose > 0 {
		now += ", " + humanize.Plural(m.After.Loose, "loose object")
	}
	return strings.Join(parts, ", ") + "; " + now
}
