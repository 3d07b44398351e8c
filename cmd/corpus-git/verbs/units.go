package verbs

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/jobs"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/units"
)

// unitArgs wants a project, and takes units after it.
func unitArgs(c *cobra.Command, args []string) error {
	return exactly("PROJECT")(c, args[:min(len(args), 1)])
}

func psCommand(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "ps PROJECT [UNIT...]", Short: "List the units of a project and their states",
		Long:    "Lists the units in the project's configuration: systemd units, supervisord programs, and processes\nstarted by commands (docs/processes.md).",
		Example: "  corpus-git ps app\n  corpus-git ps app web",
		Args:    unitArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("ps", args[0], project.Deploy)
			if err != nil {
				return err
			}
			all, err := s.b.Units.List(s.ctx, name, args[1:])
			if err != nil {
				return err
			}
			return s.unitTable(name, all)
		},
	})
}

// unitTable prints the states of units.
func (s *session) unitTable(name project.Name, all []project.UnitState) error {
	if s.json {
		return s.document(status.Units{Version: status.Version, Project: name, Units: append([]project.UnitState{}, all...)})
	}
	p := s.printer()
	if len(all) == 0 {
		p.line("%s has no units: set the key  units  in its configuration (docs/processes.md)", name)
		return p.err
	}
	t := table{heads: []string{"UNIT", "STATE", "SINCE", "PID", "RESTARTS", "DETAIL"}, flexible: []int{0, 5}}
	for _, u := range all {
		since, pid := "", ""
		if !u.Since.IsZero() {
			since = s.when(u.Since)
		}
		if u.PID > 0 {
			pid = strconv.Itoa(u.PID)
		}
		t.add(painted(bold, u.Unit), painted(unitColour(u), u.State), plain(since), number(pid), number(strconv.Itoa(u.Restarts)), plain(oneLine(u.Detail)))
	}
	t.print(p, s.who.Term)
	return p.err
}

func unitColour(u project.UnitState) colour {
	switch u.State {
	case project.UnitActive:
		return green
	case project.UnitFailed, project.UnitUnknown:
		return red
	}
	return yellow
}

// actCommand is start, stop or restart.
func actCommand(s *session, a project.UnitAction) *cobra.Command {
	verb := string(a)
	return s.jsonFlag(&cobra.Command{
		Use: verb + " PROJECT [UNIT...]", Short: strings.ToUpper(verb[:1]) + verb[1:] + " the units of a project",
		Long: "Acts on all units in the project's configuration, or on the given ones, waits, and lists their\n" +
			"states. The exit status is 1 if a unit is not in the requested state; its last log lines are shown.\n" +
			"Refused (exit status 4) while a deployment of the project is running or waiting; new deployments wait.",
		Example: "  corpus-git " + verb + " app\n  corpus-git " + verb + " app web",
		Args:    unitArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project(verb, args[0], project.Deploy)
			if err != nil {
				return err
			}
			if err := s.prepare(); err != nil {
				return err
			}
			all, err := s.b.Units.Act(s.ctx, name, a, args[1:], s.who.Pusher())
			err = s.audited(audit.Entry{Action: verb, Project: string(name), Object: strings.Join(args[1:], " ")}, err)
			if all == nil {
				return err
			}
			var f *units.Failure
			if errors.As(err, &f) && s.json {
				for i := range all { // the document has the log lines of what failed
					for _, u := range f.Units {
						if u.Unit == all[i].Unit {
							all[i].Log = u.Log
						}
					}
				}
			}
			if terr := s.unitTable(name, all); terr != nil {
				return terr
			}
			if f != nil && !s.json {
				s.unitFailure(f)
			}
			return err
		},
	})
}

// unitFailure prints what is known of units that failed.
func (s *session) unitFailure(f *units.Failure) {
	p := &printer{w: s.err}
	for _, l := range f.Messages {
		p.line("%s", l)
	}
	for _, u := range f.Units {
		if len(u.Log) == 0 {
			continue
		}
		p.line("the last lines of %s:", u.Unit)
		for _, l := range u.Log {
			p.line("  | %s", s.logText(l))
		}
	}
}

// logText returns a line of somebody's log, as this terminal shows it.
func (s *session) logText(line string) styled {
	line = event.Clean(line)
	if !s.who.Term.Colour {
		line = event.StripColour(line)
	}
	return styled(line)
}

