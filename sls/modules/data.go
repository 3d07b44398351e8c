package modules

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/salt/names"
)

// addPillar adds the module pillar.
func addPillar(s table) {
	s.add("pillar.get", "key default? merge? merge_nested_lists? delimiter? pillarenv? saltenv? unmask?", func(c *call) (any, error) {
		return c.lookup(c.Pillar)
	})
	s.add("pillar.fetch", "key default? merge? merge_nested_lists? delimiter?", func(c *call) (any, error) { return c.lookup(c.Pillar) })
	s.add("pillar.items", "* **", func(c *call) (any, error) { return orEmpty(c.Pillar), nil })
	s.add("pillar.raw", "key? unmask?", func(c *call) (any, error) {
		if k := c.str("key", ""); k != "" {
			v, _ := c.Pillar.GetStr(k)
			return v, nil
		}
		return orEmpty(c.Pillar), nil
	})
	s.add("pillar.item", "* **", func(c *call) (any, error) { return c.pick(c.Pillar), nil })
	s.add("pillar.keys", "key delimiter? unmask?", func(c *call) (any, error) {
		v, _ := py.Traverse(c.Pillar, c.str("key", ""), c.str("delimiter", ":"))
		d, _ := v.(*py.Dict)
		return py.NewList(d.Keys()...), nil
	})
}

// addGrains adds the modules grains and match.
func addGrains(s table) {
	s.add("grains.get", "key default? delimiter? ordered?", func(c *call) (any, error) {
		if err := c.unsupportedGrain(c.str("key", ""), c.str("delimiter", ":")); err != nil {
			return nil, err
		}
		return c.lookup(c.Grains)
	})
	s.add("grains.item", "* **", func(c *call) (any, error) {
		for _, k := range c.rest {
			if err := c.unsupportedGrain(py.Str(k), ":"); err != nil {
				return nil, err
			}
		}
		return c.pick(c.Grains), nil
	})
	s.add("grains.items", "sanitize?", func(c *call) (any, error) { return orEmpty(c.Grains), nil })
	s.add("grains.has_value", "key", func(c *call) (any, error) {
		if err := c.unsupportedGrain(c.str("key", ""), ":"); err != nil {
			return nil, err
		}
		v, ok := py.Traverse(c.Grains, c.str("key", ""), ":")
		return ok && py.Truth(v), nil
	})
	s.add("grains.filter_by", "lookup_dict grain? merge? default? base?", func(c *call) (any, error) {
		if err := c.unsupportedGrain(c.str("grain", "os_family"), ":"); err != nil {
			return nil, err
		}
		g, _ := py.Traverse(c.Grains, c.str("grain", "os_family"), ":")
		return c.filterBy(g)
	})
	// Without a master there is no mine: Salt's own answer is an empty mapping.
	s.add("mine.get", "tgt fun tgt_type? exclude_minion?", func(*call) (any, error) { return py.NewDict(), nil })
	s.add("match.filter_by", "lookup minion_id? merge? merge_lists? default?", func(c *call) (any, error) {
		return nil, py.Errorf(py.RuntimeError, "match.filter_by is not supported")
	})
}

// addConfig adds the module config.
func addConfig(s table) {
	s.add("config.get", "key default? delimiter? merge? omit_opts? omit_pillar? omit_master? omit_grains?", func(c *call) (any, error) {
		return c.config(), nil
	})
	s.add("config.option", "value default? omit_opts? omit_master? omit_pillar? omit_all? omit_grains? wildcard?", func(c *call) (any, error) {
		c.args["key"] = c.args["value"]
		if !c.given("default") {
			c.args["default"] = ""
		}
		return c.config(), nil
	})
}

// addDefaults adds the module defaults.
func addDefaults(s table) {
	s.add("defaults.merge", "dest upd merge_lists? in_place? convert_none?", func(c *call) (any, error) {
		d, ok1 := c.val("dest").(*py.Dict)
		u, ok2 := c.val("upd").(*py.Dict)
		if !ok1 || !ok2 {
			return nil, py.Errorf(py.TypeError, "defaults.merge() needs two dicts")
		}
		if !c.boolean("in_place", true) {
			d = py.DeepCopy(d).(*py.Dict)
		}
		Merge(d, u, c.boolean("merge_lists", false))
		return d, nil
	})
	s.add("defaults.update", "dest defaults merge_lists? in_place? convert_none?", func(c *call) (any, error) {
		d, ok1 := c.val("dest").(*py.Dict)
		u, ok2 := c.val("defaults").(*py.Dict)
		if !ok1 || !ok2 {
			return nil, py.Errorf(py.TypeError, "defaults.update() needs two dicts")
		}
		for _, e := range d.Items() {
			if x, ok := e.Value.(*py.Dict); ok {
				merged := py.DeepCopy(u).(*py.Dict)
				Merge(merged, x, c.boolean("merge_lists", false))
				_ = d.Set(e.Key, merged)
			}
		}
		return d, nil
	})
	s.add("defaults.deepcopy", "source", func(c *call) (any, error) { return py.DeepCopy(c.val("source")), nil })
}

