package render

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls/jinja"
	"corpus-git/sls/modules"
)

// simple makes a filter of a function that looks at the value and positional arguments alone.
func simple(fn func(v any, args []any) (any, error)) jinja.FilterFunc {
	return func(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
		return fn(v, append(append([]any{}, args...), kw.Values()...))
	}
}

func arg(args []any, i int, def any) any {
	if i < len(args) {
		return args[i]
	}
	return def
}

// filters are those that Salt adds. Source: Salt documentation, "Understanding Jinja", Filters.
func filters() map[string]jinja.FilterFunc {
	str := func(fn func(string) string) jinja.FilterFunc {
		return simple(func(v any, _ []any) (any, error) { return fn(py.Str(v)), nil })
	}
	sum := func(fn func([]byte) []byte) jinja.FilterFunc {
		return str(func(s string) string { return hex.EncodeToString(fn([]byte(s))) })
	}
	f := map[string]jinja.FilterFunc{
		"json":        jsonFilter,
		"yaml":        yamlFilter,
		"python":      str(func(s string) string { return s }),
		"yaml_dquote": str(dquote),
		"yaml_squote": str(func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }),
		"yaml_encode": simple(yamlEncode),
		"to_bool":     simple(toBool),
		"quote":       str(shellQuote),
		"regex_escape": str(func(s string) string {
			return py.ReEscape(s)
		}),
		"regex_search":  regexFilter(false),
		"regex_match":   regexFilter(true),
		"regex_replace": regexReplace,
		"sequence": simple(func(v any, _ []any) (any, error) {
			switch v.(type) {
			case *py.List, py.Tuple, *py.Dict:
				return v, nil
			}
			return py.NewList(v), nil
		}),
		"traverse":      simple(traverseFilter),
		"is_list":       simple(func(v any, _ []any) (any, error) { _, ok := v.(*py.List); return ok, nil }),
		"is_iter":       simple(func(v any, _ []any) (any, error) { return isIter(v), nil }),
		"base64_encode": str(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		"base64_decode": simple(func(v any, _ []any) (any, error) {
			b, err := base64.StdEncoding.DecodeString(py.Str(v))
			if err != nil {
				return nil, py.Errorf(py.ValueError, "the text is not base64")
			}
			return string(b), nil
		}),
		"md5":    sum(func(b []byte) []byte { s := md5.Sum(b); return s[:] }),
		"sha1":   sum(func(b []byte) []byte { s := sha1.Sum(b); return s[:] }),
		"sha256": sum(func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }),
		"sha512": sum(func(b []byte) []byte { s := sha512.Sum512(b); return s[:] }),
		"hmac_compute": simple(func(v any, args []any) (any, error) {
			h := hmac.New(sha512.New, []byte(py.Str(arg(args, 0, ""))))
			if a := py.Str(arg(args, 1, "sha256")); a == "sha256" {
				h = hmac.New(sha256.New, []byte(py.Str(arg(args, 0, ""))))
			}
			h.Write([]byte(py.Str(v)))
			return hex.EncodeToString(h.Sum(nil)), nil
		}),
		"contains_whitespace": simple(func(v any, _ []any) (any, error) { return strings.ContainsAny(py.Str(v), " \t\n\r\v\f"), nil }),
		"substring_in_list": simple(func(v any, args []any) (any, error) {
			l, _ := arg(args, 0, nil).(*py.List)
			if l != nil {
				for _, x := range l.Items() {
					if strings.Contains(py.Str(x), py.Str(v)) {
						return true, nil
					}
				}
			}
			return false, nil
		}),
		"to_num":           simple(toNum),
		"to_bytes":         str(func(s string) string { return s }),
		"flatten":          simple(flatten),
		"combine_dicts":    simple(combine),
		"exactly_n_true":   simple(func(v any, args []any) (any, error) { return exactly(v, py.Str(arg(args, 0, int64(1)))), nil }),
		"exactly_one_true": simple(func(v any, _ []any) (any, error) { return exactly(v, "1"), nil }),
		"dict_to_sls_yaml_params": simple(func(v any, _ []any) (any, error) {
			d, ok := v.(*py.Dict)
			if !ok {
				return nil, py.Errorf(py.TypeError, "dict_to_sls_yaml_params needs a dict")
			}
			l := py.NewList()
			for _, e := range d.Items() {
				l.Append(py.NewDict(e.Key, e.Value))
			}
			return saltyaml.Dump(l, saltyaml.DumpOptions{})
		}),
		"path_join": simple(func(v any, args []any) (any, error) {
			out := py.Str(v)
			for _, a := range args {
				p := py.Str(a)
				if strings.HasPrefix(p, "/") {
					out = p
				} else {
					out = strings.TrimSuffix(out, "/") + "/" + p
				}
			}
			return out, nil
		}),
		"ifelse": simple(func(v any, args []any) (any, error) {
			if len(args) == 0 {
				return v, nil
			}
			return args[len(args)-1], nil
		}),
		"set_dict_key_value":    dictKey(func(_, v any) any { return v }),
		"update_dict_key_value": dictKey(updateValue),
		"append_dict_key_value": dictKey(appendValue),
		"extend_dict_key_value": dictKey(extendValue),
		"strftime":              simple(strftime),
		"date_format":           simple(strftime),
		"raise": simple(func(v any, _ []any) (any, error) {
			return nil, errors.New(py.Str(v))
		}),
	}
	delete(f, "ifelse")
	for name, fn := range setFilters() {
		f[name] = fn
	}
	return f
}

