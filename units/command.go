package units

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/project"
)

// line runs a command line of the project's.
func (r *Runner) line(ctx context.Context, u project.Unit, line string) (status int, output string, err error) {
	user := u.User
	if user == "" {
		user = r.User
	}
	c, err := r.Command(user, line, nil)
	if err != nil {
		return 0, "", err
	}
	out := &execx.Tail{Max: maxOutput}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(nil), out, out
	st, err := r.Exec.Run(ctx, c)
	return st.Exit, strings.TrimSpace(out.String()), err
}

// showCommand asks a unit's own command: it succeeds while the unit runs, and its last line has details.
func (r *Runner) showCommand(ctx context.Context, u project.Unit, s *project.UnitState) error {
	if u.Status == "" {
		s.Detail = "no command tells"
		return nil
	}
	status, out, err := r.line(ctx, u, u.Status)
	if err != nil {
		return err
	}
	s.State, s.Detail = project.UnitActive, out[strings.LastIndexByte(out, '\n')+1:]
	if status != 0 {
		s.State = project.UnitInactive
		if s.Detail == "" {
			s.Detail = "exit status " + strconv.Itoa(status)
		}
	}
	return nil
}

// actCommand runs the command of an action; a unit without one to restart it is stopped and started.
func (r *Runner) actCommand(ctx context.Context, a project.UnitAction, u project.Unit, say func(string, ...string)) error {
	lines := []string{u.Command(a)}
	if lines[0] == "" {
		lines = []string{u.Stop, u.Start}
	}
	for _, line := range lines {
		status, out, err := r.line(ctx, u, line)
		if err != nil {
			return err
		}
		if status != 0 {
			say(strings.TrimSpace(out+"\nexit status "+strconv.Itoa(status)), u.Name)
		}
	}
	return nil
}
