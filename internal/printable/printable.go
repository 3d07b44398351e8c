// Package printable shows texts that somebody else wrote: names of files and refs, options, addresses, comments of keys.
//
// It owns one rule: what is shown is one line in which every character is visible. A name may hold a line feed, an escape sequence, a character that changes
// the direction of text (U+202E and the like, UAX #9), or an invisible one; each is written as an escape here.
//
// It cleans no output of programs, which has colours and lines: that is event.Clean.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is s with every character escaped that is not to be seen as itself: control characters, line feeds among them, as \n, \x1b and the like, format
// characters (Unicode's Cf: bidi controls, zero-width ones) and separators of lines and paragraphs as \u202e, and bytes that are no UTF-8 as \xff. A
// backslash stays as it is. A text without such characters is returned as it is.
func Line(s string) string {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x7f {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteString(`\x` + hex(uint64(s[i]), 2))
		} else {
			b.WriteString(Rune(r))
		}
		i += n
	}
	return b.String()
}

// Rune is r as Line shows it.
func Rune(r rune) string {
	if !Hidden(r) {
		return string(r)
	}
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return `\x` + hex(uint64(r), 2)
	case r < 0x10000:
		return `\u` + hex(uint64(r), 4)
	}
	return `\U` + hex(uint64(r), 8)
}

// Hidden reports whether r does something other than to be seen: control and format characters, and separators of lines and paragraphs.
func Hidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Turns reports whether r makes what follows run in another direction until it is ended (UAX #9: embeddings, overrides and isolates), so that a line reads
// as another than it is.
func Turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Lines is Line of each.
func Lines(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = Line(s)
	}
	return out
}

// Clip is Line, with no more of s than its first max characters, and an ellipsis where there were more.
func Clip(s string, max int) string {
	n := 0
	for i := range s {
		if n == max {
			return Line(s[:i]) + "…"
		}
		n++
	}
	return Line(s)
}

// Word is s as one word of a command to type: quoted for a POSIX shell where it needs that, and as $'…' (bash, ksh, zsh) where Line would escape.
func Word(s string) string {
	line := Line(s)
	switch {
	case line != s:
		// What Line made of backslashes that were in s must be told from those that it made.
		var b strings.Builder
		for rest := s; rest != ""; {
			i := strings.IndexAny(rest, `\'`)
			if i < 0 {
				b.WriteString(Line(rest))
				break
			}
			b.WriteString(Line(rest[:i]) + `\` + rest[i:i+1])
			rest = rest[i+1:]
		}
		return "$'" + b.String() + "'"
	case s == "" || strings.ContainsFunc(s, special):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// special reports whether a shell may take a character for something else than itself.
func special(r rune) bool {
	return r < utf8.RuneSelf && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:@%+=,", r)
}

func hex(v uint64, digits int) string {
	s := strconv.FormatUint(v, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}
