package file

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// readContents reads contents, contents_pillar or contents_grains. The string is Salt's error message.
func readContents(c *core.Call, m *Managed) string {
	if c.Verbatim != nil {
		m.Data, m.hasData, m.isText = c.Verbatim, true, true
		return ""
	}
	var v any
	what := "'contents'"
	lookup := func(tree *py.Dict, kind, arg string) (any, string) {
		what = arg
		var parts []string
		keys := c.List(arg)
		for _, k := range keys {
			x, ok := py.Traverse(tree, py.Str(k), c.Str("contents_delimiter", ":"))
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
	case c.Has("contents_pillar"):
		v, fail = lookup(c.Pillar, "Pillar", "contents_pillar")
	case c.Has("contents_grains"):
		v, fail = lookup(c.Grains, "Grain", "contents_grains")
	default:
		v, _ = c.Value("contents")
	}
	if fail != "" {
		return fail
	}
	if !c.Bool("allow_empty", true) && !py.Truth(v) {
		return what + " value would result in empty contents. Set allow_empty to True to allow the managed file to be empty."
	}
	parts, ok := strList(v)
	if !ok {
		return "Contents specified by contents/contents_pillar/contents_grains is not a string or list of strings, and is not binary data. SLS is likely malformed."
	}
	var b strings.Builder
	for _, p := range parts {
		for _, line := range core.SplitLines(p) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	text := b.String()
	if !c.Bool("contents_newline", true) {
		text = strings.TrimRight(strings.TrimRight(text, "\n"), "\r")
	}
	if c.Has("template") {
		out, err := fetch.RenderText(c, text, "the contents of state "+c.ID)
		if err != nil {
			return err.Error()
		}
		text = out
	}
	m.Data, m.hasData, m.isText = []byte(text), true, true
	return ""
}

// strList returns a string or a list of at least one; numbers and booleans are written as Python writes them.
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
		return out, len(out) > 0
	case bool, int64, float64:
		return []string{py.Str(x)}, true
	}
	if py.IsInt(v) {
		return []string{py.Str(v)}, true
	}
	return nil, false
}
