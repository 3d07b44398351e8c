package project

import (
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/project/files"
	"corpus-git/project/schema"
)

// InputErrors are all errors of a project's inputs: each a *fault.Error, without values.
type InputErrors []error

// Error returns the first one, and how many there are.
func (e InputErrors) Error() string { return e[0].Error() }

// Unwrap implements the interface of package errors.
func (e InputErrors) Unwrap() []error { return e }

// typedAs returns the value of a setting: a string stays one if a string is declared, and "a, b" becomes a list if a list is declared.
func typedAs(in *schema.Inputs, path []string, s Setting) any {
	if path[0] != "data" || len(path) == 1 {
		return s.Typed()
	}
	f := in.Field(path[1:])
	switch {
	case f == nil || len(f.Path()) != len(path)-1:
		return s.Typed()
	case f.Type == schema.String:
		return s.Value
	case f.Type == schema.List && !strings.HasPrefix(strings.TrimSpace(s.Value), "["):
		out := py.NewList()
		for item := range strings.SplitSeq(s.Value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out.Append(item)
			}
		}
		return out
	}
	return s.Typed()
}

// hideInputs marks the values of declared secrets as secret, from whichever layer they come, and collects the others.
func (c *Cfg) hideInputs(in CfgInputs) {
	c.inputs = py.NewDict()
	data := c.root.get([]string{"data"})
	if in.Inputs == nil || data.sub == nil {
		return
	}
	for _, f := range in.Inputs.Fields {
		l := data.sub.get(f.Path())
		switch {
		case l == nil:
		case f.Secret:
			l.declareSecret()
			c.hidden = append(c.hidden, schema.Secrets("input", "data."+f.Name, l.whole())...)
		default:
			c.inputs.SetStr(f.Name, py.DeepCopy(l.whole()))
		}
	}
}

func (l *leaf) declareSecret() {
	if l.sub != nil {
		l.sub.each((*leaf).declareSecret)
		return
	}
	l.secret, l.declared = true, true
}

// whole returns the value of a leaf, or the mapping below it.
func (l *leaf) whole() any {
	if l.sub != nil {
		return l.sub.dict()
	}
	return l.value
}

// EmptyInputs returns the inputs that have no value while the pillar may be incomplete.
func (c *Cfg) EmptyInputs() []string { return c.empty }

// InputSecrets returns the values of the inputs that the recipe declares as secret.
func (c *Cfg) InputSecrets() []redact.Secret { return c.hidden }

// Inputs returns the values of the declared inputs, by name, without those that are declared as secret.
func (c *Cfg) Inputs() *py.Dict { return c.inputs }

// maxInputErrors limits the number of undeclared keys that are reported.
const maxInputErrors = 100

// holdInputs checks what the layers set against what the recipe declares. An error is an InputErrors.
func (c *Cfg) holdInputs(in CfgInputs) error {
	if in.Inputs == nil || !in.Hold {
		return nil
	}
	var found InputErrors
	for _, f := range in.Inputs.Fields {
		if err := c.holdInput(in, f); err != nil {
			found = append(found, err)
		}
	}
	for _, u := range c.unknown(in) {
		if u.Layer.FromPillar() || u.Layer == LayerCommand {
			found = append(found, u.undeclared(in))
		}
	}
	data := c.root.get([]string{"data"})
	var walk func(t *tree, path []string)
	walk = func(t *tree, path []string) {
		t.each(func(l *leaf) {
			at := append(slices.Clone(path), py.Str(l.key))
			switch {
			case len(found) >= maxInputErrors:
			case at[0] == "node", in.Inputs.Field(at) != nil: // the server sets the node
			case l.sub != nil && len(l.sub.keys) > 0:
				walk(l.sub, at)
			case l.layer.FromPillar() || l.layer == LayerCommand:
				found = append(found, Unread{Keys: append([]string{"data"}, at...), Layer: l.layer}.undeclared(in))
			}
		})
	}
	walk(data.sub, nil)
	if len(found) > 0 {
		return found
	}
	return nil
}

// holdInput checks one value against its declaration.
func (c *Cfg) holdInput(in CfgInputs, f *schema.Field) error {
	keys := append([]string{"data"}, f.Path()...)
	l := c.root.get(keys)
	if l == nil || l.sub == nil && l.value == nil && !f.HasDefault {
		e := fault.New(fault.Failed, "configuration", "the input %s has no value", f.Name).WithPos(fault.Pos{File: in.Inputs.File, Line: f.Line})
		what := ""
		if f.Description != "" {
			what = " (" + f.Description + ")"
		}
		return e.WithHint("set it%s in the pillar, %s in makina-projects.%s, or for one run with  %s=…", what, strings.Join(keys, "."), in.Name, f.Name)
	}
	if in.Partial && !f.HasDefault && l.nearest(l.layer) == LayerInputs {
		c.empty = append(c.empty, f.Name)
		return nil
	}
	why := f.Check(l.whole())
	if why == "" {
		return nil
	}
	layer := l.nearest(l.layer)
	e := cfgError(layer, strings.Join(keys, "."), "%s", why)
	e.Err = &KeyError{Keys: inFile(layer, keys), Text: why}
	switch layer {
	case LayerInputs:
		e.At.Line = f.Line
	case LayerCommand:
		e.Op = ""
	}
	hint := "it is declared in " + fault.Pos{File: in.Inputs.File, Line: f.Line}.String()
	if f.Description != "" {
		hint += ": " + f.Description
	}
	return e.WithHint("%s", hint)
}

