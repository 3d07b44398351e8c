package codecs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/encoding/charmap"

	"corpus-git/internal/py"
)

// Codec writes text in an encoding of Python's. Source: Python documentation, codecs, Standard Encodings.
type Codec struct {
	// Name and why are the name of the encoding and the reason in a UnicodeEncodeError; "" if all text can be encoded.
	Name, why string
	utf8      bool
	// mark is written before the text.
	mark string
	// put appends a character; ok is false if the encoding does not have it.
	put func(b []byte, r rune) (out []byte, ok bool)
}

// Lookup finds a codec by any of its names; nil if it is not built in.
func Lookup(name string) *Codec {
	n := codecName(name)
	switch n {
	case "utf_8", "utf8", "u8", "utf", "cp65001", "utf8_ucs2", "utf8_ucs4":
		return &Codec{utf8: true, put: putUTF8}
	case "utf_8_sig", "utf8_sig":
		return &Codec{mark: "\xef\xbb\xbf", put: putUTF8}
	case "ascii", "us_ascii", "646", "us", "ibm367", "cp367":
		return &Codec{Name: "ascii", why: "ordinal not in range(128)", put: below(0x80)}
	case "latin_1", "latin1", "latin", "l1", "iso8859_1", "iso_8859_1", "iso8859", "8859", "cp819", "ibm819":
		return &Codec{Name: "latin-1", why: "ordinal not in range(256)", put: below(0x100)}
	case "utf_16", "utf16", "u16":
		return &Codec{mark: "\xff\xfe", put: units(2, false)}
	case "utf_16_le", "utf_16le", "unicodelittleunmarked":
		return &Codec{put: units(2, false)}
	case "utf_16_be", "utf_16be", "unicodebigunmarked":
		return &Codec{put: units(2, true)}
	case "utf_32", "utf32", "u32":
		return &Codec{mark: "\xff\xfe\x00\x00", put: units(4, false)}
	case "utf_32_le", "utf_32le":
		return &Codec{put: units(4, false)}
	case "utf_32_be", "utf_32be":
		return &Codec{put: units(4, true)}
	}
	table, iso := tableOf(n)
	if table == nil {
		return nil
	}
	return &Codec{Name: "charmap", why: "character maps to <undefined>", put: func(b []byte, r rune) ([]byte, bool) {
		if iso && r >= 0x80 && r < 0xa0 { // control characters, which the tables omit
			return append(b, byte(r)), true
		}
		c, ok := table.EncodeRune(r)
		if !ok {
			return b, false
		}
		return append(b, c), true
	}}
}

