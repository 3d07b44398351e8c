package convert

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is a working-tree-encoding that a checkout writes. Source: gitattributes(5), "working-tree-encoding".
type encoding uint8

const (
	asUTF8 encoding = iota
	utf16LE
	utf16BE
	utf16LEBOM
	utf16BEBOM
	utf32LE
	utf32BE
	utf32LEBOM
	latin1
	otherEncoding // an encoding that is not supported
)

// encodingOf parses the name of an encoding. UTF-16 and UTF-32 alone mean the same as in glibc's iconv on the machines that we run on:
// little-endian with a byte order mark.
func encodingOf(name string) encoding {
	name = strings.ToUpper(name)
	if rest, ok := strings.CutPrefix(name, "UTF"); ok {
		switch strings.TrimPrefix(rest, "-") {
		case "8":
			return asUTF8
		case "16", "16LE-BOM":
			return utf16LEBOM
		case "16BE-BOM":
			return utf16BEBOM
		case "16LE":
			return utf16LE
		case "16BE":
			return utf16BE
		case "32":
			return utf32LEBOM
		case "32LE":
			return utf32LE
		case "32BE":
			return utf32BE
		}
	}
	switch name {
	case "ISO-8859-1", "ISO8859-1", "ISO_8859-1", "LATIN1":
		return latin1
	}
	return otherEncoding
}

// Supported reports whether the encoding of that name is supported.
func Supported(name string) bool { return encodingOf(name) != otherEncoding }

// shape returns the width of a code unit, its byte order, and the byte order mark.
func (e encoding) shape() (width int, order binary.ByteOrder, mark bool) {
	switch e {
	case utf16LE, utf16LEBOM:
		return 2, binary.LittleEndian, e == utf16LEBOM
	case utf16BE, utf16BEBOM:
		return 2, binary.BigEndian, e == utf16BEBOM
	case utf32LE, utf32LEBOM:
		return 4, binary.LittleEndian, e == utf32LEBOM
	case utf32BE:
		return 4, binary.BigEndian, false
	}
	return 1, nil, false
}

// encode converts UTF-8 to another encoding. Content that can't be represented in it, or is not UTF-8, is returned unchanged, as in git.
func (e encoding) encode(data []byte) []byte {
	if e == asUTF8 || e == otherEncoding || len(data) == 0 || !utf8.Valid(data) {
		return data
	}
	width, order, mark := e.shape()
	out := make([]byte, 0, len(data)*width+width)
	put := func(v uint32) {
		switch width {
		case 2:
			out = append(out, 0, 0)
			order.PutUint16(out[len(out)-2:], uint16(v))
		case 4:
			out = append(out, 0, 0, 0, 0)
			order.PutUint32(out[len(out)-4:], v)
		}
	}
	if mark {
		put(0xfeff)
	}
	for _, r := range string(data) {
		switch {
		case e == latin1 && r > 0xff:
			return data
		case e == latin1:
			out = append(out, byte(r))
		case width == 2 && r > 0xffff:
			a, b := utf16.EncodeRune(r)
			put(uint32(a))
			put(uint32(b))
		default:
			put(uint32(r))
		}
	}
	return out
}

// decode reverses encode; anything that encode did not write becomes something else, or stays.
func (e encoding) decode(data []byte) []byte {
	if e == asUTF8 || e == otherEncoding {
		return data
	}
	var b bytes.Buffer
	width, order, mark := e.shape()
	if len(data)%width != 0 {
		return data
	}
	var high rune
	for i := 0; i < len(data); i += width {
		var r rune
		switch width {
		case 1:
			r = rune(data[i])
		case 2:
			r = rune(order.Uint16(data[i:]))
		case 4:
			r = rune(order.Uint32(data[i:]))
		}
		if mark && i == 0 && r == 0xfeff {
			continue
		}
		if high != 0 {
			r, high = utf16.DecodeRune(high, r), 0
		} else if width == 2 && 0xd800 <= r && r < 0xdc00 {
			high = r
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes()
}
