package render

import (
	"strings"
	"time"
	"unicode/utf8"

	"corpus-git/internal/py"
	"corpus-git/internal/pyre"
)

func regexFilters() map[string]filter {
	params := []string{"txt", "rgx", "ignorecase", "multiline"}
	groups := func(atStart bool) func(c call) (any, error) {
		return func(c call) (any, error) {
			m, err := find(c, atStart)
			if m == nil || err != nil {
				return nil, err
			}
			return m, nil
		}
	}
	return map[string]filter{
		"regex_escape": simple(func(c call) (any, error) {
			s, err := text(c.a[0])
			if err != nil {
				return nil, err
			}
			if err := c.Ops().Alloc(2 * len(s)); err != nil {
				return nil, err
			}
			return py.ReEscape(s), nil
		}),
		"regex_search":              {fn: groups(false), required: 2, params: params},
		"regex_match":               {fn: groups(true), required: 2, params: params},
		"regex_replace":             {fn: regexReplace, required: 3, params: []string{"txt", "rgx", "val", "ignorecase", "multiline"}},
		"check_whitelist_blacklist": {undefined: decidesItself, fn: checkLists, required: 1, params: []string{"value", "whitelist", "blacklist"}},
	}
}

// compileRegex reads an expression; flags are the arguments ignorecase and multiline, from index at.
func compileRegex(c call, rgx any, at int) (*pyre.Regexp, error) {
	expr, err := text(rgx)
	if err != nil {
		return nil, err
	}
	var flags pyre.Flags
	for i, f := range []pyre.Flags{pyre.IgnoreCase, pyre.MultiLine} {
		on, err := c.truth(at+i, false)
		if err != nil {
			return nil, err
		}
		if on {
			flags |= f
		}
	}
	if err := c.Ops().Step(100 + 10*len(expr)); err != nil {
		return nil, err
	}
	re, err := pyre.Compile(expr, flags)
	if err != nil {
		return nil, py.Errorf(py.ValueError, "the regular expression is wrong: %s", err.Error())
	}
	return re, nil
}

// search charges for a search in the text and returns its error as in Python.
func search[T any](c call, re *pyre.Regexp, s string, fn func() (T, error)) (T, error) {
	var none T
	if err := c.Ops().Work(re.Cost(s)); err != nil {
		return none, err
	}
	start := time.Now()
	out, err := fn()
	if err != nil {
		return none, py.Errorf(py.LimitError, "%s", err.Error())
	}
	return out, c.Ops().Work(int(time.Since(start)))
}

// find returns the groups of the first match, or the whole match if there are no groups; nil if nothing matches.
func find(c call, atStart bool) (py.Tuple, error) {
	re, err := compileRegex(c, c.a[1], 2)
	if err != nil {
		return nil, err
	}
	s, err := c.text(0)
	if err != nil {
		return nil, err
	}
	m, err := search(c, re, s, func() (pyre.Match, error) { return re.Find(s, atStart) })
	if m == nil || err != nil {
		return nil, err
	}
	first := min(1, re.Groups())
	out := py.Tuple{}
	for n := first; n <= re.Groups(); n++ {
		var v any
		if g, ok := m.Group(s, n); ok {
			v = g
		}
		out = append(out, v)
	}
	return out, nil
}

func regexReplace(c call) (any, error) {
	re, err := compileRegex(c, c.a[1], 3)
	if err != nil {
		return nil, err
	}
	s, err := c.text(0)
	if err != nil {
		return nil, err
	}
	repl, err := c.text(2)
	if err != nil {
		return nil, err
	}
	t, err := re.Template(repl)
	if err != nil {
		return nil, py.Errorf(py.ValueError, "the replacement is wrong: %s", err.Error())
	}
	all, err := search(c, re, s, func() ([]pyre.Match, error) { return re.FindAll(s) })
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(t.Size(s, all) + 32*len(all)); err != nil {
		return nil, err
	}
	return t.Replace(s, all), nil
}

// checkLists decides with lists of globs and expressions whether a value is accepted.
func checkLists(c call) (any, error) {
	value, noText := text(c.a[0]) // which matches nothing
	in := func(i int) (some, matched bool, err error) {
		list := c.given(i, nil)
		if s, err := text(list); err == nil && s != "" {
			list = py.NewList(s)
		}
		if some, err = py.TruthOf(list); err != nil || !some {
			return false, false, err
		}
		items, err := c.Ops().Slice(list)
		if err != nil {
			return false, false, err
		}
		for _, x := range items {
			expr, err := text(x)
			if err != nil { // Salt treats it as matching nothing
				continue
			}
			if noText != nil {
				continue
			}
			ok, err := globOrRegex(c, value, expr)
			if err != nil {
				return false, false, err
			}
			matched = matched || ok
		}
		return true, matched, nil
	}
	black, bad, err := in(2)
	if err != nil {
		return nil, err
	}
	white, good, err := in(1)
	if err != nil {
		return nil, err
	}
	return !(black && bad) && (!white || good), nil
}

// globOrRegex reports whether a value matches as a glob, or as an expression from end to end.
func globOrRegex(c call, value, expr string) (bool, error) {
	for _, e := range []string{globExpr(expr), `\A` + expr + `\Z`} {
		re, err := compileRegex(call{c.Context, []any{nil, nil}}, e, 0)
		if py.IsErr(err, py.ValueError) {
			continue
		}
		if err != nil {
			return false, err
		}
		m, err := search(c, re, value, func() (pyre.Match, error) { return re.Find(value, true) })
		if err != nil || m != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// globExpr is fnmatch.translate.
func globExpr(glob string) string {
	var b strings.Builder
	b.WriteString(`(?s:`)
	for i := 0; i < len(glob); {
		r, n := utf8.DecodeRuneInString(glob[i:])
		i += n
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteByte('.')
		case '[':
			end := i
			if strings.HasPrefix(glob[end:], "!") {
				end++
			}
			if strings.HasPrefix(glob[end:], "]") {
				end++
			}
			j := strings.IndexByte(glob[min(end, len(glob)):], ']')
			if j < 0 {
				b.WriteString(`\[`)
				continue
			}
			set := strings.ReplaceAll(glob[i:end+j], `\`, `\\`)
			if rest, not := strings.CutPrefix(set, "!"); not {
				set = "^" + rest
			} else if strings.HasPrefix(set, "^") {
				set = `\` + set
			}
			b.WriteString("[" + set + "]")
			i = end + j + 1
		default:
			b.WriteString(py.ReEscape(string(r)))
		}
	}
	return b.String() + `)\Z`
}
