package units

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// systemdNames returns the units that a name or glob matches, loaded or not. A name without wildcards matches itself.
func (r *Runner) systemdNames(ctx context.Context, pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	names := map[string]bool{}
	for _, verb := range [][]string{{"list-units", "--all"}, {"list-unit-files"}} {
		argv := slices.Concat([]string{"systemctl"}, verb, []string{"--plain", "--no-legend", "--no-pager", "--full", "--", pattern})
		_, out, says, err := r.run(ctx, argv...)
		if err != nil {
			return nil, err
		}
		if says != "" && out == "" {
			return nil, fault.New(fault.Failed, "systemctl "+verb[0], "%s", says)
		}
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			// NAME@.service is a template, not a unit (systemd.unit(5)).
			if len(f) > 1 && !strings.Contains(f[0], "@.") && f[1] != "masked" && f[1] != "not-found" && f[1] != "alias" {
				names[f[0]] = true
			}
		}
	}
	return matching(names, pattern), nil
}

// showSystemd fills in the states of those units at the indexes ours.
func (r *Runner) showSystemd(ctx context.Context, all []project.UnitState, ours []int) error {
	if len(ours) == 0 {
		return nil
	}
	argv := []string{"systemctl", "show", "--no-pager", "--property=Id,LoadState,ActiveState,SubState,Result,MainPID,NRestarts,StateChangeTimestampMonotonic", "--"}
	for _, i := range ours {
		argv = append(argv, all[i].Unit)
	}
	status, out, says, err := r.run(ctx, argv...)
	if err != nil {
		return err
	}
	blocks := strings.Split(strings.Trim(out, "\n"), "\n\n")
	if status != 0 || len(blocks) != len(ours) {
		if says == "" {
			says = "exit status " + strconv.Itoa(status)
		}
		return fault.New(fault.Failed, "systemctl show", "%s", says)
	}
	for n, i := range ours { // they are in the order in which they were requested
		r.systemdState(&all[i], blocks[n])
	}
	return nil
}

// systemdState reads what systemctl show printed of one unit: KEY=VALUE on each line.
func (r *Runner) systemdState(u *project.UnitState, block string) {
	v := map[string]string{}
	for line := range strings.Lines(block) {
		k, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		v[k] = value
	}
	if v["LoadState"] == "" || v["ActiveState"] == "" || v["LoadState"] == "not-found" && v["ActiveState"] == project.UnitInactive {
		u.State, u.Detail = project.UnitUnknown, "there is none"
		return
	}
	u.State, u.Detail = v["ActiveState"], v["SubState"]
	if u.State == project.UnitFailed && v["Result"] != "" && v["Result"] != "success" {
		u.Detail = v["Result"]
	}
	if u.Detail == "dead" || v["LoadState"] == "masked" {
		u.Detail = map[bool]string{true: "masked"}[v["LoadState"] == "masked"]
	}
	u.PID, _ = strconv.Atoi(v["MainPID"])
	u.Restarts, _ = strconv.Atoi(v["NRestarts"])
	// Microseconds since the machine started; 0 if the unit has been in this state since then. A time in the future is ignored.
	up := r.Uptime()
	if at, err := strconv.ParseInt(v["StateChangeTimestampMonotonic"], 10, 64); err == nil && at > 0 && at <= up.Microseconds() {
		u.Since = r.Now().Add(time.Duration(at)*time.Microsecond - up).Truncate(time.Second)
	}
}

// actSystemd makes systemd act on all units of its kind at once, and waits for its jobs.
func (r *Runner) actSystemd(ctx context.Context, a project.UnitAction, all []found, say func(string, ...string)) error {
	argv := []string{"systemctl", string(a), "--no-pager", "--no-ask-password", "--"}
	head := len(argv)
	for _, f := range all {
		if f.entry.Kind == project.UnitSystemd && f.name != "" {
			argv = append(argv, f.name)
		}
	}
	if len(argv) == head {
		return nil
	}
	status, _, says, err := r.run(ctx, argv...)
	if err != nil {
		return err
	}
	if status == 0 {
		return nil
	}
	// systemd's message says which one failed, and their states show it.
	if len(argv) == head+1 {
		say(says, argv[head])
	} else {
		say(says)
		for _, name := range argv[head:] {
			if strings.Contains(says, name) {
				say("", name)
			}
		}
	}
	return nil
}
