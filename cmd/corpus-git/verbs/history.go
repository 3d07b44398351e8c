package verbs

import (
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/signatures"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/units"
)

func deploymentsCommand(s *session) *cobra.Command {
	var limit int
	var before string
	c := &cobra.Command{
		Use: "deployments PROJECT [DEPLOYMENT]", Short: "List the deployments, newest first, or show one", Args: exactly("PROJECT", "[DEPLOYMENT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("deployments", args[0], project.Read)
			if err != nil {
				return err
			}
			if limit < 1 {
				return usage("--limit must be 1 or more")
			}
			if one := arg(args, 1); one != "" && s.json {
				rec, err := s.b.Runs.Find(s.ctx, name, one)
				if err != nil {
					return err
				}
				return s.document(status.DeploymentDocument{Version: status.Version, Deployment: rec})
			}
			recs, err := s.records(name, arg(args, 1), before, limit)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(status.Deployments{Version: status.Version, Project: name, Deployments: append([]project.Record{}, recs...)})
			}
			s.interrupted(recs)
			p := s.printer()
			if len(recs) == 0 {
				p.line("no deployments yet; push to %s, or  corpus-git deploy %s", name, name)
				return p.err
			}
			s.deploymentTable(p, recs, "")
			if arg(args, 1) != "" {
				s.outputs(p, recs[0])
				for _, line := range signatures.Lines(recs[0].Signatures) {
					p.line("%s", line)
				}
			}
			return p.err
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 20, "show at most this many entries")
	c.Flags().StringVar(&before, "before", "", "show deployments older than this `DEPLOYMENT`")
	return s.listFlags(c)
}

// records are one deployment, those before one, or the newest.
func (s *session) records(name project.Name, one, before string, limit int) ([]project.Record, error) {
	switch {
	case one != "":
		rec, err := s.b.Runs.Find(s.ctx, name, one)
		return []project.Record{rec}, err
	case before != "":
		rec, err := s.b.Runs.Find(s.ctx, name, before)
		if err != nil {
			return nil, err
		}
		return s.b.Runs.Before(s.ctx, name, rec.ID, limit)
	}
	return s.b.Runs.Deployments(s.ctx, name, limit)
}

func (s *session) deploymentTable(p *printer, recs []project.Record, indent string) {
	t := table{heads: []string{"DEPLOYMENT", "WHEN", "WHAT", "RESULT", "TOOK", "CODE", "PILLAR", "BY", "WHY"}, flexible: []int{7, 8}, indent: indent}
	for _, r := range recs {
		took, why := "-", ""
		if r.Result != nil {
			if !r.Result.Ended.IsZero() && !r.Result.Started.IsZero() {
				took = humanize.Seconds(r.Result.Ended.Sub(r.Result.Started))
			}
			if !r.State.Good() {
				why = r.Result.Reason
			}
		} else if r.Waits != "" {
			why = "waiting for " + r.Waits
		} else if r.Step != "" || r.Procedure != "" {
			why = "in " + join(firstOf(r.Step, r.Procedure))
		}
		t.add(painted(bold, r.ID.Short()), plain(s.when(r.At)), plain(r.What()), painted(stateColour(r.State), string(r.State)),
			number(took), plain(commit(r.Code)), plain(commit(r.Pillar)), plain(r.Pusher.Key), plain(why))
	}
	t.print(p, s.who.Term)
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// recordLine is one deployment in one line.
func (s *session) recordLine(r project.Record) styled {
	rest := join(r.What(), "by", r.Pusher.Key+",", s.when(ended(r)))
	if r.Result != nil && !r.State.Good() && r.Result.Reason != "" {
		rest += ": " + r.Result.Reason
	}
	return styled(join(r.ID.Short(), s.who.Term.paint(stateColour(r.State), string(r.State))+",", printable.Shorten(printable.Line(rest), 65)))
}

// ended is when a deployment ended, or when it was asked for.
func ended(r project.Record) time.Time {
	if r.Result != nil && !r.Result.Ended.IsZero() {
		return r.Result.Ended
	}
	return r.At
}

func logsCommand(s *session) *cobra.Command {
	var follow, short, verbose, app, times bool
	var lines int
	c := &cobra.Command{
		Use: "logs PROJECT [DEPLOYMENT]", Short: "Show the log of a deployment (default: the last one), or of the project's units",
		Long: "Shows every state and all output of commands, unless --short is given. -f follows a running deployment to its\n" +
			"end. --json prints one event per line (docs/json.md).\n\n" +
			"With --app shows the logs of the project's units (the keys units and logs of its configuration), or of those named after\n" +
			"PROJECT: the last -n lines of each, and with -f new lines.",
		Example: "  corpus-git logs app -f\n  corpus-git logs --app app -f\n  corpus-git logs --app app -n 20 web",
		Args: func(c *cobra.Command, args []string) error {
			if app {
				return unitArgs(c, args)
			}
			return exactly("PROJECT", "[DEPLOYMENT]")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if times && (app || s.json) {
				return usage("-t cannot be combined with --app or --json")
			}
			if app {
				return s.appLogs(c, args, units.LogRequest{Lines: lines, Follow: follow})
			}
			if c.Flags().Changed("lines") {
				return usage("-n requires --app")
			}
			if short && verbose && c.Flags().Changed("verbose") {
				return usage("--verbose and --short exclude each other")
			}
			name, err := s.project("logs", args[0], project.Read)
			if err != nil {
				return err
			}
			rec, err := s.record(name, arg(args, 1))
			if err != nil {
				return err
			}
			return s.log(rec, follow, event.Style{Commands: s.commands(), Colour: s.who.Term.Colour, Verbose: verbose && !short, Times: times})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "follow until the deployment has ended; with --app until interrupted")
	c.Flags().BoolVarP(&times, "times", "t", false, "begin each line with its time, in UTC")
	c.Flags().BoolVar(&app, "app", false, "the logs of the project's units, not of a deployment")
	c.Flags().IntVarP(&lines, "lines", "n", 100, "with --app: how many lines")
	c.Flags().BoolVar(&short, "short", false, "only the output that the pusher saw")
	verboseFlag(c, &verbose)
	c.Flags().Lookup("verbose").DefValue = "true"
	verbose = true
	return s.jsonFlag(c)
}

// log shows the log of a deployment; with follow it goes on until that has ended, or the user has left.
func (s *session) log(rec project.Record, follow bool, style event.Style) error {
	if follow {
		defer s.guard(rec.Project, project.Read)()
	}
	if follow && !s.json {
		err := s.follower(rec.ID, s.out, style).run(s.ctx)
		if err != nil && s.ctx.Err() != nil {
			return s.left()
		}
		return s.explainMissingLog(rec, err)
	}
	events := s.b.Events(rec.Project, rec.ID)
	if follow {
		events = s.b.Runs.Follow(s.ctx, rec.ID, 0)
	}
	console := event.NewConsole(s.out, style)
	for e, err := range events {
		switch {
		case err != nil && s.ctx.Err() != nil:
			return s.left()
		case err != nil:
			return s.explainMissingLog(rec, err)
		case s.json:
			err = s.jsonLine(status.Event{Version: status.Version, Event: e})
		default:
			_, err = console.Show(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explainMissingLog returns an error that says why a log does not exist.
func (s *session) explainMissingLog(rec project.Record, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := "it ended: " + string(rec.State)
	if !rec.State.Terminal() {
		text = "it has not begun yet"
	}
	return fault.New(fault.Refused, "logs", "%w; %s", errNoLog, text)
}
