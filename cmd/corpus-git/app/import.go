package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/lint"
	"corpus-git/project/status"
)

// maxRounds limits how often a project is checked again after lines were changed, as each step reports only its first error.
const maxRounds = 50

// importing is one run of import.
type importing struct {
	linting
	write bool
}

func (c *command) importCommand() *cobra.Command {
	i := &importing{linting: linting{command: c}}
	cmd := &cobra.Command{
		Use: "import [DIR|URL]", Short: "Check a project of the Salt-based corpus",
		Long: "Reports for each step and task whether the built-in runner or salt-call runs it, and why, or what is wrong with it, and which\n" +
			"lines to change. --write changes them in DIR; without it nothing is changed. A URL is cloned to a temporary directory.\n" +
			"The exit status is 1 if something would be refused.",
		Example: "  corpus-git import ~/src/shop\n  corpus-git import --write .\n  corpus-git import https://github.com/makinacorpus/corpus-flask",
		RunE: func(_ *cobra.Command, args []string) error {
			i.Dir = dirArgument(args)
			ctx, stop := untilInterrupted()
			defer stop()
			if isURL(i.Dir) {
				if i.write {
					return fault.New(fault.Usage, "", "--write needs a local directory, and %s is a URL", printable.Text(i.Dir)).WithHint("clone it first")
				}
				dir, done, err := c.clone(i.Dir)
				if err != nil {
					return err
				}
				defer done()
				i.Dir = dir
			}
			return i.run(ctx)
		},
	}
	cmd.Flags().BoolVar(&i.write, "write", false, "change the lines in DIR")
	i.flags(cmd)
	return cmd
}

func (i *importing) run(ctx context.Context) error {
	var changed []status.ImportLine
	for range maxRounds {
		found, err := i.check(ctx)
		if err != nil {
			return err
		}
		doc, fixes := found.Import()
		if i.write && len(fixes) > 0 {
			made, err := lint.Change(i.Dir, fixes)
			changed = append(changed, made...)
			if err != nil {
				return err
			}
			if len(made) > 0 {
				continue
			}
		}
		doc.Changes = append(changed, lint.Lines(i.Dir, fixes)...)
		if doc.Refused > 0 || len(doc.Problems) > 0 {
			i.exit = fault.Failed.ExitCode()
		}
		if i.json {
			doc.Changes = slices.Concat([]status.ImportLine{}, doc.Changes)
			return verbs.WriteDocument(i.Stdout, doc)
		}
		return i.print(i.Stdout, doc, len(changed))
	}
	return fault.New(fault.Internal, "import", "the changes do not converge")
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
	words := map[string]string{lint.RunsDeferred: "decided when it runs", lint.RunsSalt: "salt-call", lint.RunsRefused: "refused"}
	for _, f := range doc.Files {
		what := words[f.Runs]
		switch f.Runs {
		case lint.RunsScript:
			what = "an executable"
		case lint.RunsBuiltin:
			what = "built in, " + humanize.Plural(f.States, "state")
		default:
			what += ": " + printable.Text(f.Why)
			if f.At != "" {
				what += " (" + printable.Text(f.At) + ")"
			}
		}
		line("%-*s  %s", width, printable.Text(f.File), what)
		if f.Hint != "" && f.Runs == lint.RunsRefused {
			line("%-*s  hint: %s", width, "", printable.Text(f.Hint))
		}
	}
	for _, p := range doc.Problems {
		text := p.Error
		if p.File != "" {
			text = fault.Pos{File: p.File, Line: p.Line}.String() + ": " + text
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
			line("to change; --write applies the changes and checks again:")
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
	}{{doc.Builtin, "built in"}, {doc.Deferred, "decided when they run"}, {doc.Salt, "to salt-call"}, {doc.Refused, "refused"}} {
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
