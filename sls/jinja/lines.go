package jinja

import (
	"strings"
	"unsafe"
)

// Lines reports which line of which template made each line of a render's output: the one that wrote its first
// character that is not a space. What a value brought in, of however many lines, belongs to the tag that printed it.
type Lines struct{ at []lineMark }

// lineMark is what is known of one line of output.
type lineMark struct {
	tmpl *Template
	line int
	full bool // a character that is not a space was written
}

// Source is a line of a template.
type Source struct {
	// Template is how errors call the template.
	Template string
	Line     int
	// Text is the line as it is in the template.
	Text string
}

// Source returns the line of a template that made a line of the output; both count from 1. A line past the end is the
// last one. ok is false if there is none.
func (l *Lines) Source(line int) (s Source, ok bool) {
	if l == nil || line < 1 || len(l.at) == 0 {
		return Source{}, false
	}
	m := l.at[min(line, len(l.at))-1]
	if m.tmpl == nil {
		if line == 1 {
			return Source{}, false
		}
		return l.Source(min(line, len(l.at)) - 1)
	}
	s = Source{Template: m.tmpl.display, Line: m.line}
	rest := m.tmpl.src
	for range m.line - 1 {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	s.Text, _, _ = strings.Cut(rest, "\n")
	return s, true
}

// Append notes a text that comes after the template's own, as if it stood at that line of the template.
func (l *Lines) Append(text string, t *Template, line int) { l.write(text, t, line, true) }

// mark returns the line of output that is being written.
func (l *Lines) mark() *lineMark {
	if len(l.at) == 0 {
		l.at = append(l.at, lineMark{})
	}
	return &l.at[len(l.at)-1]
}

// write notes a text that begins at a line of a template. Where it is the template's own text, its lines follow the
// template's; else all of them are the value of one tag.
func (l *Lines) write(s string, t *Template, line int, own bool) {
	for s != "" {
		part, rest, more := strings.Cut(s, "\n")
		l.mark().note(t, line, part)
		if !more {
			return
		}
		if own {
			line++
		}
		l.at = append(l.at, lineMark{})
		s = rest
	}
}

func (m *lineMark) note(t *Template, line int, text string) {
	if m.full {
		return
	}
	full := strings.TrimLeft(text, " \t") != ""
	if full || m.tmpl == nil {
		m.tmpl, m.line, m.full = t, line, full
	}
}

// splice notes a text that was written elsewhere, with the lines it has there.
func (l *Lines) splice(part *Lines) {
	for i, p := range part.at {
		if i > 0 {
			l.at = append(l.at, lineMark{})
		}
		if m := l.mark(); !m.full && (p.full || m.tmpl == nil) {
			*m = p
		}
	}
}

// piece is text of a template with the line where it is. own is false for the value of a constant.
type piece struct {
	text string
	line int
	own  bool
}

// capture is a text that became a value: what a macro, a call block or a set block wrote.
type capture struct {
	text  string
	lines *Lines
}

// captures finds the lines of texts that became values when they are printed.
type captures struct {
	byText map[*byte]capture // by where a text is in memory, which keeps it there
	last   capture
	n      int
}

func (c *captures) add(text string, lines *Lines) {
	if text == "" {
		return
	}
	c.n++
	c.last = capture{text, lines}
	if c.byText == nil {
		c.byText = map[*byte]capture{}
	}
	c.byText[unsafe.StringData(text)] = c.last
}

// find returns the lines of a printed text: of a captured one its own; of one that a filter made of the text captured
// since there were before captures, such as {{ macro()|indent }}, those of that text where the number of lines agrees.
func (c *captures) find(s string, before int) *Lines {
	if s == "" || c.n == 0 {
		return nil
	}
	if x, ok := c.byText[unsafe.StringData(s)]; ok && x.text == s {
		return x.lines
	}
	if n := strings.Count(s, "\n"); n > 0 && c.n > before && n == strings.Count(c.last.text, "\n") {
		return c.last.lines
	}
	return nil
}
