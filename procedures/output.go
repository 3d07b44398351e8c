package procedures

import (
	"strings"
	"sync"
	"time"

	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/redact"
	"corpus-git/procedures/statetext"
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
		Duration: res.Duration, Status: statetext.Status(res), Text: s.env.states().Line(res),
	}
	if res.Comment != "" && res.Comment != e.Text {
		e.Lines = append(e.Lines, strings.Split(strings.TrimRight(res.Comment, "\n"), "\n")...)
	}
	e.Lines = append(e.Lines, statetext.Lines(res.Diff)...)
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

// Hide returns a text without control characters and secrets, safe to be shown.
func (e *Env) Hide(text string) string { return e.Prepared.Redactor.String(event.ScrubText(text)) }

// states describes states.
func (e *Env) states() statetext.Describer {
	return statetext.Describer{Hide: e.Hide, Dir: e.Paths.Dir()}
}
