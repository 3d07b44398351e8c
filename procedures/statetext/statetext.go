// Package statetext describes states that ran: a line about each, and several about those that failed. It stores nothing.
package statetext

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/sls"
)

// Describer describes states of one deployment.
type Describer struct {
	// Hide returns a text without control characters and secrets.
	Hide func(string) string
	// Dir is the project's folder, below which paths are shortened.
	Dir string
}

// maxFailed is how many failed states of one step are shown in full.
const maxFailed = 5

// Failed returns lines that describe the failed states of a step, and the ID of the first.
func (d Describer) Failed(res *sls.StepResult) (lines []string, first string) {
	shown, more, blocked := 0, 0, 0
	if f := res.Failed(); f != nil {
		first = f.ID
	}
	for _, s := range res.States {
		switch {
		case s.Outcome != sls.FailedState:
		case s.Skipped && s.ID != first:
			blocked++
		case shown < maxFailed:
			lines = append(lines, d.failure(s)...)
			shown++
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, humanize.Plural(more, "more failed state"))
	}
	if blocked > 0 {
		lines = append(lines, humanize.Plural(blocked, "state")+" not run: they require what failed")
	}
	return lines, first
}

// Status returns the status of a state that ran.
func Status(res sls.StateResult) event.Status {
	switch {
	case res.Outcome == sls.FailedState:
		return event.Bad
	case res.Changed:
		return event.Changed
	case res.Skipped:
		return event.Skipped
	}
	return event.OK
}

// Line returns the state in one line: its function and what it acts on. It is redacted before it is shortened: part of a secret would not be
// recognised.
func (d Describer) Line(res sls.StateResult) string {
	what := res.Name
	if res.Command != nil {
		what = res.Command.Line
	}
	what, _, more := strings.Cut(strings.TrimSpace(d.Hide(what)), "\n")
	if more {
		what += " …"
	}
	return res.Function + ": " + printable.Shorten(what, 60)
}

// Lines splits a text without its last line feeds.
func Lines(d string) []string {
	if d == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(d, "\n"), "\n")
}

// failure returns lines that describe a failed state in full. Its texts are redacted before they get prefixes: otherwise a secret that spans lines
// would not be found.
func (d Describer) failure(res sls.StateResult) []string {
	hide := d.Hide
	res.Comment, res.Diff = hide(res.Comment), hide(res.Diff)
	if res.Command != nil {
		c := *res.Command
		c.Line, c.StderrTail = hide(c.Line), hide(c.StderrTail)
		res.Command = &c
	}
	at := res.File
	if res.Line > 0 {
		at = fmt.Sprintf("%s:%d", res.File, res.Line)
	}
	lines := []string{fmt.Sprintf("%s  %s  %s", res.ID, res.Function, at)}
	if c := res.Command; c != nil {
		where := ""
		if c.Dir != "" {
			where = "in " + d.place(c.Dir)
		}
		if c.User != "" {
			where = strings.TrimPrefix(where+", as "+c.User, ", ")
		}
		if where != "" {
			where = "  (" + where + ")"
		}
		cmd := strings.Split(strings.TrimRight(c.Line, "\n"), "\n")
		status := fmt.Sprintf("  exit status %d", c.ExitStatus)
		switch {
		case c.TimedOut:
			status = "  timed out"
		case c.ExitStatus < 0:
			status = "  did not start"
		}
		if len(cmd) == 1 {
			lines = append(lines, cmd[0]+where+status)
		} else {
			lines = append(lines, cmd...)
			lines = append(lines, strings.TrimSpace(where+status))
		}
		for _, l := range Lines(c.StderrTail) {
			lines = append(lines, "| "+l)
		}
	} else if res.Name != res.ID {
		lines = append(lines, "name: "+res.Name)
	}
	if res.Comment != "" && (res.Command == nil || res.Command.ExitStatus <= 0) {
		lines = append(lines, strings.Split(strings.TrimRight(res.Comment, "\n"), "\n")...)
	}
	if diff := Lines(res.Diff); len(diff) > 0 {
		lines = append(lines, "its changes:")
		lines = append(lines, diff...)
	} else if len(res.Changes) > 0 && string(res.Changes) != "{}" && string(res.Changes) != "null" && res.Command == nil {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(res.Changes) == nil {
			lines = append(lines, "its changes: "+strings.TrimSpace(b.String()))
		}
	}
	return lines
}

// place shortens a path below the project's folder: project/, data/.
func (d Describer) place(path string) string {
	if rel, err := filepath.Rel(d.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel + "/"
	}
	return path
}
