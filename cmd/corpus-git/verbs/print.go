package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/printable"
	"corpus-git/project"
)

// MaxWidth is how wide a table gets on a terminal, in columns. What goes to no terminal is never cut: a program reads it.
const MaxWidth = 100

type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	bold   colour = "1"
	dim    colour = "2"
)

// styled is a text that may hold our own colours, and nothing else that is not to be seen: what others wrote went through printable.Line.
type styled string

// paint makes s, which may be anybody's, fit to be shown, in a colour where the terminal has them.
func (t Terminal) paint(c colour, s string) styled {
	s = printable.Line(s)
	if !t.Colour || c == "" || s == "" {
		return styled(s)
	}
	return styled("\x1b[" + string(c) + "m" + s + "\x1b[0m")
}

// shown returns an argument of a printed line: a text as one line in which every character is seen.
func shown(arg any) any {
	switch v := arg.(type) {
	case styled:
		return string(v)
	case string:
		return printable.Line(v)
	case error:
		return printable.Line(v.Error())
	case fmt.Stringer:
		return printable.Line(v.String())
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
		return printable.Line(v.String())
	}
	return arg
}

// document writes v as the answer to --json: indented, one value.
func (s *session) document(v any) error {
	s.printed = true
	return WriteDocument(s.out, v)
}

// WriteDocument writes a document as --json does.
func WriteDocument(w io.Writer, v any) error {
	e := json.NewEncoder(printable.JSONWriter{W: w})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// jsonLine writes v on one line.
func (s *session) jsonLine(v any) error {
	s.printed = true
	e := json.NewEncoder(printable.JSONWriter{W: s.out})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printer keeps the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (s *session) printer() *printer { return &printer{w: s.out} }

// line prints a line; format is ours, args may be anybody's texts.
func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		text := format
		if len(args) > 0 {
			safe := make([]any, len(args))
			for i, a := range args {
				safe[i] = shown(a)
			}
			text = fmt.Sprintf(format, safe...)
		}
		_, p.err = io.WriteString(p.w, strings.TrimRight(text, " ")+"\n")
	}
}

// cell is one field of a table.
type cell struct {
	text  string
	paint colour
	right bool
}

func plain(s string) cell             { return cell{text: s} }
func number(s string) cell            { return cell{text: s, right: true} }
func painted(c colour, s string) cell { return cell{text: s, paint: c} }

// table lines up rows under heads and keeps every line within the width: the columns named flexible are shortened, the last one first.
type table struct {
	heads    []string
	flexible []int
	rows     [][]cell
	indent   string
}

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = printable.Line(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

const gap = "  "

func (t *table) print(p *printer, term Terminal) {
	width := math.MaxInt
	if term.Width > 0 {
		width = min(MaxWidth, max(term.Width, 40))
	}
	w := make([]int, len(t.heads))
	for i, h := range t.heads {
		w[i] = utf8.RuneCountInString(h)
	}
	for _, r := range t.rows {
		for i, c := range r {
			w[i] = max(w[i], utf8.RuneCountInString(c.text))
		}
	}
	total := len(t.indent) - len(gap)
	for _, n := range w {
		total += n + len(gap)
	}
	for i := len(t.flexible) - 1; i >= 0 && total > width; i-- {
		c := t.flexible[i]
		cut := min(total-width, w[c]-min(w[c], 8))
		w[c], total = w[c]-cut, total-cut
	}
	// One write for all: each is a packet on its way to who asked.
	var out bytes.Buffer
	lines := &printer{w: &out}
	defer func() {
		if p.err == nil {
			_, p.err = p.w.Write(out.Bytes())
		}
	}()
	var heads []cell
	for _, h := range t.heads {
		heads = append(heads, painted(dim, h))
	}
	for n, r := range append([][]cell{heads}, t.rows...) {
		var b strings.Builder
		b.WriteString(t.indent)
		for i, c := range r {
			text := printable.Shorten(c.text, w[i])
			pad := strings.Repeat(" ", w[i]-utf8.RuneCountInString(text))
			if n == 0 && len(t.rows) > 0 {
				c.right = t.rows[0][i].right
			}
			if i > 0 {
				b.WriteString(gap)
			}
			if c.right {
				b.WriteString(pad)
			}
			b.WriteString(string(term.paint(c.paint, text)))
			if !c.right && i < len(r)-1 {
				b.WriteString(pad)
			}
		}
		lines.line("%s", styled(b.String()))
	}
}

func stateColour(s project.State) colour {
	switch s {
	case project.Live, project.Done:
		return green
	case project.RolledBack, project.Failed, project.Refused:
		return red
	case project.Waiting, project.Running:
		return yellow
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
