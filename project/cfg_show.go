package project

import (
	"encoding/json"
	"fmt"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// Origin returns the layer that a path's value came from; for a mapping the last layer that added to it. It returns "" if there is no such path.
func (c *Cfg) Origin(path string) Layer {
	if l := c.root.get(strings.Split(path, ":")); l != nil {
		return l.layer
	}
	return ""
}

// IsSecret reports whether any of the value at a path came from the pillar: the value itself, what {key} references put into
// it, or, for a mapping, anything below it.
func (c *Cfg) IsSecret(path string) bool {
	parts := strings.Split(path, ":")
	for len(parts) > 0 { // an index into a list is as secret as the list
		if l := c.root.get(parts); l != nil {
			return l.hasSecret()
		}
		parts = parts[:len(parts)-1]
	}
	return false
}

// PillarValues returns the values that came from the pillar, with references resolved, structured like a pillar, as
// redact.Secrets takes them. Their labels are those of the pillar itself.
func (c *Cfg) PillarValues() *py.Dict {
	d := fromPillar(c.root)
	d.SetStr("redact_show", c.show)
	return py.NewDict("makina-projects."+string(c.name), d)
}

func fromPillar(t *tree) *py.Dict {
	out := py.NewDict()
	t.each(func(l *leaf) {
		switch {
		case l.sub != nil:
			if d := fromPillar(l.sub); d.Len() > 0 {
				_ = out.Set(l.key, d)
			}
		case l.layer.FromPillar():
			_ = out.Set(l.key, py.DeepCopy(l.value))
		}
	})
	return out
}

// Show says how values from the pillar are shown.
type Show struct {
	// Secrets shows them as they are.
	Secrets bool
	// Redact replaces secrets in a text, as redact.Redactor.String does; it decides what of the pillar stays
	// readable. Without it, and without Secrets, everything that came even in part from the pillar is hidden.
	Redact func(string) string
}

// hidden returns the placeholder of a leaf.
func hidden(path string) string { return "[pillar:" + path + "]" }

// value returns what may be shown of the value of a leaf.
func (s Show) value(l *leaf, path string) any {
	switch {
	case s.Secrets, s.Redact == nil && !l.secret:
		return l.value
	case s.Redact == nil, l.declared && l.value != nil:
		return hidden(path)
	}
	return s.deep(l.value)
}

// Of returns what may be shown of a value that belongs to no layer.
func (s Show) Of(v any) any { return s.deep(v) }

func (s Show) deep(v any) any {
	switch x := v.(type) {
	case string:
		return s.Redact(x)
	case *py.List:
		out := py.NewList()
		for _, i := range x.Items() {
			out.Append(s.deep(i))
		}
		return out
	case *py.Dict:
		out := py.NewDict()
		x.Range(func(k, i any) bool {
			_ = out.Set(k, s.deep(i))
			return true
		})
		return out
	case py.Tuple:
		out := make(py.Tuple, len(x))
		for i := range x {
			out[i] = s.deep(x[i])
		}
		return out
	}
	return v
}

// at finds the part to show; an error is the user's fault.
func (c *Cfg) at(path string) (*leaf, error) {
	if path == "" {
		return &leaf{sub: c.root}, nil
	}
	if l := c.root.get(strings.Split(path, ":")); l != nil {
		return l, nil
	}
	if v, ok := c.Get(path); ok { // inside a list
		return &leaf{value: v, layer: c.Origin(path[:strings.LastIndexByte(path, ':')]), secret: c.IsSecret(path)}, nil
	}
	return nil, fault.New(fault.Usage, "configuration", "no key %q in the configuration of %s", path, c.name).
		WithHint("separate keys with colons, as in data:domain; without a key, everything is shown")
}

// Tree renders the configuration, or the part at a path, for people: one line per value, in YAML syntax, and where the
// value came from unless that is the default.
func (c *Cfg) Tree(path string, show Show) (string, error) {
	l, err := c.at(path)
	if err != nil {
		return "", err
	}
	var lines []treeLine
	if l.sub != nil {
		treeLines(&lines, l.sub, show, "", dotted(path))
	} else {
		lines = append(lines, treeLine{inline(show.value(l, dotted(path))), l.layer})
	}
	width := 0
	for _, ln := range lines {
		if n := len([]rune(ln.text)); n <= 60 {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, ln := range lines {
		b.WriteString(ln.text)
		if ln.layer != "" && ln.layer != LayerDefault {
			fmt.Fprintf(&b, "%s  # %s", strings.Repeat(" ", max(0, width-len([]rune(ln.text)))), ln.layer)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

type treeLine struct {
	text  string
	layer Layer
}

func dotted(path string) string { return strings.ReplaceAll(path, ":", ".") }

func join(path string, key any) string {
	if path == "" {
		return py.Str(key)
	}
	return path + "." + py.Str(key)
}

func treeLines(out *[]treeLine, t *tree, show Show, indent, path string) {
	t.each(func(l *leaf) {
		key, p := indent+inline(l.key)+":", join(path, l.key)
		if l.sub == nil {
			*out = append(*out, treeLine{key + " " + inline(show.value(l, p)), l.layer})
			return
		}
		if len(l.sub.keys) == 0 {
			*out = append(*out, treeLine{key + " {}", l.layer})
			return
		}
		*out = append(*out, treeLine{text: key})
		treeLines(out, l.sub, show, indent+"  ", p)
	})
}

// inline returns a value on one line of YAML.
func inline(v any) string {
	s, err := saltyaml.Dump(v, saltyaml.DumpOptions{Flow: saltyaml.FlowStyle, KeepOrder: true, Width: 1 << 30})
	if err != nil {
		return py.TypeName(v)
	}
	s = strings.TrimSuffix(s, "\n")
	if strings.Contains(s, "\n") { // a quoted string with line breaks
		if q, err := json.Marshal(v); err == nil {
			return string(q)
		}
	}
	return s
}

// JSON returns the configuration, or the part at a path, as a document for programs: version 1, with the values, and the
// origin of every value by its path.
func (c *Cfg) JSON(path string, show Show) ([]byte, error) {
	l, err := c.at(path)
	if err != nil {
		return nil, err
	}
	origins := map[string]Layer{}
	var v any
	if l.sub != nil {
		v = shown(l.sub, show, dotted(path), path, origins)
	} else {
		v = show.value(l, dotted(path))
		origins[path] = l.layer
	}
	cfg, err := py.ToJSON(v, py.JSONOptions{})
	if err != nil {
		return nil, fault.New(fault.Failed, "configuration", "cannot be written as JSON: %w", err)
	}
	return json.MarshalIndent(struct {
		Version int              `json:"version"`
		Project Name             `json:"project"`
		Path    string           `json:"path,omitempty"`
		Cfg     json.RawMessage  `json:"cfg"`
		Origins map[string]Layer `json:"origins"`
	}{1, c.name, path, json.RawMessage(cfg), origins}, "", "  ")
}

func shown(t *tree, show Show, label, path string, origins map[string]Layer) *py.Dict {
	out := py.NewDict()
	t.each(func(l *leaf) {
		p := py.Str(l.key)
		if path != "" {
			p = path + ":" + p
		}
		if l.sub != nil {
			_ = out.Set(l.key, shown(l.sub, show, join(label, l.key), p, origins))
			return
		}
		_ = out.Set(l.key, show.value(l, join(label, l.key)))
		origins[p] = l.layer
	})
	return out
}
