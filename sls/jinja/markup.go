package jinja

import (
	"context"
	"strings"

	"corpus-git/internal/py"
)

// Markup is text that is safe in HTML: what the filters escape, safe and tojson give. To Python it is a str; what is
// added to it is escaped first (markupsafe.Markup).
type Markup string

// TypeName implements py.Typed.
func (m Markup) TypeName() string { return "Markup" }

// PyStr implements py.StrLike.
func (m Markup) PyStr() string { return string(m) }

// Str implements py.Stringer.
func (m Markup) Str() (string, error) { return string(m), nil }

// Repr implements py.Reprer.
func (m Markup) Repr() (string, error) { return "Markup(" + quote(string(m)) + ")", nil }

// Len implements py.Sizer.
func (m Markup) Len() (int, error) { return py.StrLen(string(m)), nil }

// Truth implements py.Truther.
func (m Markup) Truth() (bool, error) { return m != "", nil }

// Iter implements py.Iterable.
func (m Markup) Iter() (py.Iterator, error) { return (*py.Ops)(nil).Iter(string(m)) }

// Contains implements py.Container.
func (m Markup) Contains(v any) (bool, error) { return (*py.Ops)(nil).Contains(string(m), plain(v)) }

// Equal implements py.Equaler.
func (m Markup) Equal(other any) (bool, error) { return py.Equal(string(m), plain(other)), nil }

// Order implements py.Orderer.
func (m Markup) Order(other any, op string) (int, error) {
	return (*py.Ops)(nil).Compare(string(m), plain(other), op)
}

// Item implements py.Indexer.
func (m Markup) Item(key any) (any, bool, error) {
	v, ok, err := (*py.Ops)(nil).Item(string(m), key)
	return marked(v), ok, err
}

// Slice implements py.Slicer.
func (m Markup) Slice(start, stop, step any) (any, error) {
	v, err := (*py.Ops)(nil).SliceOf(string(m), start, stop, step)
	return marked(v), err
}

// escaping says whether a part of a template escapes what it prints, as {% autoescape %} around it asks for.
type escaping uint8

const (
	escapeNot  escaping = iota
	escapeAll           // autoescape true
	escapeAsks          // autoescape with a value that is known when it renders
)

// on reports whether the part escapes in this render.
func (e escaping) on(rt *render) bool { return e == escapeAll || e == escapeAsks && rt.autoescape }

// safe returns a text that the template itself made: it is not escaped again.
func (e escaping) safe(rt *render, text string) any {
	if e.on(rt) {
		return Markup(text)
	}
	return text
}

func plain(v any) any {
	if m, ok := v.(Markup); ok {
		return string(m)
	}
	return v
}

func marked(v any) any {
	switch x := v.(type) {
	case string:
		return Markup(x)
	case *py.List:
		for i, e := range x.Items() {
			x.SetAt(i, marked(e))
		}
	case py.Tuple:
		for i, e := range x {
			x[i] = marked(e)
		}
	}
	return v
}

// escapeHTML is markupsafe.escape of a plain string.
func escapeHTML(s string) string {
	at := strings.IndexAny(s, `&<>'"`)
	if at < 0 {
		return s
	}
	b := make([]byte, 0, len(s)+len(s)/8)
	from := 0
	for ; at < len(s); at++ {
		var to string
		switch s[at] {
		case '&':
			to = "&amp;"
		case '<':
			to = "&lt;"
		case '>':
			to = "&gt;"
		case '\'':
			to = "&#39;"
		case '"':
			to = "&#34;"
		default:
			continue
		}
		b = append(append(b, s[from:at]...), to...)
		from = at + 1
	}
	return string(append(b, s[from:]...))
}

// escape is markupsafe.escape: marked-up text stays as it is.
func escape(o *py.Ops, v any) (Markup, error) {
	if m, ok := v.(Markup); ok {
		return m, nil
	}
	s, err := o.Str(v)
	if err != nil {
		return "", err
	}
	if err := o.Work(15 * len(s)); err != nil {
		return "", err
	}
	s = escapeHTML(s)
	return Markup(s), o.Alloc(2 * len(s))
}

// Binary implements py.BinaryOp: + escapes the other side, % what it formats.
func (m Markup) Binary(o *py.Ops, op string, other any, reflected bool) (any, bool, error) {
	switch op {
	case "+":
		if !isString(other) {
			return nil, false, nil
		}
		e, err := escape(o, other)
		if err != nil {
			return nil, false, err
		}
		if reflected {
			return e + m, true, o.Alloc(len(e) + len(m))
		}
		return m + e, true, o.Alloc(len(e) + len(m))
	case "*":
		if !py.IsInt(other) {
			return nil, false, nil
		}
		v, err := o.Mul(string(m), other)
		return marked(v), true, err
	case "%":
		if reflected {
			return nil, false, nil
		}
		args, err := escapeArgs(o, other)
		if err != nil {
			return nil, false, err
		}
		s, err := o.Percent(string(m), args)
		return Markup(s), true, err
	}
	return nil, false, nil
}

// escapeArgs escapes the values that are formatted into marked-up text; numbers stay numbers.
func escapeArgs(o *py.Ops, v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64, float64, Markup:
		return v, nil
	case py.Tuple:
		out := make(py.Tuple, len(x))
		for i, e := range x {
			var err error
			if out[i], err = escapeArgs(o, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *py.Dict:
		out := x.Copy()
		for _, it := range x.Items() {
			e, err := escapeArgs(o, it.Value)
			if err != nil {
				return nil, err
			}
			if err := out.Set(it.Key, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	if py.IsNumber(v) {
		return v, nil
	}
	e, err := escape(o, v)
	return string(e), err
}

// markupMethod returns a method of str on marked-up text: what it gives is marked up too.
func markupMethod(o *py.Ops, m Markup, name string) (any, bool) {
	if !py.HasMethod("", name) {
		return nil, false
	}
	return py.NewFunc(name, func(_ context.Context, args []any, kw *py.Dict) (any, error) {
		args = append([]any(nil), args...)
		from := len(args)
		switch name {
		case "replace", "ljust", "rjust", "center":
			from = 1
		case "join":
			if len(args) > 0 {
				items, err := o.Slice(args[0])
				if err != nil {
					return nil, err
				}
				args[0] = py.Tuple(items)
			}
			from = 0
		case "format", "format_map":
			from = 0
			e, err := escapeArgs(o, kw.Copy())
			if err != nil {
				return nil, err
			}
			kw = e.(*py.Dict)
		}
		for i := range args {
			args[i] = plain(args[i])
			if i >= from {
				e, err := escapeArgs(o, args[i])
				if err != nil {
					return nil, err
				}
				args[i] = e
			}
		}
		if kw.Len() == 0 {
			kw = nil
		}
		v, err := o.CallMethod(string(m), name, args, kw)
		return marked(v), err
	}), true
}
