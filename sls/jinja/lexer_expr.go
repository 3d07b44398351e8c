package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"corpus-git/internal/py"
)

// tag gives one token inside {% %} or {{ }}.
func (l *lexer) tag() error {
	s := l.src
	if len(l.balance) == 0 {
		end, kind, plus := l.syn.blockEnd, tBlockEnd, true
		if l.state == inVar {
			end, kind, plus = l.syn.varEnd, tVarEnd, false
		}
		if n := l.closer(l.pos, end, plus); n > 0 {
			l.queue = append(l.queue, token{kind: kind, line: l.line})
			l.leave(l.pos + n)
			return nil
		}
	}
	c := s[l.pos]
	if n := skipSpace(s, l.pos); n > l.pos {
		l.line += strings.Count(s[l.pos:n], "\n")
		l.pos = n
		return nil
	}
	switch {
	case c >= '0' && c <= '9':
		return l.number()
	case c == '\'' || c == '"':
		if done, err := l.str(c); done || err != nil {
			return err
		}
	case isWord(c) || c >= utf8.RuneSelf:
		if n := nameLen(s[l.pos:]); n > 0 {
			return l.name(n)
		}
	}
	return l.operator()
}

func (l *lexer) emit(t token, n int) error {
	t.line = l.line
	l.queue = append(l.queue, t)
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
	return nil
}

func (l *lexer) name(n int) error {
	name := l.src[l.pos : l.pos+n]
	r, _ := utf8.DecodeRuneInString(name)
	if r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r) {
		return l.fail(l.line, "Invalid character in identifier")
	}
	return l.emit(token{kind: tName, str: name}, n)
}

func (l *lexer) operator() error {
	s := l.src[l.pos:]
	for _, op := range operatorTable {
		if !strings.HasPrefix(s, op.text) {
			continue
		}
		switch op.kind {
		case tLBrace:
			l.balance = append(l.balance, '}')
		case tLParen:
			l.balance = append(l.balance, ')')
		case tLBracket:
			l.balance = append(l.balance, ']')
		case tRBrace, tRParen, tRBracket:
			if len(l.balance) == 0 {
				return l.fail(l.line, "unexpected '%s'", op.text)
			}
			want := l.balance[len(l.balance)-1]
			l.balance = l.balance[:len(l.balance)-1]
			if want != op.text[0] {
				return l.fail(l.line, "unexpected '%s', expected '%c'", op.text, want)
			}
		}
		return l.emit(token{kind: op.kind}, len(op.text))
	}
	_, n := utf8.DecodeRuneInString(s)
	return l.fail(l.line, "unexpected char %s at %d", quote(s[:n]), utf8.RuneCountInString(l.src[:l.pos]))
}

// digits matches \d+(_\d+)* at the start of s, with the digits that ok takes; single underscores only.
func digits(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) {
		switch {
		case ok(s[n]):
			n++
		case s[n] == '_' && n > 0 && n+1 < len(s) && ok(s[n+1]):
			n += 2
		default:
			return n
		}
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) number() error {
	s := l.src[l.pos:]
	if n := floatLen(s); n > 0 && (l.pos == 0 || l.src[l.pos-1] != '.') {
		f, err := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64)
		if err != nil && f == 0 {
			return l.fail(l.line, "invalid number")
		}
		return l.emit(token{kind: tFloat, val: f}, n)
	}
	base, n := 10, 0
	if len(s) > 2 && s[0] == '0' {
		var ok func(byte) bool
		switch s[1] | 0x20 {
		case 'b':
			base, ok = 2, func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			base, ok = 8, func(c byte) bool { return c >= '0' && c <= '7' }
		case 'x':
			base, ok = 16, func(c byte) bool { return isDigit(c) || (c|0x20) >= 'a' && (c|0x20) <= 'f' }
		}
		if ok != nil {
			from := 2
			if s[2] == '_' {
				from = 3
			}
			if m := digits(s[from:], ok); m > 0 {
				n = from + m
			} else {
				base = 10
			}
		}
	}
	if n == 0 {
		if s[0] == '0' {
			n = digits(s, func(c byte) bool { return c == '0' })
		} else {
			n = digits(s, isDigit)
		}
	}
	text := strings.ReplaceAll(s[:n], "_", "")
	if base != 10 {
		text = text[2:]
	}
	if len(text) > 4300 {
		return l.fail(l.line, "number is too long")
	}
	b, ok := new(big.Int).SetString(text, base)
	if !ok {
		return l.fail(l.line, "invalid number")
	}
	return l.emit(token{kind: tInteger, val: py.Norm(b)}, n)
}

