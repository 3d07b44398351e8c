package verbs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
)

func deployCommand(s *session) *cobra.Command {
	var sel project.Selection
	var verbose, force, missing bool
	var resume string
	c := &cobra.Command{
		Use: "deploy PROJECT [KEY=VALUE...]", Short: "Redeploy the live commit",
		Long: "Deploys the current commits of both branches, and shows the output. The exit status is\n" +
			"that of the deployment. A project without repositories is deployed from its working copy." + aboutSettings,
		Example: "  corpus-git deploy app\n  corpus-git deploy app --only install --only-steps 0100_build,100_reload\n  corpus-git deploy app debug=true db.port=5433",
		Args:    andSettings("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			if resume == string(project.ResumeLast) && len(args) > 1 && !strings.Contains(args[1], "=") { // --resume ID
				resume, args = args[1], slices.Delete(slices.Clone(args), 1, 2)
			}
			if err := resumable(resume); err != nil {
				return err
			}
			set, err := project.ParseSettings(args[1:], &sel)
			if err != nil {
				return err
			}
			name, err := s.project("deploy", args[0], project.Deploy)
			if err != nil {
				return err
			}
			if err := checkSelection(sel); err != nil {
				return err
			}
			return s.deploy("deploy", project.Deployment{Project: name, Trigger: project.TriggerRedeploy, Select: sel, Set: set, Overwrite: force, AllowMissing: missing, Resume: project.ID(resume)}, verbose)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "in dev: overwrite files that were edited on the machine")
	c.Flags().StringVar(&resume, "resume", "", "continue at the failed step of the last deployment, or of `DEPLOYMENT`")
	c.Flags().Lookup("resume").NoOptDefVal = string(project.ResumeLast)
	c.Flags().BoolVar(&missing, "allow-missing", false, "skip nodes that are not ready")
	selectionFlags(c, &sel)
	return s.runFlags(c, &verbose)
}

// resumable checks what --resume names.
func resumable(id string) error {
	if id == "" || id == string(project.ResumeLast) {
		return nil
	}
	_, err := project.ParseIDPrefix(id)
	return err
}

// selectionFlags add the flags that leave out parts of a deployment; checkSelection refuses what they cannot name.
func selectionFlags(c *cobra.Command, sel *project.Selection) {
	c.Flags().StringSliceVar(&sel.Only, "only", nil, "run only these procedures, separated by commas")
	c.Flags().StringSliceVar(&sel.OnlySteps, "only-steps", nil, "run only these steps of install")
	c.Flags().StringSliceVar(&sel.Skip, "skip", nil, "skip these procedures")
}

func checkSelection(sel project.Selection) error {
	for _, p := range slices.Concat(sel.Only, sel.Skip) {
		if !project.IsProcedure(p) {
			return usage("%q is not a procedure", p).WithHint("the procedures are: %s", strings.Join(project.Procedures(), ", "))
		}
	}
	return nil
}

func verboseFlag(c *cobra.Command, v *bool) {
	c.Flags().BoolVarP(v, "verbose", "v", false, "show every state and all output of commands")
}

func planCommand(s *session) *cobra.Command {
	var verbose, missing bool
	c := &cobra.Command{
		Use: "plan PROJECT [KEY=VALUE...]", Short: "Show what a deployment would change, and change nothing", Args: andSettings("PROJECT"),
		Long: "Shows what a deployment of the current commits of both branches would change. Nodes are asked whether they are ready for it;\n" +
			"if it would be refused, the plan is refused with the same reason and exit status." + aboutSettings,
		RunE: func(_ *cobra.Command, args []string) error {
			var sel project.Selection
			set, err := project.ParseSettings(args[1:], &sel)
			if err != nil {
				return err
			}
			name, err := s.project("plan", args[0], project.Deploy)
			if err != nil {
				return err
			}
			return s.deploy("plan", project.Deployment{Project: name, Trigger: project.TriggerPlan, Select: sel, Set: set, AllowMissing: missing}, verbose)
		},
	}
	c.Flags().BoolVar(&missing, "allow-missing", false, "skip nodes that are not ready")
	return s.runFlags(c, &verbose)
}

