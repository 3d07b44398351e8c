package schema

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// Type is the type of a value.
type Type string

// The types.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	List    Type = "list"
	Mapping Type = "mapping"
	// JSON is a list or a mapping.
	JSON Type = "json"
)

// Types returns all types.
func Types() []Type { return []Type{String, Integer, Number, Boolean, List, Mapping, JSON} }

// Field is the declaration of one value.
type Field struct {
	// Name is the path of the key: "port", "db.password".
	Name        string
	Type        Type
	Description string
	// Default is used if no value is given; HasDefault distinguishes null from none.
	Default    any
	HasDefault bool
	// Secret values are never shown or recorded.
	Secret bool
	// Error makes the step fail if this output is not empty.
	Error       bool
	Constraints []Constraint
	// Line is the line of its declaration.
	Line int
}

// Path returns the name as a list of keys.
func (f *Field) Path() []string { return strings.Split(f.Name, ".") }

// Check returns what is wrong with a value, "" if nothing is. It never shows the value.
func (f *Field) Check(v any) string {
	if v == nil && f.HasDefault && f.Default == nil {
		return ""
	}
	if why := f.Type.check(v); why != "" {
		return why
	}
	for _, c := range f.Constraints {
		if why := c.check(v); why != "" {
			return why
		}
	}
	return ""
}

// check returns what is wrong with the type of a value.
func (t Type) check(v any) string {
	ok := false
	switch v := v.(type) {
	case string:
		ok = t == String
	case bool:
		ok = t == Boolean
	case int64, *big.Int:
		ok = t == Integer || t == Number
	case float64:
		ok = t == Number && !math.IsNaN(v) && !math.IsInf(v, 0)
	case *py.List:
		ok = t == List || t == JSON
	case *py.Dict:
		ok = t == Mapping || t == JSON
	}
	if ok {
		return ""
	}
	why := "must be " + t.article()
	switch text, isText := v.(string); {
	case v == nil:
		return why + ", and has no value"
	case t == Number && py.TypeName(v) == "float":
		return why + " that is finite"
	case isText && (t == Integer || t == Number) && isNumber(text), isText && t == Boolean && isBoolean(text):
		return why + ", not a text: write it without quotes"
	case t == String && (py.IsNumber(v) || py.TypeName(v) == "bool"):
		return why + ": put it into quotes"
	}
	return why + ", not " + ofValue(v)
}

func isNumber(text string) bool {
	_, err := py.ToFloat(text)
	return err == nil
}

func isBoolean(text string) bool {
	return slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(text))
}

// article returns the type with its article.
func (t Type) article() string {
	switch t {
	case Integer:
		return "an integer"
	case String:
		return "a text"
	case Boolean:
		return "true or false"
	case JSON:
		return "a list or a mapping"
	}
	return "a " + string(t)
}

// ofValue names the type of a value.
func ofValue(v any) string {
	switch v.(type) {
	case string:
		return String.article()
	case bool:
		return Boolean.article()
	case int64, *big.Int:
		return Integer.article()
	case float64:
		return Number.article()
	case *py.List:
		return List.article()
	case *py.Dict:
		return Mapping.article()
	}
	return py.TypeName(v)
}

// length returns what a constraint of length counts: the characters of a string, the items of a list, the keys of a
// mapping.
func length(v any) (n int, of string, ok bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), "characters", true
	case *py.List:
		return v.Len(), "items", true
	case *py.Dict:
		return v.Len(), "keys", true
	}
	return 0, "", false
}

// reader reads the declarations of one file.
type reader struct {
	file string
	doc  *saltyaml.Doc
	// output reports that the fields are outputs.
	output bool
}

// maxFile and maxFields limit what one file may declare.
const (
	maxFile   = 1 << 20
	maxFields = 1000
)

// open parses a file, whose top level is a mapping; root is nil for an empty file.
func open(file string, src []byte) (r *reader, root *saltyaml.Node, err error) {
	doc, err := saltyaml.Parse(file, src, saltyaml.Options{MaxBytes: maxFile, MaxDepth: 50})
	if err != nil {
		return nil, nil, err
	}
	r = &reader{file: file, doc: doc}
	if doc.Root != nil && doc.Root.Kind != saltyaml.Mapping {
		return nil, nil, r.bad(doc.Root, "the file must be a mapping of names").WithHint("as in  port: {type: integer, default: 8080}")
	}
	return r, doc.Root, nil
}

