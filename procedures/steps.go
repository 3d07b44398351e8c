package procedures

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls"
)

// Step is one file of the install procedure, or a task.
type Step struct {
	// Name is the file's name without its ending.
	Name string
	// File is the name in .salt.
	File string
	// Script is true for an executable, false for an SLS file.
	Script bool
}

// Runner is the runner that applies the step.
func (s Step) Runner(t *Tools) sls.Runner {
	if s.Script {
		return t.Scripts
	}
	return t.Steps
}

// SLS is the dotted name of the step's file.
func (s Step) SLS(name project.Name) string {
	return layout.ProjectsNamespace + "." + name.String() + "." + s.Name
}

// special are the files that are procedures and no steps.
func special(file string) bool {
	if file == ".sls" || file == undeployFile {
		return true
	}
	return slices.ContainsFunc(Names(), func(procedure string) bool { return slices.Contains(ownFiles(procedure), file) })
}

const taskPrefix = "task_"

// undeployFile is what a project brings to be undeployed.
const undeployFile = "undeploy.sls"

// undeployStep is that as a step; none where the recipe has none.
func undeployStep(recipe fs.FS) []Step {
	if recipe == nil || !has(recipe, undeployFile) {
		return nil
	}
	return []Step{{Name: strings.TrimSuffix(undeployFile, ".sls"), File: undeployFile}}
}

// scriptForm is NN_name.sh: the number says that it wants a place in the order.
var scriptForm = regexp.MustCompile(`^[0-9][^/]*\.sh$`)

// ListSteps finds the steps of a recipe in the byte order of their names: 0100_a, 0_1, 100_b. Two files of one
// name are an error, because their order would be chance.
func ListSteps(recipe fs.FS) ([]Step, error) {
	return list(recipe, func(name string) bool { return !strings.HasPrefix(name, taskPrefix) })
}

// ListTasks finds the tasks of a recipe.
func ListTasks(recipe fs.FS) ([]Step, error) {
	return list(recipe, func(name string) bool { return strings.HasPrefix(name, taskPrefix) })
}

func list(recipe fs.FS, want func(string) bool) ([]Step, error) {
	if recipe == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(recipe, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read .salt", "%w", err)
	}
	var out []Step
	for _, e := range entries {
		file := e.Name()
		if !want(file) || special(file) {
			continue
		}
		fi, err := fs.Stat(recipe, file) // follows links
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		switch {
		case strings.HasSuffix(file, ".sls"):
			out = append(out, Step{Name: strings.TrimSuffix(file, ".sls"), File: file})
		case scriptForm.MatchString(file) && fi.Mode()&0o111 != 0:
			out = append(out, Step{Name: strings.TrimSuffix(file, ".sh"), File: file, Script: true})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	for i := 1; i < len(out); i++ {
		if out[i].Name == out[i-1].Name {
			return nil, fault.New(fault.Failed, "read .salt", "%s and %s have the same place in the order", out[i-1].File, out[i].File).
				WithPos(fault.Pos{File: path.Join(layout.SaltDir, out[i].File)}).WithHint("give one of them another name")
		}
	}
	for _, s := range out {
		if strings.Contains(s.Name, ".") && !s.Script {
			return nil, fault.New(fault.Failed, "read .salt", "a dot in the name of a step: Salt reads it as a folder").
				WithPos(fault.Pos{File: path.Join(layout.SaltDir, s.File)}).WithHint("rename it to %s.sls", strings.ReplaceAll(s.Name, ".", "_"))
		}
	}
	return out, nil
}

// choose keeps the steps that only_steps names, in their order; a name that no step has is an error.
func choose(steps []Step, only []string) ([]Step, error) {
	if len(only) == 0 {
		return steps, nil
	}
	var out []Step
	for _, s := range steps {
		if slices.Contains(only, s.Name) || slices.Contains(only, s.File) {
			out = append(out, s)
		}
	}
	for _, o := range only {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Name == o || s.File == o }) {
			return nil, fault.New(fault.Usage, "only_steps", "there is no step %q", o).WithHint("the steps are: %s", names(steps))
		}
	}
	return out, nil
}

func names(steps []Step) string {
	var n []string
	for _, s := range steps {
		n = append(n, s.Name)
	}
	if len(n) == 0 {
		return "none"
	}
	return strings.Join(n, ", ")
}

// RecipeTexts are the contents of the files of .salt, up to a size that no configuration has.
func RecipeTexts(code fs.FS) []string {
	const most = 8 << 20
	var out []string
	total := int64(0)
	_ = fs.WalkDir(code, layout.SaltDir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || total+fi.Size() > most {
			return nil
		}
		data, err := fs.ReadFile(code, p)
		if err != nil {
			return nil
		}
		total += int64(len(data))
		out = append(out, string(data))
		return nil
	})
	return out
}
