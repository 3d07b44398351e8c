package verbs

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

func projectCommand(s *session) *cobra.Command {
	return group(s, "project", "Create, list, show, link and delete projects",
		projectCreate(s), projectList(s), projectShow(s), projectDestroy(s), projectLink(s, true), projectLink(s, false))
}

func projectCreate(s *session) *cobra.Command {
	var set registry.Settings
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a project and print its two remotes",
		Long: "Creates the directories, the two bare repositories, and the links of the project in Salt's\n" +
			"trees, with its line in the pillar's top file. If the project exists, missing parts are\n" +
			"created and --env is changed.\n\n" +
			"With --skeleton both repositories get a first commit from a skeleton (see corpus-git skeletons), which is\n" +
			"deployed like a push: first the pillar, then the code. If that fails, the code branch stays empty;\n" +
			"run the same command to try again. Then clone the project to work on it.",
		Args: exactly("NAME"), Annotations: map[string]string{Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("project create", args[0]); err != nil {
				return err
			}
			name, err := project.ParseName(args[0])
			if err != nil {
				return err
			}
			if set.Skeleton != "" && set.RemoteLess {
				return usage("--skeleton needs repositories").WithHint("write the files with  corpus-git init --skeleton %s DIR", set.Skeleton)
			}
			set.By = s.who.Pusher()
			made, err := s.b.Projects.Create(s.ctx, name, set)
			if err := s.audited(audit.Entry{Action: "project create", Project: string(name), Object: join(set.Env, set.Skeleton)}, err); err != nil {
				return err
			}
			if s.json && set.Skeleton == "" {
				d, err := s.b.Status.Project(s.ctx, name)
				if err != nil {
					return err
				}
				return s.document(status.ProjectDocument{Version: status.Version, Project: d})
			}
			p := s.printer()
			if s.json {
				p = &printer{w: s.err}
			}
			switch {
			case made.New:
				p.line("created %s", name)
			case len(made.Changed) > 0:
				p.line("%s already exists; changed: %s", name, strings.Join(made.Changed, ", "))
			case len(made.Repos) > 0:
				p.line("%s already exists; created %s again", name, humanize.Plural(len(made.Repos), "repository", "repositories"))
			default:
				p.line("%s already exists", name)
			}
			if len(made.Linked) > 0 {
				p.line("  %s", strings.Join(made.Linked, ", "))
			}
			if set.Skeleton != "" {
				return s.begin(p, name, set.Skeleton)
			}
			s.howToPush(p, name, made.Project.RemoteLess)
			return p.err
		},
	}
	c.Flags().StringVar(&set.Skeleton, "skeleton", "", "start with this skeleton, deployed immediately")
	c.Flags().StringVar(&set.Env, "env", "", "environment: dev, staging, prod, or a name in the server's configuration (default: set by the project)")
	c.Flags().BoolVar(&set.RemoteLess, "remote-less", false, "no repositories: deployed by hand from the working copy")
	return s.jsonFlag(c)
}

