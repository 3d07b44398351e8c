package units

import (
	"context"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// status gets the status of all programs of supervisord: "NAME  STATE  pid 4711, uptime 1 day, 0:01:02" on each line. The exit status is
// not 0 if one of them does not run, so an error is recognised by the absence of such a line.
func (r *Runner) status(ctx context.Context) (map[string][]string, error) {
	status, out, says, err := r.run(ctx, "supervisorctl", "status")
	if err != nil {
		return nil, err
	}
	all := programLines(out)
	if len(all) == 0 && status != 0 {
		return nil, fault.New(fault.Failed, "supervisorctl status", "%s", strings.TrimSpace(out+says))
	}
	return all, nil
}

// programLines returns the words after each program's name in what supervisorctl status prints: its state, and the details.
func programLines(out string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) > 1 && programStates()[f[1]] != "" {
			all[f[0]] = f[1:]
		}
	}
	return all
}

// programStates returns the states of supervisord's programs as systemd calls them.
func programStates() map[string]string {
	return map[string]string{
		"RUNNING": project.UnitActive, "STARTING": "activating", "BACKOFF": "activating", "STOPPING": "deactivating",
		"STOPPED": project.UnitInactive, "EXITED": project.UnitInactive, "FATAL": project.UnitFailed, "UNKNOWN": project.UnitUnknown,
	}
}

// programs returns the names of supervisord's programs.
func (r *Runner) programs(ctx context.Context) (map[string]bool, error) {
	all, err := r.status(ctx)
	names := map[string]bool{}
	for name := range all {
		names[name] = true
	}
	return names, err
}

// showPrograms fills in the states of supervisord's programs.
func (r *Runner) showPrograms(ctx context.Context, all []project.UnitState) error {
	var known map[string][]string
	for i := range all {
		u := &all[i]
		if u.Kind != project.UnitSupervisor {
			continue
		}
		if known == nil {
			var err error
			if known, err = r.status(ctx); err != nil {
				return err
			}
		}
		f := known[u.Unit]
		if f == nil {
			continue
		}
		r.programState(u, f)
	}
	return nil
}

// programState reads what programLines returns for one program.
func (r *Runner) programState(u *project.UnitState, f []string) {
	u.State, u.Detail = programStates()[f[0]], strings.Join(f[1:], " ")
	if f[0] == "BACKOFF" {
		u.Detail = "auto-restart"
	}
	r.uptime(u)
}

// uptime reads "pid 4711, uptime 2 days, 1:02:03".
func (r *Runner) uptime(u *project.UnitState) {
	rest, ok := strings.CutPrefix(u.Detail, "pid ")
	pid, up, ok2 := strings.Cut(rest, ", uptime ")
	n, err := strconv.Atoi(pid)
	if !ok || !ok2 || err != nil {
		return
	}
	u.PID, u.Detail = n, "running"
	var d time.Duration
	if days, clock, ok := strings.Cut(up, ", "); ok {
		count, _, _ := strings.Cut(days, " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > maxDays {
			return
		}
		d, up = time.Duration(n)*24*time.Hour, clock
	}
	part := strings.Split(up, ":")
	if len(part) != 3 {
		return
	}
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, err := strconv.Atoi(part[i])
		if err != nil || n < 0 || n > 60 {
			return
		}
		d += time.Duration(n) * unit
	}
	u.Since = r.Now().Add(-d).Truncate(time.Second)
}

// maxDays is the longest uptime in days that is accepted as valid.
const maxDays = 100 * 366

// actPrograms makes supervisord act on its programs and waits for the end. Their states show the results.
func (r *Runner) actPrograms(ctx context.Context, a project.UnitAction, all []found, say func(string, ...string)) error {
	argv := []string{"supervisorctl", string(a)}
	for _, f := range all {
		if f.entry.Kind == project.UnitSupervisor && f.name != "" {
			argv = append(argv, f.name)
		}
	}
	if len(argv) == 2 {
		return nil
	}
	_, out, says, err := r.run(ctx, argv...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ERROR") && !strings.Contains(line, "already started") && !strings.Contains(line, "not running") {
			name, _, _ := strings.Cut(line, ": ERROR")
			say(strings.TrimSpace(line), name)
		}
	}
	say(says)
	return nil
}
