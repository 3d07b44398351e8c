package pyre

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// set returns what \d and the like are inside brackets; ok is false for other letters.
func (t *translator) set(c byte) (in string, ok bool) {
	ascii := map[byte]string{'d': `0-9`, 'w': `0-9A-Za-z_`, 's': ` \t\n\r\f\x0b`}
	long := map[byte]string{'d': `\p{Nd}`, 'w': `\p{L}\p{N}_`, 's': `\t\n\x0b\f\r\x1c-\x1f \x85\xa0\p{Z}`}
	if t.ascii {
		long = ascii
	}
	in, ok = long[c|0x20]
	return in, ok
}

// escape reads a backslash outside brackets.
func (t *translator) escape() error {
	if t.pos+1 >= len(t.src) {
		return t.fail("bad escape (end of pattern)")
	}
	c := t.src[t.pos+1]
	if in, ok := t.set(c); ok {
		t.pos += 2
		t.atom = t.out.Len()
		t.out.WriteString("[")
		if c < 'a' {
			t.out.WriteByte('^')
		}
		t.out.WriteString(in + "]")
		return nil
	}
	switch c {
	case 'A', 'Z', 'b', 'B':
		t.pos += 2
		t.atom = t.out.Len()
		text := map[byte]string{'A': `\A`, 'Z': `\z`, 'b': `\b`, 'B': `\B`}[c]
		if c|0x20 == 'b' {
			t.boundary = t.boundary || !t.ascii
			if t.engine == backtrack { // which has another definition of a word
				w, _ := t.set('w')
				text = strings.ReplaceAll(`(?:(?<=[W])(?![W])|(?<![W])(?=[W]))`, "W", w)
				if c == 'B' {
					text = "(?!" + text + ")"
				}
			}
		}
		t.out.WriteString(text)
		return nil
	}
	if c >= '1' && c <= '9' {
		n, digits := int(c-'0'), 1
		if t.pos+2 < len(t.src) && isDigit(t.src[t.pos+2]) {
			if o, ok := octal(t.src[t.pos+1:], 3); ok {
				t.pos += 4
				t.literal(o)
				return nil
			}
			n, digits = n*10+int(t.src[t.pos+2]-'0'), 2
		}
		if err := t.reference(n); err != nil {
			return err
		}
		t.pos += 1 + digits
		return nil
	}
	r, err := t.escaped()
	if err != nil {
		return err
	}
	t.literal(r)
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// octal reads so many octal digits; the first may be at most 3.
func octal(s string, n int) (rune, bool) {
	if len(s) < n {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:n], 8, 8)
	return rune(v), err == nil
}

// escaped reads a backslash that stands for one character, in or outside brackets.
func (t *translator) escaped() (rune, error) {
	rest := t.src[t.pos+1:]
	if rest == "" {
		return 0, t.fail("bad escape (end of pattern)")
	}
	if plain := strings.IndexByte("afnrtv", rest[0]); plain >= 0 {
		t.pos += 2
		return rune("\a\f\n\r\t\v"[plain]), nil
	}
	for prefix, n := range map[byte]int{'x': 2, 'u': 4, 'U': 8} {
		if rest[0] != prefix {
			continue
		}
		if len(rest) <= n {
			return 0, t.fail("incomplete escape \\%c", prefix)
		}
		v, err := strconv.ParseUint(rest[1:n+1], 16, 32)
		if err != nil || !utf8.ValidRune(rune(v)) || v > unicode.MaxRune {
			return 0, t.fail("incomplete escape \\%c", prefix)
		}
		t.pos += 2 + n
		return rune(v), nil
	}
	if isDigit(rest[0]) {
		n := 1
		for n < 3 && n < len(rest) && rest[n] >= '0' && rest[n] <= '7' {
			n++
		}
		v, ok := octal(rest, n)
		if !ok {
			return 0, t.fail("bad escape \\%c", rest[0])
		}
		t.pos += 1 + n
		return v, nil
	}
	r, n := utf8.DecodeRuneInString(rest)
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return 0, t.fail("bad escape \\%c", r)
	}
	t.pos += 1 + n
	return r, nil
}

// class reads [ … ].
func (t *translator) class() error {
	start := t.pos
	t.pos++
	at := t.out.Len()
	t.out.WriteByte('[')
	if strings.HasPrefix(t.src[t.pos:], "^") {
		t.pos++
		t.out.WriteByte('^')
	}
	for n := 0; ; n++ {
		if t.pos >= len(t.src) {
			t.pos = start
			return t.fail("unterminated character set")
		}
		if t.src[t.pos] == ']' && n > 0 {
			break
		}
		low, isSet, err := t.member()
		if err != nil {
			return err
		}
		rest := t.src[t.pos:]
		if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
			if !isSet {
				t.char(low)
			}
			continue
		}
		t.pos++
		high, hiSet, err := t.member()
		if err != nil {
			return err
		}
		if isSet || hiSet || high < low {
			return t.fail("bad character range")
		}
		t.char(low)
		t.out.WriteByte('-')
		t.char(high)
	}
	t.pos++
	t.out.WriteByte(']')
	t.atom = at
	return nil
}

// member reads one member of a class: a character, or a set such as \w, which it writes.
func (t *translator) member() (r rune, isSet bool, err error) {
	if t.pos >= len(t.src) {
		return 0, false, t.fail("unterminated character set")
	}
	if t.src[t.pos] != '\\' {
		r, n := utf8.DecodeRuneInString(t.src[t.pos:])
		t.pos += n
		return r, false, nil
	}
	if t.pos+1 >= len(t.src) {
		return 0, false, t.fail("bad escape (end of pattern)")
	}
	c := t.src[t.pos+1]
	if c == 'b' {
		t.pos += 2
		return '\b', false, nil
	}
	in, ok := t.set(c)
	if !ok {
		r, err := t.escaped()
		return r, false, err
	}
	t.pos += 2
	if c >= 'a' {
		t.out.WriteString(in)
		return 0, true, nil
	}
	t.out.WriteString(negated(in))
	return 0, true, nil
}

// negated returns the complement of a set as members of a class: neither engine negates within brackets. What \w and \s leave
// is named by the general categories of Unicode.
func negated(in string) string {
	const last = string(unicode.MaxRune)
	switch in {
	case `0-9`:
		return `\x00-/:-` + last
	case `0-9A-Za-z_`:
		return "\\x00-/:-@\\[-\\^`{-" + last
	case ` \t\n\r\f\x0b`:
		return `\x00-\x08\x0e-\x1f!-` + last
	case `\p{Nd}`:
		return `\P{Nd}`
	case `\p{L}\p{N}_`:
		return `\p{M}\p{Z}\p{S}\p{C}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}` + "\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f"
	}
	return `\x00-\x08\x0e-\x1b!-\x7f\x80-\x84\x86-\x9f\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}`
}