// codecName is encodings.normalize_encoding in lower case.
func codecName(name string) string {
	f := strings.FieldsFunc(name, func(r rune) bool {
		return r != '.' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	return strings.ToLower(strings.Join(f, "_"))
}

// tableOf returns an encoding with one byte per character. Those of the Go library that differ from Python's (cp1255, koi8_u)
// are omitted.
func tableOf(name string) (table *charmap.Charmap, iso bool) {
	isos := map[string]*charmap.Charmap{"2": charmap.ISO8859_2, "3": charmap.ISO8859_3, "4": charmap.ISO8859_4,
		"5": charmap.ISO8859_5, "6": charmap.ISO8859_6, "7": charmap.ISO8859_7, "8": charmap.ISO8859_8, "9": charmap.ISO8859_9,
		"10": charmap.ISO8859_10, "13": charmap.ISO8859_13, "14": charmap.ISO8859_14, "15": charmap.ISO8859_15, "16": charmap.ISO8859_16}
	pages := map[string]*charmap.Charmap{"1250": charmap.Windows1250, "1251": charmap.Windows1251, "1252": charmap.Windows1252,
		"1253": charmap.Windows1253, "1254": charmap.Windows1254, "1256": charmap.Windows1256, "1257": charmap.Windows1257,
		"1258": charmap.Windows1258, "437": charmap.CodePage437, "850": charmap.CodePage850, "852": charmap.CodePage852,
		"855": charmap.CodePage855, "858": charmap.CodePage858, "860": charmap.CodePage860, "862": charmap.CodePage862,
		"863": charmap.CodePage863, "865": charmap.CodePage865, "866": charmap.CodePage866}
	latin := map[string]string{"latin2": "2", "l2": "2", "latin3": "3", "l3": "3", "latin4": "4", "l4": "4", "cyrillic": "5",
		"arabic": "6", "greek": "7", "hebrew": "8", "latin5": "9", "l5": "9", "latin6": "10", "l6": "10", "latin7": "13", "l7": "13",
		"latin8": "14", "l8": "14", "latin9": "15", "l9": "15", "latin10": "16", "l10": "16"}
	switch name {
	case "koi8_r", "cskoi8r":
		return charmap.KOI8R, false
	case "mac_roman", "macroman", "macintosh":
		return charmap.Macintosh, false
	case "mac_cyrillic", "maccyrillic":
		return charmap.MacintoshCyrillic, false
	case "cp874":
		return charmap.Windows874, false
	}
	for _, prefix := range []string{"iso8859_", "iso_8859_"} {
		if n, ok := strings.CutPrefix(name, prefix); ok {
			return isos[n], true
		}
	}
	if n, ok := latin[name]; ok {
		return isos[n], true
	}
	for _, prefix := range []string{"cp", "windows_", "ibm", ""} {
		if n, ok := strings.CutPrefix(name, prefix); ok && pages[n] != nil && (prefix != "windows_" || len(n) == 4) &&
			(prefix != "ibm" || len(n) == 3) {
			return pages[n], false
		}
	}
	return nil, false
}

func putUTF8(b []byte, r rune) ([]byte, bool) { return append(b, string(r)...), true }

func below(limit rune) func([]byte, rune) ([]byte, bool) {
	return func(b []byte, r rune) ([]byte, bool) {
		if r >= limit {
			return b, false
		}
		return append(b, byte(r)), true
	}
}

// units writes a character in units of two or four bytes.
func units(size int, big bool) func([]byte, rune) ([]byte, bool) {
	return func(b []byte, r rune) ([]byte, bool) {
		all := []uint32{uint32(r)}
		if size == 2 && r >= 0x10000 {
			all = []uint32{0xd800 + uint32(r-0x10000)>>10, 0xdc00 + uint32(r-0x10000)&0x3ff}
		}
		for _, u := range all {
			for i := range size {
				shift := 8 * i
				if big {
					shift = 8 * (size - 1 - i)
				}
				b = append(b, byte(u>>shift))
			}
		}
		return b, true
	}
}

// Encode is str.encode(encoding, errors). Source: Python documentation, codecs, Error Handlers.
func Encode(text, encoding, errors string) ([]byte, error) {
	c := Lookup(encoding)
	if c == nil {
		return nil, fmt.Errorf("unknown encoding: %s", encoding)
	}
	out := []byte(c.mark)
	rs := []rune(text)
	for i := 0; i < len(rs); {
		var ok bool
		if out, ok = c.put(out, rs[i]); ok {
			i++
			continue
		}
		end := i + 1 // Python passes a run of such characters to the handler
		for end < len(rs) {
			if _, ok := c.put(nil, rs[end]); ok {
				break
			}
			end++
		}
		var err error
		if out, err = c.handle(out, rs, i, end, errors); err != nil {
			return nil, err
		}
		i = end
	}
	return out, nil
}

// handle processes the characters from i to end, which the encoding does not have, as errors requires.
func (c *Codec) handle(out []byte, rs []rune, i, end int, errors string) ([]byte, error) {
	switch errors {
	case "", "strict", "surrogateescape", "surrogatepass":
		if end == i+1 {
			return nil, fmt.Errorf("'%s' codec can't encode character '%s' in position %d: %s", c.Name, escapeRune(rs[i]), i, c.why)
		}
		return nil, fmt.Errorf("'%s' codec can't encode characters in position %d-%d: %s", c.Name, i, end-1, c.why)
	case "ignore":
	case "replace":
		out = append(out, strings.Repeat("?", end-i)...)
	case "xmlcharrefreplace":
		for _, r := range rs[i:end] {
			out = append(out, "&#"+strconv.Itoa(int(r))+";"...)
		}
	case "backslashreplace":
		for _, r := range rs[i:end] {
			out = append(out, escapeRune(r)...)
		}
	default:
		return nil, fmt.Errorf("unknown error handler name %s", py.Repr(errors))
	}
	return out, nil
}

func escapeRune(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Decodable reports whether decodeText knows an encoding.
func Decodable(encoding string) bool {
	c := Lookup(encoding)
	return c != nil && (c.Name != "" || c.utf8)
}

// Decode is bytes.decode of an encoding with one byte per character, or of UTF-8. Invalid bytes become U+FFFD.
func Decode(text, encoding string) string {
	c := Lookup(encoding)
	if c == nil || c.utf8 {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	chars := make(map[byte]rune, 256)
	for r := rune(0); r < 0x10000; r++ {
		if b, ok := c.put(nil, r); ok && len(b) == 1 {
			chars[b[0]] = r
		}
	}
	var out strings.Builder
	for i := range len(text) {
		r, ok := chars[text[i]]
		if !ok {
			r = unicode.ReplacementChar
		}
		out.WriteRune(r)
	}
	return out.String()
}
