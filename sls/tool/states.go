package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

// maxStates is the number of states that one step may report; further ones are only counted.
const maxStates = 100_000

// states collects what a tool reports about one step.
type states struct {
	in      *sls.Input
	sink    sls.Sink
	res     *sls.StepResult
	current string
	began   time.Time
	more    int
}

func newStates(in *sls.Input, sink sls.Sink, runner string) *states {
	now := in.Host.Now()
	return &states{in: in, sink: sink, began: now, res: &sls.StepResult{SLS: in.SLS, File: shown(in), Runner: runner, Started: now}}
}

// message is a line that a program writes for a state, docs/guide/tools.md.
type message struct {
	State    string `json:"state"`
	Begins   bool   `json:"begins"`
	Name     string `json:"name"`
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Status   string `json:"status"`
	Comment  string `json:"comment"`
	Diff     string `json:"diff"`
	Stderr   string `json:"stderr"`
	Exit     *int   `json:"exit"`
}

// line handles a line that the tool printed: the message of a state, or output.
func (s *states) line(stream sls.Stream, text string) {
	var m message
	if stream != sls.Stdout || !strings.HasPrefix(text, `{"`) || json.Unmarshal([]byte(text), &m) != nil || m.State == "" {
		s.sink.Output(s.current, stream, text)
		return
	}
	ref := sls.StateRef{ID: m.State, Name: m.Name, Function: m.Function, SLS: s.in.SLS, File: s.shown(m.File), Line: m.Line, Num: len(s.res.States) + 1}
	if ref.Name == "" {
		ref.Name = ref.ID
	}
	if ref.Function == "" {
		ref.Function = s.res.Runner
	}
	if m.Begins {
		s.current, s.began = ref.ID, s.in.Host.Now()
		s.sink.StateStart(ref)
		return
	}
	out := sls.StateResult{StateRef: ref, Comment: m.Comment, Diff: m.Diff}
	switch m.Status {
	case "ok":
		out.Outcome = sls.Succeeded
	case "changed":
		out.Outcome, out.Changed = sls.Succeeded, true
		if s.in.Test {
			out.Outcome = sls.WouldChange
		}
	case "skipped":
		out.Outcome, out.Skipped = sls.Succeeded, true
	case "blocked":
		out.Outcome, out.Skipped = sls.FailedState, true
	default: // failed, and unknown statuses
		out.Outcome = sls.FailedState
		if m.Status != "failed" {
			out.Comment = strings.TrimSpace(fmt.Sprintf("%q is not a status of a state\n%s", m.Status, m.Comment))
		}
	}
	if m.Stderr != "" {
		out.Comment = strings.TrimSpace(out.Comment + "\n" + m.Stderr)
	}
	if m.Exit != nil && *m.Exit != 0 {
		out.Comment = strings.TrimSpace(fmt.Sprintf("exit status %d\n%s", *m.Exit, out.Comment))
	}
	s.done(out)
}

// shown returns a path as users know it: below .salt instead of below the private copy.
func (s *states) shown(file string) string {
	dir := strings.TrimSuffix(s.in.Script, baseOf(s.in.Script))
	if rest, ok := strings.CutPrefix(file, dir); ok && dir != "" {
		return strings.TrimSuffix(shown(s.in), baseOf(shown(s.in))) + rest
	}
	if file == "" {
		return shown(s.in)
	}
	return file
}

func baseOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// done adds a state that ended.
func (s *states) done(r sls.StateResult) {
	if len(s.res.States) >= maxStates && r.Outcome != sls.FailedState {
		s.more++
		return
	}
	now := s.in.Host.Now()
	if s.current != r.ID {
		s.began = now
	}
	r.Num = len(s.res.States) + 1
	r.Started = s.began
	if r.Duration == 0 {
		r.Duration = now.Sub(s.began)
	}
	s.current, s.began = "", now
	s.res.States = append(s.res.States, r)
	s.sink.StateDone(r)
}

// end returns the result. A tool that failed and reported no failed state gets one, named after the file.
func (s *states) end(failed bool, why string) *sls.StepResult {
	if failed && s.res.OK() {
		s.done(sls.StateResult{
			StateRef: sls.StateRef{ID: baseOf(shown(s.in)), Name: shown(s.in), Function: s.res.Runner, SLS: s.in.SLS, File: shown(s.in)},
			Outcome:  sls.FailedState, Comment: why,
		})
	}
	if s.more > 0 {
		s.res.Warnings = append(s.res.Warnings, fmt.Sprintf("%d more states are not shown", s.more))
	}
	s.res.Duration = s.in.Host.Now().Sub(s.res.Started)
	return s.res
}

// manual records that a rollback does not undo what the tool changes outside the tree.
func manual(in *sls.Input, what string) error {
	if in.Test {
		return nil
	}
	if err := in.Undo.ManualStep(what + " " + shown(in)); err != nil {
		return fault.New(fault.KindOf(err), "run "+shown(in), "%w", err)
	}
	return nil
}
