package traces

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// span is a part of a deployment.
type span struct {
	Name string
	// ID and Parent are 16 hexadecimal digits; Parent is "" for the whole deployment.
	ID, Parent string
	Begun      time.Time
	Ended      time.Time
	Attributes []attribute
	// Failed: Message says why.
	Failed  bool
	Message string

	procedure, step string
}

// attribute has a text or a number.
type attribute struct {
	Key  string
	Text string
	N    int64
	IsN  bool
}

// maxMessage is how many bytes the message of a span has at most.
const maxMessage = 300

// traceID is that of a deployment: the 128 bits of its ID, in hexadecimal digits.
func traceID(id project.ID) string {
	text := strings.ReplaceAll(string(id), "-", "")
	if b, err := hex.DecodeString(text); err == nil && len(b) == 16 {
		return text
	}
	h := sha256.Sum256([]byte(id))
	return hex.EncodeToString(h[:16])
}

// spanID is that of a part of a deployment.
func spanID(id project.ID, part string) string {
	h := sha256.Sum256([]byte(string(id) + "\x00" + part))
	return hex.EncodeToString(h[:8])
}

// spansOf returns the parts of a deployment that has ended, the whole first. A log that cannot be read, or is gone, gives the whole and the wait.
func spansOf(rec project.Record, events iter.Seq2[event.Event, error]) []span {
	res := rec.Result
	if res == nil {
		return nil
	}
	whole := span{
		Name: string(rec.Trigger) + " " + string(rec.Project), ID: spanID(rec.ID, "deployment"), Begun: rec.At, Ended: latest(rec.At, res.Ended), Failed: !rec.State.Good() || !res.Good(),
		Attributes: facts(rec),
	}
	if whole.Failed {
		whole.Message = clip(firstOf(res.Reason, res.Unhealthy))
	}
	b := builder{id: rec.ID, root: whole.ID}
	if res.Started.After(rec.At) {
		b.done = append(b.done, span{Name: "wait", ID: spanID(rec.ID, "wait"), Parent: whole.ID, Begun: rec.At, Ended: res.Started})
	}
	for e, err := range events {
		if err != nil {
			break
		}
		b.add(e)
	}
	b.end(latest(rec.At, res.Ended))
	for i := range b.done {
		b.done[i].Attributes = append(b.done[i].Attributes, attribute{Key: "corpus.project", Text: string(rec.Project)}, attribute{Key: "corpus.deployment", Text: string(rec.ID)})
	}
	return append([]span{whole}, b.done...)
}

// facts returns what is said of the whole.
func facts(rec project.Record) []attribute {
	out := []attribute{
		{Key: "corpus.project", Text: string(rec.Project)}, {Key: "corpus.deployment", Text: string(rec.ID)}, {Key: "corpus.trigger", Text: string(rec.Trigger)},
		{Key: "corpus.state", Text: string(rec.State)}, {Key: "corpus.code", Text: string(rec.Code)}, {Key: "corpus.pillar", Text: string(rec.Pillar)},
		{Key: "corpus.live_code", Text: string(rec.LiveCode)}, {Key: "corpus.live_pillar", Text: string(rec.LivePillar)}, {Key: "corpus.ref", Text: rec.Change.Ref},
		{Key: "corpus.task", Text: rec.Task}, {Key: "enduser.id", Text: rec.Pusher.Key},
	}
	kept := out[:0]
	for _, a := range out {
		if a.Text != "" {
			kept = append(kept, a)
		}
	}
	return kept
}

// builder makes spans of events. At most one procedure, and in it one step, is open.
type builder struct {
	id              project.ID
	root            string
	n               int
	done            []span
	procedure, step *span
	last            time.Time
}

func (b *builder) add(e event.Event) {
	b.last = latest(b.last, e.Time)
	switch e.Kind {
	case event.ProcedureStart:
		if b.procedure != nil && b.procedure.procedure == e.Procedure && b.step == nil && !b.procedure.Failed {
			return // of install, which says a second time that it begins when it knows its steps
		}
		b.end(e.Time)
		b.procedure = b.open(e.Procedure, b.root, e)
	case event.StepStart:
		b.endStep(e.Time)
		parent := b.root
		if b.procedure != nil {
			parent = b.procedure.ID
		}
		b.step = b.open(e.Step, parent, e)
		b.step.Attributes = append(b.step.Attributes, attribute{Key: "corpus.step.n", N: int64(e.N), IsN: true}, attribute{Key: "corpus.step.of", N: int64(e.Of), IsN: true})
	case event.StepDone:
		if b.step != nil && b.step.step == e.Step {
			b.step.Attributes = append(b.step.Attributes, attribute{Key: "corpus.step.changed", N: int64(e.Changed), IsN: true})
			b.endStep(e.Time)
		}
	case event.ProcedureDone:
		if b.procedure != nil && b.procedure.procedure == e.Procedure {
			b.end(e.Time)
		}
	case event.Failure:
		b.fail(e)
	}
}

// fail ends what failed: the step that is open, or else the procedure.
func (b *builder) fail(e event.Event) {
	message := clip(strings.TrimSpace(e.Text))
	if b.step != nil && (e.Step == b.step.step || e.Step == "") {
		b.step.Failed, b.step.Message = true, message
		b.endStep(e.Time)
	}
	if b.procedure != nil && (e.Procedure == b.procedure.procedure || e.Procedure == "") {
		b.procedure.Failed, b.procedure.Message = true, message
		if e.Step == "" {
			b.end(e.Time)
		}
	}
}

func (b *builder) open(name, parent string, e event.Event) *span {
	b.n++
	s := &span{Name: name, ID: spanID(b.id, fmt.Sprint(b.n, " ", name)), Parent: parent, Begun: e.Time, procedure: e.Procedure, step: e.Step}
	s.Attributes = append(s.Attributes, attribute{Key: "corpus.procedure", Text: e.Procedure})
	if e.Step != "" {
		s.Attributes = append(s.Attributes, attribute{Key: "corpus.step", Text: e.Step})
	}
	return s
}

func (b *builder) endStep(at time.Time) {
	if b.step != nil {
		b.step.Ended = latest(b.step.Begun, at)
		b.done, b.step = append(b.done, *b.step), nil
	}
}

// end ends what is open.
func (b *builder) end(at time.Time) {
	b.endStep(at)
	if b.procedure != nil {
		b.procedure.Ended = latest(b.procedure.Begun, at)
		b.done, b.procedure = append(b.done, *b.procedure), nil
	}
}

// latest returns the later of two times: a clock that was set back gives no span a negative length.
func latest(a, b time.Time) time.Time {
	if b.Before(a) {
		return a
	}
	return b
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func clip(s string) string { return printable.Shorten(printable.Line(s), maxMessage) }
