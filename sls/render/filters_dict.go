package render

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls/jinja"
)

func dictFilters() map[string]filter {
	keyed := func(change func(c call, old any, has bool, v any) (any, error)) filter {
		return filter{required: 3, params: []string{"in_dict", "keys", "value", "delimiter", "ordered_dict"}, fn: func(c call) (any, error) { return dictKey(c, change) }}
	}
	return map[string]filter{
		"traverse":              {fn: traverse, required: 2, params: []string{"data", "key", "default", "delimiter"}, undefined: decidesItself},
		"set_dict_key_value":    keyed(func(_ call, _ any, _ bool, v any) (any, error) { return v, nil }),
		"update_dict_key_value": keyed(updateValue),
		"append_dict_key_value": keyed(func(c call, old any, _ bool, v any) (any, error) { return listWith(c, old, "append", v) }),
		"extend_dict_key_value": keyed(func(c call, old any, _ bool, v any) (any, error) {
			if _, isSet := old.(*py.Set); isSet {
				return nil, py.Errorf(py.TypeError, "the last key contains a set, which cannot extend")
			}
			items, err := c.Ops().Slice(v)
			if err != nil {
				return nil, err
			}
			return listWith(c, old, "extend", items...)
		}),
		"compare_dicts": {fn: compareDicts, required: 1, params: []string{"old", "new"}},
		"to_entries":    simple(toEntries),
		"from_entries":  simple(fromEntries),
		"mysql_to_dict": {fn: mysqlToDict, required: 2, params: []string{"data", "key"}},
	}
}

// traverse follows a path of keys through dicts and lists.
func traverse(c call) (any, error) {
	delim, err := text(c.given(3, ":"))
	if err != nil {
		return nil, err
	}
	var keys []any
	switch k := c.a[1].(type) {
	case string, jinja.Markup:
		s, _ := text(k)
		if delim == "" {
			return nil, py.Errorf(py.ValueError, "empty separator")
		}
		for _, p := range strings.Split(s, delim) {
			keys = append(keys, p)
		}
	case int64, bool:
		keys = []any{k}
	default:
		if keys, err = c.Ops().Slice(k); err != nil {
			return nil, err
		}
	}
	dflt := c.given(2, nil)
	v := c.a[0]
	for _, k := range keys {
		if err := c.Ops().Step(1); err != nil {
			return nil, err
		}
		next, found, err := into(c, v, k)
		if err != nil {
			return nil, err
		}
		if !found {
			return dflt, nil
		}
		v = next
	}
	return v, nil
}

// into does one step of traverse.
func into(c call, v, key any) (next any, found bool, err error) {
	l, isList := v.(*py.List)
	if !isList {
		if f, ok := v.(py.Failer); ok {
			return nil, false, f.Fail()
		}
		next, found, err = c.Ops().Item(v, key)
		if found || py.IsErr(err, py.TypeError) {
			return next, found, nil
		}
		if err != nil && !py.IsErr(err, py.KeyError) {
			return nil, false, err
		}
		if loaded := yamlified(key); py.TypeName(loaded) != py.TypeName(key) {
			if next, found, err = c.Ops().Item(v, loaded); err == nil {
				return next, found, nil
			}
		}
		return nil, false, nil
	}
	plain := key
	if s, err := text(key); err == nil {
		plain = s
	}
	n, err := py.ToInt(plain, 10)
	if err != nil && !py.IsErr(err, py.ValueError) {
		return nil, false, err
	}
	isIndex := err == nil
	if isIndex {
		plain = n
	}
	for _, x := range l.Items() {
		if d, ok := x.(*py.Dict); ok {
			if got, ok := d.Get(plain); ok {
				return got, true, nil
			}
		}
	}
	if !isIndex {
		return nil, false, nil
	}
	next, found, err = c.Ops().Item(l, plain)
	return next, found && err == nil, nil
}

// yamlified returns a key as YAML reads it, if it is a string that YAML reads as another type.
func yamlified(key any) any {
	s, err := text(key)
	if err != nil || strings.ContainsAny(s, "\t\r\n#") || strings.Contains(s, "_") && strings.Trim(s, "0123456789_") == "" {
		return key
	}
	switch py.Strip(s) {
	case "", "---", "...":
		return key
	}
	doc, err := saltyaml.Parse("", []byte(s), saltyaml.Options{Private: true})
	if err != nil {
		return key
	}
	switch doc.Value.(type) {
	case *py.Dict, *py.List:
		return key
	}
	return doc.Value
}

// dictKey changes the value at a path of keys in a dict, creating the dicts between.
func dictKey(c call, change func(c call, old any, has bool, v any) (any, error)) (any, error) {
	keys, err := text(c.a[1])
	if err != nil {
		return nil, err
	}
	delim, err := text(c.given(3, ":"))
	if err != nil {
		return nil, err
	}
	d, ok := c.a[0].(*py.Dict)
	if !ok {
		return nil, typeError("a dict", c.a[0])
	}
	if delim == "" {
		return nil, py.Errorf(py.ValueError, "empty separator")
	}
	path := strings.Split(keys, delim)
	if err := c.Ops().Alloc(128 * len(path)); err != nil {
		return nil, err
	}
	at := d
	for _, k := range path[:len(path)-1] {
		v, _ := at.GetStr(k)
		inner, ok := v.(*py.Dict)
		if !ok {
			inner = py.NewDict()
			at.SetStr(k, inner)
		}
		at = inner
	}
	last := path[len(path)-1]
	old, has := at.GetStr(last)
	v, err := change(c, old, has && old != nil, c.a[2])
	if err != nil {
		return nil, err
	}
	at.SetStr(last, v)
	return d, nil
}

