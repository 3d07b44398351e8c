package py

import (
	"strings"
	"unsafe"
)

// longText is the size in bytes from which a concatenated text may be appended to in place.
const longText = 4096

// Concat returns the texts one after the other.
//
// A template that builds a long text piece by piece (s = s ~ piece) would copy all of it for each piece. So the buffer of the last long
// result is kept, with spare room once it was appended to: if the first text is that result, only the rest is written, after the part
// that older texts in the same buffer can see.
func (o *Ops) Concat(parts ...string) (string, error) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if o == nil || n < longText {
		if err := o.Alloc(n); err != nil {
			return "", err
		}
		return strings.Join(parts, ""), nil
	}
	buf, room := []byte(nil), n
	if first := parts[0]; len(first) == len(o.long) && len(first) > 0 && unsafe.StringData(first) == unsafe.SliceData(o.long) {
		buf, parts = o.long, parts[1:]
		room = n + n/4
	}
	if n > cap(buf) {
		if err := o.Alloc(room); err != nil {
			return "", err
		}
		buf = append(make([]byte, 0, room), buf...)
	} else if err := o.Step((n - len(buf)) / copied); err != nil { // the room was already charged when it was allocated
		return "", err
	}
	for _, p := range parts {
		buf = append(buf, p...)
	}
	o.long = buf
	return unsafe.String(unsafe.SliceData(buf), n), nil
}
