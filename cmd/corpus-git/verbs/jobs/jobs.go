// Package jobs is the verbs about jobs: documents that deploy a project to its nodes in stages of their own.
//
// It owns their words, flags and output, and which job a name means. What a job does is decided by package fleet; it keeps nothing.
package jobs

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/fleet"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Jobs is the table of jobs.
type Jobs interface {
	// SetJob stores a job as a new revision; changed is false if the newest one has the same text.
	SetJob(ctx context.Context, j fleet.Job) (stored fleet.Job, changed bool, err error)
	// Jobs returns the newest revisions of the jobs of a project, of all for "".
	Jobs(ctx context.Context, of project.Name) ([]fleet.Job, error)
	// Job finds a job by NAME or NAME@REVISION; an unknown one is fault.Refused.
	Job(ctx context.Context, of project.Name, ref string) (fleet.Job, error)
	RemoveJob(ctx context.Context, of project.Name, name, by string, now time.Time) error
}

// Session is one run of a verb.
type Session struct {
	nodes.Session
	Jobs Jobs
	// Can reports whether the caller has a right on a project.
	Can func(name project.Name, want project.Right) (bool, error)
}

// maxText limits how much of standard input is read, in bytes: more than a job may have.
const maxText = 128 << 10

// Command returns the verb job; stdin is the annotation of commands that read standard input.
func Command(s Session, stdin map[string]string) *cobra.Command {
	c := s.Group("job", "Store and list jobs, which deploy to nodes in stages of their own", set(s, stdin), list(s), show(s), remove(s))
	c.Long = "A job is a document with stages, as in .salt/stages.yaml, that is not bound to a push:  corpus-git run JOB  deploys the live commits of its\n" +
		"project to the nodes of these stages (docs/guide/nodes.md). Each stored text is a revision, and a deployment records which one it ran."
	return c
}

func set(s Session, stdin map[string]string) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "set PROJECT JOB", Short: "Store a job, read from standard input", Args: s.Exactly("PROJECT", "JOB"), Annotations: stdin,
		Example: "  corpus-git job set cloud bring-up < bring-up.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("job set", args[0], project.Deploy)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(io.LimitReader(s.In, maxText))
			if err != nil {
				return err
			}
			j, changed, err := s.Jobs.SetJob(s.Context, fleet.Job{Project: name, Name: args[1], Text: string(text), Added: s.Now(), AddedBy: s.Caller.Name})
			if changed || err != nil {
				object := j.Ref()
				if err != nil {
					object = printable.Shorten(args[1], maxAudited)
				}
				err = s.Audited(audit.Entry{Action: "job set", Project: string(name), Object: object}, err)
			}
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(status.JobDocument{Version: status.Version, Job: shown(j)})
			}
			p := s.Printer()
			if changed {
				p.Line("stored %s/%s as revision %d", name, j.Name, j.Revision)
			} else {
				p.Line("%s/%s is unchanged: revision %d", name, j.Name, j.Revision)
			}
			p.Line("  corpus-git run %s/%s", name, j.Name)
			return p.Err()
		},
	})
}

// maxAudited is how many characters of a refused name the audit log keeps.
const maxAudited = 64

// shown returns a job as documents have it.
func shown(j fleet.Job) status.Job {
	return status.Job(j)
}

// visible returns the jobs of the projects on which the caller has a right, of one project unless it is "".
func (s Session) visible(of project.Name, want project.Right) (out []fleet.Job, err error) {
	all, err := s.Jobs.Jobs(s.Context, of)
	if err != nil {
		return nil, err
	}
	can := map[project.Name]bool{}
	for _, j := range all {
		if _, asked := can[j.Project]; !asked {
			if can[j.Project], err = s.Can(j.Project, want); err != nil {
				return nil, err
			}
		}
		if can[j.Project] {
			out = append(out, j)
		}
	}
	return out, nil
}

