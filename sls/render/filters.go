package render

import (
	"maps"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// call is what a filter is called with: its value first, then its arguments in the order of its parameters, py.Unset where
// one was not given.
type call struct {
	*jinja.Context
	a []any
}

// given returns an argument, or its default.
func (c call) given(i int, dflt any) any {
	if py.Given(c.a[i]) {
		return c.a[i]
	}
	return dflt
}

func (c call) truth(i int, dflt bool) (bool, error) { return py.TruthOf(c.given(i, dflt)) }

// text returns an argument that must be a str.
func (c call) text(i int) (string, error) { return text(c.a[i]) }

// text returns a value that must be a str.
func text(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case jinja.Markup:
		return string(x), nil
	}
	return "", typeError("str", v)
}

// typeError returns the error for a value of the wrong type.
func typeError(want string, v any) error {
	if f, ok := v.(py.Failer); ok {
		return f.Fail()
	}
	return py.Errorf(py.TypeError, "expected %s, got '%s'", want, py.TypeName(v))
}

// rule says what a filter does with undefined values.
type rule uint8

const (
	// The zero rule refuses: an undefined value or argument is an error.
	_ rule = iota
	// passes: a value that is undefined, or contains something undefined, makes the result undefined.
	passes
	// decidesItself: the filter decides what an undefined value means.
	decidesItself
)

// filter is one of Salt's filters: its parameters, including the value, and how many of them are required.
type filter struct {
	undefined rule
	required  int
	params    []string
	fn        func(c call) (any, error)
}

func (f filter) named(name string) jinja.FilterFunc {
	return func(c *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
		if f.undefined == passes {
			if u, ok, err := jinja.JoinUndefined(c, v); ok || err != nil {
				return u, err
			}
		}
		a, err := py.Bind(name, append([]any{v}, args...), kw, f.required, f.params...)
		if err != nil {
			return nil, err
		}
		for _, x := range a {
			if u, ok := x.(py.Failer); ok && f.undefined != decidesItself {
				return nil, u.Fail()
			}
		}
		return f.fn(call{c, a})
	}
}

// simple returns a filter on a value alone.
func simple(fn func(c call) (any, error)) filter {
	return filter{required: 1, params: []string{"value"}, fn: fn}
}

// filters returns the filters that Salt adds, and those of Jinja that it replaces. Source: Salt documentation, "Understanding
// Jinja", Filters; and the behaviour of release 3008, which testdata/expected.json records.
func filters() map[string]jinja.FilterFunc {
	all := map[string]filter{}
	for _, m := range []map[string]filter{textFilters(), regexFilters(), hashFilters(), serialFilters(), seqFilters(), dictFilters(), addressFilters(), randomFilters()} {
		maps.Copy(all, m)
	}
	out := map[string]jinja.FilterFunc{}
	for name, f := range all {
		out[name] = f.named(name)
	}
	maps.Copy(out, iterFilters())
	return out
}

// tests returns the tests that Salt adds.
func tests() map[string]jinja.TestFunc {
	match := filter{required: 2, params: []string{"txt", "rgx", "ignorecase", "multiline"}, fn: func(c call) (any, error) {
		m, err := find(c, true)
		return m != nil, err
	}}.named("match")
	return map[string]jinja.TestFunc{
		"match": func(c *jinja.Context, v any, args []any, kw *py.Dict) (bool, error) {
			r, err := match(c, v, args, kw)
			return r == true, err
		},
		"list": func(_ *jinja.Context, v any, args []any, kw *py.Dict) (bool, error) {
			_, err := py.Bind("is_list", append([]any{v}, args...), kw, 1, "value")
			_, ok := v.(*py.List)
			return ok, err
		},
	}
}

// lacking returns the filters that Salt has and this package does not: they need other programs, the network or the machine's
// files, or are rarely used.
func lacking() map[string]bool {
	out := map[string]bool{}
	for _, n := range Lacking() {
		out["filter "+n] = true
	}
	return out
}

// Lacking returns the names of the filters that Salt has and this package does not.
func Lacking() []string {
	return []string{"dns_check", "file_hashsum", "get_uid", "http_query", "is_bin_file", "is_empty", "is_text_file",
		"json_decode_dict", "json_decode_list", "json_encode_dict", "json_encode_list", "json_query", "list_files", "which", "xml"}
}
