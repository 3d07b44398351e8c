package extends

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// Source reads the recipes of projects.
type Source interface {
	// Resolve returns the current commit of an entry; fault.Refused if there is none.
	Resolve(ctx context.Context, p Parent) (project.Commit, error)
	// Recipe returns the folder .salt of a commit of an entry, nil if it has none. It is valid until ctx ends.
	Recipe(ctx context.Context, p Parent, c project.Commit) (fs.FS, error)
}

// Layer is one recipe below that of the project.
type Layer struct {
	Parent
	Commit project.Commit
	Files  fs.FS
}

// Limits on the recipes that are followed.
const (
	maxDepth  = 16
	maxLayers = 64
)

// Resolve returns the recipes that a project extends, directly (parents) and through them, the strongest first. pinned are commits recorded
// for entries; found are the commits of all entries. Errors name the file that is wrong.
func Resolve(ctx context.Context, own project.Name, parents []Parent, src Source, pinned map[string]project.Commit) (layers []Layer, found map[string]project.Commit, err error) {
	r := resolver{ctx: ctx, src: src, pinned: pinned, found: map[string]project.Commit{}, known: map[string]*Layer{}, orders: map[string][]string{}}
	order, err := r.order(Parent{Name: own}, "", parents, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range order[1:] {
		layers = append(layers, *r.known[id])
	}
	return layers, r.found, nil
}

type resolver struct {
	ctx           context.Context //nolint:containedctx // of one Resolve
	src           Source
	pinned, found map[string]project.Commit
	known         map[string]*Layer // by Parent.ID, like orders
	orders        map[string][]string
}

// order returns the linearization of a recipe, as IDs: itself, then what it extends. path is the way to it, to detect cycles.
func (r *resolver) order(own Parent, of string, parents []Parent, path []string) ([]string, error) {
	refuse := func(format string, args ...any) error {
		at := layout.SaltDir + "/" + File
		if of != "" {
			at = of + ":" + at
		}
		return fault.New(fault.Failed, "read "+at, format, args...).WithPos(fault.Pos{File: at, Line: 1})
	}
	if len(path) > maxDepth || len(r.known) > maxLayers {
		return nil, refuse("recipes extend each other more than %d deep, or there are more than %d", maxDepth, maxLayers)
	}
	path = append(path[:len(path):len(path)], own.ID())
	lists := make([][]string, 0, len(parents)+1)
	var direct []string
	for _, p := range parents {
		id := p.ID()
		if slices.Contains(path, id) {
			return nil, refuse("%s extends itself: %s", id, strings.Join(append(path, id), " → "))
		}
		if own.URL != "" && p.URL == "" {
			return nil, refuse("%s is the name of a project; a recipe from a URL can extend only URLs", id)
		}
		c, err := r.commit(p)
		if err != nil {
			return nil, unread(p, err, refuse)
		}
		if k := r.known[id]; k != nil && k.Commit != c {
			return nil, refuse("%s is extended at both %s and %s; use one revision", p, c.Short(), k.Commit.Short())
		}
		if r.known[id] == nil {
			files, err := r.src.Recipe(r.ctx, p, c)
			if err != nil {
				return nil, unread(p, err, refuse)
			}
			if files == nil {
				return nil, refuse("%s has no folder %s at %s", id, layout.SaltDir, c.Short())
			}
			r.known[id] = &Layer{Parent: p, Commit: c, Files: files}
		}
		if r.orders[id] == nil {
			above, err := Read(r.known[id].Files, id)
			if err != nil {
				return nil, err
			}
			if r.orders[id], err = r.order(p, id, above, path); err != nil {
				return nil, err
			}
		}
		lists, direct = append(lists, r.orders[id]), append(direct, id)
	}
	merged, ok := merge(append(lists, direct))
	if !ok {
		return nil, refuse("the recipes cannot be ordered consistently: %s", strings.Join(direct, ", "))
	}
	return append([]string{own.ID()}, merged...), nil
}

// unread returns the error for an entry that cannot be read: an error in the file, except if trying again may help.
func unread(p Parent, err error, refuse func(string, ...any) error) error {
	if fault.KindOf(err) == fault.Busy {
		return fault.New(fault.Busy, "read the recipe "+p.String(), "%w", err)
	}
	return refuse("%s: %w", p, err)
}

// commit returns the commit of an entry: the pinned one, if the release was deployed before.
func (r *resolver) commit(p Parent) (project.Commit, error) {
	key := p.String()
	c, ok := r.pinned[key]
	if !ok {
		c, ok = r.found[key]
	}
	if !ok {
		var err error
		if c, err = r.src.Resolve(r.ctx, p); err != nil {
			return "", err
		}
	}
	r.found[key] = c
	return c, nil
}

// merge is the merge of C3: it repeatedly takes the first head that is in no other tail. Source: "The Python 2.3 Method Resolution Order",
// python.org.
func merge(lists [][]string) (out []string, ok bool) {
	lists = slices.Clone(lists)
	for {
		lists = slices.DeleteFunc(lists, func(l []string) bool { return len(l) == 0 })
		if len(lists) == 0 {
			return out, true
		}
		i := slices.IndexFunc(lists, func(l []string) bool {
			return !slices.ContainsFunc(lists, func(other []string) bool { return slices.Contains(other[1:], l[0]) })
		})
		if i < 0 {
			return nil, false
		}
		head := lists[i][0]
		out = append(out, head)
		for j := range lists {
			if lists[j][0] == head {
				lists[j] = lists[j][1:]
			}
		}
	}
}
