package event

import (
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/printable"
)

// MaxLine is the longest line that is kept, in bytes; the rest is replaced by an ellipsis.
const MaxLine = 8 << 10

// MaxLines is the maximal number of lines under one event.
const MaxLines = 2000

// Clean makes a line safe for any terminal and for JSON: it applies Scrub, and escapes characters that change the direction of a line
// (U+202E and the like), or end it in some programs (U+2028); it truncates a line longer than MaxLine, and ends a line that has colours
// with a reset.
func Clean(s string) string { return finish(Scrub(s)) }

// clean returns e with Clean applied to its texts.
func (e Event) clean() Event {
	for _, s := range []*string{&e.Text, &e.Procedure, &e.Step, &e.State} {
		*s = Clean(*s)
	}
	for i, l := range e.Lines {
		if c := Clean(l); c != l {
			e.Lines = slices.Clone(e.Lines)
			e.Lines[i] = c
		}
	}
	return e
}

// Scrub removes what a terminal obeys and does not show: escape sequences (ECMA-48: CSI, OSC, DCS and the like) except SGR (colours),
// control bytes except tab, concealed text, and what a carriage return or a backspace has overwritten. Invalid UTF-8 becomes U+FFFD.
// Secrets are searched for in the result, which is what a reader sees.
func Scrub(s string) string {
	if plain(s) {
		return s
	}
	s = strings.TrimRight(s, "\r\n")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	out := make([]byte, 0, len(s))
	var shown []int // where each character is in out, for backspaces to remove; nil if there are none
	back := strings.IndexByte(s, '\b') >= 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x1b:
			seq, sgr := escape(s[i:])
			if sgr {
				out = append(out, s[i:i+seq]...)
			}
			i += seq
			continue
		case c == '\b':
			if n := len(shown) - 1; n >= 0 {
				_, w := utf8.DecodeRune(out[shown[n]:])
				out = append(out[:shown[n]], out[shown[n]+w:]...)
				shown = shown[:n]
			}
			i++
			continue
		case c < 0x20 && c != '\t', c == 0x7f:
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r >= 0x80 && r < 0xa0 { // C1 controls, including 8-bit CSI
			continue
		}
		if back {
			shown = append(shown, len(out))
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// finish makes one line of the result of Scrub.
func finish(s string) string {
	if plain(s) && len(s) <= MaxLine {
		return s
	}
	var b strings.Builder
	coloured := false
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			seq, sgr := escape(s[i:])
			if sgr {
				b.WriteString(s[i : i+seq])
				coloured = s[i:i+seq] != "\x1b[0m" && s[i:i+seq] != "\x1b[m"
			}
			i += seq
		} else {
			r, n := utf8.DecodeRuneInString(s[i:])
			if printable.IsBidiControl(r) || r == 0x2028 || r == 0x2029 {
				b.WriteString(printable.Rune(r))
			} else {
				b.WriteRune(r)
			}
			i += n
		}
		if b.Len() > MaxLine {
			b.WriteString("…")
			break
		}
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 0x20 && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// escape measures the escape sequence that s begins with, and reports whether it is SGR.
func escape(s string) (n int, sgr bool) {
	if len(s) < 2 {
		return len(s), false
	}
	switch s[1] {
	case '[': // CSI: parameters 0x30-0x3f, intermediates 0x20-0x2f, final 0x40-0x7e
		i, numeric := 2, true
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			if (s[i] < '0' || s[i] > '9') && s[i] != ';' {
				numeric = false
			}
			i++
		}
		if i == len(s) {
			return len(s), false
		}
		if s[i] < 0x40 || s[i] > 0x7e {
			return i, false
		}
		return i + 1, numeric && s[i] == 'm' && i < 24 && !conceals(s[2:i])
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: until BEL or ST
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1, false
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2, false
			}
		}
		return len(s), false
	default:
		return 2, false
	}
}

// conceals reports whether the parameters of an SGR contain 8 (conceal). An 8 that is part of a colour (38;5;8, 38;2;8;8;8) is not.
func conceals(params string) bool {
	all := strings.Split(params, ";")
	for i := 0; i < len(all); i++ {
		switch strings.TrimLeft(all[i], "0") {
		case "8":
			return true
		case "38", "48", "58":
			if i+1 < len(all) && all[i+1] == "5" {
				i += 2
			} else {
				i += 4
			}
		}
	}
	return false
}

// StripColour removes the SGR sequences that Clean keeps.
func StripColour(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			n, _ := escape(s[i:])
			i += n
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// ScrubText applies Scrub to each of the lines of s.
func ScrubText(s string) string {
	if plain(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Scrub(l)
	}
	return strings.Join(lines, "\n")
}
