package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"corpus-git/internal/saltyaml"
)

// encodedBytes is the length from which the encoded forms of a value are hidden too: encodings of shorter values occur by chance.
const encodedBytes = 8

// forms returns the texts by which a value may appear. The first is the value itself.
func forms(v string) []string {
	out := quoted(v)
	for line := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\n' || r == '\r' }) {
		// A value of several lines is printed line by line, with a prefix before each: a diff, a quote.
		if line = strings.TrimSpace(line); len(line) >= MinBytes && line != strings.TrimSpace(v) {
			out = append(out, quoted(line)...)
		}
	}
	out = append(out, bytesOf(v)...)
	if len(v) >= encodedBytes {
		out = append(out, encoded(v)...)
		if t := strings.TrimSpace(v); t != v && len(t) >= encodedBytes {
			out = append(out, encoded(t)...)
		}
	}
	return out
}

// quoted returns the value and its escaped forms in JSON, YAML, Python, shells and XML.
func quoted(v string) []string {
	out := []string{v,
		jsonEscape(v, false), jsonEscape(v, true),
		backslash(v, `"\`, 'x'), backslash(v, `'\`, 'x'), backslash(v, `\`, 'x'), backslash(v, `"\`, 0), backslash(v, `'\`, 0), backslash(v, `\`, 0),
		backslash(v, "\"\\$`", 0), backslash(v, "\"\\$`!", 0),
		strings.ReplaceAll(v, `'`, `''`),
		strings.ReplaceAll(v, `'`, `'\''`), strings.ReplaceAll(v, `'`, `'"'"'`), strings.ReplaceAll(v, `"`, `""`),
		strings.ReplaceAll(v, `$`, `$$`), strings.ReplaceAll(v, `%`, `%%`), strings.ReplaceAll(v, `/`, `\/`),
		shellWord(v),
		strings.NewReplacer(`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`).Replace(v),
		strings.NewReplacer(`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`, `"`, `&quot;`, `'`, `&#39;`).Replace(v),
		strings.NewReplacer(`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`, `"`, `&#34;`, `'`, `&#39;`).Replace(v),
		strings.NewReplacer(`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`, `"`, `&quot;`, `'`, `&#x27;`).Replace(v),
	}
	for _, ascii := range []bool{false, true} { // JSON as a text inside of JSON, as in logs of requests, and as Python's repr shows it
		if j := jsonEscape(v, ascii); j != v {
			out = append(out, jsonEscape(j, false), jsonEscape(j, true), backslash(j, `'\`, 'x'))
		}
	}
	for _, ascii := range []bool{false, true} {
		if y, err := saltyaml.Dump(v, saltyaml.DumpOptions{ASCII: ascii, Width: 1 << 30}); err == nil {
			if y = strings.TrimSuffix(strings.TrimSuffix(y, "...\n"), "\n"); len(y) > 1 && (y[0] == '"' || y[0] == '\'') {
				y = y[1 : len(y)-1]
			}
			out = append(out, y)
		}
	}
	return append(out, urlForms(v)...)
}

// jsonEscape returns v as it is inside a JSON string; ascii escapes everything else as \u, as Python's json.dumps does.
func jsonEscape(v string, ascii bool) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ', ascii && r >= 0x7f && r < 0x10000, !ascii && strings.ContainsRune("<>&\u2028\u2029", r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case ascii && r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// backslash escapes the bytes of set by a backslash, and control characters by their letters or, with hexa 'x', as
// \xNN (Python's repr, YAML's double quotes, $'…' of shells). Without hexa, control characters stay as they are.
func backslash(v, set string, hexa byte) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r < utf8.RuneSelf && strings.IndexByte(set, byte(r)) >= 0:
			b.WriteByte('\\')
			b.WriteRune(r)
		case hexa == 0 || r >= ' ' && r != 0x7f:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
	}
	return b.String()
}

// shellWord returns v as bash's printf %q writes it: a backslash before everything that a shell could act on.
func shellWord(v string) string {
	var b strings.Builder
	for i, r := range v {
		plain := r >= utf8.RuneSelf || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("%+-./:=@_", r) || r == '~' && i > 0 || r == '#' && i > 0
		if !plain {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// urlForms returns the percent-encoded forms that common libraries write. Source: RFC 3986, section 2.
func urlForms(v string) []string {
	var out []string
	for _, safe := range []string{"-_.~", "-_.~/", "-_.~$&+,/:;=@", "-_.~$&+=:@", "-_.~!*'()", "-_.", "-_.*"} {
		for _, plus := range []bool{false, true} {
			var up, low strings.Builder
			changed := false
			for i := range len(v) {
				c := v[i]
				switch {
				case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(safe, c) >= 0:
					up.WriteByte(c)
					low.WriteByte(c)
					continue
				case c == ' ' && plus:
					up.WriteByte('+')
					low.WriteByte('+')
				default:
					fmt.Fprintf(&up, "%%%02X", c)
					fmt.Fprintf(&low, "%%%02x", c)
				}
				changed = true
			}
			if changed {
				out = append(out, up.String(), low.String())
			}
		}
	}
	return out
}

// bytesOf returns the bytes of a value beyond ASCII in encodings other than UTF-8. In ASCII they are those of UTF-8 with NULs between,
// which are not significant.
func bytesOf(v string) []string {
	ascii := true
	for i := range len(v) {
		ascii = ascii && v[i] < utf8.RuneSelf
	}
	if ascii || !utf8.ValidString(v) {
		return nil
	}
	var little, big, latin []byte
	for _, u := range utf16.Encode([]rune(v)) {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
		if latin = append(latin, byte(u)); u > 0xff {
			latin = append(latin, '?')
		}
	}
	out := []string{string(little), string(big), string(latin)}
	var octal, hexa strings.Builder // as git and printf %q, and as Python write bytes
	for i := range len(v) {
		if c := v[i]; c < utf8.RuneSelf {
			octal.WriteByte(c)
			hexa.WriteByte(c)
		} else {
			fmt.Fprintf(&octal, `\%03o`, c)
			fmt.Fprintf(&hexa, `\x%02x`, c)
		}
	}
	return append(out, octal.String(), hexa.String())
}

// encoded returns the base64 forms of a value that is anywhere inside what was encoded, and the hexadecimal ones.
func encoded(v string) []string {
	lower := hex.EncodeToString([]byte(v))
	out := []string{lower, strings.ToUpper(lower)}
	var spaced, escaped, colons strings.Builder // as xxd -g1, printf '\x41' and openssl write bytes
	for i := range len(v) {
		if i > 0 {
			spaced.WriteByte(' ')
			colons.WriteByte(':')
		}
		colons.WriteString(lower[2*i : 2*i+2])
		spaced.WriteString(lower[2*i : 2*i+2])
		escaped.WriteString(`\x` + lower[2*i:2*i+2])
	}
	out = append(out, spaced.String(), escaped.String(), colons.String(), strings.ToUpper(spaced.String()), strings.ToUpper(colons.String()))
	for from := range 2 { // as xxd writes them, in pairs
		var pairs strings.Builder
		for i := range len(v) {
			if i > 0 && i%2 == from {
				pairs.WriteByte(' ')
			}
			pairs.WriteString(lower[2*i : 2*i+2])
		}
		out = append(out, pairs.String())
	}
	out = append(out, base64Forms(v)...)
	if q := strconv.QuoteToASCII(v); q[1:len(q)-1] != v {
		out = append(out, q[1:len(q)-1])
	}
	return out
}

// base64Forms returns the base64 texts in which v is, padded or not, in both alphabets (RFC 4648, sections 4 and 5): v
// anywhere inside what was encoded, and v as the end of it, with and without the line break that echo adds.
func base64Forms(v string) []string {
	var out []string
	for shift := range 3 {
		// shift bytes before the value are unknown, and so are the characters that they reach into.
		from := (shift*8 + 5) / 6
		std := func(enc *base64.Encoding, tail string) string {
			return enc.EncodeToString(append(make([]byte, shift), v+tail...))[from:]
		}
		// Inside, the last character is unknown if bits of what follows reach into it.
		inside := std(base64.RawStdEncoding, "")[:(shift+len(v))*8/6-from]
		for _, e := range []string{
			inside, std(base64.StdEncoding, ""), std(base64.RawStdEncoding, ""), std(base64.StdEncoding, "\n"), std(base64.RawStdEncoding, "\n"),
		} {
			out = append(out, e)
			if u := strings.NewReplacer("+", "-", "/", "_").Replace(e); u != e {
				out = append(out, u)
			}
		}
	}
	return out
}
