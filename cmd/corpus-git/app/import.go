package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project/status"
	"corpus-git/sls/compile"
)

// What runs a file, in status.ImportFile.
const (
	runsBuiltin  = "builtin"
	runsDeferred = "deferred"
	runsSalt     = "salt"
	runsScript   = "script"
	runsRefused  = "refused"
)

// maxRounds bounds how often a project is looked at again after lines were changed: each step tells its first error only.
const maxRounds = 50

// importing is one run of import.
type importing struct {
	linting
	write bool
}

func (c *command) importCommand() *cobra.Command {
	i := &importing{linting: linting{command: c}}
	cmd := &cobra.Command{
		Use: "import [DIR|URL]", Short: "Look over a project of the Salt-based corpus",
		Long: "Says of each step and task whether the built-in runner applies it, whether it goes to salt-call and why, or what is wrong with it, and which\n" +
			"lines to change. --write changes them in DIR; without it nothing is changed. What a URL names is cloned to a temporary folder.\n" +
			"The exit status is 1 when something would be refused.",
		Example: "  corpus-git import ~/src/shop\n  corpus-git import --write .\n  corpus-git import https://github.com/makinacorpus/corpus-flask",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			i.dir = "."
			if len(args) == 1 {
				i.dir = args[0]
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if isURL(i.dir) {
				if i.write {
					return fault.New(fault.Usage, "", "--write changes files of a folder, and %s is elsewhere", printable.Text(i.dir)).WithHint("clone it first")
				}
				dir, done, err := c.clone(i.dir)
				if err != nil {
					return err
				}
				defer done()
				i.dir = dir
			}
			return i.look(ctx)
		},
	}
	cmd.Flags().StringVar(&i.pillar, "pillar", "", "folder of the project's pillar, with its init.sls (default: PILLAR.sample alone)")
	cmd.Flags().StringVar(&i.name, "project", "", "name of the project (default: that of the folder)")
	cmd.Flags().StringVar(&i.env, "env", "", "environment, as of  project create --env")
	cmd.Flags().BoolVar(&i.write, "write", false, "change the lines in DIR")
	cmd.Flags().BoolVar(&i.json, "json", false, "print a JSON document")
	return cmd
}

func (i *importing) look(ctx context.Context) error {
	var changed []status.ImportLine
	for range maxRounds {
		found, err := i.find(ctx)
		if err != nil {
			return err
		}
		doc, fixes := importDocument(found)
		if i.write && len(fixes) > 0 {
			made, err := i.change(fixes)
			changed = append(changed, made...)
			if err != nil {
				return err
			}
			if len(made) > 0 {
				continue
			}
		}
		doc.Changes = append(changed, i.lines(fixes)...)
		if doc.Refused > 0 || len(doc.Problems) > 0 {
			i.exit = fault.Failed.ExitCode()
		}
		if i.json {
			doc.Changes = slices.Concat([]status.ImportLine{}, doc.Changes)
			return verbs.WriteDocument(i.Stdout, doc)
		}
		return i.print(i.Stdout, doc, len(changed))
	}
	return fault.New(fault.Internal, "import", "there is no end to the lines to change")
}

// fix is a word of a line of the recipe that should be another one.
type fix struct {
	at fault.Pos
	fault.Fix
}

// importDocument sorts what lint found by file.
func importDocument(found *lintDocument) (doc status.Import, fixes []fix) {
	doc = status.Import{Version: status.Version, Project: found.project, Files: []status.ImportFile{}, Problems: []status.LintProblem{}, Warnings: []status.LintWarning{}}
	known := map[string]bool{}
	for _, f := range found.linted.Files {
		out := status.ImportFile{File: f.Step.File, Task: f.Task, Runs: runsBuiltin}
		need, lacks := compile.NeedOf(f.Err)
		switch {
		case lacks:
			out.Runs, out.Why, out.At = runsSalt, "it needs "+found.said(need.What), place(need.File, need.Line)
		case f.Err != nil:
			at, _ := fault.PosOf(f.Err)
			p := found.problem(f.Err)
			out.Runs, out.Why, out.At, out.Hint = runsRefused, p.Error, place(p.File, p.Line), p.Hint
			if fx, ok := fault.FixOf(f.Err); ok {
				fixes = append(fixes, fix{at, fx})
			}
		case f.Step.Script:
			out.Runs = runsScript
		case f.Checked == nil:
		case len(f.Checked.Needs) > 0:
			n := f.Checked.Needs[0]
			out.Runs, out.Why, out.At = runsSalt, "it needs "+n.What, place(n.File, n.Line)
		case f.Checked.Deferred != nil:
			d := f.Checked.Deferred
			out.Runs, out.Why, out.At = runsDeferred, d.Why, place(d.File, d.Line)
		default:
			out.States = f.Checked.States
		}
		if f.Err != nil {
			known[f.Err.Error()] = true
		}
		switch out.Runs {
		case runsBuiltin, runsScript:
			doc.Builtin++
		case runsDeferred:
			doc.Deferred++
		case runsSalt:
			doc.Salt++
		case runsRefused:
			doc.Refused++
		}
		doc.Files = append(doc.Files, out)
	}
	for _, err := range found.problems {
		if !known[err.Error()] {
			doc.Problems = append(doc.Problems, found.problem(err))
		}
	}
	for _, w := range found.warnings {
		doc.Warnings = append(doc.Warnings, status.LintWarning{File: w.File, Text: w.Text})
	}
	return doc, fixes
}

