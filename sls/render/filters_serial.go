package render

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls/jinja"
)

// notSupported returns the error for what Salt supports and this package does not.
func notSupported(what string) error { return jinja.Lack(what) }

func serialFilters() map[string]filter {
	return map[string]filter{
		"json":   {passes, 1, []string{"value", "sort_keys", "indent"}, jsonFilter},
		"tojson": {passes, 1, []string{"val", "indent", "sort_keys", "ensure_ascii", "separators"}, toJSON},
		"yaml": {passes, 1, []string{"value", "flow_style"}, func(c call) (any, error) {
			return toYAML(c, c.a[0], c.given(1, true))
		}},
		"python": {passes, 1, []string{"value"}, func(c call) (any, error) {
			s, err := c.Ops().Pformat(c.a[0])
			return jinja.Markup(py.Strip(s)), err
		}},
		"dict_to_sls_yaml_params": {passes, 1, []string{"value", "flow_style"}, slsParams},
		"yaml_dquote":             simple(quoted(func(s string) string { return saltyaml.DoubleQuoted(s, true) })),
		"yaml_squote":             simple(quoted(saltyaml.SingleQuoted)),
		"yaml_encode":             simple(yamlEncode),
		"load_yaml":               {passes, 1, []string{"value"}, loader(loadYAML, false)},
		"load_json":               {passes, 1, []string{"value"}, loader(loadJSON, true)},
		"load_text": {passes, 1, []string{"value"}, func(c call) (any, error) {
			if py.TypeName(c.a[0]) == "TemplateModule" {
				return c.Ops().Str(c.a[0])
			}
			return c.a[0], nil
		}},
	}
}

func jsonFilter(c call) (any, error) {
	sorted, err := c.truth(1, true)
	if err != nil {
		return nil, err
	}
	opt := py.JSONOptions{SortKeys: sorted, Unicode: true}
	if err := jinja.JSONIndent(&opt, c.given(2, nil)); err != nil {
		return nil, err
	}
	s, err := c.Ops().ToJSON(c.a[0], opt)
	return jinja.Markup(py.Strip(s)), err
}

// safeJSON replaces the characters that are special in HTML, for tojson.
var safeJSON = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`)

// toJSON is Salt's tojson: keys keep their order, and options of json.dumps are accepted.
func toJSON(c call) (any, error) {
	var opt py.JSONOptions
	if err := jinja.JSONIndent(&opt, c.given(1, nil)); err != nil {
		return nil, err
	}
	var err error
	if opt.SortKeys, err = c.truth(2, false); err != nil {
		return nil, err
	}
	ascii, err := c.truth(3, true)
	if err != nil {
		return nil, err
	}
	opt.Unicode = !ascii
	if sep := c.given(4, nil); sep != nil {
		two, err := c.Ops().Slice(sep)
		if err != nil || len(two) != 2 {
			return nil, typeError("two separators", sep)
		}
		if opt.ItemSep, err = text(two[0]); err != nil {
			return nil, err
		}
		if opt.KeySep, err = text(two[1]); err != nil {
			return nil, err
		}
	}
	s, err := c.Ops().ToJSON(c.a[0], opt)
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(len(s) + 5*strings.Count(s, "'")); err != nil {
		return nil, err
	}
	return safeJSON.Replace(s), nil
}

// toYAML is salt.utils.yaml.safe_dump without the end of the document.
func toYAML(c call, v, flow any) (any, error) {
	style := saltyaml.BlockStyle
	on, err := py.TruthOf(flow)
	if err != nil {
		return nil, err
	}
	switch {
	case flow == nil:
		style = saltyaml.AutoStyle
	case on:
		style = saltyaml.FlowStyle
	}
	size, err := c.Ops().Str(v) // charged, and deep values refused
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Work(50 * len(size)); err != nil {
		return nil, err
	}
	s, err := saltyaml.Dump(v, saltyaml.DumpOptions{Flow: style})
	if err != nil {
		return nil, err
	}
	s = strings.TrimSuffix(py.Strip(s), "\n...")
	return jinja.Markup(s), c.Ops().Alloc(len(s))
}

func slsParams(c call) (any, error) {
	d, ok := c.a[0].(*py.Dict)
	if !ok {
		return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'items'", py.TypeName(c.a[0]))
	}
	l := py.NewList()
	for _, e := range d.Items() {
		l.Append(py.NewDict(e.Key, e.Value))
	}
	if u, ok, err := jinja.JoinUndefined(c.Context, l); ok || err != nil {
		return u, err
	}
	return toYAML(c, l, c.given(1, false))
}

func quoted(write func(s string) string) func(c call) (any, error) {
	return func(c call) (any, error) {
		s, err := c.Ops().Str(c.a[0])
		if err != nil {
			return nil, err
		}
		if err := c.Ops().Alloc(10 * len(s)); err != nil {
			return nil, err
		}
		return write(s), nil
	}
}

func yamlEncode(c call) (any, error) {
	switch x := c.a[0].(type) {
	case string:
		if err := c.Ops().Alloc(10 * len(x)); err != nil {
			return nil, err
		}
		return saltyaml.DoubleQuoted(x, true), nil
	case nil, bool, float64:
	default:
		if !py.IsInt(x) {
			return nil, py.Errorf(py.TypeError, "yaml_encode() only works with YAML scalar data; failed for a %s", py.TypeName(x))
		}
	}
	s, err := saltyaml.Dump(c.a[0], saltyaml.DumpOptions{})
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\n..."), err
}

// loader returns a load_ filter: its input is text, or a template that was imported. libyaml's loader accepts no
// Markup.
func loader(load jinja.DataLoader, markup bool) func(c call) (any, error) {
	return func(c call) (any, error) {
		switch v := c.a[0].(type) {
		case string:
			return load(c.Context, v)
		case py.Bytes:
			return load(c.Context, string(v))
		case jinja.Markup:
			if markup {
				return load(c.Context, string(v))
			}
		}
		if py.TypeName(c.a[0]) != "TemplateModule" {
			return nil, typeError("a text", c.a[0])
		}
		s, err := c.Ops().Str(c.a[0])
		if err != nil {
			return nil, err
		}
		return load(c.Context, s)
	}
}

// printed is Salt's PrintableDict: YAML reads back a string with a line feed or a tab unchanged.
func printed(o *py.Ops, v any) (string, error) {
	return o.Printable(v, func(s string) (string, bool) {
		if !strings.ContainsAny(s, "\n\r\t") {
			return "", false
		}
		return saltyaml.DoubleQuoted(s, false), true
	})
}
