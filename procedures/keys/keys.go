// Package keys provides the keys of package kv to a project's steps, as cfg.kv.
//
// It owns their place in cfg. It stores nothing: a crash leaves nothing behind.
package keys

import (
	"context"
	"maps"
	"slices"
	"strings"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/kv"
	"corpus-git/project"
)

// Source returns the values that a project with these nodes sees, by key; nil means none.
type Source func(ctx context.Context, name project.Name, nodes ...string) (map[string]string, error)

// Of returns a function that returns the values that a project with these nodes sees.
func (s Source) Of(name project.Name, nodes ...fleet.Member) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		if s == nil {
			return nil, nil
		}
		return s(ctx, name, fleet.Names(nodes)...)
	}
}

// Into sets cfg.kv: the project's own keys without their prefix, and the others by their full names.
func (s Source) Into(ctx context.Context, name project.Name, nodes []fleet.Member, cfg *py.Dict) error {
	all, err := s.Of(name, nodes...)(ctx)
	if err != nil {
		return err
	}
	own, out := kv.Projects+string(name)+"/", py.NewDict()
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k == kv.Nodes {
			continue // it says why there are no facts
		}
		out.SetStr(strings.TrimPrefix(k, own), all[k])
	}
	cfg.SetStr("kv", out)
	return nil
}

// Readable refuses, as fault.Refused, a key that a project with these nodes cannot read, however it is set.
func (s Source) Readable(name project.Name, nodes []fleet.Member, key string) error {
	owner := kv.Owner(key)
	if owner != "" && owner == name || owner == "" && (strings.HasPrefix(key, kv.Shared) || strings.HasPrefix(key, kv.Services)) ||
		slices.ContainsFunc(nodes, func(n fleet.Member) bool { return strings.HasPrefix(key, kv.Nodes+n.Name+"/") }) {
		return nil
	}
	return fault.New(fault.Refused, "", "%s cannot read the key %s", name, key).WithHint("it can read keys below  %s%s/ , %s and %s, and the facts of its nodes", kv.Projects, name, kv.Shared, kv.Services)
}

// Unmet returns what is missing for a key that is waited for, "" if it exists and, if is is not "", has the value is. A key that the
// project can't see is fault.Refused.
func (s Source) Unmet(ctx context.Context, name project.Name, nodes []fleet.Member, key, is string) (string, error) {
	if err := s.Readable(name, nodes, key); err != nil {
		return "", err
	}
	all, err := s.Of(name, nodes...)(ctx)
	v, ok := all[key]
	if why := kv.Hidden(all, key); err == nil && why != "" {
		err = fault.New(fault.Refused, "", "%s", why)
	}
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "it is not set", nil
	case is != "" && v != is:
		return "it has another value", nil
	}
	return "", nil
}

// Setter sets cfg.kv to what the project sees when it is called. An error while reading now is returned; after a later error cfg.kv is not
// set, and a template that reads it fails.
func (s Source) Setter(ctx context.Context, name project.Name, nodes []fleet.Member) (func(cfg *py.Dict), error) {
	ctx = context.WithoutCancel(ctx)
	return func(cfg *py.Dict) { _ = s.Into(ctx, name, nodes, cfg) }, s.Into(ctx, name, nodes, py.NewDict())
}