// inFile returns the keys of a value as they are in the file of its layer.
func inFile(layer Layer, keys []string) []string {
	if (layer == LayerPillarEnv || layer == LayerSampleEnv) && keys[0] == "data" {
		return append([]string{"env_defaults"}, keys[1:]...)
	}
	if class := layer.ofClass(); class != "" {
		return append([]string{class}, keys...)
	}
	return keys
}

// Unread is a key that a layer sets.
type Unread struct {
	Keys  []string
	Layer Layer
	// Near is the key that was probably meant, "" if none is near.
	Near string
	// Section: the keys start at the top of the pillar, not in the project's section.
	Section bool
}

// File returns the file of the layer, as messages call it.
func (u Unread) File() string { return cfgError(u.Layer, "", "").At.File }

// InFile returns the keys as the file has them.
func (u Unread) InFile() []string { return inFile(u.Layer, u.Keys) }

// undeclared returns the error for a key that is not an input.
func (u Unread) undeclared(in CfgInputs) error {
	key, near := strings.Join(u.Keys, "."), u.Near
	if u.Keys[0] == "data" && len(u.Keys) > 1 {
		key = strings.Join(u.Keys[1:], ".")
		near = in.Inputs.Nearest(u.Keys[1:])
	}
	says := "this input is not declared in " + in.Inputs.File
	e := cfgError(u.Layer, strings.Join(u.Keys, "."), "%s", says)
	e.Err = &KeyError{Keys: u.InFile(), Text: says}
	if u.Layer == LayerCommand {
		e.Err, e.Op = &KeyError{Keys: []string{key}, Text: says}, ""
	}
	if near != "" {
		return e.WithHint("did you mean  %s?", near)
	}
	return e.WithHint("declare it there, or remove it")
}

// known returns the keys that corpus-git itself reads or sets.
func known(in CfgInputs) []string {
	var out []string
	for _, k := range slices.Concat(cfgKeys(), factKeys()) {
		if name, rest, _ := strings.Cut(k.key, "."); rest == "" && name != "skip_PROCEDURE" {
			out = append(out, name)
		}
	}
	for _, d := range []*py.Dict{defaults(in), facts(in)} {
		for _, k := range d.Keys() {
			if !slices.Contains(out, py.Str(k)) {
				out = append(out, py.Str(k))
			}
		}
	}
	return append(out, "env_class")
}

// unknown returns the keys at the top of a section that corpus-git does not know.
func (c *Cfg) unknown(in CfgInputs) (out []Unread) {
	names := known(in)
	c.root.each(func(l *leaf) {
		key := py.Str(l.key)
		if slices.Contains(names, key) {
			return
		}
		out = append(out, Unread{Keys: []string{key}, Layer: l.nearest(l.layer), Near: nearest.To(key, names)})
	})
	return out
}

// Used is how much of a value something reads.
type Used int

// It reads nothing, the value or its presence and not what is below it, or all of it.
const (
	UsedNone Used = iota
	UsedSelf
	UsedAll
)

// Unread returns the keys of PILLAR.sample, classes.yaml, the pillar, local.yaml and the command line that neither corpus-git reads nor, by used, anything
// else. If nothing below a key is read, only the key itself is returned. None are returned if the recipe declares its inputs.
func (c *Cfg) Unread(used func(keys []string) Used) (out []Unread) {
	var walk func(l *leaf, keys []string)
	walk = func(l *leaf, keys []string) {
		u := used(keys)
		switch {
		case u == UsedAll, files.Read(c.fileList, keys):
		case u == UsedSelf && l.sub != nil:
			l.sub.each(func(b *leaf) { walk(b, append(slices.Clip(keys), py.Str(b.key))) })
		case u == UsedNone:
			near := ""
			if len(keys) == 1 {
				near = nearest.To(keys[0], c.known)
			}
			if layer := l.setBy(); layer != "" {
				out = append(out, Unread{Keys: keys, Layer: layer, Near: near})
			}
		}
	}
	c.root.each(func(l *leaf) {
		switch key := py.Str(l.key); {
		case len(c.known) == 0:
		case key == "data":
			l.sub.each(func(b *leaf) { walk(b, []string{key, py.Str(b.key)}) })
		case !slices.Contains(c.known, key):
			walk(l, []string{key})
		}
	})
	return out
}

// setBy returns the layer of the project that sets a value or something below it, "" if there is none.
func (l *leaf) setBy() (layer Layer) {
	if l.sub != nil {
		l.sub.each(func(b *leaf) {
			if layer == "" {
				layer = b.setBy()
			}
		})
		return layer
	}
	of := []Layer{LayerSample, LayerSampleEnv, LayerSampleOS, LayerCommand}
	if l.value != nil && (l.layer.FromPillar() || l.layer.ofClass() != "" || slices.Contains(of, l.layer)) {
		return l.layer
	}
	return ""
}
