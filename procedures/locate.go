package procedures

import (
	"corpus-git/procedures/extends"
	"corpus-git/procedures/inherit"
	"corpus-git/procedures/keyplace"
	"corpus-git/project"
)

// trees returns the files that contain the keys of the configuration.
func (s Sources) trees() keyplace.Trees {
	return keyplace.Trees{Code: s.Code, Pillar: s.Pillar, Local: s.local}
}

// treesOf also returns the recipes below.
func (p *Prepared) treesOf(src Sources) keyplace.Trees {
	trees := src.trees()
	if p.inherited != nil {
		for _, l := range p.inherited.Layers {
			trees.Below = append(trees.Below, keyplace.Recipe{Name: l.String(), Files: l.Files})
		}
	}
	return trees
}

// Explain reports what each layer sets in the configuration at a path, and where: see project.Cfg.Explain.
func (p *Prepared) Explain(src Sources, path string, show project.Show) ([]project.Explained, error) {
	src.local = p.local
	return p.inherited.Explain(inherit.Explainer{Cfg: p.Cfg, Trees: p.treesOf(src), Grains: p.grains, Generated: p.passwords.In}, path, show)
}

// Origins reports where each file of the recipe comes from.
func (p *Prepared) Origins(name project.Name) ([]extends.RecipeOf, []extends.Origin, error) {
	return extends.Origins(extends.RecipeOf{Name: name.String(), Commit: p.inherited.Commit}, p.inherited.Own, p.inherited.Layers)
}
