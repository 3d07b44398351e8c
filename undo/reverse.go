package undo

import (
	"context"
	"slices"
)

// Reverse is Undo of a deployment that went live, all of whose changes reached the disk: a restart of the machine explains no difference.
// It does not record that the log was processed; calling it again changes nothing. into, which may be nil, is called with each path before it
// is changed: undoing what that records makes the paths again what the deployment left.
func Reverse(ctx context.Context, m Machine, dir string, into *Log) (Report, error) {
	u, list, err := open(m, dir)
	if err != nil {
		return Report{}, err
	}
	u.cut, u.into = false, into
	for _, c := range list {
		if c.last() {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return u.report, err
		}
		u.change(ctx, c)
	}
	return u.report, into.After(ctx)
}

// Reversible reports whether a log holds a change that can be undone.
func Reversible(m Machine, dir string) (bool, error) {
	_, list, err := open(m, dir)
	return slices.ContainsFunc(list, func(c *change) bool { return c.Kind != kindManual && !c.last() }), err
}

// Last runs the last actions of logs, each once, in the order in which they were first recorded. Errors are those of Undo.
func Last(ctx context.Context, m Machine, dirs ...string) (Report, error) {
	var all Report
	seen := map[[2]string]bool{}
	for _, dir := range dirs {
		u, list, err := open(m, dir)
		if err != nil {
			return all, err
		}
		slices.Reverse(list)
		for _, c := range list {
			if !c.last() || seen[[2]string{c.Action.Noun, c.Action.Name}] {
				continue
			}
			seen[[2]string{c.Action.Noun, c.Action.Name}] = true
			if err := context.Cause(ctx); err != nil {
				return all, err
			}
			u.action(ctx, c)
		}
		all.Undone, all.Failed = append(all.Undone, u.report.Undone...), append(all.Failed, u.report.Failed...)
	}
	return all, nil
}

// HasLast reports whether a log has last actions.
func HasLast(m Machine, dir string) (bool, error) {
	_, list, err := open(m, dir)
	return slices.ContainsFunc(list, (*change).last), err
}