// tests are those that Salt adds.
func tests() map[string]jinja.TestFunc {
	return map[string]jinja.TestFunc{
		"match": func(_ *jinja.Context, v any, args []any, kw *py.Dict) (bool, error) {
			re, err := compileRegex(py.Str(arg(args, 0, "")), flagsOf(args, kw, 1), true)
			if err != nil {
				return false, err
			}
			return re.MatchString(py.Str(v)), nil
		},
		"list": func(_ *jinja.Context, v any, _ []any, _ *py.Dict) (bool, error) {
			_, ok := v.(*py.List)
			return ok, nil
		},
	}
}

func jsonFilter(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
	opt := py.JSONOptions{SortKeys: py.Truth(kwOr(args, kw, 0, "sort_keys", true)), Unicode: true}
	if ind := kwOr(args, kw, 1, "indent", nil); ind != nil {
		opt.Pretty = true
		opt.Indent = py.Str(ind)
		if n, err := py.Index(ind); err == nil && n >= 0 && n < 64 {
			opt.Indent = strings.Repeat(" ", int(n))
		}
	}
	return py.ToJSON(v, opt)
}

func yamlFilter(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
	style := saltyaml.FlowStyle
	if !py.Truth(kwOr(args, kw, 0, "flow_style", true)) {
		style = saltyaml.BlockStyle
	}
	s, err := saltyaml.Dump(v, saltyaml.DumpOptions{Flow: style})
	if err != nil {
		return nil, err
	}
	s = strings.TrimSpace(s)
	s = strings.TrimSuffix(s, "\n...")
	return s, nil
}

func kwOr(args []any, kw *py.Dict, i int, name string, def any) any {
	if v, ok := kw.GetStr(name); ok {
		return v
	}
	return arg(args, i, def)
}

// dquote writes a text as a double-quoted YAML scalar on one line.
func dquote(s string) string {
	out, err := py.ToJSON(s, py.JSONOptions{Unicode: true})
	if err != nil {
		return `""`
	}
	return out
}

func yamlEncode(v any, _ []any) (any, error) {
	switch v.(type) {
	case *py.Dict, *py.List, py.Tuple:
		return nil, py.Errorf(py.TypeError, "yaml_encode() can only be used with YAML scalar data")
	}
	s, err := saltyaml.Dump(v, saltyaml.DumpOptions{})
	if err != nil {
		return nil, err
	}
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\n..."), nil
}

func toBool(v any, _ []any) (any, error) {
	switch x := v.(type) {
	case nil:
		return false, nil
	case bool:
		return x, nil
	case string:
		switch strings.ToLower(x) {
		case "yes", "1", "true":
			return true, nil
		}
		return false, nil
	case int64:
		return x > 0, nil
	case *py.List:
		return x.Len() > 0, nil
	case *py.Dict:
		return x.Len() > 0, nil
	}
	return py.Truth(v), nil
}

