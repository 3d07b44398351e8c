package schema

import (
	"strings"

	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
)

// InputsFile is the file in which a recipe declares its inputs.
const InputsFile = "inputs.yaml"

// Inputs are the values that a project takes, all below data of its configuration. A nil *Inputs declares nothing, and accepts everything.
type Inputs struct {
	// File is the name of the file in messages.
	File   string
	Fields []*Field
}

// ParseInputs reads .salt/inputs.yaml; file is its name in messages. Errors are fault.Failed with the position.
func ParseInputs(file string, src []byte) (*Inputs, error) {
	r, root, err := open(file, src)
	if err != nil {
		return nil, err
	}
	in := &Inputs{File: file}
	if root == nil {
		return in, nil
	}
	if len(root.Keys) > maxFields {
		return nil, r.bad(root, "more than %d inputs", maxFields)
	}
	for i, k := range root.Keys {
		f, err := r.field(k, root.Items[i])
		if err != nil {
			return nil, err
		}
		for _, other := range in.Fields {
			if strings.HasPrefix(f.Name+".", other.Name+".") || strings.HasPrefix(other.Name+".", f.Name+".") {
				return nil, r.bad(k, "%s and %s overlap", other.Name, f.Name).WithHint("declare either the mapping or its keys")
			}
		}
		in.Fields = append(in.Fields, f)
	}
	return in, nil
}

// Field returns the declaration of the value at a path below data, or of a mapping that contains it; nil if there is none.
func (in *Inputs) Field(path []string) *Field {
	if in == nil {
		return nil
	}
	name := strings.Join(path, ".") + "."
	for _, f := range in.Fields {
		if strings.HasPrefix(name, f.Name+".") {
			return f
		}
	}
	return nil
}

// Secret reports whether a secret is declared at a path below data, or in a mapping that contains it, or below it.
func (in *Inputs) Secret(path []string) bool {
	if in == nil {
		return false
	}
	name := strings.Join(path, ".") + "."
	for _, f := range in.Fields {
		if f.Secret && (strings.HasPrefix(name, f.Name+".") || strings.HasPrefix(f.Name+".", name)) {
			return true
		}
	}
	return false
}

// Nearest returns the input that was probably meant, "" if none is similar.
func (in *Inputs) Nearest(path []string) string {
	var names []string
	for _, f := range in.Fields {
		names = append(names, f.Name)
	}
	if n := nearest.To(strings.Join(path, "."), names); n != "" {
		return n
	}
	var last []string // misplaced: db.port instead of port
	for _, f := range in.Fields {
		last = append(last, f.Path()[len(f.Path())-1])
	}
	if n := nearest.To(path[len(path)-1], last); n != "" {
		for i, l := range last {
			if l == n {
				return names[i]
			}
		}
	}
	return ""
}

// Defaults returns the default values, as they are below data. With all, inputs without a default have an empty value.
func (in *Inputs) Defaults(all bool) *py.Dict {
	out := py.NewDict()
	if in == nil {
		return out
	}
	for _, f := range in.Fields {
		switch {
		case f.HasDefault:
			put(out, f.Path(), py.DeepCopy(f.Default))
		case all:
			put(out, f.Path(), f.Type.empty())
		}
	}
	return out
}

// empty returns the empty value of a type.
func (t Type) empty() any {
	switch t {
	case Integer, Number:
		return int64(0)
	case Boolean:
		return false
	case List:
		return py.NewList()
	case Mapping, JSON:
		return py.NewDict()
	}
	return ""
}

func put(d *py.Dict, path []string, v any) {
	for _, key := range path[:len(path)-1] {
		sub, ok := d.GetStr(key)
		if next, isDict := sub.(*py.Dict); ok && isDict {
			d = next
			continue
		}
		next := py.NewDict()
		d.SetStr(key, next)
		d = next
	}
	d.SetStr(path[len(path)-1], v)
}

// Secrets returns the strings to hide for a declared secret, including numbers; whose is input or output. A value of fewer than redact.MinBytes bytes cannot be hidden.
func Secrets(whose, label string, v any) []redact.Secret {
	var out []redact.Secret
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case nil, bool:
		case *py.List:
			for _, x := range v.Items() {
				walk(x)
			}
		case *py.Dict:
			for _, x := range v.Items() {
				walk(x.Value)
			}
		default:
			out = append(out, redact.Secret{Label: label, Value: py.Str(v), Whose: whose})
		}
	}
	walk(v)
	return out
}
