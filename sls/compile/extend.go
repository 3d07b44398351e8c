package compile

import (
	"fmt"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
)

// match is a state that a reference matches.
type match struct{ id, module string }

// findName resolves a reference in an extend or an _in requisite: an ID, or otherwise the value of any argument.
// Source: Salt documentation, "Requisites", names as well as IDs can be referenced.
func (h *high) findName(name, module string, strict bool) []match {
	if d, ok := h.ids[name]; ok && (!strict || d.state(module) != nil) {
		return []match{{name, module}}
	}
	if module == "sls" {
		return h.findSLS(name)
	}
	var out []match
	for _, id := range h.order {
		s := h.ids[id].state(module)
		if s == nil {
			continue
		}
		for _, a := range s.args {
			if v, ok := a.val.(string); ok && v == name {
				out = append(out, match{id, module})
				break
			}
		}
	}
	return out
}

// findSLS returns all states of an SLS.
func (h *high) findSLS(sls string) []match {
	var out []match
	for _, id := range h.order {
		if d := h.ids[id]; d.sls == sls {
			for _, s := range d.states {
				out = append(out, match{id, s.module})
			}
		}
	}
	return out
}

// extend applies extensions in order.
func (h *high) extend(exts []extension, excludes []exclusion) error {
	for _, e := range exts {
		d, ok := h.ids[e.id]
		if !ok || d.state(e.states[0].module) == nil {
			ids := h.findName(e.id, e.states[0].module, e.strict)
			if len(ids) != 1 {
				return h.cannotExtend(e, len(ids))
			}
			d = h.ids[ids[0].id]
		}
		if excluded(excludes, e.sls) {
			continue
		}
		for _, s := range e.states {
			mergeState(d, s)
		}
	}
	return nil
}

func (h *high) cannotExtend(e extension, n int) *fault.Error {
	what := e.states[0].module + ": " + e.id
	verb := "extend"
	if e.strict {
		verb = "requisite"
	}
	if n > 1 {
		return failf(e.at, "%s %s in SLS '%s' matches %d states", verb, what, e.sls, n)
	}
	var ids []string
	for _, id := range h.order {
		if h.ids[id].state(e.states[0].module) != nil {
			ids = append(ids, id)
		}
	}
	err := failf(e.at, "%s %s in SLS '%s': there is no such state", verb, what, e.sls)
	if near := closest(e.id, ids); near != "" {
		return err.WithHint("did you mean  %s: %s ?", e.states[0].module, near)
	}
	return err.WithHint("check the ID, and whether the SLS that declares it is included")
}

// mergeState extends one state of d: functions and arguments are replaced, requisites added.
func mergeState(d *decl, run *stateDecl) {
	have := d.state(run.module)
	if have == nil {
		d.states = append(d.states, &stateDecl{module: run.module, at: run.at,
			funs: append([]argument(nil), run.funs...), args: append([]argument(nil), run.args...)})
		return
	}
	if len(run.funs) > 0 {
		have.funs = append([]argument(nil), run.funs...)
	}
	for _, a := range run.args {
		done := false
		for i := range have.args {
			if have.args[i].key == a.key {
				have.args[i] = mergeArg(have.args[i], a)
				done = true
			} else if a.key == "name" && have.args[i].key == "names" {
				have.args[i] = a
			}
		}
		if !done {
			have.args = append(have.args, a)
		}
	}
}

func mergeArg(old, add argument) argument {
	_, isReq := parseReqType(add.key)
	a, ok1 := old.val.(*py.List)
	b, ok2 := add.val.(*py.List)
	if !isReq || !ok1 || !ok2 {
		return add
	}
	merged := a.Copy()
	merged.Append(b.Items()...)
	return argument{key: old.key, val: merged, at: old.at}
}

func excluded(ex []exclusion, sls string) bool {
	for _, e := range ex {
		if e.sls != "" && e.sls == sls {
			return true
		}
	}
	return false
}

// exclude removes what is excluded, by ID or by SLS (a pattern).
func (h *high) exclude(ex []exclusion) {
	for _, e := range ex {
		if e.id != "" {
			h.remove(e.id)
			continue
		}
		for _, id := range append([]string(nil), h.order...) {
			if sls.Glob(e.sls, h.ids[id].sls) {
				h.remove(id)
			}
		}
	}
}