// shellQuote is shlex.quote.
func shellQuote(s string) string {
	safe := regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	if safe.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

type flags struct{ ignorecase, multiline bool }

func flagsOf(args []any, kw *py.Dict, at int) flags {
	return flags{py.Truth(kwOr(args, kw, at, "ignorecase", false)), py.Truth(kwOr(args, kw, at+1, "multiline", false))}
}

func compileRegex(expr string, fl flags, atStart bool) (*regexp.Regexp, error) {
	expr = strings.ReplaceAll(expr, "(?P=", "(?P=")
	if atStart {
		expr = `\A(?:` + expr + `)`
	}
	set := ""
	if fl.ignorecase {
		set += "i"
	}
	if fl.multiline {
		set += "m"
	}
	if set != "" {
		expr = "(?" + set + ")" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, py.Errorf(py.ValueError, "the regular expression is not supported: %s", regexReason(err))
	}
	return re, nil
}

func regexReason(err error) string {
	var e interface{ Error() string } = err
	s := e.Error()
	if i := strings.Index(s, ": `"); i > 0 {
		return s[:i]
	}
	return s
}

func regexFilter(atStart bool) jinja.FilterFunc {
	return func(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
		re, err := compileRegex(py.Str(kwOr(args, kw, 0, "rgx", "")), flagsOf(args, kw, 1), atStart)
		if err != nil {
			return nil, err
		}
		m := re.FindStringSubmatchIndex(py.Str(v))
		if m == nil {
			return nil, nil
		}
		out := py.Tuple{}
		s := py.Str(v)
		for i := 2; i+1 < len(m); i += 2 {
			if m[i] < 0 {
				out = append(out, nil)
			} else {
				out = append(out, s[m[i]:m[i+1]])
			}
		}
		return out, nil
	}
}

func regexReplace(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
	re, err := compileRegex(py.Str(kwOr(args, kw, 0, "rgx", "")), flagsOf(args, kw, 2), false)
	if err != nil {
		return nil, err
	}
	val := py.Str(kwOr(args, kw, 1, "val", ""))
	group := regexp.MustCompile(`\\(\d+)|\\g<(\w+)>`)
	val = strings.ReplaceAll(val, "$", "$$")
	val = group.ReplaceAllString(val, "$${$1$2}")
	return re.ReplaceAllString(py.Str(v), val), nil
}

func traverseFilter(v any, args []any) (any, error) {
	out, ok := py.Traverse(v, py.Str(arg(args, 0, "")), py.Str(arg(args, 2, ":")))
	if !ok {
		return arg(args, 1, nil), nil
	}
	return out, nil
}

func isIter(v any) bool {
	switch v.(type) {
	case *py.List, *py.Dict, py.Tuple, py.Iterable:
		return true
	}
	return false
}

func toNum(v any, _ []any) (any, error) {
	if s, ok := v.(string); ok {
		if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
			return n, nil
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	return v, nil
}

func flatten(v any, args []any) (any, error) {
	levels := int64(-1)
	if l := arg(args, 0, nil); l != nil {
		n, err := py.Index(l)
		if err != nil {
			return nil, err
		}
		levels = n
	}
	out := py.NewList()
	var walk func(v any, depth int64)
	walk = func(v any, depth int64) {
		items, ok := itemsOf(v)
		if !ok {
			if v != nil {
				out.Append(v)
			}
			return
		}
		for _, x := range items {
			if _, nested := itemsOf(x); nested && (levels < 0 || depth < levels) {
				walk(x, depth+1)
			} else if x != nil {
				out.Append(x)
			}
		}
	}
	walk(v, 0)
	return out, nil
}

func itemsOf(v any) ([]any, bool) {
	switch x := v.(type) {
	case *py.List:
		return x.Items(), true
	case py.Tuple:
		return x, true
	}
	return nil, false
}

func combine(v any, args []any) (any, error) {
	d, ok := v.(*py.Dict)
	if !ok {
		return nil, py.Errorf(py.TypeError, "combine needs a dict")
	}
	out := py.DeepCopy(d).(*py.Dict)
	for _, a := range args {
		if x, ok := a.(*py.Dict); ok {
			modules.Merge(out, x, false)
		}
	}
	return out, nil
}

func exactly(v any, n string) bool {
	items, _ := itemsOf(v)
	count := 0
	for _, x := range items {
		if py.Truth(x) {
			count++
		}
	}
	return strconv.Itoa(count) == n
}
