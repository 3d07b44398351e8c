package recipe

import (
	"bytes"
	"errors"
	"io"
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
	// Name is the file's name without its extension.
	Name string
	// File is the name in .salt.
	File string
	// Script is true for an executable.
	Script bool
	// Tool applies a file that is neither SLS nor executable: ToolAnsible, ToolPuppet, or the group of an operator's program.
	Tool string
}

// The tools that are supported without a program of the operator.
const (
	ToolAnsible = "ansible"
	ToolPuppet  = "puppet"
	// ToolFiles writes the files of cfg: a step without a file of its own.
	ToolFiles = "files"
)

// SLS returns the dotted name of the step's file.
func (s Step) SLS(name project.Name) string {
	return layout.ProjectsNamespace + "." + name.String() + "." + s.Name
}

// Procedures returns the procedures that a recipe may have its own file for, in their order: all except the checks.
func Procedures() []string {
	return slices.DeleteFunc(project.Procedures(), func(name string) bool { return name == "checks" })
}

// special reports whether a file is for a procedure and not a step.
func special(file string) bool {
	if file == ".sls" || file == undeployFile {
		return true
	}
	return slices.ContainsFunc(Procedures(), func(procedure string) bool { return slices.Contains(ownFiles(procedure), file) })
}

// TaskPrefix is the prefix of the name of a task's file.
const TaskPrefix = "task_"

// undeployFile is the project's own file for undeploying.
const undeployFile = "undeploy.sls"

// Undeploy returns that file as a step; none if the recipe has no such file.
func Undeploy(recipe fs.FS) []Step {
	if recipe == nil || !Has(recipe, undeployFile) {
		return nil
	}
	return []Step{{Name: strings.TrimSuffix(undeployFile, ".sls"), File: undeployFile}}
}

// numbered matches NN_name.extension: the number marks a step.
var numbered = regexp.MustCompile(`^[0-9][^/]*\.([A-Za-z0-9_-]+)$`)

// ending returns the extension of a numbered file's name, "" for others.
func ending(file string) string {
	if m := numbered.FindStringSubmatch(file); m != nil {
		return m[1]
	}
	return ""
}

// toolOf returns the tool of a numbered file by its extension, "" if none applies it.
func toolOf(file string, groups []string) string {
	switch end := ending(file); {
	case end == "":
		return ""
	case end == "yml" || end == "yaml":
		return ToolAnsible
	case end == "pp":
		return ToolPuppet
	case slices.Contains(groups, end) && end != "sls" && end != "sh":
		return end
	}
	return ""
}

// isProgram reports whether a file begins like one that the kernel can run: a shebang, or an ELF file.
func isProgram(recipe fs.FS, file string) bool {
	f, err := recipe.Open(file)
	if err != nil {
		return false // whoever runs it reports the error
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head)
	return bytes.HasPrefix(head[:n], []byte("#!")) || bytes.HasPrefix(head[:n], []byte("\x7fELF"))
}

// stepOf returns the step for a regular file of .salt; none if nothing runs it.
func stepOf(recipe fs.FS, file string, mode fs.FileMode, groups []string) (Step, bool) {
	name := strings.TrimSuffix(file, path.Ext(file))
	end := ending(file)
	switch tool := toolOf(file, groups); {
	case strings.HasSuffix(file, ".sls"):
		return Step{Name: name, File: file}, true
	case tool != "":
		return Step{Name: name, File: file, Tool: tool}, true
	case mode&0o111 == 0 || file[0] < '0' || file[0] > '9':
		return Step{}, false
	case end == "sh" || isProgram(recipe, file):
		if end == "" {
			name = file
		}
		return Step{Name: name, File: file, Script: true}, true
	}
	return Step{}, false
}

// Steps finds the steps of a recipe in the byte order of their names: 0100_a, 0_1, 100_b. Two files with the same name are an error,
// because their order would be undefined. groups are the extensions that the operator's programs apply.
func Steps(recipe fs.FS, groups ...string) ([]Step, error) {
	return list(recipe, groups, func(name string) bool { return !strings.HasPrefix(name, TaskPrefix) })
}

// StepNames returns the names of everything that may write outputs and wait: steps, the recipe's tasks, and install.sls.
func StepNames(files fs.FS, steps []Step) (names []string, err error) {
	for _, s := range steps {
		names = append(names, s.Name)
	}
	tasks, err := Tasks(files)
	for _, s := range tasks {
		names = append(names, s.Name)
	}
	return append(names, "install"), err
}

// Tasks finds the tasks of a recipe.
func Tasks(recipe fs.FS) ([]Step, error) {
	return list(recipe, nil, func(name string) bool { return strings.HasPrefix(name, TaskPrefix) })
}

// TaskNames returns the names by which tasks are run.
func TaskNames(recipe fs.FS) (names []string, err error) {
	tasks, err := Tasks(recipe)
	for _, t := range tasks {
		names = append(names, strings.TrimPrefix(t.Name, TaskPrefix))
	}
	return names, err
}

func list(recipe fs.FS, groups []string, want func(string) bool) ([]Step, error) {
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
		if s, ok := stepOf(recipe, file, fi.Mode(), groups); ok {
			out = append(out, s)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	for i := 1; i < len(out); i++ {
		if out[i].Name == out[i-1].Name {
			return nil, fault.New(fault.Failed, "read .salt", "%s and %s have the same position in the order", out[i-1].File, out[i].File).
				WithPos(fault.Pos{File: path.Join(layout.SaltDir, out[i].File)}).WithHint("rename one of them")
		}
	}
	for _, s := range out {
		if strings.Contains(s.Name, ".") && !s.Script && s.Tool == "" {
			return nil, fault.New(fault.Failed, "read .salt", "the name of a step contains a dot, which Salt reads as a folder").
				WithPos(fault.Pos{File: path.Join(layout.SaltDir, s.File)}).WithHint("rename it to %s.sls", strings.ReplaceAll(s.Name, ".", "_"))
		}
	}
	return out, nil
}

// Choose selects the steps named by only_steps, in their order; an unknown name is an error.
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
			return nil, fault.New(fault.Usage, "only_steps", "no step %q", o).WithHint("the steps are: %s", NamesOf(steps))
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

// Texts returns the contents of the files of .salt, up to a size limit.
func Texts(code fs.FS) []string { return texts(code, layout.SaltDir) }

// TextsOf returns the contents of the files of a recipe, up to the same limit; nil has none.
func TextsOf(files fs.FS) []string { return texts(files, ".") }

func texts(files fs.FS, dir string) []string {
	const most = 8 << 20
	if files == nil {
		return nil
	}
	var out []string
	total := int64(0)
	_ = fs.WalkDir(files, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || total+fi.Size() > most {
			return nil
		}
		data, err := fs.ReadFile(files, p)
		if err != nil {
			return nil
		}
		total += int64(len(data))
		out = append(out, string(data))
		return nil
	})
	return out
}

// In returns the folder .salt of a commit's files, nil if there is none.
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

// UndoLine returns the first line of a file of the recipe with the argument undo, 0 if there is none. The file need not compile.
func UndoLine(recipe fs.FS, file string) int {
	text, err := fs.ReadFile(recipe, file)
	if err != nil {
		return 0 // whoever runs it reports the error
	}
	n := 0
	for line := range bytes.Lines(text) {
		if n++; undoArgument.Match(line) {
			return n
		}
	}
	return 0
}