// requisiteIn turns require_in, watch_in, onfail_in, onchanges_in, prereq_in, use and use_in into extensions.
func (h *high) requisiteIn() error {
	var exts []extension
	for _, id := range h.order {
		d := h.ids[id]
		for _, s := range d.states {
			for _, a := range s.args {
				if a.key == "use" || a.key == "use_in" {
					e, err := h.use(d, s, a)
					if err != nil {
						return err
					}
					exts = append(exts, e...)
					continue
				}
				t, ok := reqIn(a.key)
				if !ok {
					continue
				}
				targets, err := h.targetsIn(a)
				if err != nil {
					return err
				}
				back := py.NewList(py.NewDict(s.module, id))
				for _, tg := range targets {
					exts = append(exts, extension{id: tg.id, sls: d.sls, at: a.at, strict: true, states: []*stateDecl{{
						module: tg.module, at: a.at,
						args: []argument{{key: t.String(), val: back, at: a.at}},
					}}})
				}
			}
		}
	}
	return h.extend(exts, nil)
}

// targetsIn returns the states that an _in requisite names.
func (h *high) targetsIn(a argument) ([]match, error) {
	var items []any
	switch x := a.val.(type) {
	case *py.List:
		items = x.Items()
	case *py.Dict:
		for _, e := range x.Items() {
			items = append(items, py.NewDict(e.Key, e.Value))
		}
	default:
		return nil, failf(a.at, "%s needs to be formed as a list", a.key)
	}
	var out []match
	for _, it := range items {
		ref, err := parseReq(a, it)
		if err != nil {
			return nil, err
		}
		switch ref.Module {
		case "":
		case "id":
			f, ok := h.findAny(ref.Target)
			if !ok {
				if near := closest(ref.Target, h.order); near != "" {
					return nil, failf(a.at, "%s: there is no state '%s'", a.key, ref.Target).WithHint("did you mean '%s'?", near).WithFix(ref.Target, near)
				}
				h.warnings = append(h.warnings, sls.Warning{At: a.at.at(), Text: fmt.Sprintf("%s: there is no state '%s': Salt ignores it", a.key, ref.Target)})
				continue
			}
			out = append(out, f)
		case "sls":
			all := h.findSLS(ref.Target)
			if len(all) == 0 {
				h.warnings = append(h.warnings, sls.Warning{At: a.at.at(), Text: fmt.Sprintf("%s: no state comes from the SLS '%s': Salt ignores it", a.key, ref.Target)})
			}
			out = append(out, all...)
		default:
			out = append(out, match{ref.Target, ref.Module})
		}
	}
	return out, nil
}

// findAny finds a state by ID, otherwise by its argument name.
func (h *high) findAny(ref string) (match, bool) {
	if d, ok := h.ids[ref]; ok && len(d.states) > 0 {
		return match{ref, d.states[0].module}, true
	}
	var out match
	ok := false
	for _, id := range h.order {
		for _, s := range h.ids[id].states {
			for _, a := range s.args {
				if v, isStr := a.val.(string); a.key == "name" && isStr && v == ref {
					out, ok = match{id, s.module}, true
				}
			}
		}
	}
	return out, ok
}

// use copies arguments from one state to another that does not have them. Salt reads a list only, and ignores anything else. Source: Salt
// documentation, "Requisites", use.
func (h *high) use(d *decl, s *stateDecl, a argument) ([]extension, error) {
	if _, ok := a.val.(*py.List); !ok {
		h.warnings = append(h.warnings, sls.Warning{At: a.at.at(), Text: fmt.Sprintf("%s of state '%s' is not a list: Salt ignores it", a.key, d.id)})
		return nil, nil
	}
	targets, err := h.targetsIn(a)
	if err != nil {
		return nil, err
	}
	var out []extension
	for _, tg := range targets {
		for _, f := range h.findName(tg.id, tg.module, true) {
			other := h.ids[f.id].state(f.module)
			if other == nil {
				continue
			}
			from, to, toID := other, s, d.id
			if a.key == "use_in" {
				from, to, toID = s, other, f.id
			}
			var args []argument
			for _, x := range from.args {
				if x.key == "name" || x.key == "names" || x.key == "order" || inherits(x.key) || to.arg(x.key) {
					continue
				}
				args = append(args, x)
			}
			if len(args) > 0 {
				out = append(out, extension{id: toID, sls: d.sls, at: a.at, strict: true,
					states: []*stateDecl{{module: to.module, at: a.at, args: args}}})
			}
		}
	}
	return out, nil
}

func (s *stateDecl) arg(key string) bool {
	for _, a := range s.args {
		if a.key == key {
			return true
		}
	}
	return false
}

// inherits returns the requisites that use does not copy.
func inherits(key string) bool {
	switch key {
	case "require", "watch", "prereq", "onfail", "onfail_stop", "onchanges", "use", "use_in":
		return true
	}
	_, ok := reqIn(key)
	return ok
}
