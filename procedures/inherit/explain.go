package inherit

import (
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/procedures/keyplace"
	"corpus-git/project"
)

// Explainer explains a configuration, with PILLAR.sample of each recipe as a layer of its own.
type Explainer struct {
	Cfg *project.Cfg
	// Trees are the files of the other layers.
	Trees keyplace.Trees
	// Grains are the facts of the machine.
	Grains *py.Dict
	// Generated reports whether a text holds a generated secret.
	Generated func(text string) bool
}

// Explain reports what each layer sets at a path: see project.Cfg.Explain.
func (in *Recipes) Explain(e Explainer, path string, show project.Show) ([]project.Explained, error) {
	env, _ := e.Cfg.Get("default_env")
	class, _ := e.Cfg.Get("env_class")
	os, _ := e.Grains.GetStr("os")
	family, _ := e.Grains.GetStr("os_family")
	x := explanation{samples: in.samples, with: e, envs: names(class, env), systems: names(family, os)}
	return e.Cfg.Explain(path, show, x.place)
}

// names returns the texts that are not empty, each once.
func names(list ...any) (out []string) {
	for _, v := range list {
		if s, ok := v.(string); ok && s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

type explanation struct {
	samples []sample
	with    Explainer
	// envs and systems are the keys in env_defaults and os_defaults that apply, the weakest first.
	envs, systems []string
}

// place adds the lines to the settings of a key, and replaces those of the merged PILLAR.sample by those of each recipe. They are also there without one if a
// recipe removes the key.
func (x explanation) place(keys []string, all []project.LayerSetting) (out []project.LayerSetting) {
	replaced := map[project.Layer][]project.LayerSetting{}
	for _, layer := range []project.Layer{project.LayerSample, project.LayerSampleEnv, project.LayerSampleOS} {
		list := x.settings(layer, keys)
		if slices.ContainsFunc(all, func(s project.LayerSetting) bool { return s.Layer == layer }) || slices.ContainsFunc(list, removes) {
			replaced[layer] = list
		}
	}
	insert := func() {
		for _, layer := range []project.Layer{project.LayerSample, project.LayerSampleEnv, project.LayerSampleOS} {
			out = append(out, replaced[layer]...)
		}
	}
	inserted := false
	for _, s := range all {
		if !inserted && !weaker(s.Layer) {
			insert()
			inserted = true
		}
		if len(replaced[s.Layer]) > 0 {
			continue
		}
		if s.File != "" {
			at := keyplace.Of(fault.Pos{File: s.File}, s.Keys, x.with.Trees)
			s.File, s.Line = at.File, at.Line
		}
		out = append(out, s)
	}
	if !inserted {
		insert()
	}
	return out
}

// weaker reports whether a layer is weaker than every PILLAR.sample.
func weaker(l project.Layer) bool {
	return l == project.LayerDefault || l == project.LayerInputs || strings.HasPrefix(string(l), "/")
}

// removes reports whether a setting removes the key.
func removes(s project.LayerSetting) bool { return s.Tag != "" && s.Value == nil }

// settings returns what each PILLAR.sample sets at a key for one of the layers of samples, the weakest first.
func (x explanation) settings(layer project.Layer, keys []string) (out []project.LayerSetting) {
	if len(keys) == 0 {
		return nil
	}
	var paths [][]string
	raw := false
	switch {
	case layer == project.LayerSample && keys[0] == "sls_default_pillar":
		paths, raw = [][]string{keys[1:]}, true
	case layer == project.LayerSample:
		paths = [][]string{keys}
	case layer == project.LayerSampleEnv && keys[0] == "data":
		for _, env := range x.envs {
			paths = append(paths, append([]string{"env_defaults", env}, keys[1:]...))
		}
	case layer == project.LayerSampleOS:
		for _, os := range x.systems {
			paths = append(paths, append([]string{"os_defaults", os}, keys...))
		}
	}
	for _, path := range paths {
		for _, s := range x.samples {
			f := s.find(path, raw)
			if f == nil {
				continue
			}
			at := s.Recipe.Sample(f.keys)
			one := project.LayerSetting{Layer: layer, Recipe: s.Name, File: at.File, Line: at.Line, Keys: f.keys, Value: f.value, Secret: x.secret(f.value)}
			switch v := f.value.(type) {
			case *py.Dict:
				one.Mapping = true
			case *py.List:
				if edit, ok := s.edits[v]; ok {
					one.Tag = edit.Tag + " "
					if edit.Key {
						one.Value = nil
					}
				}
			}
			out = append(out, one)
		}
	}
	return out
}

// secret reports whether a value holds a generated secret.
func (x explanation) secret(v any) bool {
	switch v := v.(type) {
	case string:
		return x.with.Generated(v)
	case *py.List:
		return slices.ContainsFunc(v.Items(), x.secret)
	case *py.Dict:
		return slices.ContainsFunc(v.Values(), x.secret)
	}
	return false
}

// found is a value, and the keys that lead to it.
type found struct {
	keys  []string
	value any
}

// find returns what the sample sets at a path: in the document itself if raw, else in its sections, of which later ones replace earlier ones.
func (s sample) find(path []string, raw bool) (out *found) {
	if raw {
		out, _ = s.below(s.doc, path)
		return out
	}
	s.doc.Range(func(k, v any) bool {
		if section, ok := v.(*py.Dict); ok && project.IsSampleSection(k) {
			if f, blocked := s.below(section, path); f != nil || blocked {
				out = f
			}
		}
		return true
	})
	return out
}

// below returns what is at a path in a mapping: nil if it is not there, and then whether a value that is no mapping is above it. A key that is removed is
// also found for what is below it.
func (s sample) below(d *py.Dict, path []string) (f *found, blocked bool) {
	for i, key := range path {
		v, ok := d.GetStr(key)
		if n, err := strconv.ParseInt(key, 10, 64); !ok && err == nil {
			v, ok = d.Get(n)
		}
		if !ok {
			return nil, false
		}
		list, _ := v.(*py.List)
		if i == len(path)-1 || s.edits[list].Key {
			return &found{keys: path[:i+1], value: v}, false
		}
		if d, ok = v.(*py.Dict); !ok {
			return nil, true
		}
	}
	return nil, false
}