func updateValue(c call, old any, has bool, v any) (any, error) {
	d, ok := old.(*py.Dict)
	if has && !ok {
		return nil, py.Errorf(py.TypeError, "the last key contains a %s, which cannot update", py.TypeName(old))
	}
	if !has {
		d = py.NewDict()
	}
	more, err := c.Ops().AsDict(v)
	if err != nil {
		return nil, py.Errorf(py.TypeError, "cannot update a dict with a %s", py.TypeName(v))
	}
	d.Update(more)
	return d, c.Ops().Alloc(128 * more.Len())
}

func listWith(c call, old any, what string, items ...any) (any, error) {
	l, ok := old.(*py.List)
	if old != nil && !ok {
		return nil, py.Errorf(py.TypeError, "the last key contains a %s, which cannot %s", py.TypeName(old), what)
	}
	if old == nil {
		l = py.NewList()
	}
	l.Append(items...)
	return l, c.Ops().Alloc(32 * len(items))
}

func compareDicts(c call) (any, error) {
	none := py.NewDict()
	var two [2]*py.Dict
	for i := range two {
		v := c.given(i, nil)
		some, err := py.TruthOf(v)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*py.Dict)
		if some && !ok {
			return nil, typeError("a dict", v)
		}
		if two[i] = none; ok {
			two[i] = d
		}
		if !ok && two[1-i].Len() > 0 {
			return nil, typeError("a dict", v)
		}
	}
	old, now := two[0], two[1]
	keys := now.Copy()
	keys.Update(old)
	out := py.NewDict()
	for _, k := range keys.Keys() {
		a, inOld := old.Get(k)
		b, inNew := now.Get(k)
		d := py.NewDict("old", a, "new", b)
		switch {
		case !inOld:
			d.SetStr("old", "")
		case !inNew:
			d = py.NewDict("new", "", "old", a)
		default:
			same, err := c.Ops().Equal(a, b)
			if err != nil {
				return nil, err
			}
			if same {
				continue
			}
		}
		if err := out.Set(k, d); err != nil {
			return nil, err
		}
	}
	return out, c.Ops().Alloc(512 * out.Len())
}

func toEntries(c call) (any, error) {
	out := py.NewList()
	switch x := c.a[0].(type) {
	case *py.Dict:
		for _, e := range x.Items() {
			out.Append(py.NewDict("key", e.Key, "value", e.Value))
		}
	case *py.List:
		for i, v := range x.Items() {
			out.Append(py.NewDict("key", int64(i), "value", v))
		}
	default:
		return nil, py.Errorf(py.TypeError, "Input data must be a dict or list")
	}
	return out, c.Ops().Alloc(512 * out.Len())
}

// fromEntries is the inverse of toEntries; a key may be called name, and case is ignored.
func fromEntries(c call) (any, error) {
	items, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	out := py.NewDict()
	for _, x := range items {
		d, err := c.Ops().AsDict(x)
		if err != nil {
			return nil, err
		}
		folded := py.NewDict()
		for _, e := range d.Items() {
			k := e.Key
			if s, err := text(k); err == nil {
				k = py.Lower(s)
			}
			if err := folded.Set(k, e.Value); err != nil {
				return nil, err
			}
		}
		for _, name := range []string{"key", "name"} {
			k, _ := folded.GetStr(name)
			if some, err := py.TruthOf(k); err != nil {
				return nil, err
			} else if !some {
				continue
			}
			v, _ := folded.GetStr("value")
			if err := out.Set(k, v); err != nil {
				return nil, err
			}
			break
		}
	}
	return out, c.Ops().Alloc(256 * len(items))
}

// mysqlToDict reads the table that the program mysql prints.
func mysqlToDict(c call) (any, error) {
	lines, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	out := py.NewDict()
	headers := []string{""}
	for _, l := range lines {
		some, err := py.TruthOf(l)
		if err != nil {
			return nil, err
		}
		if !some {
			continue
		}
		line, err := text(l)
		if err != nil {
			return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'startswith'", py.TypeName(l))
		}
		if strings.HasPrefix(line, "+") {
			continue
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = py.Strip(cells[i])
		}
		if len(headers) <= 1 {
			headers = cells
			continue
		}
		row := py.NewDict()
		for i := 1; i < len(headers)-1; i++ {
			if i >= len(cells) {
				return nil, py.Errorf(py.IndexError, "list index out of range")
			}
			v, err := toNum(call{c.Context, []any{cells[i]}})
			if err != nil {
				return nil, err
			}
			row.SetStr(headers[i], v)
		}
		k, ok := row.Get(c.a[1])
		if !ok {
			return nil, py.Errorf(py.KeyError, "a row of the table has no such column")
		}
		if err := out.Set(k, row); err != nil {
			return nil, err
		}
		if err := c.Ops().Alloc(256 + 256*row.Len()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
