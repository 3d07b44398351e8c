package procedures

import (
	"errors"
	"fmt"
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

// maxUnread is the number of unread keys that are reported one by one.
const maxUnread = 20

// unread warns of the keys that the pillar, the recipe or the command line sets and nothing reads. If the recipe declares its inputs, unknown keys of its
// own section are refused instead. When in doubt a key counts as read.
func (p *Prepared) unread(t *Tools, name project.Name, src Sources) (out []recipe.Warning) {
	if p.recipe == nil {
		return nil
	}
	trees := p.treesOf(src)
	warn := func(u project.Unread, at fault.Pos, says string) {
		if u.Near != "" {
			says += ": did you mean " + u.Near + "?"
		}
		out = append(out, recipe.Warning{File: at.String(), Text: strings.Join(u.Keys, ".") + ": " + says})
	}
	place := func(u project.Unread) fault.Pos { return keyplace.Of(fault.Pos{File: u.File()}, u.InFile(), trees) }
	exists := func(other string) bool {
		_, err := os.Stat(t.Root.Project(filepath.Base(other)).Dir())
		return err == nil
	}
	for _, u := range project.Misnamed(p.pillar, name, exists) {
		warn(u, place(u), "not used, no project of this name")
	}
	in := unread.Sources{Name: name, Recipe: p.recipe, Code: src.Code, Pillar: src.Pillar, Local: src.local}
	for _, l := range p.inherited.Layers {
		in.Samples = append(in.Samples, l.Files)
	}
	for _, u := range unread.Of(p.Cfg, p.pillar, in) {
		at := place(u)
		if u.Section && at.Line == 0 {
			continue // of the machine's pillar tree, which other projects read, or made by a template
		}
		warn(u, at, "not used")
	}
	if more := len(out) - maxUnread; more > 1 {
		out = append(out[:maxUnread], recipe.Warning{File: out[maxUnread].File, Text: fmt.Sprintf("and %d more keys that are not used", more)})
	}
	return out
}