func (r *reader) bad(at *saltyaml.Node, format string, args ...any) *fault.Error {
	return fault.New(fault.Failed, "read "+r.file, format, args...).WithPos(r.doc.Pos(at))
}

// text returns the text of a node.
func (r *reader) text(n *saltyaml.Node, what string) (string, error) {
	s, ok := n.Value.(string)
	if !ok {
		return "", r.bad(n, "%s must be a text", what)
	}
	return s, nil
}

func (r *reader) boolean(n *saltyaml.Node, what string) (bool, error) {
	b, ok := n.Value.(bool)
	if !ok {
		return false, r.bad(n, "%s must be true or false", what)
	}
	return b, nil
}

// keys returns the keys that a declaration may have.
func (r *reader) keys() []string {
	keys := []string{"type", "default", "description", "constraints", "secret"}
	if r.output {
		keys = append(keys, "error_output")
	}
	return keys
}

// unknown refuses a key.
func (r *reader) unknown(at *saltyaml.Node, key string, known []string) error {
	e := r.bad(at, "unknown key %s", key).WithHint("the keys are: %s", strings.Join(known, ", "))
	if n := nearest.To(key, known); n != "" {
		e = e.WithHint("did you mean  %s?", n).WithFix(key, n)
	}
	return e
}

// field reads one declaration.
func (r *reader) field(name, n *saltyaml.Node) (*Field, error) {
	f := &Field{Type: String, Line: name.Line}
	var err error
	if f.Name, err = r.text(name, "a name"); err != nil {
		return nil, err
	}
	if !validName(f.Name) {
		return nil, r.bad(name, "a name has letters, digits, _ and -, with dots between the keys of mappings")
	}
	if n.Kind == saltyaml.Scalar { // port: integer
		return f, r.typed(f, n)
	}
	if n.Kind != saltyaml.Mapping {
		return nil, r.bad(n, "%s must be a mapping with type, default, description, constraints or secret", f.Name)
	}
	var def, constraints *saltyaml.Node
	for i, k := range n.Keys {
		v := n.Items[i]
		key := py.Str(k.Value)
		if !slices.Contains(r.keys(), key) {
			return nil, r.unknown(k, key, r.keys())
		}
		switch key {
		case "type":
			err = r.typed(f, v)
		case "description":
			f.Description, err = r.text(v, key)
		case "secret":
			f.Secret, err = r.boolean(v, key)
		case "error_output":
			f.Error, err = r.boolean(v, key)
		case "default":
			def = v
		case "constraints":
			constraints = v
		}
		if err != nil {
			return nil, err
		}
	}
	if constraints != nil {
		if err := r.constraints(f, constraints); err != nil {
			return nil, err
		}
	}
	return f, r.preset(f, def)
}

// typed reads a type; Heat's names of types are accepted, too.
func (r *reader) typed(f *Field, n *saltyaml.Node) error {
	s, err := r.text(n, "type")
	if err != nil {
		return err
	}
	t := Type(strings.ToLower(s))
	switch t {
	case "comma_delimited_list", "commadelimitedlist":
		t = List
	}
	if !slices.Contains(Types(), t) {
		var names []string
		for _, t := range Types() {
			names = append(names, string(t))
		}
		e := r.bad(n, "unknown type %s", s).WithHint("the types are: %s", strings.Join(names, ", "))
		if near := nearest.To(s, names); near != "" {
			e = e.WithHint("did you mean  %s?", near).WithFix(s, near)
		}
		return e
	}
	f.Type = t
	return nil
}

// preset reads the default, which must be an allowed value.
func (r *reader) preset(f *Field, n *saltyaml.Node) error {
	if n == nil {
		return nil
	}
	f.Default, f.HasDefault = n.Value, true
	if f.Default == nil {
		return nil
	}
	text, isText := f.Default.(string)
	if why := f.Check(f.Default); why != "" && !(isText && f.Type == String && strings.Contains(text, "{")) { // a {reference} is checked when it is resolved
		return r.bad(n, "the default of %s %s", f.Name, why)
	}
	if f.Secret && !r.output && f.Default != "" {
		return r.bad(n, "%s is secret, but its default is in the code, which everybody can read", f.Name).
			WithHint("remove the default and set the value in the pillar;  default: null  makes it optional")
	}
	return nil
}

// validName reports whether a name consists of keys separated by dots.
func validName(name string) bool {
	for _, part := range strings.Split(name, ".") {
		if part == "" || len(part) > 200 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return false
		}
	}
	return len(name) <= 500
}
