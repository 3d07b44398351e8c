package jinja

import (
	"strings"

	"corpus-git/internal/py"
)

// params binds the arguments of a filter by its parameter names; unset ones get the defaults given (py.Unset: none).
func params(fn string, args []any, kw *py.Dict, required int, names ...string) ([]any, error) {
	return py.Bind(fn, args, kw, required, names...)
}

// or returns an argument, or its default where it was not given.
func or(v, dflt any) any {
	if py.Given(v) {
		return v
	}
	return dflt
}

func builtinFilters(m map[string]FilterFunc) {
	stringFilters(m)
	formatFilters(m)
	htmlFilters(m)
	numberFilters(m)
	sequenceFilters(m)
	selectFilters(m)
	m["default"] = filterDefault
	m["d"] = filterDefault
	m["attr"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		a, err := params("attr", args, kw, 1, "name")
		if err != nil {
			return nil, err
		}
		name, ok := plain(a[0]).(string)
		if !ok {
			return nil, py.Errorf(py.TypeError, "attribute name must be string, not '%s'", py.TypeName(a[0]))
		}
		if mk, ok := v.(Markup); ok {
			if fn, ok := markupMethod(c.rt.ops, mk, name); ok {
				return fn, nil
			}
		}
		got, ok, err := c.rt.ops.Attr(v, name)
		if ok || err != nil {
			return got, err
		}
		return c.rt.noAttr(v, name, false)
	}
	m["tojson"] = filterToJSON
	m["pprint"] = filterPprint
}

func filterDefault(_ *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("default", args, kw, 0, "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	use := isUndefined(v)
	if !use && py.Given(a[1]) {
		boolean, err := py.TruthOf(a[1])
		if err != nil {
			return nil, err
		}
		if boolean {
			t, err := py.TruthOf(v)
			if err != nil {
				return nil, err
			}
			use = !t
		}
	}
	if use {
		return or(a[0], ""), nil
	}
	return v, nil
}

// softStr is v as text: what most string filters begin with.
func softStr(c *Context, v any) (string, error) { return c.rt.ops.Str(v) }

// textFilter returns a filter on a string without arguments. Marked-up text stays so.
func textFilter(fn func(string) string) FilterFunc {
	return func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("filter", args, kw, 0); err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		if err := c.rt.ops.Alloc(len(s)); err != nil {
			return nil, err
		}
		if err := c.rt.ops.Work(20 * len(s)); err != nil {
			return nil, err
		}
		return like(v, fn(s)), nil
	}
}

// like marks a text up where what it was made from is.
func like(v any, s string) any {
	if _, ok := v.(Markup); ok {
		return Markup(s)
	}
	return s
}

func stringFilters(m map[string]FilterFunc) {
	m["upper"] = textFilter(py.Upper)
	m["lower"] = textFilter(py.Lower)
	m["capitalize"] = textFilter(py.Capitalize)
	m["title"] = textFilter(titleWords)
	m["string"] = textFilter(func(s string) string { return s })
	m["trim"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		a, err := params("trim", args, kw, 0, "chars")
		if err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		r, err := c.rt.ops.CallMethod(s, "strip", []any{or(a[0], nil)}, nil)
		if err != nil {
			return nil, err
		}
		return like(v, r.(string)), nil
	}
	m["center"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		a, err := params("center", args, kw, 0, "width")
		if err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		n, err := py.Index(or(a[0], int64(80)))
		if err != nil {
			return nil, err
		}
		return c.rt.ops.Center(s, n)
	}
	m["replace"] = filterReplace
	m["indent"] = filterIndent
	m["truncate"] = filterTruncate
	m["wordwrap"] = filterWordwrap
	m["wordcount"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("wordcount", args, kw, 0); err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		if err := c.rt.ops.Work(20 * len(s)); err != nil {
			return nil, err
		}
		n := int64(0)
		for s != "" {
			if w := nameLen(s); w > 0 {
				n++
				s = s[w:]
				continue
			}
			s = s[1:]
		}
		return n, nil
	}
	m["join"] = filterJoin
}

// titleWords upper-cases the first letter of every word, and only spaces, hyphens and opening brackets part words.
func titleWords(s string) string {
	var b strings.Builder
	start := true
	for s != "" {
		if strings.IndexByte("-({[<", s[0]) >= 0 || spaceLen(s) > 0 {
			n := max(spaceLen(s), 1)
			b.WriteString(s[:n])
			s = s[n:]
			start = true
			continue
		}
		end := 0
		for end < len(s) && strings.IndexByte("-({[<", s[end]) < 0 && spaceLen(s[end:]) == 0 {
			end++
		}
		word := s[:end]
		s = s[end:]
		if start {
			n := len(word)
			for i := range word {
				if i > 0 {
					n = i
					break
				}
			}
			b.WriteString(py.Upper(word[:n]))
			b.WriteString(py.Lower(word[n:]))
		}
		start = false
	}
	return b.String()
}