func list(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "list [PROJECT]", Short: "List the jobs", Args: s.Exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			var of project.Name
			if len(args) > 0 {
				var err error
				if of, err = s.Project("job list", args[0], project.Read); err != nil {
					return err
				}
			}
			all, err := s.visible(of, project.Read)
			if err != nil {
				return err
			}
			if s.JSON() {
				doc := status.Jobs{Version: status.Version, Jobs: []status.Job{}}
				for _, j := range all {
					j.Text = ""
					doc.Jobs = append(doc.Jobs, shown(j))
				}
				return s.Document(doc)
			}
			p := s.Printer()
			if len(all) == 0 {
				p.Line("no jobs yet")
			}
			for _, j := range all {
				p.Line("%-30s  revision %-3d  %s", string(j.Project)+"/"+j.Name, j.Revision, j.About)
			}
			return p.Err()
		},
	})
}

func show(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "show PROJECT JOB", Short: "Print a job; JOB@REVISION prints an earlier one", Args: s.Exactly("PROJECT", "JOB"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("job show", args[0], project.Read)
			if err != nil {
				return err
			}
			j, err := s.Jobs.Job(s.Context, name, args[1])
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(status.JobDocument{Version: status.Version, Job: shown(j)})
			}
			_, err = io.WriteString(s.Out, strings.TrimRight(j.Text, "\n")+"\n")
			return err
		},
	})
}

func remove(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "remove PROJECT JOB", Short: "Remove a job; its revisions stay for the deployments that ran them", Args: s.Exactly("PROJECT", "JOB"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("job remove", args[0], project.Deploy)
			if err != nil {
				return err
			}
			err = s.Jobs.RemoveJob(s.Context, name, args[1], s.Caller.Name, s.Now())
			if err := s.Audited(audit.Entry{Action: "job remove", Project: string(name), Object: printable.Shorten(args[1], maxAudited)}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("removed the job %s/%s", name, args[1])
			return p.Err()
		},
	}
}

// find returns the job that a name means: PROJECT/JOB, or JOB if one project has it among those that the caller may deploy.
func (s Session) find(ref string) (fleet.Job, error) {
	if of, name, ok := strings.Cut(ref, "/"); ok {
		p, err := s.Project("run", of, project.Deploy)
		if err != nil {
			return fleet.Job{}, err
		}
		return s.Jobs.Job(s.Context, p, name)
	}
	all, err := s.visible("", project.Deploy)
	if err != nil {
		return fleet.Job{}, err
	}
	name, _, _ := strings.Cut(ref, "@")
	var found []fleet.Job
	var names []string
	for _, j := range all {
		if j.Name == name {
			found, names = append(found, j), append(names, string(j.Project)+"/"+j.Name)
		}
	}
	switch len(found) {
	case 0:
		return fleet.Job{}, fault.New(fault.Usage, "run", "no job %s, and COMMAND is missing", printable.Line(ref)).
			WithHint("corpus-git job list  shows the jobs; a command is run by  corpus-git run PROJECT -- COMMAND")
	case 1:
		return s.Jobs.Job(s.Context, found[0].Project, ref)
	}
	return fleet.Job{}, fault.New(fault.Usage, "run", "%s is ambiguous: %s", ref, strings.Join(names, ", "))
}

// Run starts a job, with settings for this run, follows it and ends with its verdict.
func Run(s Session, ref string, settings []string, verbose bool) error {
	d := project.Deployment{Trigger: project.TriggerRedeploy}
	var err error
	if d.Set, err = project.ParseSettings(settings, &d.Select); err != nil {
		return err
	}
	j, err := s.find(ref)
	if err != nil {
		return err
	}
	doc, err := fleet.ReadJob(j.Text)
	if err != nil {
		return err
	}
	if len(d.Select.OnlySteps) == 0 {
		d.Select.OnlySteps = doc.OnlySteps
	}
	d.Project, d.Job, d.AllowMissing = j.Project, j.Ref(), doc.AllowMissing
	return s.Deploy("run", d, verbose)
}
