package jinja

import (
	"strings"
)

// syntax is how templates are delimited and how whitespace around tags is treated.
type syntax struct {
	blockStart, blockEnd     string
	varStart, varEnd         string
	commentStart, commentEnd string
	trimBlocks, lstripBlocks bool
	keepTrailingNewline      bool
}

type lexState uint8

const (
	inRoot lexState = iota
	inBlock
	inVar
)

// lexer gives the tokens of one template, on demand: an error later in the file must not hide an earlier one of the
// parser.
type lexer struct {
	syn          *syntax
	src          string
	pos          int
	line         int
	state        lexState
	balance      []byte
	lineStarting bool
	found        [3]int // one more than where the next {{ {# {% is, len+1 for none, 0 for not looked
	queue        []token
}

// normalizeSource makes every line end a \n, and drops the last one where asked.
func normalizeSource(src string, keepTrailing bool) string {
	if strings.IndexByte(src, '\r') >= 0 {
		src = strings.ReplaceAll(src, "\r\n", "\n")
		src = strings.ReplaceAll(src, "\r", "\n")
	}
	if !keepTrailing {
		src = strings.TrimSuffix(src, "\n")
	}
	return src
}

func newLexer(syn *syntax, src string) *lexer {
	return &lexer{syn: syn, src: src, line: 1, lineStarting: true}
}

// next returns the next token that the parser wants to see; tEOF for ever at the end.
func (l *lexer) next() (token, error) {
	for {
		if len(l.queue) > 0 {
			t := l.queue[0]
			l.queue = l.queue[1:]
			return t, nil
		}
		if l.pos >= len(l.src) {
			return token{kind: tEOF, line: l.line}, nil
		}
		var err error
		if l.state == inRoot {
			err = l.root()
		} else {
			err = l.tag()
		}
		if err != nil {
			return token{}, err
		}
	}
}

func (l *lexer) fail(line int, format string, args ...any) error {
	return syntaxError(line, format, args...)
}

// opener is a delimiter found in the text.
type opener struct {
	at, end int // the delimiter with its sign, for raw the whole tag
	kind    byte
	sign    byte
}

// findOpener finds the first delimiter from pos on. Where several match at one place, {% raw %} goes first, then the
// longest, then variable, comment, block.
func (l *lexer) findOpener(pos int) (opener, bool) {
	s := l.syn
	best := opener{at: -1}
	bestLen := 0
	for n, d := range [...]struct {
		text string
		kind byte
	}{{s.varStart, 'v'}, {s.commentStart, 'c'}, {s.blockStart, 'b'}} {
		if l.found[n] < pos+1 { // the last one found is behind us
			l.found[n] = len(l.src) + 1
			if i := strings.Index(l.src[pos:], d.text); i >= 0 {
				l.found[n] = pos + i + 1
			}
		}
		i := l.found[n] - 1
		if i == len(l.src) {
			continue
		}
		if best.at < 0 || i < best.at || i == best.at && len(d.text) > bestLen {
			best, bestLen = opener{at: i, end: i + len(d.text), kind: d.kind}, len(d.text)
		}
	}
	if best.at < 0 {
		return best, false
	}
	if strings.HasPrefix(l.src[best.at:], s.blockStart) {
		if end, sign, ok := l.rawTag(best.at + len(s.blockStart)); ok {
			return opener{at: best.at, end: end, kind: 'r', sign: sign}, true
		}
	}
	if best.end < len(l.src) && (l.src[best.end] == '-' || l.src[best.end] == '+') {
		best.sign = l.src[best.end]
		best.end++
	}
	return best, true
}

// rawTag matches the rest of {% raw %} after the delimiter.
func (l *lexer) rawTag(pos int) (end int, sign byte, ok bool) {
	s := l.src
	if pos < len(s) && (s[pos] == '-' || s[pos] == '+') {
		sign = s[pos]
		pos++
	}
	pos = skipSpace(s, pos)
	if !strings.HasPrefix(s[pos:], "raw") {
		return 0, 0, false
	}
	pos = skipSpace(s, pos+3)
	if strings.HasPrefix(s[pos:], "-"+l.syn.blockEnd) {
		return skipSpace(s, pos+1+len(l.syn.blockEnd)), sign, true
	}
	if strings.HasPrefix(s[pos:], l.syn.blockEnd) {
		return pos + len(l.syn.blockEnd), sign, true
	}
	return 0, 0, false
}

