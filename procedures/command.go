package procedures

import (
	"slices"
	"strings"

	"corpus-git/hooks"
	"corpus-git/internal/execx"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// ProjectUser is who a project's own commands run as: its user where the server gives projects users and this one has been made, else "",
// which is the server's.
func (t *Tools) ProjectUser(p *Prepared) string {
	if !t.ownsFiles() {
		return ""
	}
	if _, err := t.Host.Users.User(p.Cfg.User()); err != nil {
		return ""
	}
	return p.Cfg.User()
}

// ownsFiles reports whether users and ownership are ours to change.
func (t *Tools) ownsFiles() bool { return t.Accounts && t.Host.EUID == 0 }

// Command is a command of a project's outside of its steps, without its streams, in the environment that steps have: the clean one, the
// key env, CORPUS_*, with point as CORPUS_POINT. s says what and as whom; where it names no folder, it runs in the live tree.
func (t *Tools) Command(p *Prepared, d project.Deployment, point string, s host.Shell) (execx.Cmd, error) {
	at := t.Root.Project(d.Project.String())
	if s.Dir == "" {
		s.Dir = at.Live()
	}
	s.Env = p.environ(describe(d, at, p.Environment(), hooks.Point(point)))
	return t.Host.Command(s)
}

// environ is what the environment of a project's commands has beside the clean one.
func (p *Prepared) environ(told hooks.Description) map[string]string {
	out := map[string]string{}
	for _, kv := range slices.Concat(p.Cfg.Environ(), told.Env()) {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}
