package procedures

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/unread"
	"corpus-git/project"
	"corpus-git/project/schema"
)

// Inputs returns what a recipe declares in inputs.yaml; nil if it has no such file.
func Inputs(files fs.FS) (*schema.Inputs, error) {
	if files == nil {
		return nil, nil
	}
	shown := path.Join(layout.SaltDir, schema.InputsFile)
	text, err := fs.ReadFile(vfs.Bounded{FS: files, Max: keyplace.MaxSearched}, schema.InputsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "read "+shown, "%w", err)
	}
	return schema.ParseInputs(shown, text)
}

// holdsInputs reports whether a trigger checks values against the inputs that the recipe declares: one that introduces new values and runs with
// them.
func holdsInputs(t project.Trigger) bool {
	switch t {
	case project.TriggerPush, project.TriggerRedeploy, project.TriggerBundle, project.TriggerPromote, project.TriggerPlan, project.TriggerTask:
		return true
	}
	return false
}

// unread warns of the keys that the pillar, the recipe or the command line sets and nothing reads. If the recipe declares its inputs, unknown keys of its
// own section are refused instead.
func (p *Prepared) unread(t *Tools, name project.Name, src Sources) []recipe.Warning {
	if p.recipe == nil {
		return nil
	}
	in := unread.Sources{Name: name, Recipe: p.recipe, Trees: p.treesOf(src)}
	in.Exists = func(other string) bool {
		_, err := os.Stat(t.Root.Project(filepath.Base(other)).Dir())
		return err == nil
	}
	return unread.Warnings(p.Cfg, p.pillar, in)
}