func filterReplace(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("replace", args, kw, 2, "old", "new", "count")
	if err != nil {
		return nil, err
	}
	var text [3]string
	for i, x := range []any{v, a[0], a[1]} {
		if text[i], err = c.rt.ops.Str(x); err != nil {
			return nil, err
		}
	}
	n := int64(-1)
	if py.Given(a[2]) && a[2] != nil {
		if n, err = py.Index(a[2]); err != nil {
			return nil, err
		}
	}
	return c.rt.ops.Replace(text[0], text[1], text[2], int(n))
}

// needText returns a filter's input where Jinja2 calls str methods on it without converting it.
func needText(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case Markup:
		return string(x), nil
	case *undefined:
		return "", x.Fail()
	}
	return "", py.Errorf(py.TypeError, "expected a string, got '%s'", py.TypeName(v))
}

func filterIndent(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("indent", args, kw, 0, "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	s, err := needText(v)
	if err != nil {
		return nil, err
	}
	var pad string
	switch w := or(a[0], int64(4)).(type) {
	case string:
		pad = w
	default:
		p, err := c.rt.ops.Mul(" ", w)
		if err != nil {
			return nil, err
		}
		pad = p.(string)
	}
	first, err := py.TruthOf(or(a[1], false))
	if err != nil {
		return nil, err
	}
	blank, err := py.TruthOf(or(a[2], false))
	if err != nil {
		return nil, err
	}
	if err := c.rt.ops.Work(20 * len(s)); err != nil {
		return nil, err
	}
	lines := py.SplitLines(s+"\n", false)
	if err := c.rt.ops.Step(len(lines)); err != nil {
		return nil, err
	}
	if err := c.rt.ops.Alloc(len(s) + len(lines)*(len(pad)+17)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && first || i > 0 && (blank || l != "") {
			b.WriteString(pad)
		}
		b.WriteString(l)
	}
	return like(v, b.String()), nil
}

func filterTruncate(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("truncate", args, kw, 0, "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	length, err := py.Index(or(a[0], int64(255)))
	if err != nil {
		return nil, err
	}
	leeway := int64(5)
	if l := or(a[3], nil); l != nil {
		if leeway, err = py.Index(l); err != nil {
			return nil, err
		}
	}
	end, err := needText(or(a[2], "..."))
	if err != nil {
		return nil, err
	}
	if length < int64(py.StrLen(end)) {
		return nil, py.Errorf("AssertionError", "expected a length that end fits into")
	}
	if leeway < 0 {
		return nil, py.Errorf("AssertionError", "expected leeway >= 0")
	}
	if n, err := c.rt.ops.Len(v); err != nil || int64(n) <= length+leeway {
		return v, err // whatever has a length is let through
	}
	s, err := needText(v)
	if err != nil {
		return nil, err
	}
	cut, err := c.rt.ops.SliceOf(s, nil, length-int64(py.StrLen(end)), nil)
	if err != nil {
		return nil, err
	}
	out := cut.(string)
	kill, err := py.TruthOf(or(a[1], false))
	if err != nil {
		return nil, err
	}
	if !kill {
		if i := strings.LastIndexByte(out, ' '); i >= 0 {
			out = out[:i]
		}
	}
	return like(v, out+end), nil
}

func filterJoin(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("join", args, kw, 0, "d", "attribute")
	if err != nil {
		return nil, err
	}
	ops := c.rt.ops
	items, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	sep, err := ops.Str(or(a[0], ""))
	if err != nil {
		return nil, err
	}
	get, err := attrGetter(c, or(a[1], nil), nil, false)
	if err != nil {
		return nil, err
	}
	if err := ops.Step(len(items)); err != nil {
		return nil, err
	}
	if err := ops.Alloc(16 * len(items)); err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	size := 0
	for i, e := range items {
		if e, err = get(e); err != nil {
			return nil, err
		}
		if parts[i], err = ops.Str(e); err != nil {
			return nil, err
		}
		size += len(parts[i]) + len(sep)
	}
	if err := ops.Alloc(size); err != nil { // at once: what is charged must be in use when the next charge looks
		return nil, err
	}
	return strings.Join(parts, sep), nil
}

// iterate returns the items of v, as a for statement would see them.
func iterate(c *Context, v any) ([]any, error) { return c.rt.ops.Slice(v) }
