package jinja

import (
	"html"
	"strings"

	"corpus-git/internal/py"
)

func htmlFilters(m map[string]FilterFunc) {
	esc := func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("escape", args, kw, 0); err != nil {
			return nil, err
		}
		return escape(c.rt.ops, v)
	}
	m["e"], m["escape"] = esc, esc
	m["forceescape"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("forceescape", args, kw, 0); err != nil {
			return nil, err
		}
		return escape(c.rt.ops, plain(v))
	}
	m["safe"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("safe", args, kw, 0); err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		return Markup(s), err
	}
	m["striptags"] = func(c *Context, v any, args []any, kw *py.Dict) (any, error) {
		if _, err := params("striptags", args, kw, 0); err != nil {
			return nil, err
		}
		s, err := softStr(c, v)
		if err != nil {
			return nil, err
		}
		if err := c.rt.ops.Alloc(2 * len(s)); err != nil {
			return nil, err
		}
		if err := c.rt.ops.Work(25 * len(s)); err != nil {
			return nil, err
		}
		return stripTags(s), nil
	}
	m["xmlattr"] = filterXMLAttr
	m["urlencode"] = filterURLEncode
	m["urlize"] = filterURLize
}

// stripTags is markupsafe.Markup.striptags.
func stripTags(s string) string {
	for _, d := range [...][2]string{{"<!--", "-->"}, {"<", ">"}} {
		var b strings.Builder
		rest := s
		for {
			i := strings.Index(rest, d[0])
			if i < 0 {
				break
			}
			j := strings.Index(rest[i:], d[1])
			if j < 0 {
				break
			}
			b.WriteString(rest[:i])
			rest = rest[i+j+len(d[1]):]
		}
		b.WriteString(rest)
		s = b.String()
	}
	return html.UnescapeString(strings.Join(strings.FieldsFunc(s, py.IsSpace), " "))
}

func filterXMLAttr(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("xmlattr", args, kw, 0, "autospace")
	if err != nil {
		return nil, err
	}
	items, err := pairs(c, v)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, it := range items {
		p := it.(py.Tuple)
		if p[1] == nil || isUndefined(p[1]) {
			continue
		}
		key, ok := plain(p[0]).(string)
		if !ok {
			return nil, py.Errorf(py.TypeError, "expected string or bytes-like object, got '%s'", py.TypeName(p[0]))
		}
		if strings.ContainsAny(key, " \t\n\r\f\v/>=") {
			return nil, py.Errorf(py.ValueError, "Invalid character in attribute name")
		}
		k, err := escape(c.rt.ops, p[0])
		if err != nil {
			return nil, err
		}
		val, err := escape(c.rt.ops, p[1])
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(k)+`="`+string(val)+`"`)
	}
	out := strings.Join(parts, " ")
	space, err := truthArg(a[0], true)
	if space && out != "" {
		out = " " + out
	}
	return escapeAsks.safe(c.rt, out), err
}

// quoteURL is urllib.parse.quote of the UTF-8 text; a query string has + for spaces, and escapes slashes.
func quoteURL(c *Context, v any, query bool) (string, error) {
	s, err := softStr(c, v)
	if err != nil {
		return "", err
	}
	if err := c.rt.ops.Alloc(3 * len(s)); err != nil {
		return "", err
	}
	var b strings.Builder
	const hexDigits = "0123456789ABCDEF"
	for i := range len(s) {
		ch := s[i]
		switch {
		case isWord(ch) || strings.IndexByte("-.~", ch) >= 0 || ch == '/' && !query:
			b.WriteByte(ch)
		case ch == ' ' && query:
			b.WriteByte('+')
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[ch>>4])
			b.WriteByte(hexDigits[ch&15])
		}
	}
	return b.String(), nil
}

func filterURLEncode(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	if _, err := params("urlencode", args, kw, 0); err != nil {
		return nil, err
	}
	if isString(v) {
		return quoteURL(c, v, false)
	}
	var items []any
	var err error
	if isMapping(v) {
		items, err = pairs(c, v)
	} else {
		items, err = iterate(c, v)
		if py.IsErr(err, py.TypeError) {
			return quoteURL(c, v, false)
		}
	}
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, it := range items {
		kv, err := unpack(c.rt.ops, it, 2)
		if err != nil {
			return nil, err
		}
		k, err := quoteURL(c, kv[0], true)
		if err != nil {
			return nil, err
		}
		val, err := quoteURL(c, kv[1], true)
		if err != nil {
			return nil, err
		}
		parts[i] = k + "=" + val
	}
	return strings.Join(parts, "&"), nil
}
