package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project/status"
	"corpus-git/sls/compile"
)

// What runs a file, in status.ImportFile.
const (
	RunsBuiltin  = "builtin"
	RunsDeferred = "deferred"
	RunsSalt     = "salt"
	RunsScript   = "script"
	RunsRefused  = "refused"
)

// Fix is a word in a line of the recipe that should be replaced.
type Fix struct {
	at fault.Pos
	fault.Fix
}

// Import reports for each file what runs it, and returns the lines that can be changed.
func (r *Report) Import() (doc status.Import, fixes []Fix) {
	doc = status.Import{Version: status.Version, Project: r.Project, Files: []status.ImportFile{}, Problems: []status.LintProblem{}, Warnings: []status.LintWarning{}}
	known := map[string]bool{}
	for _, f := range r.Linted.Files {
		out := status.ImportFile{File: f.Step.File, Task: f.Task, Runs: RunsBuiltin}
		need, lacks := compile.NeedOf(f.Err)
		switch {
		case lacks:
			out.Runs, out.Why, out.At = RunsSalt, "it needs "+r.Redact(need.What), place(need.File, need.Line)
		case f.Err != nil:
			at, _ := fault.PosOf(f.Err)
			p := r.Problem(f.Err)
			out.Runs, out.Why, out.At, out.Hint = RunsRefused, p.Error, place(p.File, p.Line), p.Hint
			if fx, ok := fault.FixOf(f.Err); ok {
				fixes = append(fixes, Fix{at, fx})
			}
		case f.Step.Script || f.Step.Tool != "":
			out.Runs = RunsScript
		case f.Checked == nil:
		case len(f.Checked.Needs) > 0:
			n := f.Checked.Needs[0]
			out.Runs, out.Why, out.At = RunsSalt, "it needs "+n.What, place(n.File, n.Line)
		case f.Checked.Deferred != nil:
			d := f.Checked.Deferred
			out.Runs, out.Why, out.At = RunsDeferred, d.Why, place(d.File, d.Line)
		default:
			out.States = f.Checked.States
		}
		if f.Err != nil {
			known[f.Err.Error()] = true
		}
		switch out.Runs {
		case RunsBuiltin, RunsScript:
			doc.Builtin++
		case RunsDeferred:
			doc.Deferred++
		case RunsSalt:
			doc.Salt++
		case RunsRefused:
			doc.Refused++
		}
		doc.Files = append(doc.Files, out)
	}
	for _, err := range r.Problems {
		if !known[err.Error()] {
			doc.Problems = append(doc.Problems, r.Problem(err))
		}
	}
	for _, w := range r.Warnings {
		doc.Warnings = append(doc.Warnings, status.LintWarning{File: w.File, Text: w.Text})
	}
	return doc, fixes
}

func place(file string, line int) string { return fault.Pos{File: file, Line: line}.String() }

// line returns the line of a fix in the project in dir, before and after; ok is false if the word does not occur exactly once.
func (f Fix) line(dir string) (lines []string, n int, out status.ImportLine, ok bool) {
	if f.at.Line < 1 || !filepath.IsLocal(f.at.File) || !strings.HasPrefix(f.at.File, layout.SaltDir+"/") {
		return nil, 0, out, false
	}
	path := filepath.Join(dir, f.at.File)
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return nil, 0, out, false
	}
	text, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil {
		return nil, 0, out, false
	}
	lines = strings.SplitAfter(string(text), "\n")
	n = f.at.Line - 1
	if n >= len(lines) || strings.Count(lines[n], f.Old) != 1 {
		return nil, 0, out, false
	}
	line := strings.TrimRight(lines[n], "\r\n")
	return lines, n, status.ImportLine{File: f.at.File, Line: f.at.Line, Old: line, New: strings.Replace(line, f.Old, f.New, 1)}, true
}

// Lines returns the lines that fixes would change in the project in dir.
func Lines(dir string, fixes []Fix) (out []status.ImportLine) {
	for _, f := range fixes {
		if _, _, l, ok := f.line(dir); ok && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// Change applies fixes to the project in dir, each file by one rename.
func Change(dir string, fixes []Fix) (made []status.ImportLine, err error) {
	for _, f := range fixes {
		lines, n, l, ok := f.line(dir)
		if !ok {
			continue // changed already, for another step that includes the file, or not changeable automatically
		}
		lines[n] = strings.Replace(lines[n], l.Old, l.New, 1)
		path := filepath.Join(dir, f.at.File)
		fi, err := os.Lstat(path)
		if err != nil {
			return made, err
		}
		if !fi.Mode().IsRegular() {
			continue
		}
		if err := vfs.WriteFileAtomic(vfs.OS{}, path, []byte(strings.Join(lines, "")), uint32(fi.Mode().Perm())); err != nil {
			return made, err
		}
		made = append(made, l)
	}
	return made, nil
}
