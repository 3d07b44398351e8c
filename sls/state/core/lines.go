package core

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// SplitLines is str.splitlines: also at carriage returns and the line ends of Unicode.
func SplitLines(s string) []string {
	var out []string
	start := 0
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			out = append(out, string(rs[start:i]))
			start = i + 1
		case '\r':
			out = append(out, string(rs[start:i]))
			if i+1 < len(rs) && rs[i+1] == '\n' {
				i++
			}
			start = i + 1
		}
	}
	if start < len(rs) {
		out = append(out, string(rs[start:]))
	}
	return out
}

// SplitKeep splits after each line feed.
func SplitKeep(s string) []string {
	if s == "" {
		return nil
	}
	l := strings.SplitAfter(s, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

// IsBinary guesses as Salt does: text has no NUL, and is UTF-8 or has few bytes other than printable
// ASCII. Source: Salt, salt/utils/files.py, is_text.
func IsBinary(b []byte) bool {
	if len(b) > 512 {
		b = b[:512]
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b); i++ {
			b = b[:len(b)-1]
		}
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	if utf8.Valid(b) {
		return false
	}
	odd := 0
	for _, x := range b {
		if (x < 32 || x > 126) && !bytes.ContainsRune([]byte("\n\r\t\f\b"), rune(x)) {
			odd++
		}
	}
	return odd*10 > len(b)*3
}