// floatLen matches a float literal: digits with a fraction, an exponent, or both.
func floatLen(s string) int {
	n := digits(s, isDigit)
	if n == 0 {
		return 0
	}
	isFloat := false
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		n += 1 + digits(s[n+1:], isDigit)
		isFloat = true
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if e < len(s) && isDigit(s[e]) {
			return e + digits(s[e:], isDigit)
		}
	}
	if isFloat {
		return n
	}
	return 0
}

func (l *lexer) str(q byte) (done bool, err error) {
	s := l.src
	end := -1
	escaped := false
	for i := l.pos + 1; i < len(s); i++ {
		if s[i] == '\\' {
			escaped = true
			i++
			continue
		}
		if s[i] == q {
			end = i
			break
		}
	}
	if end < 0 {
		return false, nil
	}
	text := s[l.pos+1 : end]
	if escaped {
		text, err = unescape(text)
		if err != nil {
			return false, l.fail(l.line, "%s", err.Error())
		}
	}
	return true, l.emit(token{kind: tString, str: text}, end+1-l.pos)
}

// unescape is Python's unicode-escape decoding of a string literal's inside.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		switch c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case 'x', 'u', 'U':
			width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+width >= len(s)+0 && i+width > len(s)-1 {
				return "", fmt.Errorf("truncated \\%c%s escape", c, strings.Repeat("X", width))
			}
			v, err := strconv.ParseUint(s[i+1:i+1+width], 16, 32)
			if err != nil {
				return "", fmt.Errorf("truncated \\%c%s escape", c, strings.Repeat("X", width))
			}
			if v > unicode.MaxRune {
				return "", fmt.Errorf("illegal Unicode character")
			}
			b.WriteRune(rune(v))
			i += width
		case 'N':
			return "", fmt.Errorf("unknown Unicode character name")
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := 0
			n := 0
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				v = v*8 + int(s[i+n]-'0')
				n++
			}
			b.WriteRune(rune(v))
			i += n - 1
		default:
			b.WriteByte('\\')
			if c < utf8.RuneSelf {
				b.WriteByte(c)
				continue
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r < 0x100:
				fmt.Fprintf(&b, "x%02x", r)
			case r < 0x10000:
				fmt.Fprintf(&b, "u%04x", r)
			default:
				fmt.Fprintf(&b, "U%08x", r)
			}
			i += n - 1
		}
	}
	return b.String(), nil
}

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// nameLen matches a run of word characters.
func nameLen(s string) int {
	n := 0
	for n < len(s) {
		if s[n] < utf8.RuneSelf {
			if !isWord(s[n]) {
				return n
			}
			n++
			continue
		}
		r, w := utf8.DecodeRuneInString(s[n:])
		if r == utf8.RuneError || !(unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return n
		}
		n += w
	}
	return n
}

// spaceLen returns the number of bytes of a whitespace character of Python at the start of s, 0 if there is none.
func spaceLen(s string) int {
	c := s[0]
	if c < utf8.RuneSelf {
		if c == ' ' || c >= '\t' && c <= '\r' || c >= 0x1c && c <= 0x1f {
			return 1
		}
		return 0
	}
	if r, n := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return n
	}
	return 0
}

func skipSpace(s string, pos int) int {
	for pos < len(s) {
		n := spaceLen(s[pos:])
		if n == 0 {
			break
		}
		pos += n
	}
	return pos
}

func trimRightSpace(s string) string { return py.RStrip(s) }
