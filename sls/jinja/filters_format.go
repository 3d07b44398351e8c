package jinja

import (
	"strings"

	"corpus-git/internal/py"
)

func formatFilters(m map[string]FilterFunc) {
	m["format"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if len(args) > 0 && kw.Len() > 0 {
			return nil, raise(ClassFilterArg, "can't handle positional and keyword arguments at the same time")
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		var in any = py.Tuple(args)
		if kw.Len() > 0 {
			in = kw
		}
		if m, ok := v.(Markup); ok {
			r, _, err := m.Binary(c.rt.ops, "%", in, false)
			return r, err
		}
		return c.rt.ops.Percent(s, in)
	}
}

// filterToJSON is tojson: JSON that is safe inside HTML. Keys are sorted, as Jinja2's policy json.dumps_kwargs says.
func filterToJSON(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("tojson", args, kw, 0, "indent")
	if err != nil {
		return nil, err
	}
	opt := py.JSONOptions{SortKeys: true}
	if err := JSONIndent(&opt, or(a[0], nil)); err != nil {
		return nil, err
	}
	if u, ok := v.(*undefined); ok {
		return nil, py.Errorf(py.TypeError, "Object of type %s is not JSON serializable", u.TypeName())
	}
	s, err := c.rt.ops.ToJSON(v, opt)
	if err != nil {
		return nil, err
	}
	if err := c.rt.ops.Alloc(len(s) + 5*strings.Count(s, "'")); err != nil {
		return nil, err
	}
	return Markup(strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(s)), nil
}

// JSONIndent sets the indent option of json.dumps from a template's value: a number, a string, or None.
func JSONIndent(opt *py.JSONOptions, v any) error {
	switch x := plain(v).(type) {
	case nil:
		return nil
	case string:
		opt.Pretty, opt.Indent = true, x
		return nil
	default:
		n, err := py.Index(x)
		if err != nil {
			return py.Errorf(py.TypeError, "can't multiply sequence by non-int of type '%s'", py.TypeName(v))
		}
		if n > 1000 {
			return py.Errorf(py.LimitError, "indent is too large")
		}
		opt.Pretty, opt.Indent = true, strings.Repeat(" ", int(max(n, 0)))
		return nil
	}
}

func filterPprint(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("pprint", args, kw, 0); err != nil {
		return nil, err
	}
	return c.rt.ops.Pformat(v)
}

func filterWordwrap(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("wordwrap", args, kw, 0, "width", "break_long_words", "wrapstring", "break_on_hyphens")
	if err != nil {
		return nil, err
	}
	s, err := needText(v)
	if err != nil {
		if isUndefined(v) {
			return nil, err
		}
		return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'splitlines'", py.TypeName(v))
	}
	width, err := py.Index(or(a[0], int64(79)))
	if err != nil {
		return nil, err
	}
	long, err := truthArg(a[1], true)
	if err != nil {
		return nil, err
	}
	hyphens, err := truthArg(a[3], true)
	if err != nil {
		return nil, err
	}
	sep := "\n"
	if w := or(a[2], nil); w != nil {
		if sep, err = needText(w); err != nil {
			return nil, err
		}
	}
	if err := c.rt.ops.Alloc(len(s) * (40 + len(sep))); err != nil {
		return nil, err
	}
	var out []string
	for _, line := range py.SplitLines(s, false) {
		if width <= 0 && line != "" {
			return nil, py.Errorf(py.ValueError, "invalid width (must be > 0)")
		}
		out = append(out, strings.Join(wrapLine(line, int(min(width, 1<<30)), long, hyphens), sep))
	}
	return strings.Join(out, sep), nil
}