// begin deploys the first commits of a project.
func (s *session) begin(p *printer, name project.Name, skeleton string) error {
	if p.err != nil {
		return p.err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	runs, err := s.b.Begin(s.ctx, name, skeleton, s.who.Pusher())
	if err != nil {
		return err
	}
	for i, d := range runs {
		p.line("%s.git begins with %s", d.Repo, d.Change.New.Short())
		of := *s
		if s.json && i < len(runs)-1 { // one document: that of the code's deployment
			of.json, of.out = false, s.err
		}
		if err := of.deploy("project create", d, false); err != nil {
			return err
		}
	}
	r := s.b.Status.Remotes(name)
	p.line("  git clone -o prod %s %s", r.Project, name)
	p.line("  git clone -o prod %s %s-pillar", r.Pillar, name)
	return p.err
}

// howToPush prints the remotes, ready to copy.
func (s *session) howToPush(p *printer, name project.Name, remoteLess bool) {
	if remoteLess {
		p.line("  put the code into its folder project/, then:  corpus-git deploy %s", name)
		return
	}
	r := s.b.Status.Remotes(name)
	p.line("  git remote add prod %s", r.Project)
	p.line("  git remote add pillar %s", r.Pillar)
	p.line("  git push prod HEAD:master")
}

func projectList(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "list", Short: "List the projects", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			mine, _, err := s.visible()
			if err != nil {
				return err
			}
			doc := status.Projects{Version: status.Version}
			if doc.Projects, err = s.b.Status.Describe(s.ctx, mine); err != nil {
				return err
			}
			if s.json {
				return s.document(doc)
			}
			p := s.printer()
			if len(doc.Projects) == 0 {
				p.line("no projects yet; create one with  corpus-git project create NAME")
				return p.err
			}
			t := table{heads: []string{"PROJECT", "ENV", "LIVE", "PILLAR", "BRANCH", "LAST", "WHEN", "NOW"}, flexible: []int{0, 4, 7}}
			for _, d := range doc.Projects {
				last, when := cell{text: "-"}, "-"
				if d.Last != nil {
					last, when = painted(stateColour(d.Last.State), string(d.Last.State)), s.when(ended(*d.Last))
				}
				t.add(painted(bold, string(d.Name)), plain(cmp.Or(d.Env, "configured")), plain(commit(d.Code)), plain(commit(d.Pillar)),
					plain(orNone(d.Branch)), last, plain(when), plain(activityOf(d)))
			}
			t.print(p, s.who.Term)
			return p.err
		},
	})
}

func commit(c project.Commit) string {
	if c == "" {
		return "-"
	}
	return c.Short()
}

// activityOf returns what is being done in a project, in a word.
func activityOf(d status.Project) string {
	switch {
	case d.Missing:
		return "folder missing"
	case d.Problem != "":
		return d.Problem
	case d.Running != nil && d.Waiting > 0:
		return join("deploying,", d.Waiting, "waiting")
	case d.Running != nil:
		return "deploying"
	case d.RemoteLess:
		return "remote-less"
	}
	return ""
}

func projectShow(s *session) *cobra.Command {
	return s.listFlags(&cobra.Command{
		Use: "show NAME", Short: "Show one project", Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("project show", args[0], project.Read)
			if err != nil {
				return err
			}
			d, err := s.b.Status.Project(s.ctx, name)
			if err != nil {
				return err
			}
			if s.json {
				return s.document(status.ProjectDocument{Version: status.Version, Project: d})
			}
			p := s.printer()
			s.projectHead(p, d)
			return p.err
		},
	})
}

// projectHead is the first lines of show and report.
func (s *session) projectHead(p *printer, d status.Project) {
	env := d.Env
	if env == "" {
		env = "environment as configured"
	}
	p.line("%s  %s", s.who.Term.paint(bold, string(d.Name)), join(env+",", "made", s.when(d.Created)))
	if d.Missing {
		p.line("  %s", s.who.Term.paint(red, "its folder missing: restore it, or destroy the project"))
	}
	if d.Problem != "" {
		p.line("  %s", s.who.Term.paint(red, d.Problem))
	}
	switch {
	case d.Code != "":
		p.line("  live      %s on %s, pillar %s", d.Code.Short(), orNone(d.Branch), d.Pillar.Short())
	case d.RemoteLess:
		p.line("  live      deployed by hand (remote-less)")
	default:
		p.line("  live      nothing yet")
	}
	if text := d.Converge.Text(); text != "" {
		p.line("  converge  %s", text)
	}
	if d.Last != nil {
		p.line("  last      %s", s.recordLine(*d.Last))
	}
	if d.Running != nil {
		where := orNone(d.Running.Procedure)
		if d.Running.Step != "" {
			where = d.Running.Step
		}
		if d.Running.Waits != "" {
			where += ", waiting for " + d.Running.Waits
		}
		p.line("  now       deployment %s by %s, %s, in %s; %s", d.Running.ID.Short(), d.Running.Pusher.Key,
			humanize.Rough(s.b.Now().Sub(d.Running.At)), where, humanize.Plural(d.Waiting, "waits", "wait"))
	}
	if d.Skeleton != "" {
		p.line("  skeleton  %s", d.Skeleton)
	}
	if !d.Linked {
		p.line("  links     none in Salt's trees (corpus-git project link %s)", d.Name)
	}
	if d.Remotes != nil {
		p.line("  project   %s", d.Remotes.Project)
		p.line("  pillar    %s", d.Remotes.Pillar)
	}
}

