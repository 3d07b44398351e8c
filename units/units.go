package units

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/sleep"
	"corpus-git/project"
)

// Runner acts on the units of one project.
type Runner struct {
	// Exec runs the result of Command. Command returns argv, or a line for /bin/sh if argv is empty, as a user, "" for the server's own, in
	// the environment of the project's commands.
	Exec    execx.Commander
	Command func(user, line string, argv []string) (execx.Cmd, error)
	// Units are those of the project, and User is who runs the commands of units that name no user.
	Units []project.Unit
	User  string
	// Now is the clock, Uptime the time since the machine started (CLOCK_MONOTONIC).
	Now    func() time.Time
	Uptime func() time.Duration
	// Settle is the time after which a started unit is checked again: one that ends at once counts as failed. Timeout limits the wait for
	// one that is still starting.
	Settle, Timeout time.Duration
}

// maxOutput is how much is kept of what a command prints, in bytes.
const maxOutput = 1 << 20

// found is a unit that an entry refers to.
type found struct {
	entry project.Unit
	name  string // its own
}

// List returns the units that only selects, all if it is empty, in the order of the configuration. An entry without units is listed itself,
// in the state unknown. The error is a *fault.Error if only names something that the project does not have, or if systemd or supervisord can't
// be queried.
func (r *Runner) List(ctx context.Context, only []string) ([]project.UnitState, error) {
	all, err := r.find(ctx, only)
	if err != nil {
		return nil, err
	}
	return r.states(ctx, all)
}

// find resolves the entries to units, and selects.
func (r *Runner) find(ctx context.Context, only []string) ([]found, error) {
	var all []found
	var names map[string]bool // of supervisord's programs
	seen := map[string]bool{}
	for _, u := range r.Units {
		list := []string{u.Name}
		var err error
		switch u.Kind {
		case project.UnitSystemd:
			list, err = r.systemdNames(ctx, u.Pattern)
		case project.UnitSupervisor:
			if names == nil {
				names, err = r.programs(ctx)
			}
			list = matching(names, u.Pattern)
		}
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			list = []string{""}
		}
		for _, name := range list {
			if key := string(u.Kind) + " " + name; name == "" || !seen[key] { // two globs may match one unit
				seen[key] = true
				all = append(all, found{u, name})
			}
		}
	}
	if len(only) == 0 {
		return all, nil
	}
	var out []found
	for _, want := range only {
		n := len(out)
		for _, f := range all {
			if f.is(want) && !slices.ContainsFunc(out, func(o found) bool { return o.entry.Name == f.entry.Name && o.name == f.name }) {
				out = append(out, f)
			}
		}
		if n == len(out) && !slices.ContainsFunc(out, func(o found) bool { return o.is(want) }) {
			return nil, unknownUnit(want, all)
		}
	}
	return out, nil
}

// is reports whether want means this unit: its name, with or without its type, its group, or its entry's name.
func (f found) is(want string) bool {
	if want == f.entry.Name || f.name != "" && want == f.name {
		return true
	}
	switch f.entry.Kind {
	case project.UnitSystemd:
		return f.name != "" && project.FullUnitName(want) == f.name
	case project.UnitSupervisor:
		group, _, ok := strings.Cut(f.name, ":")
		return ok && want == group
	}
	return false
}

func unknownUnit(want string, all []found) error {
	var names []string
	for _, f := range all {
		name := f.name
		if name == "" {
			name = f.entry.Name
		}
		names = append(names, name)
	}
	err := fault.New(fault.Usage, "", "the project has no unit %q", want)
	if len(names) == 0 {
		return err.WithHint("the key  units  of its configuration names what it runs")
	}
	return err.WithHint("it has: %s", strings.Join(names, ", "))
}

