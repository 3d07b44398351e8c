package project

import (
	"slices"
	"strings"

	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project/schema"
)

// classesKey is the key of cfg that turns classes of the recipe on and off, and that lists the classes that are on.
const classesKey = "classes"

// classLayer returns the layer of the values that a class sets; its file is classes.yaml.
func classLayer(name string) Layer { return Layer(schema.ClassesFile + " " + name) }

// ofClass returns the class that the layer belongs to, "" for another layer.
func (l Layer) ofClass() string {
	name, ok := strings.CutPrefix(string(l), schema.ClassesFile+" ")
	if !ok {
		return ""
	}
	return name
}

// source is a layer that may turn classes on and off.
type source struct {
	values *py.Dict
	layer  Layer
}

// classes returns the classes that are on: by their declaration, then as the layers set them, the strongest last.
func classes(in CfgInputs, env chosen, sample, pillar *py.Dict) (on []*schema.Class, err error) {
	if in.Classes == nil {
		return nil, nil
	}
	chosen := map[string]bool{}
	for _, c := range in.Classes.List {
		chosen[c.Name] = c.Default || slices.Contains(c.Environments, env.name) || slices.Contains(c.Environments, env.class) ||
			slices.Contains(c.Nodes, in.Node.Name) || slices.ContainsFunc(c.Roles, func(r string) bool { return slices.Contains(in.Node.Roles, r) })
	}
	sources, err := classSources(in, sample, pillar)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		v, _ := s.values.GetStr(classesKey)
		if err := choose(in.Classes, chosen, v, s.layer); err != nil {
			return nil, err
		}
	}
	for _, c := range in.Classes.List {
		if chosen[c.Name] {
			on = append(on, c)
		}
	}
	return on, nil
}

// classSources returns the layers that may turn classes on and off, the weakest first.
func classSources(in CfgInputs, sample, pillar *py.Dict) (out []source, err error) {
	add := func(section *py.Dict, layer, ofOS Layer) {
		out = append(out, source{section, layer})
		for _, os := range unique(in.Facts.OS, in.Facts.OSFamily) {
			d, e := subDict(section, "os_defaults", os, ofOS)
			if err == nil {
				err = e
			}
			if d.Len() > 0 {
				out = append(out, source{d, ofOS})
			}
		}
	}
	for _, f := range in.Image {
		add(f.Values, Layer(f.File), Layer(f.File))
	}
	add(sample, LayerSample, LayerSampleOS)
	add(pillar, LayerPillarOS, LayerPillarOS)
	out = append(out, source{pillar, LayerPillar}) // over its os_defaults
	if in.Local != nil {
		out = append(out, source{in.Local.Values, LayerLocal})
	}
	if in.Deployment != nil {
		for _, s := range in.Deployment.Set {
			if s.Key == classesKey {
				out = append(out, source{py.NewDict(classesKey, s.Typed()), LayerCommand})
			}
			if name, ok := strings.CutPrefix(s.Key, classesKey+"."); ok {
				out = append(out, source{py.NewDict(classesKey, py.NewDict(name, s.Typed())), LayerCommand})
			}
		}
	}
	return out, err
}

// choose applies one layer: a list of +NAME and -NAME, a string of these, or a mapping of names to true or false.
func choose(declared *schema.Classes, chosen map[string]bool, v any, layer Layer) error {
	set := func(name string, on bool) error {
		if declared.Find(name) == nil {
			e := cfgError(layer, classesKey, "the recipe declares no class %q in %s/%s", name, layout.SaltDir, schema.ClassesFile)
			if near := nearest.To(name, declared.Names()); near != "" {
				return e.WithHint("did you mean  %s?", near)
			}
			return e.WithHint("its classes are: %s", strings.Join(declared.Names(), ", "))
		}
		chosen[name] = on
		return nil
	}
	word := func(v any) error {
		text, ok := v.(string)
		if !ok {
			return cfgError(layer, classesKey, "must be a list of +NAME and -NAME")
		}
		text = strings.TrimSpace(text)
		return set(strings.TrimLeft(text, "+-"), !strings.HasPrefix(text, "-"))
	}
	switch v := v.(type) {
	case nil:
	case string:
		for one := range strings.SplitSeq(v, ",") {
			if err := word(one); err != nil {
				return err
			}
		}
	case *py.List:
		for _, one := range v.Items() {
			if err := word(one); err != nil {
				return err
			}
		}
	case *py.Dict:
		for _, e := range v.Items() {
			on, ok := e.Value.(bool)
			if !ok {
				return cfgError(layer, classesKey+":"+py.Str(e.Key), "must be true or false")
			}
			if err := set(py.Str(e.Key), on); err != nil {
				return err
			}
		}
	default:
		return cfgError(layer, classesKey, "must be a list of +NAME and -NAME")
	}
	return nil
}

// Classes returns the names of the recipe's classes that are on.
func (c *Cfg) Classes() []string { return c.classes }

// classNames returns the names of a list of classes.
func classNames(list []*schema.Class) (out []string) {
	for _, c := range list {
		out = append(out, c.Name)
	}
	return out
}
