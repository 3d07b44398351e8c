package verbs

import (
	"slices"
	"strings"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// project resolves a project's name for a verb that needs a right on it.
func (s *session) project(verb, arg string, want project.Right) (project.Name, error) {
	name, err := project.ParseName(arg)
	if err != nil {
		return "", err
	}
	can, err := s.b.Access.Can(s.ctx, s.who.Identity, name, want)
	if err != nil {
		return "", err
	}
	some, err := s.hasAnyRight(name)
	if err != nil {
		return "", err
	}
	admin, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity)
	if err != nil {
		return "", err
	}
	// Who may know nothing of a project costs the same whether it exists or not: how long an answer takes must not tell.
	unknown := func() error {
		err := fault.New(fault.Refused, "", "no project %s, or %s has no permission on it", name, s.who.Name)
		if meant := s.suggestProject(name); meant != "" {
			return err.WithHint("did you mean %s?", meant)
		}
		return err.WithHint("corpus-git project list  shows the projects that you can use")
	}
	if !can && !some && !admin {
		return "", s.audited(audit.Entry{Action: verb, Project: string(name)}, unknown())
	}
	_, err = s.b.Projects.Get(s.ctx, name)
	switch {
	case err == nil && can:
		return name, nil
	case err != nil && fault.KindOf(err) != fault.Refused:
		return "", err
	case admin && err != nil:
		if meant := s.suggestProject(name); meant != "" {
			return "", fault.New(fault.Refused, "", "no project %s", name).WithHint("did you mean %s? To create it:  corpus-git project create %s", meant, name)
		}
		return "", err // the registry's own words: it does not exist
	case err == nil && some:
		err = fault.New(fault.Refused, "", "%s may not use %q on %s: it requires %s permission", s.who.Name, verb, name, want).
			WithHint("an administrator can grant it:  corpus-git access grant %s %s %s", name, s.who.Name, want)
	default:
		err = unknown() // an unknown project and a forbidden one answer alike
	}
	return "", s.audited(audit.Entry{Action: verb, Project: string(name)}, err)
}

// suggestProject returns the project whose name nearly is the given one, of those that the caller may know of; "" if there is none, or where they
// cannot be listed.
func (s *session) suggestProject(name project.Name) string {
	all, _, err := s.visible()
	if err != nil {
		return ""
	}
	var names []string
	for _, p := range all {
		if p.Name != name {
			names = append(names, string(p.Name))
		}
	}
	return nearest.To(string(name), names)
}

// hasAnyRight reports whether the caller may know that a project exists.
func (s *session) hasAnyRight(name project.Name) (bool, error) {
	for _, r := range []project.Right{project.Read, project.Configure} {
		if ok, err := s.b.Access.Can(s.ctx, s.who.Identity, name, r); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// admin refuses everybody who is none.
func (s *session) admin(verb, object string) error {
	ok, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity)
	if err != nil || ok {
		return err
	}
	return s.audited(audit.Entry{Action: verb, Object: object},
		fault.New(fault.Refused, "", "%s requires an administrator, and %s is not one", verb, s.who.Name).
			WithHint("ask an administrator;  corpus-git key add NAME --admin  adds an admin key"))
}

// visible lists the projects that the caller may know of, and tells the caller's rights.
func (s *session) visible() ([]registry.Project, access.Rights, error) {
	return s.allowed(func(r access.Rights, name project.Name) bool {
		return r.Can(name, project.Read) || r.Can(name, project.Configure)
	})
}

// readable lists the projects that the caller may read.
func (s *session) readable() ([]registry.Project, error) {
	all, _, err := s.allowed(func(r access.Rights, name project.Name) bool { return r.Can(name, project.Read) })
	return all, err
}

func (s *session) allowed(may func(access.Rights, project.Name) bool) ([]registry.Project, access.Rights, error) {
	rights, err := s.b.Access.Rights(s.ctx, s.who.Identity)
	if err != nil {
		return nil, rights, err
	}
	all, err := s.b.Projects.List(s.ctx)
	return slices.DeleteFunc(all, func(p registry.Project) bool { return !may(rights, p.Name) }), rights, err
}

// printAccess is what ssh says to who gives no command: who you are, what you may push, where.
func (s *session) printAccess() error {
	admin, err := s.b.Access.IsAdmin(s.ctx, s.who.Identity)
	if err != nil {
		return err
	}
	p := s.printer()
	p.line("Hello %s: this is corpus-git %s on %s.", s.who.Name, s.b.Build.Release, s.b.Host)
	p.line("You logged in with %s%s.", s.who.Fingerprint, map[bool]string{true: ", an admin key"}[admin])
	projects, mine, err := s.visible()
	if err != nil {
		return err
	}
	p.line("")
	if len(projects) == 0 {
		p.line("You have no permissions on any project yet.")
		if admin {
			p.line("%s", event.WithCommands("Create one:  corpus-git project create NAME", s.commands()))
		} else {
			p.line("An administrator can grant you one:  corpus-git access grant PROJECT %s deploy", s.who.Name)
		}
		return p.err
	}
	for _, pr := range projects {
		rights := rightsOn(mine, pr.Name)
		p.line("%s  (%s)", s.who.Term.paint(bold, string(pr.Name)), strings.Join(rights, ", "))
		if pr.RemoteLess {
			p.line("  has no remotes: it is deployed by hand")
			continue
		}
		r := s.b.Status.Remotes(pr.Name)
		if slices.Contains(rights, "deploy") {
			p.line("  git remote add prod %s", r.Project)
		} else if slices.Contains(rights, "read") {
			p.line("  git clone %s", r.Project)
		}
		if slices.Contains(rights, "configure") {
			p.line("  git clone %s pillar-%s", r.Pillar, pr.Name)
		}
	}
	p.line("")
	p.line("To deploy:  git push prod HEAD:master   Other commands:  add  help  to the ssh command")
	return p.err
}

func rightsOn(r access.Rights, name project.Name) (out []string) {
	for _, right := range []project.Right{project.Read, project.Deploy, project.Configure, project.Shell, project.Approve, project.Admin} {
		if r.Can(name, right) {
			out = append(out, string(right))
		}
	}
	return out
}
