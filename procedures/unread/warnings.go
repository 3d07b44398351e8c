package unread

import (
	"fmt"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// maxWarnings is the number of keys that are reported one by one.
const maxWarnings = 20

// Warnings describes the keys that Of returns, and the sections of projects that do not exist, with their positions.
func Warnings(cfg *project.Cfg, pillar *py.Dict, in Sources) (out []recipe.Warning) {
	warn := func(u project.Unread, at fault.Pos, says string) {
		if u.Near != "" {
			says += ": did you mean " + u.Near + "?"
		}
		out = append(out, recipe.Warning{File: at.String(), Text: strings.Join(u.Keys, ".") + ": " + says})
	}
	place := func(u project.Unread) fault.Pos {
		if u.Layer == project.LayerCommand {
			return fault.Pos{File: string(u.Layer)}
		}
		return keyplace.Of(fault.Pos{File: u.File()}, u.InFile(), in.Trees)
	}
	for _, u := range misnamed(pillar, in) {
		warn(u, place(u), "not used, no project of this name")
	}
	for _, u := range Of(cfg, pillar, in) {
		at := place(u)
		if u.Section && at.Line == 0 {
			continue // of the machine's pillar tree, which other projects read, or made by a template
		}
		warn(u, at, "not used")
	}
	if more := len(out) - maxWarnings; more > 1 {
		out = append(out[:maxWarnings], recipe.Warning{File: out[maxWarnings].File, Text: fmt.Sprintf("and %d more keys that are not used", more)})
	}
	return out
}

// misnamed returns the sections of a pillar whose name is not that of a project.
func misnamed(pillar *py.Dict, in Sources) (out []project.Unread) {
	for _, k := range pillar.Keys() {
		key, _ := k.(string)
		of, ok := strings.CutPrefix(key, layout.ProjectsNamespace+".")
		if !ok || of == "" || of == string(in.Name) || strings.HasPrefix(of, string(in.Name)+".") {
			continue
		}
		if of, _, _ = strings.Cut(of, "."); in.Exists(of) {
			continue
		}
		u := project.Unread{Keys: []string{key}, Layer: project.LayerPillar}
		if nearest.To(of, []string{string(in.Name)}) != "" {
			u.Near = layout.ProjectsNamespace + "." + string(in.Name)
		}
		out = append(out, u)
	}
	return out
}
