// Package printable escapes text from untrusted sources for display: names of files and refs, options, addresses, comments of keys.
//
// It owns one rule: what is shown is one line in which every character is visible. A name may hold a line feed, an escape sequence, a character that changes
// the direction of text (U+202E and the like, UAX #9), or an invisible one; each is written as an escape here.
//
// It is not for output of programs, which has colours and lines: that is event.Clean.
package printable

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s with every character escaped that must not be shown as itself: control characters, including line feeds, as \n, \x1b and the like, format
// characters (Unicode's Cf: bidi controls, zero-width ones) and separators of lines and paragraphs as \u202e, and bytes that are not UTF-8 as \xff. A
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

// Rune returns r as Line shows it.
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

// Hidden reports whether r is not shown as itself: control and format characters, and separators of lines and paragraphs.
func Hidden(r rune) bool {
	return r < 0x20 || r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// IsBidiControl reports whether r changes the direction of the text that follows (UAX #9: embeddings, overrides and isolates), so that a line looks
// different from what it is.
func IsBidiControl(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Lines applies Line to each string.
func Lines(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = Line(s)
	}
	return out
}

// Text applies Line to each of the lines of s, and keeps their tabs.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return Hidden(r) && r != '\n' && r != '\t' || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, field := range strings.Split(line, "\t") {
			if j > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Line(field))
		}
	}
	return b.String()
}

// JSON returns the same document (RFC 8259) with the characters escaped that Line would escape and encoding/json does not, for readers in a
// terminal.
func JSON(doc []byte) []byte {
	at := bytes.IndexFunc(doc, beyondASCII)
	if at < 0 {
		return doc
	}
	out := append(make([]byte, 0, len(doc)+64), doc[:at]...)
	for rest := doc[at:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case !beyondASCII(r):
			out = append(out, rest[:n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = append(out, `\u`+hex(uint64(hi), 4)+`\u`+hex(uint64(lo), 4)...)
		default:
			out = append(out, `\u`+hex(uint64(r), 4)...)
		}
		rest = rest[n:]
	}
	return out
}

func beyondASCII(r rune) bool { return r >= 0x7f && Hidden(r) }

// JSONWriter writes to W the result of JSON. Each Write must consist of whole characters.
type JSONWriter struct{ W io.Writer }

// Write implements io.Writer.
func (w JSONWriter) Write(p []byte) (int, error) { return written(w.W, p, JSON(p)) }

// TextWriter writes to W the result of Text. Each Write must consist of whole characters.
type TextWriter struct{ W io.Writer }

// Write implements io.Writer.
func (w TextWriter) Write(p []byte) (int, error) { return written(w.W, p, []byte(Text(string(p)))) }

// written writes out in place of p.
func written(w io.Writer, p, out []byte) (int, error) {
	if _, err := w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Clip is Line of at most the first max characters of s, with an ellipsis if there were more.
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

// Word returns s as one word of a command to type: quoted for a POSIX shell if needed, and as $'…' (bash, ksh, zsh) if Line would escape.
func Word(s string) string {
	line := Line(s)
	switch {
	case line != s:
		// Backslashes that were in s must be distinguished from those that Line added.
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

// special reports whether a shell may interpret a character.
func special(r rune) bool {
	return r < utf8.RuneSelf && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:@%+=,", r)
}

func hex(v uint64, digits int) string {
	s := strconv.FormatUint(v, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// Shorten returns s, or if it has more than n characters the first n-1 of them and an ellipsis. It escapes nothing.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// Caret returns a line that points at column col (from 1) of the line text above it: tabs stay tabs, everything else becomes a space.
func Caret(text string, col int) string {
	var b strings.Builder
	n := 1
	for _, r := range text {
		if n >= col {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return b.String() + "^"
}
