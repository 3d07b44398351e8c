package jinja

import (
	"strings"
	"unicode"

	"corpus-git/internal/py"
)

// wrapLine is textwrap.wrap of one line, without expanding tabs or replacing whitespace.
func wrapLine(line string, width int, breakLong, hyphens bool) []string {
	chunks := wrapChunks(line, hyphens)
	for i, j := 0, len(chunks)-1; i < j; i, j = i+1, j-1 {
		chunks[i], chunks[j] = chunks[j], chunks[i]
	}
	var lines []string
	for len(chunks) > 0 {
		top := len(chunks) - 1
		if len(lines) > 0 && blank(chunks[top]) {
			chunks = chunks[:top]
		}
		var cur []string
		n := 0
		for len(chunks) > 0 {
			l := py.StrLen(chunks[len(chunks)-1])
			if n+l > width {
				break
			}
			cur = append(cur, chunks[len(chunks)-1])
			chunks = chunks[:len(chunks)-1]
			n += l
		}
		if len(chunks) > 0 && py.StrLen(chunks[len(chunks)-1]) > width {
			chunks, cur = breakWord(chunks, cur, n, width, breakLong, hyphens)
		}
		if len(cur) > 0 && blank(cur[len(cur)-1]) {
			cur = cur[:len(cur)-1]
		}
		if len(cur) > 0 {
			lines = append(lines, strings.Join(cur, ""))
		}
	}
	return lines
}

func blank(s string) bool { return strings.Trim(s, wrapSpace) == "" && s != "" || py.Strip(s) == "" }

// wrapSpace is the whitespace that textwrap knows.
const wrapSpace = "\t\n\v\f\r "

// breakWord puts a word that is longer than a line on this line, in part or, where it must stay whole, in full.
func breakWord(chunks, cur []string, n, width int, breakLong, hyphens bool) (left, line []string) {
	space := 1
	if width >= 1 {
		space = width - n
	}
	top := len(chunks) - 1
	switch {
	case breakLong:
		chunk := []rune(chunks[top])
		end := max(min(space, len(chunk)), 0)
		if hyphens && len(chunk) > space {
			if h := lastIndexRune(chunk[:end], '-'); h > 0 && strings.Trim(string(chunk[:h]), "-") != "" {
				end = h + 1
			}
		}
		cur = append(cur, string(chunk[:end]))
		chunks[top] = string(chunk[end:])
	case len(cur) == 0:
		cur = append(cur, chunks[top])
		chunks = chunks[:top]
	}
	return chunks, cur
}

func lastIndexRune(s []rune, r rune) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == r {
			return i
		}
	}
	return -1
}

// wrapChunks splits a line into words, runs of whitespace, and parts of words that end in a hyphen.
func wrapChunks(s string, hyphens bool) []string {
	var out []string
	for s != "" {
		isSpace := strings.IndexByte(wrapSpace, s[0]) >= 0
		end := 0
		for end < len(s) && strings.IndexByte(wrapSpace, s[end]) >= 0 == isSpace {
			end++
		}
		word := s[:end]
		s = s[end:]
		if isSpace || !hyphens {
			out = append(out, word)
			continue
		}
		out = append(out, splitHyphens(word)...)
	}
	return out
}

// splitHyphens returns the part of textwrap's regular expression about words: a break comes after a hyphen between letters,
// and around dashes.
func splitHyphens(word string) []string {
	r := []rune(word)
	isWordCh := func(i int) bool {
		return i >= 0 && i < len(r) && (r[i] == '_' || unicode.IsLetter(r[i]) || unicode.IsNumber(r[i]))
	}
	isPunct := func(i int) bool {
		return i >= 0 && i < len(r) && (isWordCh(i) || strings.ContainsRune(`!"'&.,?`, r[i]))
	}
	isLetter := func(i int) bool { return isWordCh(i) && !unicode.IsDigit(r[i]) }
	var out []string
	start := 0
	cut := func(end int) {
		if end > start {
			out = append(out, string(r[start:end]))
			start = end
		}
	}
	for i := 0; i < len(r); i++ {
		if r[i] != '-' {
			continue
		}
		run := i
		for run < len(r) && r[run] == '-' {
			run++
		}
		if run-i >= 2 && isPunct(i-1) && isWordCh(run) {
			cut(i)
			cut(run)
			i = run - 1
			continue
		}
		if run-i == 1 && i > start {
			before := isLetter(i-1) && (isLetter(i-2) && i-2 >= start || i-2 >= start && r[i-2] == '-' && isLetter(i-3))
			after := isLetter(i+1) && (isLetter(i+2) || i+2 < len(r) && r[i+2] == '-' && isLetter(i+3))
			if before && after {
				cut(i + 1)
			}
		}
		i = run - 1
	}
	cut(len(r))
	return out
}
