package replica

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

const hexadecimal = "0123456789ABCDEF"

// Escape returns a text that JSON can hold for a name of any bytes: as it is, or with % and bytes that are no UTF-8 as %XX. Names of refs need not be UTF-8.
func Escape(name string) string {
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

// Unescape is the reverse of Escape.
func Unescape(text string) string {
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

// MarshalJSON implements json.Marshaler; see Escape.
func (r record) MarshalJSON() ([]byte, error) {
	type plain record
	p := plain(r)
	p.Name, p.Target = Escape(r.Name), Escape(r.Target)
	return json.Marshal(p)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *record) UnmarshalJSON(text []byte) error {
	type plain record
	err := json.Unmarshal(text, (*plain)(r))
	r.Name, r.Target = Unescape(r.Name), Unescape(r.Target)
	return err
}

// MarshalJSON implements json.Marshaler; see Escape.
func (i Item) MarshalJSON() ([]byte, error) {
	type plain Item
	p := plain(i)
	p.Name, p.Target = Escape(i.Name), Escape(i.Target)
	return json.Marshal(p)
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Item) UnmarshalJSON(text []byte) error {
	type plain Item
	err := json.Unmarshal(text, (*plain)(i))
	i.Name, i.Target = Unescape(i.Name), Unescape(i.Target)
	return err
}