func (l *lexer) root() error {
	o, ok := l.findOpener(l.pos)
	if !ok {
		l.emitData(l.src[l.pos:])
		l.pos = len(l.src)
		return nil
	}
	text := l.src[l.pos:o.at]
	l.emitText(text, o.sign, o.kind != 'v')
	start := l.line
	l.line += strings.Count(l.src[o.at:o.end], "\n")
	l.lineStarting = l.src[o.end-1] == '\n'
	l.pos = o.end
	switch o.kind {
	case 'v':
		l.queue = append(l.queue, token{kind: tVarBegin, line: start})
		l.state = inVar
	case 'b':
		l.queue = append(l.queue, token{kind: tBlockBegin, line: start})
		l.state = inBlock
	case 'c':
		return l.comment()
	case 'r':
		return l.raw()
	}
	return nil
}

// emitText queues the text before a tag, stripped as the tag's sign and lstrip_blocks ask.
func (l *lexer) emitText(text string, sign byte, mayStrip bool) {
	out := text
	if sign == '-' {
		out = trimRightSpace(text)
	} else if sign != '+' && l.syn.lstripBlocks && mayStrip {
		at := strings.LastIndexByte(text, '\n') + 1
		if (at > 0 || l.lineStarting) && at < len(text) && skipSpace(text, at) == len(text) {
			out = text[:at]
		}
	}
	if out != "" {
		l.queue = append(l.queue, token{kind: tData, line: l.line, str: out})
	}
	l.line += strings.Count(text, "\n")
}

func (l *lexer) emitData(text string) {
	l.queue = append(l.queue, token{kind: tData, line: l.line, str: text})
	l.line += strings.Count(text, "\n")
}

// closer matches the end of a comment or block at pos: its length, 0 if there is none.
func (l *lexer) closer(pos int, end string, plus bool) int {
	s := l.src
	switch {
	case plus && s[pos] == '+' && strings.HasPrefix(s[pos+1:], end):
		return 1 + len(end)
	case s[pos] == '-' && strings.HasPrefix(s[pos+1:], end):
		return skipSpace(s, pos+1+len(end)) - pos
	case strings.HasPrefix(s[pos:], end):
		n := len(end)
		if plus && l.syn.trimBlocks && pos+n < len(s) && s[pos+n] == '\n' {
			n++
		}
		return n
	}
	return 0
}

func (l *lexer) comment() error {
	if l.pos >= len(l.src) {
		return nil
	}
	i := strings.Index(l.src[l.pos:], l.syn.commentEnd)
	if i < 0 {
		return l.fail(l.line, "Missing end of comment tag")
	}
	at := l.pos + i
	if at > l.pos && (l.src[at-1] == '-' || l.src[at-1] == '+') {
		at--
	}
	l.leave(at + l.closer(at, l.syn.commentEnd, true))
	return nil
}

// leave goes on after end, back in the text.
func (l *lexer) leave(end int) {
	l.line += strings.Count(l.src[l.pos:end], "\n")
	l.lineStarting = end > 0 && l.src[end-1] == '\n'
	l.pos = end
	l.state = inRoot
}

func (l *lexer) raw() error {
	if l.pos >= len(l.src) {
		return nil
	}
	s, bs := l.src, l.syn.blockStart
	for from := l.pos; ; {
		i := strings.Index(s[from:], bs)
		if i < 0 {
			return l.fail(l.line, "Missing end of raw directive")
		}
		at := from + i
		from = at + 1
		p := at + len(bs)
		var sign byte
		if p < len(s) && (s[p] == '-' || s[p] == '+') {
			sign = s[p]
			p++
		}
		p = skipSpace(s, p)
		if !strings.HasPrefix(s[p:], "endraw") {
			continue
		}
		p = skipSpace(s, p+6)
		if p >= len(s) {
			continue
		}
		n := l.closer(p, l.syn.blockEnd, true)
		if n == 0 {
			continue
		}
		l.emitText(s[l.pos:at], sign, true)
		l.pos = at
		l.leave(p + n)
		return nil
	}
}
