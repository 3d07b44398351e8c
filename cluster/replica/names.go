package replica

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const hexadecimal = "0123456789ABCDEF"

// Text is a name or the target of a link, of any bytes: names of refs need not be UTF-8. As text, and so in JSON, % and bytes that are no UTF-8 are %XX.
type Text string

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) { return []byte(escape(string(t))), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(unescape(string(text)))
	return nil
}

func escape(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, "%") {
		return name
	}
	var out strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || r == '%' {
			out.WriteByte('%')
			out.WriteByte(hexadecimal[name[i]>>4])
			out.WriteByte(hexadecimal[name[i]&15])
		} else {
			out.WriteString(name[i : i+n])
		}
		i += n
	}
	return out.String()
}

func unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