func rollbackCommand(s *session) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use: "rollback PROJECT [DEPLOYMENT]", Short: "Roll back to an earlier deployment",
		Long: "Restores the release of DEPLOYMENT; without DEPLOYMENT, the release that was live before the current\n" +
			"one. The archived tree is restored exactly, and the branches move back with it. See\n  corpus-git deployments PROJECT   and, to restore a single archive,   corpus-git archives restore PROJECT ARCHIVE",
		Args: exactly("PROJECT", "[DEPLOYMENT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("rollback", args[0], project.Deploy)
			if err != nil {
				return err
			}
			d := project.Deployment{Project: name, Trigger: project.TriggerRollback}
			if prefix := arg(args, 1); prefix != "" {
				rec, err := s.b.Runs.Find(s.ctx, name, prefix)
				if err != nil {
					return err
				}
				d.Restore = rec.ID
			}
			return s.deploy("rollback", d, verbose)
		},
	}
	return s.runFlags(c, &verbose)
}

func taskCommand(s *session) *cobra.Command {
	var verbose bool
	c := &cobra.Command{
		Use: "task PROJECT TASK [KEY=VALUE...]", Short: "Run one task: .salt/task_TASK.sls",
		Long:    "Runs .salt/task_TASK.sls of the live release, and shows its output." + aboutSettings,
		Example: "  corpus-git task app backup\n  corpus-git task app hello who=bob",
		Args:    andSettings("PROJECT", "TASK"),
		RunE: func(_ *cobra.Command, args []string) error {
			var sel project.Selection
			set, err := project.ParseSettings(args[2:], &sel)
			if err != nil {
				return err
			}
			name, err := s.project("task", args[0], project.Deploy)
			if err != nil {
				return err
			}
			task := strings.TrimSuffix(strings.TrimPrefix(args[1], "task_"), ".sls")
			if task == "" || strings.ContainsAny(task, "/\x00") || strings.HasPrefix(task, ".") {
				return usage("%q is not a valid task name", args[1]).WithHint("the task in .salt/task_backup.sls is called backup")
			}
			return s.deploy("task", project.Deployment{Project: name, Trigger: project.TriggerTask, Task: task, Select: sel, Set: set}, verbose)
		},
	}
	return s.runFlags(c, &verbose)
}

func checkCommand(s *session) *cobra.Command {
	var verbose, history bool
	limit := 20
	c := &cobra.Command{
		Use: "check PROJECT", Short: "Run the checks of the live release",
		Long: "Runs all checks of the project's configuration (the key checks) on the live release. The exit status is 1\n" +
			"if one fails. Nothing is rolled back. --history runs nothing, but shows the results of periodic checks.",
		Example: "  corpus-git check app\n  corpus-git check app --history",
		Args:    exactly("PROJECT"),
		RunE: func(c *cobra.Command, args []string) error {
			if history {
				return s.checkHistory(args[0], limit)
			}
			if c.Flags().Changed("limit") {
				return usage("--limit requires --history")
			}
			if s.exact {
				return usage("--time requires --history")
			}
			name, err := s.project("check", args[0], project.Deploy)
			if err != nil {
				return err
			}
			return s.deploy("check", project.Deployment{Project: name, Trigger: project.TriggerCheck}, verbose)
		},
	}
	c.Flags().BoolVar(&history, "history", false, "show when periodic checks failed and succeeded")
	c.Flags().IntVarP(&limit, "limit", "n", limit, "with --history: show at most this many changes")
	c.Flags().BoolVar(&s.exact, "time", false, "with --history: show times in UTC (RFC 3339) instead of ages")
	return s.runFlags(c, &verbose)
}

func convergeCommand(s *session) *cobra.Command {
	var report, verbose bool
	c := &cobra.Command{
		Use: "converge PROJECT", Short: "Apply the live release again",
		Long: "Applies the steps and permissions of the live release again, and runs its checks with on: converge. It fixes\n" +
			"differences, and does not roll back. --report only reports them. See docs/guide/converge.md.",
		Args: exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("converge", args[0], project.Deploy)
			if err != nil {
				return err
			}
			run := project.ConvergeRun{Mode: project.ConvergeEnforce}
			if report {
				run.Mode = project.ConvergeReport
			}
			return s.deploy("converge", project.Deployment{Project: name, Trigger: project.TriggerConverge, Converge: run}, verbose)
		},
	}
	c.Flags().BoolVar(&report, "report", false, "report what would change, without changing it")
	return s.runFlags(c, &verbose)
}

