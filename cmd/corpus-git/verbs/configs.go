package verbs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/configs"
	"corpus-git/project/status"
)

// Configs is what was applied; configs.Store satisfies it.
type Configs interface {
	List(ctx context.Context, f configs.Filter) ([]configs.Deployment, error)
	Get(ctx context.Context, id string) (configs.Config, error)
}

func configsCommand(s *session) *cobra.Command {
	var f configs.Filter
	c := &cobra.Command{
		Use: "configs [PROJECT]", Short: "List what was applied, newest first: configs, servers, results", Args: exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				f.Project, err = s.project("configs", args[0], project.Read)
			} else {
				err = s.admin("configs", "")
			}
			if err != nil {
				return err
			}
			if f.Limit < 1 {
				return usage("--limit must be 1 or more")
			}
			if err := need(s.b.Configs, "configs"); err != nil {
				return err
			}
			return s.configs(f)
		},
	}
	c.Flags().IntVarP(&f.Limit, "limit", "n", 20, "show at most this many entries")
	c.Flags().StringVar(&f.Server, "server", "", "show those on this `SERVER`")
	c.Flags().StringVar(&f.Config, "show", "", "show one `CONFIG`, by 6 or more digits of its hash, and its deployments")
	return s.listFlags(c)
}

func (s *session) configs(f configs.Filter) error {
	var one *configs.Config
	if f.Config != "" {
		c, err := s.b.Configs.Get(s.ctx, f.Config)
		if err != nil {
			return err
		}
		one, f.Config = &c, c.ID
	}
	list, err := s.b.Configs.List(s.ctx, f)
	if err != nil {
		return err
	}
	if one != nil && len(list) == 0 { // it is of other projects
		return usage("no config %s here", printable.Shorten(one.ID, 13))
	}
	if s.json {
		return s.document(status.Configs{Version: status.Version, Config: one, Deployments: list})
	}
	p := s.printer()
	if one != nil {
		p.line("%s  %s  %s", one.ID, one.Group, one.File)
		for line := range strings.Lines(one.Source) {
			p.line("    %s", printable.Line(strings.TrimRight(line, "\r\n")))
		}
		p.line("")
	}
	if len(list) == 0 {
		p.line("nothing was applied yet")
		return p.err
	}
	t := table{heads: []string{"WHEN", "SERVER", "PROJECT", "STEP", "GROUP", "CONFIG", "ACTION", "STATE", "TOOK", "DEPLOYMENT", "WHY"}, flexible: []int{10}}
	for _, d := range list {
		took, colour := "-", green
		if !d.Ended.IsZero() {
			took = humanize.Seconds(d.Ended.Sub(d.Began))
		}
		if d.State != configs.Complete {
			colour = red
		}
		t.add(plain(s.when(d.Began)), plain(d.Server), plain(d.Project.String()), painted(bold, d.Step), plain(d.Group), plain(d.Config[:min(12, len(d.Config))]),
			plain(string(d.Action)), painted(colour, string(d.State)), number(took), plain(d.Deployment.Short()), plain(d.Reason))
	}
	t.print(p, s.who.Term)
	return p.err
}