func projectDestroy(s *session) *cobra.Command {
	var yes, data, outside bool
	c := &cobra.Command{
		Use: "destroy NAME", Short: "Delete a project: repositories, working copy, archives",
		Long: "Undeploys the project (corpus-git undeploy), unless --keep-outside is given, and deletes its folder; data/ is kept unless --data is given.\nRefused while a deployment is running or waiting. All permissions on the project are removed.",
		Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := project.ParseName(args[0])
			if err != nil {
				return err
			}
			if err := s.admin("project destroy", string(name)); err != nil {
				return err
			}
			if !yes {
				return fault.New(fault.Refused, "project destroy", "%s would be deleted: repositories, working copy, archives%s", name,
					map[bool]string{true: ", and its data", false: " (its data stays)"}[data]).
					WithHint("confirm with --yes:  corpus-git project destroy %s --yes%s", name, map[bool]string{true: " --data"}[data])
			}
			if err := s.prepare(); err != nil {
				return err
			}
			if !outside {
				if err := s.undeployFirst(name); err != nil {
					return err
				}
			}
			gone, err := s.b.Projects.Destroy(s.ctx, name, data)
			if err == nil {
				err = s.b.Access.RevokeAll(s.ctx, s.who.Identity, name)
			}
			if err := s.audited(audit.Entry{Action: "project destroy", Project: string(name), Object: map[bool]string{true: "with data"}[data]}, err); err != nil {
				return err
			}
			p := s.printer()
			p.line("destroyed %s", name)
			if len(gone.Unlinked) > 0 {
				p.line("  %s", strings.Join(gone.Unlinked, ", "))
			}
			if gone.Kept != "" {
				p.line("  its data stays in %s", gone.Kept)
			}
			if s.b.Discard != nil {
				s.b.Discard(s.ctx)
			}
			return p.err
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	c.Flags().BoolVar(&data, "data", false, "delete data/ too")
	c.Flags().BoolVar(&outside, "keep-outside", false, "do not undeploy: keep services and files outside of the project's folder")
	return c
}

// undeployFirst undeploys a project that is about to be destroyed, where something of it is live. One that is half destroyed is not there any more.
func (s *session) undeployFirst(name project.Name) error {
	p, err := s.b.Status.Project(s.ctx, name)
	if fault.KindOf(err) == fault.Refused || err == nil && (p.Missing || p.Code == "") {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.deploy("undeploy", project.Deployment{Project: name, Trigger: project.TriggerUndeploy}, false)
	if err != nil {
		pr := &printer{w: s.err}
		pr.line("%s was not destroyed:  corpus-git project destroy %s --yes --keep-outside  skips undeploying", name, name)
	}
	return err
}

func projectLink(s *session, link bool) *cobra.Command {
	verb, short := "link", "Link a project into Salt's file and pillar trees"
	if !link {
		verb, short = "unlink", "Remove a project's links from Salt's trees"
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.project("project "+verb, args[0], project.Admin)
			if err != nil {
				return err
			}
			do := s.b.Projects.Link
			if !link {
				do = s.b.Projects.Unlink
			}
			changed, err := do(s.ctx, name)
			if err := s.audited(audit.Entry{Action: "project " + verb, Project: string(name)}, err); err != nil {
				return err
			}
			p := s.printer()
			if changed {
				p.line("%sed %s", verb, name)
			} else {
				p.line("%s is already %sed", name, verb)
			}
			return p.err
		},
	}
}
