package project

import (
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// Explained is one value of the configuration, with what each layer sets.
type Explained struct {
	// Key is the path of keys to it, separated by colons.
	Key string `json:"key"`
	// Value is the effective one, with references resolved, as YAML on one line.
	Value string `json:"value"`
	// Layers are ordered from the weakest.
	Layers []LayerValue `json:"layers"`
}

// LayerValue is what one layer sets.
type LayerValue struct {
	Layer Layer `json:"layer"`
	// Value is YAML on one line, before references are resolved.
	Value string `json:"value"`
	// File and Line are its position; "" and 0 if that is not known, as for a value produced by a template.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// ExplainLines formats values for people: the effective one, and below it what each layer sets and where, the strongest first.
func ExplainLines(list []Explained) (out []string) {
	for _, v := range list {
		out = append(out, v.Key+": "+v.Value)
		width := 0
		for _, l := range v.Layers {
			width = max(width, min(len(l.Value), 60))
		}
		for _, l := range slices.Backward(v.Layers) {
			at := string(l.Layer)
			if l.File != "" {
				at = fault.Pos{File: l.File, Line: l.Line}.String()
			}
			out = append(out, fmt.Sprintf("  %-*s  # %s", width, l.Value, at))
		}
	}
	return out
}

// Explain returns the value at a path, or each value below it, with what every layer sets. place finds a key in the file of a layer.
// Errors are the user's fault.
func (c *Cfg) Explain(path string, show Show, place func(file string, keys []string) (string, int)) ([]Explained, error) {
	at, err := c.at(path)
	if err != nil {
		return nil, err
	}
	var out []Explained
	var walk func(l *leaf, keys []string)
	walk = func(l *leaf, keys []string) {
		if l.sub != nil && len(l.sub.keys) > 0 {
			l.sub.each(func(below *leaf) { walk(below, append(keys[:len(keys):len(keys)], py.Str(below.key))) })
			return
		}
		label := strings.Join(keys, ".")
		e := Explained{Key: strings.Join(keys, ":"), Value: "{}"}
		if l.sub == nil {
			e.Value = inline(show.value(l, label))
		}
		for _, s := range l.values {
			v := LayerValue{Layer: s.layer, Value: "{…}"}
			if !s.mapping {
				secret := s.layer.FromPillar() && canBeSecret(s.value) || l.declared
				v.Value = inline(show.value(&leaf{value: s.value, layer: s.layer, secret: secret, declared: l.declared}, label))
			}
			if file := cfgError(s.layer, "", "").At.File; file != "" && place != nil {
				v.File, v.Line = place(file, inFile(s.layer, keys))
			}
			e.Layers = append(e.Layers, v)
		}
		out = append(out, e)
	}
	var keys []string
	if path != "" {
		keys = strings.Split(path, ":")
	}
	walk(at, keys)
	return out, nil
}