func place(file string, line int) string { return fault.Pos{File: file, Line: line}.String() }

// changedLine is the line of a fix, before and after; ok is false where the word does not stand there alone.
func (i *importing) changedLine(f fix) (lines []string, n int, out status.ImportLine, ok bool) {
	if f.at.Line < 1 || !filepath.IsLocal(f.at.File) || !strings.HasPrefix(f.at.File, layout.SaltDir+"/") {
		return nil, 0, out, false
	}
	text, err := os.ReadFile(filepath.Join(i.dir, f.at.File))
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

// lines are those that fixes would change.
func (i *importing) lines(fixes []fix) (out []status.ImportLine) {
	for _, f := range fixes {
		if _, _, l, ok := i.changedLine(f); ok && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// change makes fixes in the folder.
func (i *importing) change(fixes []fix) (made []status.ImportLine, err error) {
	for _, f := range fixes {
		lines, n, l, ok := i.changedLine(f)
		if !ok {
			continue // made already, for another step that includes the file; or not by itself
		}
		lines[n] = strings.Replace(lines[n], l.Old, l.New, 1)
		path := filepath.Join(i.dir, f.at.File)
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

func (i *importing) print(w io.Writer, doc status.Import, changed int) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	width := 0
	for _, f := range doc.Files {
		width = max(width, len(f.File))
	}
	words := map[string]string{runsDeferred: "decided at its turn", runsSalt: "salt-call", runsRefused: "refused"}
	for _, f := range doc.Files {
		what := words[f.Runs]
		switch f.Runs {
		case runsScript:
			what = "an executable"
		case runsBuiltin:
			what = "built in, " + humanize.Plural(f.States, "state")
		default:
			what += ": " + printable.Text(f.Why)
			if f.At != "" {
				what += " (" + printable.Text(f.At) + ")"
			}
		}
		line("%-*s  %s", width, printable.Text(f.File), what)
		if f.Hint != "" && f.Runs == runsRefused {
			line("%-*s  hint: %s", width, "", printable.Text(f.Hint))
		}
	}
	for _, p := range doc.Problems {
		text := p.Error
		if p.File != "" {
			text = place(p.File, p.Line) + ": " + text
		}
		line("error: %s", printable.Text(text))
		if p.Hint != "" {
			line("hint: %s", printable.Text(p.Hint))
		}
	}
	for _, x := range doc.Warnings {
		line("warning: %s: %s", printable.Text(x.File), printable.Text(x.Text))
	}
	if len(doc.Changes) > 0 {
		if changed > 0 {
			line("changed:")
		} else {
			line("to change; --write does it, and looks again:")
		}
		for _, c := range doc.Changes {
			line("  %s:%d", printable.Text(c.File), c.Line)
			line("  - %s", printable.Text(c.Old))
			line("  + %s", printable.Text(c.New))
		}
	}
	var parts []string
	for _, n := range []struct {
		count int
		what  string
	}{{doc.Builtin, "built in"}, {doc.Deferred, "decided at their turn"}, {doc.Salt, "to salt-call"}, {doc.Refused, "refused"}} {
		if n.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.count, n.what))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing runs")
	}
	line("%s: %s: %s", doc.Project, humanize.Plural(len(doc.Files), "step or task", "steps and tasks"), strings.Join(parts, ", "))
	return errors.Join(errs...)
}
