package pillar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

// topFile is the name of the top file as an SLS.
const topFile = "top"

// top returns the SLS files that the top file names for this machine, in order.
func (t *tree) top(ctx context.Context) ([]string, error) {
	display := t.data.Root.PillarTop()
	if t.machine == nil {
		return nil, nil
	}
	if _, err := fs.Stat(t.machine, topFile+".sls"); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	doc, err := t.file(ctx, fileroot.File{Root: fileroot.Root{FS: t.machine}, Path: topFile + ".sls", Rel: topFile + ".sls"}, topFile, display, nil)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return fault.New(fault.Refused, "read "+display, format, args...).WithPos(fault.Pos{File: display}).
			WithHint("an administrator has to change that file")
	}
	var names []string
	for _, e := range doc.Items() {
		env := py.Str(e.Key)
		targets, ok := e.Value.(*py.Dict)
		if env == "include" {
			return nil, bad("a top file that includes others is not supported")
		}
		if !ok {
			return nil, bad("the environment %s must be a mapping of targets", env)
		}
		for _, target := range targets.Items() {
			list, ok := target.Value.(*py.List)
			if !ok {
				return nil, bad("a target of the environment %s must have a list of files", env)
			}
			match, err := t.targets(py.Str(target.Key), list)
			switch {
			case err != nil:
				return nil, bad("%s", err)
			case !match:
				continue
			case env != "base":
				return nil, bad("unknown pillar environment %s; only base is supported", env)
			}
			for _, item := range list.Items() {
				switch x := item.(type) {
				case string:
					more, err := t.named(x)
					if err != nil {
						return nil, bad("%s", err)
					}
					for _, m := range more {
						if !slices.Contains(names, m) {
							names = append(names, m)
						}
					}
				case *py.Dict:
					for _, k := range x.Keys() {
						if k != "match" {
							return nil, bad("%s of a target is not supported", py.Str(k))
						}
					}
				default:
					return nil, bad("the list of a target contains something that is not a name")
				}
			}
		}
	}
	return names, nil
}

// named returns the SLS files that a name or a pattern of the top file matches, except those of other projects.
func (t *tree) named(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		if t.foreign(pattern) {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	var out []string
	for _, name := range t.slses.AllSLS() {
		if sls.Glob(pattern, name) && !t.foreign(name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// targets reports whether a target of the top file matches this machine: a glob or a list of IDs, a grain, or a compound of those.
func (t *tree) targets(target string, list *py.List) (bool, error) {
	how := "compound"
	for _, item := range list.Items() {
		if d, ok := item.(*py.Dict); ok {
			if v, ok := d.GetStr("match"); ok {
				how = py.Str(v)
			}
		}
	}
	id, _ := t.data.Grains.GetStr("id")
	switch how {
	case "glob":
		return sls.Glob(target, py.Str(id)), nil
	case "list":
		return slices.Contains(strings.Split(target, ","), py.Str(id)), nil
	case "grain":
		return t.word("G@"+target, py.Str(id))
	case "compound":
		return t.compound(target, py.Str(id))
	}
	return false, fmt.Errorf("the match type %q is not supported", how)
}

// compound evaluates words joined by and, or and not, where "and" binds more tightly; there are no parentheses.
func (t *tree) compound(target, id string) (bool, error) {
	words := strings.Fields(target)
	any, all, not, open := false, true, false, true // a term is expected
	for _, w := range words {
		switch {
		case w == "not" && open && !not:
			not = true
		case (w == "and" || w == "or") && !open:
			if open = true; w == "or" {
				any, all = any || all, true
			}
		case w == "and", w == "or", w == "not", !open, strings.ContainsAny(w, "()"):
			return false, fmt.Errorf("the target %q is not supported", target)
		default:
			ok, err := t.word(w, id)
			if err != nil {
				return false, err
			}
			all = all && ok != not
			not, open = false, false
		}
	}
	if open {
		return false, fmt.Errorf("the target %q is not supported", target)
	}
	return any || all, nil
}

func (t *tree) word(w, id string) (bool, error) {
	engine, of, ok := strings.Cut(w, "@")
	switch {
	case !ok:
		return sls.Glob(w, id), nil
	case engine == "L":
		return slices.Contains(strings.Split(of, ","), id), nil
	case engine == "G" && !strings.Contains(of, "*:"):
		return grainMatches(t.data.Grains, of), nil
	}
	return false, fmt.Errorf("the target %q is not supported", w)
}

// grainMatches is Salt's match of "key:pattern", where the key may be a path through mappings. Case is ignored.
// Source: salt.utils.data, subdict_match.
func grainMatches(grains *py.Dict, expr string) bool {
	is := func(pattern string, v any) bool {
		return sls.Glob(strings.ToLower(pattern), strings.ToLower(py.Str(v)))
	}
	parts := strings.Split(expr, ":")
	for i := len(parts) - 1; i > 0; i-- {
		v, ok := py.Traverse(grains, strings.Join(parts[:i], ":"), ":")
		if !ok {
			continue
		}
		pattern := strings.Join(parts[i:], ":")
		switch x := v.(type) {
		case *py.List:
			if slices.ContainsFunc(x.Items(), func(v any) bool { return is(pattern, v) }) {
				return true
			}
		case *py.Dict:
			if slices.ContainsFunc(x.Keys(), func(v any) bool { return is(pattern, v) }) {
				return true
			}
		default:
			if is(pattern, v) {
				return true
			}
		}
	}
	return false
}