// unsupportedGrain returns the error for a grain that Salt collects and this program does not, unless the grains
// contain it.
func (c *call) unsupportedGrain(key, delimiter string) error {
	top, _, _ := strings.Cut(key, delimiter)
	if _, ok := c.Grains.GetStr(top); ok || !names.Grain(top) {
		return nil
	}
	return &UnsupportedError{What: "the grain " + top}
}

func orEmpty(d *py.Dict) *py.Dict {
	if d == nil {
		return py.NewDict()
	}
	return d
}

// lookup is pillar.get and grains.get.
func (c *call) lookup(tree *py.Dict) (any, error) {
	var def any = ""
	if c.given("default") {
		def = c.val("default")
	}
	v, ok := py.Traverse(tree, c.str("key", ""), c.str("delimiter", ":"))
	if c.boolean("merge", false) {
		if !ok || v == nil {
			return def, nil
		}
		switch d := def.(type) {
		case *py.Dict:
			u, isDict := v.(*py.Dict)
			if !isDict {
				return def, nil
			}
			out := py.DeepCopy(d).(*py.Dict)
			Merge(out, u, c.boolean("merge_nested_lists", true))
			return out, nil
		case *py.List:
			l, isList := v.(*py.List)
			if !isList {
				return def, nil
			}
			out := py.DeepCopy(d).(*py.List)
			out.Append(l.Items()...)
			return out, nil
		}
	}
	if !ok {
		return def, nil
	}
	return v, nil
}

func (c *call) pick(tree *py.Dict) any {
	out := py.NewDict()
	for _, k := range c.rest {
		v, ok := py.Traverse(tree, py.Str(k), ":")
		if !ok {
			v = ""
			if d, has := c.kw.GetStr("default"); has {
				v = d
			}
		}
		_ = out.Set(k, v)
	}
	return out
}

// filterBy picks an entry of a dict by a grain. Source: Salt documentation, grains.filter_by.
func (c *call) filterBy(grain any) (any, error) {
	table, ok := c.val("lookup_dict").(*py.Dict)
	if !ok {
		return nil, py.Errorf(py.TypeError, "grains.filter_by() needs a dict")
	}
	var keys []any
	if l, isList := grain.(*py.List); isList {
		keys = l.Items()
	} else if grain != nil {
		keys = []any{grain}
	}
	var ret any
	found := false
	for _, k := range keys {
		if ret, found = table.Get(k); found {
			break
		}
		for _, e := range table.Items() { // keys are patterns
			if p, isStr := e.Key.(string); isStr && globMatch(p, py.Str(k)) {
				ret, found = e.Value, true
				break
			}
		}
		if found {
			break
		}
	}
	if !found {
		def := any("default")
		if v := c.val("default"); v != nil {
			def = v
		}
		ret, _ = table.Get(def)
	}
	if base := c.str("base", ""); base != "" {
		if b, ok := table.GetStr(base); ok {
			out := py.DeepCopy(b)
			bd, isDict := out.(*py.Dict)
			rd, isDict2 := ret.(*py.Dict)
			switch {
			case isDict && isDict2:
				Merge(bd, py.DeepCopy(rd).(*py.Dict), false)
				ret = bd
			case ret == nil:
				ret = out
			}
		}
	}
	if m, ok := c.val("merge").(*py.Dict); ok && m.Len() > 0 {
		switch r := ret.(type) {
		case nil:
			ret = m
		case *py.Dict:
			out := py.DeepCopy(r).(*py.Dict)
			Merge(out, m, false)
			ret = out
		}
	}
	return ret, nil
}

// config is config.get: opts, then grains, then pillar.
func (c *call) config() any {
	key, delim := c.str("key", ""), c.str("delimiter", ":")
	for _, t := range []struct {
		tree *py.Dict
		omit string
	}{{c.Opts, "omit_opts"}, {c.Grains, "omit_grains"}, {c.Pillar, "omit_pillar"}} {
		if c.boolean(t.omit, false) {
			continue
		}
		if v, ok := py.Traverse(t.tree, key, delim); ok {
			return v
		}
	}
	if c.given("default") {
		return c.val("default")
	}
	return ""
}

// Merge merges src into dst: mappings deeply, lists are appended on request, anything else is replaced.
// Source: Salt documentation, dictupdate.update.
func Merge(dst, src *py.Dict, lists bool) {
	for _, e := range src.Items() {
		old, ok := dst.Get(e.Key)
		if ok {
			od, isDict := old.(*py.Dict)
			nd, isDict2 := e.Value.(*py.Dict)
			if isDict && isDict2 {
				Merge(od, nd, lists)
				continue
			}
			ol, isList := old.(*py.List)
			nl, isList2 := e.Value.(*py.List)
			if lists && isList && isList2 {
				out := ol.Copy()
				for _, v := range nl.Items() {
					dup := false
					for _, w := range ol.Items() {
						dup = dup || py.Equal(v, w)
					}
					if !dup {
						out.Append(v)
					}
				}
				_ = dst.Set(e.Key, out)
				continue
			}
		}
		_ = dst.Set(e.Key, e.Value)
	}
}

func globMatch(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == s
	}
	ok, err := pathMatch(pattern, s)
	return err == nil && ok
}
