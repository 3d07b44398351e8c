// Package statistics is the verb statistics: how often deployments of a project succeed, and how long they take.
//
// It owns its words, flags and output; package project/status makes the figures, from the records. It keeps nothing.
package statistics

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Session is one run of the verb.
type Session struct {
	nodes.Session
	// Deployments gives the newest records of a project first.
	Deployments func(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
}

// Command returns the verb.
func Command(s Session) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "statistics PROJECT", Short: "Show success rate and duration of deployments and steps", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("statistics", args[0], project.Read)
			if err != nil {
				return err
			}
			if limit < 1 {
				return fault.New(fault.Usage, "", "--limit must be 1 or more")
			}
			records, err := s.Deployments(s.Context, name, limit)
			if err != nil {
				return err
			}
			doc := status.StatisticsDocument{Version: status.Version, Project: name, Statistics: status.Summarize(records, s.Now())}
			if s.JSON() {
				return s.Document(doc)
			}
			return s.print(doc)
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", status.StatisticsOf, "how many of the newest deployments to count")
	return s.JSONFlag(c)
}

func (s Session) print(doc status.StatisticsDocument) error {
	p := s.Printer()
	if doc.Deployments == 0 {
		p.Line("no deployment of %s has run yet", doc.Project)
		return p.Err()
	}
	refused := ""
	if doc.Refused > 0 {
		refused = fmt.Sprintf("; %s refused before anything ran", humanize.Count(doc.Refused))
	}
	p.Line("%s since %s%s", humanize.Plural(doc.Deployments, "deployment"), doc.Since.Format("2006-01-02"), refused)
	p.Line("went live         %d %% (%d of %d)", doc.Rate(), doc.Good, doc.Deployments)
	if doc.Whole.N > 0 {
		p.Line("took              %s in half of them, %s at most in 95 %%", humanize.Seconds(doc.Whole.Median), humanize.Seconds(doc.Whole.P95))
	}
	if doc.Restored > 0 {
		p.Line("until live again  %s in half of %s", humanize.Seconds(doc.Restore.Median), humanize.Plural(doc.Restored, "case"))
	}
	if len(doc.Steps) == 0 {
		return p.Err()
	}
	p.Line("")
	p.Line("   MEDIAN       95 %%  RUNS  STEP")
	for _, x := range doc.Steps {
		p.Line("%9s  %9s  %4d  %s", humanize.Seconds(x.Median), humanize.Seconds(x.P95), x.N, printable.Line(x.Name))
	}
	return p.Err()
}
