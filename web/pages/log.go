package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// logLine is one line of a log, and how it looks.
type logLine struct {
	N     int    `json:"n"`
	Class string `json:"c,omitempty"`
	At    string `json:"at"`
	Text  string `json:"t"`
	// Part is the part of the log in which it is.
	Part int `json:"-"`
}

func classOf(e event.Event, text string) string {
	switch {
	case e.Kind == event.Verdict && e.Status == event.Bad:
		return "bad"
	case e.Kind == event.Verdict:
		return "good"
	case e.Kind == event.Failure:
		return "fail"
	case e.Kind == event.Output:
		return "out"
	case e.Kind == event.Plan && len(text) > 0:
		return planClass(text)
	case strings.HasPrefix(text, "----->"):
		return "head"
	}
	return ""
}

// planClass shows a line of a plan as that of a diff.
func planClass(text string) string {
	switch t := strings.TrimLeft(text, " "); {
	case strings.HasPrefix(t, "+"), strings.HasPrefix(t, "A "):
		return "add"
	case strings.HasPrefix(t, "-"), strings.HasPrefix(t, "D "):
		return "del"
	case strings.HasPrefix(t, "@@"):
		return "at"
	case strings.HasPrefix(t, "~"), strings.HasPrefix(t, "M "):
		return "mod"
	case strings.HasPrefix(t, "!"):
		return "fail"
	}
	return ""
}

// lister converts events to lines.
type lister struct {
	buf     bytes.Buffer
	console *event.Console
	n       int
}

func newLister() *lister {
	l := &lister{}
	l.console = event.NewConsole(&l.buf, event.Style{Verbose: true})
	return l
}

func (l *lister) lines(e event.Event) []logLine {
	l.buf.Reset()
	if _, err := l.console.Show(e); err != nil {
		return nil
	}
	var out []logLine
	for text := range strings.Lines(l.buf.String()) {
		text = strings.TrimSuffix(text, "\n")
		l.n++
		out = append(out, logLine{N: l.n, Class: classOf(e, text), At: e.Time.UTC().Format("15:04:05"), Text: text})
	}
	return out
}

// group are lines that belong to one step, which can be folded, or lines between steps.
type group struct {
	// Name is that of the step; "" is none.
	Name, Took string
	State      string // good, bad or busy
	Open       bool
	Lines      []logLine
}

// part is what a page shows of a log.
type part struct {
	Groups []group
	// N of Of parts.
	N, Of int
	// Seq is the last event read; the script goes on from there.
	Seq    uint64
	Search string
	Found  int
	More   bool
	// Problem is why there is no more of it.
	Problem string
}

const (
	// partBytes is the approximate size of the lines of a part on a page, lineBytes the overhead of a line.
	partBytes, lineBytes = 80 << 10, 105
)

// partAt reads a part of a log: n counts from 1, 0 is the last one. With a search it contains the matching lines of all parts.
func partAt(events iter.Seq2[event.Event, error], n int, search string) part {
	out := part{Search: search, Of: 1}
	l, size, found := newLister(), 0, 0
	search = strings.ToLower(search)
	for e, err := range events {
		if err != nil {
			out.Problem = "the log cannot be read"
			if errors.Is(err, fs.ErrNotExist) {
				out.Problem = "there is no log of it, or no longer"
			}
			break
		}
		out.Seq = e.Seq
		for _, line := range l.lines(e) {
			w := weight(line)
			if size+w > partBytes && size > 0 {
				size = 0
				if out.Of++; n == 0 && search == "" {
					out.Groups = nil
				}
			}
			size += w
			line.Part = out.Of
			switch {
			case search == "" && (n == 0 || n == out.Of):
				out.Groups = within(out.Groups, e, line)
			case search != "" && strings.Contains(strings.ToLower(line.Text), search):
				if out.Found++; found+w > partBytes {
					out.More = true
					continue
				}
				found += w
				out.Groups = within(out.Groups, event.Event{}, line)
			}
		}
		if search == "" && (n == 0 || n == out.Of) {
			out.Groups = closed(out.Groups, e)
		}
	}
	if out.N = n; n == 0 || n > out.Of {
		out.N = out.Of
	}
	return out
}

