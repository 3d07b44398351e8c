package py

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON is json.loads(s): objects keep the order of their keys, the last of two equal keys wins. Errors are those of
// JSONDecodeError. Source: Python documentation, json; CPython 3.11, Modules/_json.c.
func FromJSON(s string) (any, error) { return LoadJSON(s, true) }

// LoadJSON is json.loads(s, strict=strict): if it is not strict, strings may contain control characters.
func LoadJSON(s string, strict bool) (v any, err error) {
	d := &jsonDecoder{s: s, strict: strict}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(jsonFault)
			if !ok {
				panic(r)
			}
			v, err = nil, d.fault(bad)
		}
	}()
	if strings.HasPrefix(s, "\ufeff") {
		panic(jsonFault{"Unexpected UTF-8 BOM (decode using utf-8-sig)", 0})
	}
	d.space()
	v = d.value(0)
	d.space()
	if d.at < len(s) {
		d.fail("Extra data", d.at)
	}
	return v, nil
}

type jsonDecoder struct {
	s      string
	at     int
	strict bool
}

// jsonFault is what is wrong, and at which byte.
type jsonFault struct {
	msg string
	at  int
}

func (d *jsonDecoder) fail(msg string, at int) { panic(jsonFault{msg, at}) }

// fault counts in characters, as Python does.
func (d *jsonDecoder) fault(f jsonFault) error {
	at := min(f.at, len(d.s))
	before := d.s[:at]
	line := strings.Count(before, "\n") + 1
	col := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return Errorf(ValueError, "%s: line %d column %d (char %d)", f.msg, line, col, utf8.RuneCountInString(before))
}

func (d *jsonDecoder) space() {
	for d.at < len(d.s) && strings.IndexByte(" \t\n\r", d.s[d.at]) >= 0 {
		d.at++
	}
}

// is consumes a character if it is next.
func (d *jsonDecoder) is(c byte) bool {
	if d.at < len(d.s) && d.s[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *jsonDecoder) value(depth int) any {
	if depth > maxDepth {
		d.fail("too deep", d.at)
	}
	rest := d.s[d.at:]
	for _, w := range [...]struct {
		word  string
		value any
	}{{"null", nil}, {"true", true}, {"false", false}, {"NaN", math.NaN()}, {"Infinity", math.Inf(1)}, {"-Infinity", math.Inf(-1)}} {
		if strings.HasPrefix(rest, w.word) {
			d.at += len(w.word)
			return w.value
		}
	}
	switch {
	case d.is('"'):
		return d.text()
	case d.is('{'):
		return d.object(depth)
	case d.is('['):
		return d.array(depth)
	}
	n := jsonNumber(rest)
	if n == 0 {
		d.fail("Expecting value", d.at)
	}
	d.at += n
	return fromNumber(rest[:n])
}

// jsonNumber returns the length of the number that a text begins with, 0 if there is none.
func jsonNumber(s string) int {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	i := 0
	if strings.HasPrefix(s, "-") {
		i = 1
	}
	end := digits(i)
	switch {
	case end == i:
		return 0
	case s[i] == '0':
		end = i + 1
	}
	if end < len(s) && s[end] == '.' {
		if e := digits(end + 1); e > end+1 {
			end = e
		}
	}
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		i := end + 1
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if e := digits(i); e > i {
			end = e
		}
	}
	return end
}

func (d *jsonDecoder) object(depth int) any {
	out := &Dict{}
	d.space()
	if d.is('}') {
		return out
	}
	for {
		if !d.is('"') {
			d.fail("Expecting property name enclosed in double quotes", d.at)
		}
		key := d.text()
		d.space()
		if !d.is(':') {
			d.fail("Expecting ':' delimiter", d.at)
		}
		d.space()
		out.SetStr(key, d.value(depth+1))
		d.space()
		if d.is('}') {
			return out
		}
		if !d.is(',') {
			d.fail("Expecting ',' delimiter", d.at)
		}
		d.space()
	}
}

func (d *jsonDecoder) array(depth int) any {
	out := NewList()
	d.space()
	if d.is(']') {
		return out
	}
	for {
		out.Append(d.value(depth + 1))
		d.space()
		if d.is(']') {
			return out
		}
		if !d.is(',') {
			d.fail("Expecting ',' delimiter", d.at)
		}
		d.space()
	}
}

// text reads a string whose opening quote is already read.
func (d *jsonDecoder) text() string {
	begin := d.at - 1
	start := d.at
	var b strings.Builder
	for {
		if d.at >= len(d.s) {
			d.fail("Unterminated string starting at", begin)
		}
		c := d.s[d.at]
		switch {
		case c == '"':
			d.at++
			if b.Len() == 0 {
				return d.s[start : d.at-1]
			}
			b.WriteString(d.s[start : d.at-1])
			return b.String()
		case c == '\\':
			b.WriteString(d.s[start:d.at])
			d.at++
			d.escape(&b, begin)
			start = d.at
		case c < 0x20 && d.strict:
			d.fail("Invalid control character at", d.at)
		default:
			d.at++
		}
	}
}

func (d *jsonDecoder) escape(b *strings.Builder, begin int) {
	if d.at >= len(d.s) {
		d.fail("Unterminated string starting at", begin)
	}
	c := d.s[d.at]
	d.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		return
	}
	if c != 'u' {
		d.fail(`Invalid \escape`, d.at-2)
	}
	r := d.unit()
	if r < 0 {
		d.fail(`Invalid \uXXXX escape`, d.at-1)
	}
	d.at += 4
	if utf16.IsSurrogate(r) && strings.HasPrefix(d.s[d.at:], `\u`) {
		d.at += 2
		if both := utf16.DecodeRune(r, max(0, d.unit())); both != utf8.RuneError {
			d.at += 4
			b.WriteRune(both)
			return
		}
		d.at -= 2
	}
	b.WriteRune(r) // a lone surrogate, which no text here can hold, becomes U+FFFD
}

// unit reads four hexadecimal digits without consuming them; it returns a negative number if there are none.
func (d *jsonDecoder) unit() rune {
	if len(d.s)-d.at < 5 { // the closing quote is part of it
		return -1
	}
	n, err := strconv.ParseUint(d.s[d.at:d.at+4], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
