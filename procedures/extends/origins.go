package extends

import (
	"io/fs"

	"corpus-git/layout"
	"corpus-git/project"
)

// RecipeOf names one of the recipes that a project's is made of.
type RecipeOf struct {
	// Name is the project's, for one that is extended as extends.yaml names it: base@v1.2.
	Name   string         `json:"name"`
	Commit project.Commit `json:"commit,omitempty"`
}

// Origin is where a file of a recipe is from.
type Origin struct {
	Path string `json:"path"`
	// From has one recipe, or all that have the file where all are read (PILLAR.sample, extends.yaml): the strongest first.
	From []string `json:"from"`
	// Hides are the recipes below it with another file there, which is not used.
	Hides []string `json:"hides,omitempty"`
}

// Origins reports where each file of a recipe is from: own are the files of the project's, layers those below it.
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
