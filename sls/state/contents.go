package state

import (
	"strings"

	"corpus-git/internal/py"
)

// contents reads contents, contents_pillar or contents_grains. The text is Salt's complaint.
func (c *Call) contents(m *managed) string {
	if c.verbatim != nil {
		m.data, m.hasData, m.isText = c.verbatim, true, true
		return ""
	}
	var v any
	what := "'contents'"
	lookup := func(tree *py.Dict, kind, arg string) (any, string) {
		what = arg
		var parts []string
		keys := c.list(arg)
		for _, k := range keys {
			x, ok := py.Traverse(tree, py.Str(k), c.str("contents_delimiter", ":"))
			if !ok {
				return nil, kind + " " + py.Str(k) + " does not exist"
			}
			if len(keys) == 1 {
				return x, ""
			}
			parts = append(parts, py.Str(x))
		}
		return strings.Join(parts, "\n"), ""
	}
	var fail string
	switch {
	case c.has("contents_pillar"):
		v, fail = lookup(c.Pillar, "Pillar", "contents_pillar")
	case c.has("contents_grains"):
		v, fail = lookup(c.Grains, "Grain", "contents_grains")
	default:
		v, _ = c.val("contents")
	}
	if fail != "" {
		return fail
	}
	if !c.boolean("allow_empty", true) && !py.Truth(v) {
		return what + " value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
	}
	parts, ok := strList(v)
	if !ok {
		return "Contents specified by contents/contents_pillar/contents_grains is not a string or list of strings, and is not binary data. SLS is likely malformed."
	}
	var b strings.Builder
	for _, p := range parts {
		for _, line := range pySplitLines(p) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	text := b.String()
	if !c.boolean("contents_newline", true) {
		text = strings.TrimRight(strings.TrimRight(text, "\n"), "\r")
	}
	if c.has("template") {
		out, err := c.renderText(text, "the contents of state "+c.ID)
		if err != nil {
			return err.Error()
		}
		text = out
	}
	m.data, m.hasData, m.isText = []byte(text), true, true
	return ""
}

// strList is a string or a list of them; numbers and booleans are written as Python writes them.
func strList(v any) ([]string, bool) {
	switch x := v.(type) {
	case string:
		return []string{x}, true
	case *py.List:
		var out []string
		for _, it := range x.Items() {
			switch it.(type) {
			case *py.Dict, *py.List:
				return nil, false
			}
			out = append(out, py.Str(it))
		}
		if len(out) == 0 {
			return []string{""}, true
		}
		return out, true
	case bool, int64, float64:
		return []string{py.Str(x)}, true
	}
	if py.IsInt(v) {
		return []string{py.Str(v)}, true
	}
	return nil, false
}

// pySplitLines is str.splitlines: also at carriage returns and the line ends of Unicode.
func pySplitLines(s string) []string {
	var out []string
	start := 0
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			out = append(out, string(rs[start:i]))
			start = i + 1
		case '\r':
			out = append(out, string(rs[start:i]))
			if i+1 < len(rs) && rs[i+1] == '\n' {
				i++
			}
			start = i + 1
		}
	}
	if start < len(rs) {
		out = append(out, string(rs[start:]))
	}
	return out
}