// matching returns the names that a glob matches, in order.
func matching(names map[string]bool, glob string) (out []string) {
	for name := range names {
		if ok, err := path.Match(glob, name); err == nil && ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// states reads the state of each.
func (r *Runner) states(ctx context.Context, all []found) ([]project.UnitState, error) {
	out := make([]project.UnitState, len(all))
	var ours []int // of systemd
	for i, f := range all {
		out[i] = project.UnitState{Unit: f.name, Entry: f.entry.Name, Kind: f.entry.Kind, State: project.UnitUnknown}
		if f.name == "" {
			out[i].Unit, out[i].Detail = f.entry.Pattern, "there is none"
			continue
		}
		if f.entry.Kind == project.UnitSystemd {
			ours = append(ours, i)
		}
	}
	if err := r.showSystemd(ctx, out, ours); err != nil {
		return nil, err
	}
	if err := r.showPrograms(ctx, out); err != nil {
		return nil, err
	}
	for i, f := range all {
		if f.entry.Kind == project.UnitCommand {
			if err := r.showCommand(ctx, f.entry, &out[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// run runs a program of the machine, as the server's user, and returns both of its streams.
func (r *Runner) run(ctx context.Context, argv ...string) (status int, stdout, stderr string, err error) {
	c, err := r.Command("", "", argv)
	if err != nil {
		return 0, "", "", err
	}
	out, serr := &execx.Tail{Max: maxOutput}, &execx.Tail{Max: 16 << 10}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(nil), out, serr
	st, err := r.Exec.Run(ctx, c)
	if errors.Is(err, exec.ErrNotFound) {
		return 0, "", "", fault.New(fault.Refused, argv[0], "it is not installed here").WithHint("the key  units  of the configuration names units that need it")
	}
	return st.Exit, out.String(), strings.TrimSpace(serr.String()), err
}

// Failure is the error about units that are not in the requested state.
type Failure struct {
	Action project.UnitAction
	// Units are these units, with their last log lines; Messages what systemd, supervisord or the command printed.
	Units    []project.UnitState
	Messages []string
}

// Error names the units.
func (f *Failure) Error() string {
	var names []string
	for _, u := range f.Units {
		names = append(names, fmt.Sprintf("%s is %s", u.Unit, u.State))
	}
	if len(names) == 0 {
		return string(f.Action) + " failed"
	}
	return string(f.Action) + " failed: " + strings.Join(names, ", ")
}

// failureLines is how many log lines of a unit that failed are shown.
const failureLines = 20

// Act starts, stops or restarts the units that only selects, all if it is empty, waits until that is done, and returns their states
// afterwards. If a unit is not in the requested state, the error is of kind fault.Failed and wraps a *Failure; the states are returned
// too.
func (r *Runner) Act(ctx context.Context, a project.UnitAction, only []string) ([]project.UnitState, error) {
	all, err := r.find(ctx, only)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Refused, "", "the project has no units").WithHint("the key  units  of its configuration names what it runs")
	}
	for _, f := range all {
		if f.entry.Kind == project.UnitCommand && f.entry.Command(a) == "" && (a != project.RestartUnit || f.entry.Start == "" || f.entry.Stop == "") {
			return nil, fault.New(fault.Refused, "", "%s has no command to %s it", f.entry.Name, a).WithHint("units: {%s: {%s: COMMAND}}", f.entry.Name, a)
		}
	}
	fail := &Failure{Action: a}
	bad := map[string]bool{}
	say := func(text string, names ...string) {
		for _, n := range names {
			bad[n] = true
		}
		if text != "" {
			fail.Messages = append(fail.Messages, strings.Split(text, "\n")...)
		}
	}
	if err := r.actSystemd(ctx, a, all, say); err != nil {
		return nil, err
	}
	if err := r.actPrograms(ctx, a, all, say); err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.entry.Kind != project.UnitCommand {
			continue
		}
		if err := r.actCommand(ctx, a, f.entry, say); err != nil {
			return nil, err
		}
	}
	states, err := r.settled(ctx, a, all)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		if bad[s.Unit] || s.failedAfter(a) {
			u := s.UnitState
			if u.Log, err = r.lastLines(ctx, u, failureLines); err != nil {
				u.Log = []string{"its log cannot be read: " + err.Error()}
			}
			fail.Units = append(fail.Units, u)
		}
	}
	out := plainStates(states)
	if len(fail.Units) > 0 || len(bad) > 0 {
		return out, fault.New(fault.Failed, "", "%w", fail)
	}
	return out, nil
}

// after is a state to be compared with the requested one.
type after struct{ project.UnitState }

func plainStates(all []after) []project.UnitState {
	out := make([]project.UnitState, len(all))
	for i, s := range all {
		out[i] = s.UnitState
	}
	return out
}

// failedAfter reports whether an action failed. A unit that is inactive after a start has done its work (systemd.service(5), Type=oneshot);
// unknown states count as success, except for units that do not exist.
func (s after) failedAfter(a project.UnitAction) bool {
	if s.State == project.UnitUnknown && s.Kind != project.UnitCommand {
		return true
	}
	if a == project.StopUnit { // failed counts as stopped
		return s.State != project.UnitInactive && s.State != project.UnitUnknown && s.State != project.UnitFailed
	}
	return s.State == project.UnitFailed || s.State == "activating" || s.Kind != project.UnitSystemd && s.State == project.UnitInactive
}

// pollEvery is the interval at which units in transition are checked.
const pollEvery = 200 * time.Millisecond

// settled waits until no unit is in transition, and after a start checks again after Settle.
func (r *Runner) settled(ctx context.Context, a project.UnitAction, all []found) ([]after, error) {
	moving := func(s project.UnitState) bool {
		return (s.State == "activating" || s.State == "deactivating" || s.State == "reloading") && s.Detail != "auto-restart"
	}
	if a != project.StopUnit {
		if err := sleep.For(ctx, r.Settle); err != nil {
			return nil, err
		}
	}
	end := time.Now().Add(r.Timeout)
	for {
		states, err := r.states(ctx, all)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(states, moving) || !time.Now().Before(end) {
			out := make([]after, len(states))
			for i, s := range states {
				out[i] = after{s}
			}
			return out, nil
		}
		if err := sleep.For(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}
