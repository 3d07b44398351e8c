package inherit

import (
	"context"
	"io/fs"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/layout"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
)

// sample is PILLAR.sample of one recipe.
type sample struct {
	keyplace.Recipe
	doc   *py.Dict
	edits map[*py.List]saltyaml.Edit
}

// Sample returns a function that reads PILLAR.sample of each recipe, the weakest first: mappings merge. It is nil if none has one. own is the project's own recipe.
func (in *Recipes) Sample(data *pillar.Reader, own fs.FS) func(context.Context) (*py.Dict, error) {
	type source struct {
		keyplace.Recipe
		shown string
	}
	var of []source
	for i := len(in.Layers) - 1; i >= 0; i-- {
		l := in.Layers[i]
		of = append(of, source{keyplace.Recipe{Name: l.String(), Files: l.Files}, l.ID() + ":" + layout.SaltDir + "/" + layout.PillarSample})
	}
	of = append(of, source{keyplace.Recipe{Files: own}, layout.SaltDir + "/" + layout.PillarSample})
	var has []source
	for _, s := range of {
		if s.Files != nil && recipe.Has(s.Files, layout.PillarSample) {
			has = append(has, s)
		}
	}
	if len(has) == 0 {
		return nil
	}
	return func(ctx context.Context) (*py.Dict, error) {
		out := py.NewDict()
		in.samples = nil
		for _, s := range has {
			d, edits, err := data.Sample(ctx, s.Files, layout.PillarSample, s.shown)
			if err == nil {
				in.samples = append(in.samples, sample{s.Recipe, unmerged(d, edits), edits})
				err = extends.Merge(out, d, edits)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

// unmerged returns a mapping that a merge does not change. A merge deletes only the keys that edits remove.
func unmerged(d *py.Dict, edits map[*py.List]saltyaml.Edit) *py.Dict {
	for _, e := range edits {
		if e.Key {
			return mappings(d)
		}
	}
	return d
}

// mappings copies the nested mappings, and shares their other values.
func mappings(d *py.Dict) *py.Dict {
	out := py.NewDict()
	d.Range(func(k, v any) bool {
		if sub, ok := v.(*py.Dict); ok {
			v = mappings(sub)
		}
		_ = out.Set(k, v) // it was a key before
		return true
	})
	return out
}