// appLogs is  logs --app.
func (s *session) appLogs(c *cobra.Command, args []string, req units.LogRequest) error {
	for _, flag := range []string{"short", "verbose"} {
		if c.Flags().Changed(flag) {
			return usage("--%s cannot be combined with --app", flag)
		}
	}
	if req.Lines < 0 || req.Lines > maxLogLines {
		return usage("-n must be a number from 0 to %d", maxLogLines)
	}
	name, err := s.project("logs --app", args[0], project.Deploy)
	if err != nil {
		return err
	}
	req.Only = args[1:]
	if req.Follow {
		defer s.guard(name, project.Deploy)()
	}
	p, last := s.printer(), ""
	err = s.b.Units.Logs(s.ctx, name, req, func(source, line string) error {
		if s.json {
			return s.jsonLine(status.LogLine{Version: status.Version, Source: source, Text: event.StripColour(event.Clean(line))})
		}
		if source != last {
			last = source
			p.line("==> %s <==", map[bool]string{true: "journal", false: source}[source == ""])
		}
		p.line("%s", s.logText(line))
		return p.err
	})
	if err != nil && req.Follow && s.ctx.Err() != nil {
		return s.left()
	}
	return err
}

// maxLogLines bounds -n.
const maxLogLines = 100_000

func runCommand(s *session) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use: "run PROJECT [--] COMMAND [ARG...] | JOB [KEY=VALUE...]", Short: "Run a command as the project's user, or a job",
		Long: "Runs a command as the project's user in the live tree, with the environment of its steps and the key env of its\n" +
			"configuration, and exits with its status. There is no shell and no terminal; standard input is passed on, and\n" +
			"the command is stopped when you disconnect. Pillar values are hidden in its output. Deployments can run at the same time.\n\n" +
			"With a JOB instead, deploys the live commits of its project to the nodes of the job's stages, as in  corpus-git deploy ; see  corpus-git job --help .\n" +
			"JOB is PROJECT/JOB, or its name alone; PROJECT/JOB@REVISION runs an earlier revision." + aboutSettings,
		Example: "  corpus-git run app -- ./manage.py migrate --plan\n  ssh -p 2222 deploy@server run app -- ./manage.py shell < script.py\n  corpus-git run app -- sh -c 'ls | wc -l'\n  corpus-git run cloud/bring-up",
		Args: func(c *cobra.Command, args []string) error {
			return exactly("PROJECT")(c, args[:min(len(args), 1)])
		},
		Annotations: map[string]string{ReadsStdin: "yes"},
		RunE: func(c *cobra.Command, args []string) error {
			argv := args[1:]
			if len(argv) == 0 || strings.Contains(args[0], "/") {
				return jobs.Run(s.jobs(), args[0], argv, verbose)
			}
			if s.detach || s.json || verbose {
				return usage("--detach, --json and --verbose belong to a job")
			}
			if argv[0] == "--" { // what is behind the first argument is not looked at for flags
				argv = argv[1:]
			}
			if len(argv) == 0 {
				return usage("COMMAND is missing").WithHint("usage:  %s", c.UseLine())
			}
			name, err := s.project("run", args[0], project.Deploy)
			if err != nil {
				return err
			}
			begun := false
			exit, err := s.b.Units.Run(s.ctx, name, argv, func(what, user string) error {
				begun = true
				if user == "" {
					p := &printer{w: s.err}
					p.line("note: projects have no users on this server; this runs as the server's user")
				}
				return s.audited(audit.Entry{Action: "run", Project: string(name), Object: printable.Shorten(what, maxAudited)}, nil)
			}, s.in, s.out, s.err)
			if err != nil && !begun {
				err = s.audited(audit.Entry{Action: "run", Project: string(name)}, err)
			}
			if err != nil && s.ctx.Err() != nil {
				return fault.New(fault.Failed, "", "interrupted")
			}
			if err != nil {
				return err
			}
			if exit != 0 {
				return verdict{exit}
			}
			return nil
		},
	}
	c.Flags().SetInterspersed(false)
	return s.runFlags(c, &verbose)
}

// maxAudited is how many characters of a command line the audit log keeps.
const maxAudited = 1000
