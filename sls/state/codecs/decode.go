package codecs

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Output in another encoding than UTF-8 is decoded as Python does, which writes U+FFFD for invalid bytes. Encodings with
// several bytes per character are left to Salt: their lines cannot be decoded while they arrive.
// Source: Python documentation, codecs, "Standard Encodings".

// Decoder returns the decoder for an encoding with that name in Python; ok is false if this package does not have it.
func Decoder(name string) (decode func(string) string, ok bool) {
	n := codecName(name)
	switch {
	case slices.Contains([]string{"", "utf_8", "utf8", "u8", "utf", "cp65001"}, n):
		return validUTF8, true
	case slices.Contains([]string{"ascii", "us_ascii", "646", "us", "ibm367", "cp367"}, n):
		return byByte(func(b byte) rune {
			if b < utf8.RuneSelf {
				return rune(b)
			}
			return utf8.RuneError
		}), true
	}
	if c := Lookup(n); c != nil && c.Name == "latin-1" {
		return byByte(func(b byte) rune { return rune(b) }), true
	}
	table, iso := tableOf(n)
	if table == nil {
		return nil, false
	}
	return byByte(func(b byte) rune {
		control := b >= 0x80 && b < 0xa0
		r := table.DecodeByte(b)
		switch {
		case control && iso: // which the tables omit
			return rune(b)
		case r >= 0x80 && r < 0xa0: // such a byte is not a character there
			return utf8.RuneError
		}
		return r
	}), true
}

func byByte(char func(b byte) rune) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			b.WriteRune(char(s[i]))
		}
		return b.String()
	}
}

func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
