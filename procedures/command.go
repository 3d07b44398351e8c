package procedures

import (
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/internal/execx"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// ProjectUser returns the user of a project's own commands: the project's user if the server creates users and this one exists, otherwise "", which means
// the server's.
func (t *Tools) ProjectUser(p *Prepared) string {
	if !t.ownsFiles() {
		return ""
	}
	if _, err := t.Host.Users.User(p.Cfg.User()); err != nil {
		return ""
	}
	return p.Cfg.User()
}

// ownsFiles reports whether this server manages users and ownership.
func (t *Tools) ownsFiles() bool { return t.Accounts && t.Host.EUID == 0 }

// Command returns a command of a project outside its steps, without its streams, in the environment of steps: the clean one, the key env, CORPUS_*, with
// point as CORPUS_POINT. s has the command and the user; if it names no folder, the command runs in the live tree.
func (t *Tools) Command(p *Prepared, d project.Deployment, point string, s host.Shell) (execx.Cmd, error) {
	at := t.Root.Project(d.Project.String())
	if s.Dir == "" {
		s.Dir = at.Live()
	}
	s.Env = p.environ(hooks.Describe(d, at, p.Environment(), hooks.Point(point)))
	return t.Host.Command(s)
}

// environ returns what a project's commands have in their environment in addition to the clean one.
func (p *Prepared) environ(told hooks.Description) map[string]string {
	out := map[string]string{}
	for _, kv := range slices.Concat(p.Cfg.Environ(), told.Env()) {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}
