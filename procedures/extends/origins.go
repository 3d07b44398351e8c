package extends

import (
	"io/fs"

	"corpus-git/layout"
	"corpus-git/project"
)

// RecipeOf names one of the recipes that a project's recipe is made of.
type RecipeOf struct {
	// Name is the name of the project, or for an extended recipe its entry in extends.yaml: base@v1.2.
	Name   string         `json:"name"`
	Commit project.Commit `json:"commit,omitempty"`
}

// Origin says where a file of a recipe comes from.
type Origin struct {
	Path string `json:"path"`
	// From is one recipe, or all that have the file if all are read (PILLAR.sample, extends.yaml), the strongest first.
	From []string `json:"from"`
	// Hides are the recipes below it with a file at the same path, which is not used.
	Hides []string `json:"hides,omitempty"`
}

// Written is a file that deployments write, of the key files of cfg.
type Written struct {
	// Path is absolute, or relative to the project's tree.
	Path string `json:"path"`
	// Kind is content, base64, template, absent, or a format: ini, json, yaml, env.
	Kind string `json:"kind"`
	// From are the places that say anything of it, the strongest first.
	From []string `json:"from"`
}

// Origins reports where each file of a recipe comes from: own are the files of the project's recipe, layers the recipes
// below it.
func Origins(name RecipeOf, own fs.FS, layers []Layer) (recipes []RecipeOf, files []Origin, err error) {
	all := []fs.FS{}
	if own != nil {
		recipes, all = append(recipes, name), append(all, own)
	}
	for _, l := range layers {
		recipes, all = append(recipes, RecipeOf{l.String(), l.Commit}), append(all, l.Files)
	}
	files = []Origin{}
	if len(all) == 0 {
		return recipes, files, nil
	}
	err = fs.WalkDir(Overlay(all...), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		o := Origin{Path: path}
		merged := path == layout.PillarSample || path == File
		for i, f := range all {
			info, err := fs.Lstat(f, path)
			switch {
			case err != nil || info.IsDir(): // it has none
			case len(o.From) == 0 || merged:
				o.From = append(o.From, recipes[i].Name)
			default:
				o.Hides = append(o.Hides, recipes[i].Name)
			}
		}
		files = append(files, o)
		return nil
	})
	return recipes, files, err
}
