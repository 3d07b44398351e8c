package procedures

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

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

// unread warns of the keys that the pillar or PILLAR.sample sets and nothing reads. If the recipe declares its inputs, unknown keys of its
// own section are refused instead. texts are the files of the recipe. When in doubt a key counts as read.
func (p *Prepared) unread(t *Tools, name project.Name, src Sources, texts []string) (out []recipe.Warning) {
	if p.recipe == nil {
		return nil
	}
	warn := func(u project.Unread, says string) {
		at := keyplace.Of(fault.Pos{File: u.File()}, u.InFile(), src.trees())
		if u.Near != "" {
			says += ": did you mean " + u.Near + "?"
		}
		out = append(out, recipe.Warning{File: at.String(), Text: strings.Join(u.Keys, ".") + ": " + says})
	}
	exists := func(other string) bool {
		_, err := os.Stat(t.Root.Project(filepath.Base(other)).Dir())
		return err == nil
	}
	for _, u := range project.Misnamed(p.pillar, name, exists) {
		warn(u, "not used, no project of this name")
	}
	found := p.Cfg.Unread()
	if len(found) == 0 {
		return out
	}
	for _, u := range unread.Of(found, src.Code, src.Pillar, texts) {
		warn(u, "not used")
	}
	return out
}
