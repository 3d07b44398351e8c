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
	"corpus-git/project"
)

// Runner acts on the units of one project.
type Runner struct {
	// Exec runs what Command makes. Command is argv, or a line for /bin/sh where there is none, as a user, "" for the server's own, in
	// the environment of the project's commands.
	Exec    execx.Commander
	Command func(user, line string, argv []string) (execx.Cmd, error)
	// Units are those of the project, and User who runs the commands of those that name nobody.
	Units []project.Unit
	User  string
	// Now is the clock, Uptime the time since the machine started (CLOCK_MONOTONIC).
	Now    func() time.Time
	Uptime func() time.Duration
	// Settle is how long after a start a unit is looked at again: one that ends at once has not started. Patience bounds the wait for one
	// that is still starting.
	Settle, Patience time.Duration
}

// maxOutput is how much is kept of what a command prints, in bytes.
const maxOutput = 1 << 20

// found is a unit that an entry means.
type found struct {
	entry project.Unit
	name  string // of its own
}

// List gives the units that only selects, all for none, in the order of the configuration. An entry of which nothing is
// found is one of its own, in the state unknown. The error is a *fault.Error where only names what the project does not have,
// or where systemd or supervisord cannot be asked.
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
			if key := string(u.Kind) + " " + name; name == "" || !seen[key] { // two globs may mean one unit
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

// is reports whether a person who types want means this unit: its name, with or without its type, its group, or its entry's name.
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

// matching are the names that a glob matches, in order.
func matching(names map[string]bool, glob string) (out []string) {
	for name := range names {
		if ok, err := path.Match(glob, name); err == nil && ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// states asks for the state of each.
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

// run runs a program of the machine, as the server's user, and gives both of its streams.
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

// Failure is the error of units that are not in the state that was asked for.
type Failure struct {
	Action project.UnitAction
	// Units are they, with their last log lines; Messages what systemd, supervisord or the command said.
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

// Act starts, stops or restarts the units that only selects, all for none, waits until that is done, and gives their states
// after it. Where a unit is not in the state that was asked for the error wraps a *Failure, and is of kind fault.Failed; the
// states are given all the same.
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
		if bad[s.Unit] || s.wrongAfter(a) {
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

// after is a state that is held against what was asked for.
type after struct{ project.UnitState }

func plainStates(all []after) []project.UnitState {
	out := make([]project.UnitState, len(all))
	for i, s := range all {
		out[i] = s.UnitState
	}
	return out
}

// wrongAfter reports whether an action did not lead where it should. A unit that is inactive after a start has done its work
// (systemd.service(5), Type=oneshot); a state that nobody knows is believed to be right, but for units that do not exist.
func (s after) wrongAfter(a project.UnitAction) bool {
	if s.State == project.UnitFailed || s.State == project.UnitUnknown && s.Kind != project.UnitCommand {
		return true
	}
	if a == project.StopUnit {
		return s.State != project.UnitInactive && s.State != project.UnitUnknown
	}
	return s.State == "activating" || s.Kind != project.UnitSystemd && s.State == project.UnitInactive
}

// pollEvery is how far apart units are looked at that are still on their way.
const pollEvery = 200 * time.Millisecond

// settled waits until no unit is on its way, and after a start looks again when Settle has passed.
func (r *Runner) settled(ctx context.Context, a project.UnitAction, all []found) ([]after, error) {
	moving := func(s project.UnitState) bool {
		return (s.State == "activating" || s.State == "deactivating" || s.State == "reloading") && s.Detail != "auto-restart"
	}
	if a != project.StopUnit {
		if err := pause(ctx, r.Settle); err != nil {
			return nil, err
		}
	}
	end := time.Now().Add(r.Patience)
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
		if err := pause(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