func undeployCommand(s *session) *cobra.Command {
	var yes, verbose bool
	c := &cobra.Command{
		Use: "undeploy PROJECT", Short: "Stop a project and undo what its deployments changed outside of its tree",
		Long: "Runs .salt/undeploy.sls of the live release, if it exists, stops the project's units, and undoes what its deployments\n" +
			"changed outside of its trees, the newest first (docs/rollback.md). Tree, repositories, archives and data are kept;\n" +
			"corpus-git deploy PROJECT  deploys it again.",
		Example: "  corpus-git undeploy app --yes",
		Args:    exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("undeploy", args[0], project.Admin)
			if err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Refused, "undeploy", "%s would stop, and what its deployments changed outside of its tree would be undone", name).
					WithHint("confirm with --yes:  corpus-git undeploy %s --yes", name)
			}
			return s.deploy("undeploy", project.Deployment{Project: name, Trigger: project.TriggerUndeploy}, verbose)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return s.runFlags(c, &verbose)
}

func cancelCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "cancel PROJECT [DEPLOYMENT]", Short: "Cancel the running deployment and roll it back",
		Long: "Stops the processes of the running step and rolls back. A waiting DEPLOYMENT is removed from\nthe queue. A second cancel stops hooks of the rollback that hang; the tree is restored anyway.",
		Args: exactly("PROJECT", "[DEPLOYMENT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("cancel", args[0], project.Deploy)
			if err != nil {
				return err
			}
			if err := s.prepare(); err != nil { // what waits for signals can be cancelled while no server runs
				return err
			}
			var id project.ID
			if prefix := arg(args, 1); prefix != "" {
				rec, err := s.b.Runs.Find(s.ctx, name, prefix)
				if err != nil {
					return err
				}
				id = rec.ID
			}
			return s.cancel("cancel", name, id)
		},
	}
}

// aboutSettings is what help says of KEY=VALUE.
const aboutSettings = "\n\nEach KEY=VALUE overrides the pillar in the configuration, for this run only. VALUE is a YAML value as on\n" +
	"Salt's command line. A dot in KEY selects a key of a mapping, and a KEY that the configuration does not have is set\n" +
	"in data: port=1 and data.port=1 are the same. The settings are recorded, without the values of keys\n" +
	"that are secret in the pillar."

// deploy starts d, follows it and ends with its verdict.
func (s *session) deploy(verb string, d project.Deployment, verbose bool) error {
	if err := s.prepare(); err != nil {
		return err
	}
	d.Pusher = s.who.Pusher()
	return s.start(verb, d, verbose)
}

// start is deploy of a deployment that says who asked for it.
func (s *session) start(verb string, d project.Deployment, verbose bool) error {
	style := event.Style{Commands: s.commands(), Verbose: verbose, Output: d.Trigger == project.TriggerTask}
	if s.detach && !s.b.Detached {
		return fault.New(fault.Refused, "", "no server is running: the deployment would end with this command").WithHint("leave out --detach, or start a server:  corpus-git serve")
	}
	id, err := s.b.Runs.Start(s.ctx, d, nil)
	if err != nil {
		// What was started is recorded by the pipeline when it has ended.
		return s.audited(audit.Entry{Action: verb, Project: string(d.Project), Object: join(d.Task, d.Restore.Short())}, err)
	}
	if s.detach {
		return s.started(d.Project, id)
	}
	return s.watch(d.Project, id, style)
}

// started reports a deployment that nobody follows here.
func (s *session) started(name project.Name, id project.ID) error {
	if s.json {
		rec, err := s.b.Runs.Find(s.ctx, name, string(id))
		if err != nil {
			return err
		}
		return s.document(status.DeploymentDocument{Version: status.Version, Deployment: rec})
	}
	p := s.printer()
	p.line("deployment %s of %s was requested", id, name)
	p.line("  %s", event.WithCommands("watch it:  corpus-git logs "+string(name)+" "+id.Short()+" -f", s.commands()))
	return p.err
}

// runFlags returns those of commands that deploy.
func (s *session) runFlags(c *cobra.Command, verbose *bool) *cobra.Command {
	verboseFlag(c, verbose)
	c.Flags().BoolVar(&s.detach, "detach", false, "do not wait for the end; print the deployment's ID")
	return s.jsonFlag(c)
}

// exitOf returns the exit status of a deployment that ended: what was refused before it ran has its kind's, what ran and did not succeed 1.
func exitOf(r project.Result) int {
	switch {
	case r.Good():
		return 0
	case r.Kind == fault.Internal.String():
		return fault.Internal.ExitCode()
	case r.State == project.Refused || r.State == project.Running:
		for _, k := range []fault.Kind{fault.Usage, fault.Refused, fault.Busy} {
			if r.Kind == k.String() {
				return k.ExitCode()
			}
		}
	}
	return fault.Failed.ExitCode()
}