// weight estimates the size of a line on a page, including escapes.
func weight(l logLine) int {
	n := len(l.Text) + lineBytes
	for _, c := range []byte(l.Text) {
		switch c {
		case '<', '>', '&', '"', '\'', '+':
			n += 4
		}
	}
	return n
}

// within adds a line to its group.
func within(groups []group, e event.Event, line logLine) []group {
	name := e.Step
	if e.Kind == event.Plan || e.Kind == event.Verdict {
		name = ""
	}
	if len(groups) == 0 || groups[len(groups)-1].Name != name {
		g := group{Name: name, Open: true}
		if name != "" {
			g.State = "busy"
		}
		groups = append(groups, g)
	}
	g := &groups[len(groups)-1]
	if g.Lines = append(g.Lines, line); line.Class == "fail" && g.Name != "" {
		g.State = "bad"
	}
	return groups
}

// closed folds the group of a successful step.
func closed(groups []group, e event.Event) []group {
	if e.Kind != event.StepDone || len(groups) == 0 || groups[len(groups)-1].Name != e.Step {
		return groups
	}
	g := &groups[len(groups)-1]
	g.Took, g.State = seconds(e.Duration), "good"
	if e.Status == event.Bad {
		g.State = "bad"
	}
	g.Open = g.State == "bad"
	return groups
}

// stillValid is how often a streaming response checks whether its reader may still read.
const stillValid = 15 * time.Second

// guarded returns the context of a streaming response, which ends when its reader may no longer log in.
func (p *Pages) guarded(r *http.Request) (context.Context, func()) {
	ctx, stop := context.WithCancel(r.Context())
	go func() {
		every := time.NewTicker(stillValid)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				if _, _, err := p.readable(r); r.PathValue("name") != "" && err != nil {
					stop()
				} else if ok, err := p.Access.Valid(ctx, p.reader.Identity(r)); err != nil || !ok {
					stop()
				}
			}
		}
	}()
	return ctx, stop
}

// lines follows a deployment. A script gets server-sent events (HTML, "Server-sent events"); other clients get plain text until the deployment has ended.
func (p *Pages) lines(w http.ResponseWriter, r *http.Request) error {
	rec, _, err := p.record(r)
	if err != nil {
		return err
	}
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	var after uint64
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fault.New(fault.Usage, "", "Last-Event-ID must be a number")
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if sse {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	ctx, stop := p.guarded(r)
	defer stop()
	out := newFlow(w)
	l := newLister()
	for e, err := range p.Runs.Follow(ctx, rec.ID, 0) {
		if err != nil {
			return nil
		}
		lines := l.lines(e)
		if e.Seq <= after || len(lines) == 0 {
			continue
		}
		if _, err := out.Write(written(e, lines, sse)); err != nil {
			return nil
		}
	}
	if sse && ctx.Err() == nil {
		_, _ = io.WriteString(out, "event: end\ndata: {}\n\n")
	}
	return nil
}

// written returns an event as it is sent.
func written(e event.Event, lines []logLine, sse bool) []byte {
	var b bytes.Buffer
	if !sse {
		for _, line := range lines {
			b.WriteString(line.Text + "\n")
		}
		return b.Bytes()
	}
	name := e.Step
	if e.Kind == event.Plan || e.Kind == event.Verdict {
		name = ""
	}
	done, took := "", ""
	if e.Kind == event.StepDone {
		done, took = doneClass(e), seconds(e.Duration)
	}
	data, err := json.Marshal(struct {
		Group string    `json:"g"`
		Done  string    `json:"d,omitempty"`
		Took  string    `json:"s,omitempty"`
		Lines []logLine `json:"l"`
	}{name, done, took, lines})
	if err != nil {
		return nil
	}
	fmt.Fprintf(&b, "id: %d\ndata: %s\n\n", e.Seq, printable.JSON(data))
	return b.Bytes()
}

func doneClass(e event.Event) string {
	if e.Status == event.Bad {
		return "bad"
	}
	return "good"
}
