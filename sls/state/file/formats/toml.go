package formats

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// The text of TOML as the Python package toml 0.10.2 writes it, which Salt uses, including that package's errors.
// Source: github.com/uiri/toml, toml/encoder.py.

var tomlBare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Toml is toml.dumps.
func Toml(data any) (string, error) {
	text, sections, err := tomlSections(data, "")
	if err != nil {
		return "", err
	}
	for sections.Len() > 0 {
		next := py.NewDict()
		for _, e := range sections.Items() {
			name := e.Key.(string)
			body, inner, err := tomlSections(e.Value, name)
			if err != nil {
				return "", err
			}
			if body != "" || inner.Len() == 0 {
				if text != "" && !strings.HasSuffix(text, "\n\n") {
					text += "\n"
				}
				text += "[" + name + "]\n" + body
			}
			for _, i := range inner.Items() {
				next.SetStr(name+"."+i.Key.(string), i.Value)
			}
		}
		sections = next
	}
	return text, nil
}

// tomlSections returns a table's own text, and the tables in it.
func tomlSections(data any, above string) (text string, tables *py.Dict, err error) {
	if above != "" && !strings.HasSuffix(above, ".") {
		above += "."
	}
	tables = py.NewDict()
	d, ok := data.(*py.Dict)
	if !ok {
		return "", nil, tomlNoTable(data)
	}
	var own, arrays strings.Builder
	for _, e := range d.Items() {
		key, isText := e.Key.(string)
		if !isText {
			return "", nil, core.Errorf("%s", py.Repr(py.Str(e.Key))) // the key is looked up as a string
		}
		name := key
		if !tomlBare.MatchString(strings.TrimSuffix(key, "\n")) { // $ of Python is before the last line end, too
			if name, err = tomlString(key); err != nil {
				return "", nil, err
			}
		}
		if _, isTable := e.Value.(*py.Dict); isTable {
			tables.SetStr(name, e.Value)
			continue
		}
		if l, isList := e.Value.(*py.List); isList && holdsTable(l) {
			for _, it := range l.Items() {
				if err := tomlArray(&arrays, it, above+name); err != nil {
					return "", nil, err
				}
			}
			continue
		}
		if e.Value == nil {
			continue
		}
		value, err := tomlValue(e.Value)
		if err != nil {
			return "", nil, err
		}
		own.WriteString(name + " = " + value + "\n")
	}
	return own.String() + arrays.String(), tables, nil
}

// tomlNoTable returns Python's error for a value that is used as a table.
func tomlNoTable(v any) error {
	switch x := v.(type) {
	case string:
		if x == "" {
			return nil
		}
		return core.Errorf("string indices must be integers, not 'str'")
	case *py.List:
		if x.Len() == 0 {
			return nil
		}
		return core.Errorf("list indices must be integers or slices, not str")
	}
	return core.Errorf("'%s' object is not iterable", py.TypeName(v))
}

func holdsTable(l *py.List) bool {
	return slices.ContainsFunc(l.Items(), func(it any) bool { _, ok := it.(*py.Dict); return ok })
}

// tomlArray writes one table of an array of tables.
func tomlArray(b *strings.Builder, table any, name string) error {
	b.WriteString("[[" + name + "]]\n")
	text, inner, err := tomlSections(table, name)
	if err != nil {
		return err
	}
	after := "\n"
	if strings.HasPrefix(text, "[") {
		after += text
	} else {
		b.WriteString(text)
	}
	for inner.Len() > 0 {
		next := py.NewDict()
		for _, e := range inner.Items() {
			sub := e.Key.(string)
			text, more, err := tomlSections(e.Value, name+"."+sub)
			if err != nil {
				return err
			}
			if text != "" {
				after += "[" + name + "." + sub + "]\n" + text
			}
			for _, m := range more.Items() {
				next.SetStr(sub+"."+m.Key.(string), m.Value)
			}
		}
		inner = next
	}
	b.WriteString(after)
	return nil
}

func tomlValue(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return tomlString(x)
	case bool:
		return strings.ToLower(py.Str(x)), nil
	case float64:
		return strings.NewReplacer("e+0", "e+", "e-0", "e-").Replace(py.Str(x)), nil
	case nil:
		return `"None"`, nil
	case *py.List:
		return tomlList(x.Items())
	case py.Tuple:
		return tomlList(x)
	case *py.Dict: // in a list of lists
		return tomlList(x.Keys())
	}
	if py.IsInt(v) {
		return py.Str(v), nil
	}
	return "", core.Errorf("a %s has no form in TOML", py.TypeName(v))
}

func tomlList(items []any) (string, error) {
	var b strings.Builder
	b.WriteByte('[')
	for _, it := range items {
		s, err := tomlValue(it)
		if err != nil {
			return "", err
		}
		b.WriteString(" " + s + ",")
	}
	return b.String() + "]", nil
}

// tomlString is _dump_str, which converts the escapes of Python's repr to those of TOML, or fails to.
func tomlString(s string) (string, error) {
	v := py.Repr(s)
	single := strings.HasPrefix(v, "'")
	if v = v[1 : len(v)-1]; single {
		v = strings.ReplaceAll(strings.ReplaceAll(v, `\'`, "'"), `"`, `\"`)
	}
	parts := strings.Split(v, `\x`)
	for len(parts) > 1 {
		if parts[0] == "" {
			parts = parts[1:]
		}
		head := strings.ReplaceAll(parts[0], `\\`, `\`)
		switch {
		case head == "":
			return "", core.Errorf("string index out of range")
		case len(parts) == 1:
			return "", core.Errorf("list index out of range")
		}
		i := len(head) - 1
		joiner := head[i] != '\\'
		for i > 0 && head[i] == '\\' {
			joiner = !joiner
			i--
		}
		join := "u00"
		if joiner {
			join = "x"
		}
		parts = append([]string{head + join + parts[1]}, parts[2:]...)
	}
	return `"` + parts[0] + `"`, nil
}
