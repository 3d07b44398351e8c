package procedures

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/printable"
	"corpus-git/internal/redact"
	"corpus-git/sls"
)

// outputs turns what commands print into Output events. Each stream is redacted as a whole, because a secret may span lines, and after
// event.Scrub, because invisible characters may be within a secret. A command's two streams may be written concurrently.
type outputs struct {
	env       *Env
	procedure string
	step      string

	mu   sync.Mutex
	open map[string]*outStream
}

type outStream struct {
	redact *redact.Writer
	lines  *execx.Lines
}

func (e *Env) outputs(procedure string) *outputs {
	return &outputs{env: e, procedure: procedure, open: map[string]*outStream{}}
}

func (o *outputs) write(state, stream, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := state + "\x00" + stream
	s := o.open[key]
	if s == nil {
		lines := execx.NewLines(func(line string) {
			o.env.Report.Append(event.Event{Kind: event.Output, Procedure: o.procedure, Step: o.step, State: state, Stream: stream, Text: line})
		})
		s = &outStream{lines: lines, redact: o.env.Prepared.Redactor.Writer(lines)}
		o.open[key] = s
	}
	_, _ = s.redact.Write([]byte(event.Scrub(text) + "\n"))
}

// line handles one line of output of a hook.
func (o *outputs) line(p hooks.Point, hook, stream, line string) {
	o.write(string(p)+"/"+hook, stream, line)
}

// close ends all streams and writes the remaining buffered output, redacted.
func (o *outputs) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, s := range o.open {
		_ = s.redact.Flush()
		_ = s.lines.Close()
		delete(o.open, k)
	}
}

// stepSink reports the states of one SLS file.
type stepSink struct {
	*outputs
	slow []slowState
}

type slowState struct {
	id string
	d  time.Duration
}

var _ sls.Sink = (*stepSink)(nil)

// StateStart implements sls.Sink.
func (s *stepSink) StateStart(ref sls.StateRef) {
	s.env.Report.Append(event.Event{
		Kind: event.StateStart, Procedure: s.procedure, Step: s.step, State: ref.ID, Function: ref.Function, N: ref.Num, Of: ref.Of,
		Duration: s.env.Usual[timingName(s.step, ref.ID)].Median,
	})
}

// StateDone implements sls.Sink.
func (s *stepSink) StateDone(res sls.StateResult) {
	s.close()
	e := event.Event{
		Kind: event.StateDone, Procedure: s.procedure, Step: s.step, State: res.ID, Function: res.Function, N: res.Num, Of: res.Of,
		Duration: res.Duration, Status: statusOf(res), Text: s.env.stateText(res),
	}
	if res.Comment != "" && res.Comment != e.Text {
		e.Lines = append(e.Lines, strings.Split(strings.TrimRight(res.Comment, "\n"), "\n")...)
	}
	e.Lines = append(e.Lines, diffLines(res.Diff)...)
	s.env.Report.Append(e)
	if res.Duration >= time.Second {
		s.slow = append(s.slow, slowState{res.ID, res.Duration})
	}
}

// Output implements sls.Sink.
func (s *stepSink) Output(id string, stream sls.Stream, line string) {
	s.write(id, string(stream), line)
}

func timingName(step, state string) string {
	if state == "" {
		return NameInstall + "/" + step
	}
	return NameInstall + "/" + step + "/" + state
}

func statusOf(res sls.StateResult) event.Status {
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

// stateText returns the state in one line: its function and what it acts on. It is redacted before it is shortened: part of a secret would not be
// recognised.
func (e *Env) stateText(res sls.StateResult) string {
	what := res.Name
	if res.Command != nil {
		what = res.Command.Line
	}
	what, _, more := strings.Cut(strings.TrimSpace(e.Hide(what)), "\n")
	if more {
		what += " …"
	}
	return res.Function + ": " + printable.Shorten(what, 60)
}

// Hide returns a text without control characters and secrets, safe to be shown.
func (e *Env) Hide(text string) string { return e.Prepared.Redactor.String(event.ScrubText(text)) }

func diffLines(d string) []string {
	if d == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(d, "\n"), "\n")
}

// failureLines returns lines that describe a failed state in full. Its texts are redacted before they get prefixes: otherwise a secret that spans lines
// would not be found.
func (e *Env) failureLines(res sls.StateResult) []string {
	hide := e.Hide
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
			where = "in " + e.place(c.Dir)
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
		for _, l := range diffLines(c.StderrTail) {
			lines = append(lines, "| "+l)
		}
	} else if res.Name != res.ID {
		lines = append(lines, "name: "+res.Name)
	}
	if res.Comment != "" && (res.Command == nil || res.Command.ExitStatus <= 0) {
		lines = append(lines, strings.Split(strings.TrimRight(res.Comment, "\n"), "\n")...)
	}
	if d := diffLines(res.Diff); len(d) > 0 {
		lines = append(lines, "its changes:")
		lines = append(lines, d...)
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
func (e *Env) place(path string) string {
	if rel, err := filepath.Rel(e.Paths.Dir(), path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel + "/"
	}
	return path
}
