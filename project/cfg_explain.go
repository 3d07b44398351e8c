package project

import (
	"strings"

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
	// Recipe is the extended recipe whose PILLAR.sample sets it: base@v1.
	Recipe string `json:"recipe,omitempty"`
	// Value is YAML on one line, before references are resolved.
	Value string `json:"value"`
	// File and Line are its position; "" and 0 if that is not known, as for a value produced by a template.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// LayerSetting is what one layer sets at a key, before it is formatted.
type LayerSetting struct {
	Layer Layer
	// Recipe is the extended recipe whose PILLAR.sample it is, as its entry in extends.yaml; "" means another file.
	Recipe string
	// File is the layer's file, "" for none, and Keys are the keys in it.
	File string
	Keys []string
	Line int
	// Value is unused if a mapping is set; Tag is the YAML tag before it.
	Value   any
	Mapping bool
	Tag     string
	Secret  bool
}

// Explain returns the value at a path, or each value below it, with what every layer sets. place adds the files and lines to the settings of a key, and may replace
// a setting by several: those of the PILLAR.samples that are one layer here. Errors are the user's fault.
func (c *Cfg) Explain(path string, show Show, place func(keys []string, all []LayerSetting) []LayerSetting) ([]Explained, error) {
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
		var all []LayerSetting
		for _, s := range l.values {
			all = append(all, LayerSetting{Layer: s.layer, File: cfgError(s.layer, "", "").At.File, Keys: inFile(s.layer, keys), Value: s.value, Mapping: s.mapping, Secret: s.layer.FromPillar() && canBeSecret(s.value)})
		}
		for _, s := range place(keys, all) {
			v := LayerValue{Layer: s.Layer, Recipe: s.Recipe, Value: "{…}", File: s.File, Line: s.Line}
			if !s.Mapping {
				v.Value = s.Tag + inline(show.value(&leaf{value: s.Value, layer: s.Layer, secret: s.Secret || l.declared, declared: l.declared}, label))
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
