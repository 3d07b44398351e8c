package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// parse reads one line of a log. Nearly all lines are flat objects with short texts, as write makes them: those are read here, in a tenth of the time that
// encoding/json takes for them; all others are read by encoding/json.
func parse(line []byte, e *Event) error {
	p := parser{b: line}
	if p.event(e) {
		return nil
	}
	*e = Event{}
	return json.Unmarshal(line, e)
}

// parser reads JSON as Marshal writes an Event, without white space; ok is false for anything else.
type parser struct {
	b []byte
	i int
	// text holds a text that had escapes.
	text []byte
}

func (p *parser) next(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) event(e *Event) (ok bool) {
	if !p.next('{') {
		return false
	}
	for {
		key, ok := p.string()
		if !ok || !p.next(':') || !p.field(key, e) {
			return false
		}
		if p.next(',') {
			continue
		}
		return p.next('}') && p.i == len(p.b)
	}
}

func (p *parser) field(key []byte, e *Event) bool {
	switch string(key) {
	case "seq":
		n, ok := p.number()
		e.Seq = uint64(n)
		return ok && n >= 0
	case "n":
		return p.int(&e.N)
	case "of":
		return p.int(&e.Of)
	case "changed":
		return p.int(&e.Changed)
	case "duration_ns":
		n, ok := p.number()
		e.Duration = time.Duration(n)
		return ok
	case "time":
		text, ok := p.string()
		return ok && e.Time.UnmarshalText(text) == nil
	case "text":
		return p.into(&e.Text)
	case "kind":
		return p.into((*string)(&e.Kind))
	case "status":
		return p.into((*string)(&e.Status))
	case "procedure":
		return p.into(&e.Procedure)
	case "step":
		return p.into(&e.Step)
	case "state":
		return p.into(&e.State)
	case "function":
		return p.into(&e.Function)
	case "stream":
		return p.into(&e.Stream)
	}
	return false
}

func (p *parser) into(s *string) bool {
	text, ok := p.string()
	*s = string(text)
	return ok
}

func (p *parser) int(to *int) bool {
	n, ok := p.number()
	*to = int(n)
	return ok
}

// number reads a whole number of at most 18 digits.
func (p *parser) number() (int64, bool) {
	from := p.i
	p.next('-')
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
		p.i++
	}
	digits := p.b[from:p.i]
	if len(digits) > 18 || len(digits) > 1 && digits[0] == '0' || bytes.HasPrefix(digits, []byte("-0")) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return n, err == nil
}

// string reads a text; its result is valid until the next one is read.
func (p *parser) string() ([]byte, bool) {
	if !p.next('"') {
		return nil, false
	}
	from := p.i
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			text := p.b[from:p.i]
			p.i++
			return text, utf8.Valid(text)
		case c == '\\':
			return p.escaped(from)
		case c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// escaped reads the rest of a text that began at from, whose first escape is next. Surrogates are left to encoding/json.
func (p *parser) escaped(from int) ([]byte, bool) {
	p.text = append(p.text[:0], p.b[from:p.i]...)
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch {
		case c == '"':
			return p.text, utf8.Valid(p.text)
		case c < 0x20:
			return nil, false
		case c != '\\':
			p.text = append(p.text, c)
			continue
		}
		if p.i == len(p.b) {
			return nil, false
		}
		c = p.b[p.i]
		p.i++
		switch c {
		case '"', '\\', '/':
			p.text = append(p.text, c)
		case 'n':
			p.text = append(p.text, '\n')
		case 't':
			p.text = append(p.text, '\t')
		case 'r':
			p.text = append(p.text, '\r')
		case 'u':
			if p.i+4 > len(p.b) {
				return nil, false
			}
			r, err := strconv.ParseUint(string(p.b[p.i:p.i+4]), 16, 16)
			if err != nil || r >= 0xd800 && r < 0xe000 {
				return nil, false
			}
			p.text = utf8.AppendRune(p.text, rune(r))
			p.i += 4
		default:
			return nil, false
		}
	}
	return nil, false
}
