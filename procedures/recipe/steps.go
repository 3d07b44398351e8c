package recipe

import (
	"bytes"
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

// SLS is the dotted name of the step's file.
func (s Step) SLS(name project.Name) string {
	return layout.ProjectsNamespace + "." + name.String() + "." + s.Name
}

// Procedures are those that a recipe may have a file of its own for, in their order: all but the checks.
func Procedures() []string {
	return slices.DeleteFunc(project.Procedures(), func(name string) bool { return name == "checks" })
}

// special are the files that are procedures and no steps.
func special(file string) bool {
	if file == ".sls" || file == undeployFile {
		return true
	}
	return slices.ContainsFunc(Procedures(), func(procedure string) bool { return slices.Contains(ownFiles(procedure), file) })
}

// TaskPrefix begins the name of a task's file.
const TaskPrefix = "task_"

// undeployFile is what a project brings to be undeployed.
const undeployFile = "undeploy.sls"

// Undeploy is that as a step; none where the recipe has none.
func Undeploy(recipe fs.FS) []Step {
	if recipe == nil || !Has(recipe, undeployFile) {
		return nil
	}
	return []Step{{Name: strings.TrimSuffix(undeployFile, ".sls"), File: undeployFile}}
}

// scriptForm is NN_name.sh: the number says that it wants a place in the order.
var scriptForm = regexp.MustCompile(`^[0-9][^/]*\.sh$`)

// Steps finds the steps of a recipe in the byte order of their names: 0100_a, 0_1, 100_b. Two files of one
// name are an error, because their order would be chance.
func Steps(recipe fs.FS) ([]Step, error) {
	return list(recipe, func(name string) bool { return !strings.HasPrefix(name, TaskPrefix) })
}

// Tasks finds the tasks of a recipe.
func Tasks(recipe fs.FS) ([]Step, error) {
	return list(recipe, func(name string) bool { return strings.HasPrefix(name, TaskPrefix) })
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

// Choose keeps the steps that only_steps names, in their order; a name that no step has is an error.
func Choose(steps []Step, only []string) ([]Step, error) {
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
			return nil, fault.New(fault.Usage, "only_steps", "there is no step %q", o).WithHint("the steps are: %s", NamesOf(steps))
		}
	}
	return out, nil
}

// NamesOf lists the names of steps for a message.
func NamesOf(steps []Step) string {
	var n []string
	for _, s := range steps {
		n = append(n, s.Name)
	}
	if len(n) == 0 {
		return "none"
	}
	return strings.Join(n, ", ")
}

// Texts are the contents of the files of .salt, up to a size that no configuration has.
func Texts(code fs.FS) []string {
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

// In is the folder .salt of a commit's files, nil where there is none.
func In(code fs.FS) (fs.FS, error) {
	if code == nil {
		return nil, nil
	}
	fi, err := fs.Stat(code, layout.SaltDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read "+layout.SaltDir, "%w", err)
	}
	if !fi.IsDir() {
		return nil, fault.New(fault.Failed, "read "+layout.SaltDir, "not a folder").WithPos(fault.Pos{File: layout.SaltDir})
	}
	return fs.Sub(code, layout.SaltDir)
}

// Has reports whether a file or folder exists.
func Has(f fs.FS, name string) bool {
	_, err := fs.Stat(f, name)
	return err == nil
}

var undoArgument = regexp.MustCompile(`^\s*-\s+["']?undo["']?\s*:\s*\S`)

// UndoLine is the first line of a file of the recipe that has the argument undo, 0 where none has. Nobody has compiled the file.
func UndoLine(recipe fs.FS, file string) int {
	text, err := fs.ReadFile(recipe, file)
	if err != nil {
		return 0 // who runs it says so
	}
	n := 0
	for line := range bytes.Lines(text) {
		if n++; undoArgument.Match(line) {
			return n
		}
	}
	return 0
}
