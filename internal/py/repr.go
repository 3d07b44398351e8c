package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Str is str(v) without limits; it returns "" for an object whose str() fails.
func Str(v any) string {
	s, err := (*Ops)(nil).Str(v)
	if err != nil {
		return ""
	}
	return s
}

// Repr is repr(v) without limits; it returns "" for an object whose repr() fails.
func Repr(v any) string {
	s, err := (*Ops)(nil).Repr(v)
	if err != nil {
		return ""
	}
	return s
}

// Str is str(v).
func (o *Ops) Str(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case bool:
		if x {
			return "True", nil
		}
		return "False", nil
	case nil:
		return "None", nil
	case float64:
		return FloatRepr(x), nil
	case Stringer:
		s, err := x.Str()
		if err != nil {
			return "", err
		}
		return s, o.Alloc(len(s))
	}
	return o.Repr(v)
}

// Repr is repr(v).
func (o *Ops) Repr(v any) (string, error) {
	r := reprer{ops: o}
	if err := r.write(v); err != nil {
		return "", err
	}
	return r.b.String(), nil
}

// Printable is str(v) of a container whose dicts write a text by themselves if text returns ok, as Salt's PrintableDict
// does; a dict that holds a value writes it by its str(), not its repr().
func (o *Ops) Printable(v any, text func(s string) (string, bool)) (string, error) {
	r := reprer{ops: o, text: text}
	_, r.plain = v.(*Dict)
	if err := r.write(v); err != nil {
		return "", err
	}
	return r.b.String(), nil
}

type reprer struct {
	ops   *Ops
	b     strings.Builder
	stack []any // containers being written, against cycles
	// Of Printable: how a dict writes a text, and whether no list is around it.
	text  func(s string) (string, bool)
	plain bool
}

// value writes a value of a dict.
func (r *reprer) value(v any) error {
	if r.text == nil {
		return r.write(v)
	}
	switch x := v.(type) {
	case string:
		if s, ok := r.text(x); ok {
			r.b.WriteString(s)
			return r.ops.Alloc(2 * len(s))
		}
	case *Dict, StrLike:
	case Stringer:
		if r.plain {
			s, err := x.Str()
			r.b.WriteString(s)
			return err
		}
	default:
		defer func(old bool) { r.plain = old }(r.plain)
		r.plain = false
	}
	return r.write(v)
}

// charge charges what was written of one value: a step for itself, and for each byte about 8 ns, which escaping takes.
func (r *reprer) charge(from int) error {
	n := r.b.Len() - from
	if err := r.ops.Step(1 + n/12); err != nil {
		return err
	}
	return r.ops.Alloc(2 * n)
}

func (r *reprer) enter(v any) (cycle bool, err error) {
	for _, s := range r.stack {
		if s == v {
			return true, nil
		}
	}
	return false, r.push(v)
}

func (r *reprer) push(v any) error {
	if len(r.stack) >= maxDepth {
		return Errorf(RecursionError, "maximum recursion depth exceeded while getting the repr of an object")
	}
	r.stack = append(r.stack, v)
	return r.ops.Step(1 + len(r.stack)/4)
}

func (r *reprer) leave() { r.stack = r.stack[:len(r.stack)-1] }

// inside writes a container that may hold itself, which is then written as again.
func (r *reprer) inside(v any, again string, write func() error) error {
	from := r.b.Len()
	cycle, err := r.enter(v)
	if err != nil {
		return err
	}
	if cycle {
		r.b.WriteString(again)
		return r.charge(from)
	}
	if err := write(); err != nil {
		return err
	}
	r.leave()
	return nil
}

func (r *reprer) tuple(x Tuple) error {
	if err := r.push(nil); err != nil {
		return err
	}
	end := byte(')')
	if len(x) == 1 {
		end = ','
	}
	if err := r.seq('(', x, end); err != nil {
		return err
	}
	if end == ',' {
		r.b.WriteByte(')')
	}
	r.leave()
	return nil
}

func (r *reprer) write(v any) error {
	from := r.b.Len()
	switch x := v.(type) {
	case string:
		StrRepr(&r.b, x)
	case nil:
		r.b.WriteString("None")
	case bool:
		if x {
			r.b.WriteString("True")
		} else {
			r.b.WriteString("False")
		}
	case int64:
		r.b.WriteString(strconv.FormatInt(x, 10))
	case *big.Int:
		s, err := bigStr(x)
		if err != nil {
			return err
		}
		r.b.WriteString(s)
	case float64:
		r.b.WriteString(FloatRepr(x))
	case *List:
		return r.inside(v, "[...]", func() error { return r.seq('[', x.items, ']') })
	case Tuple:
		return r.tuple(x)
	case *Dict:
		return r.inside(v, "{...}", func() error { return r.dict(x) })
	case *Set:
		if x.members.Len() == 0 {
			r.b.WriteString("set()")
			break
		}
		return r.seq('{', x.Items(), '}')
	case dictView:
		r.b.WriteString(x.TypeName() + "(")
		if err := r.write(ListOf(x.values())); err != nil {
			return err
		}
		r.b.WriteByte(')')
		return nil
	case Wrapper:
		prefix, inner, suffix := x.Wrapped()
		r.b.WriteString(prefix)
		if err := r.write(inner); err != nil {
			return err
		}
		r.b.WriteString(suffix)
	case Reprer:
		s, err := x.Repr()
		if err != nil {
			return err
		}
		r.b.WriteString(s)
	default:
		r.b.WriteString("<" + TypeName(v) + " object>")
	}
	return r.charge(from)
}

func (r *reprer) seq(open byte, items []any, end byte) error {
	r.b.WriteByte(open)
	for i, e := range items {
		if i > 0 {
			r.b.WriteString(", ")
		}
		if err := r.write(e); err != nil {
			return err
		}
	}
	r.b.WriteByte(end)
	return r.ops.Alloc(2 + 4*len(items))
}

func (r *reprer) dict(d *Dict) error {
	r.b.WriteByte('{')
	first := true
	for _, e := range d.entries {
		if e.norm == nil {
			continue
		}
		if !first {
			r.b.WriteString(", ")
		}
		first = false
		if err := r.write(e.key); err != nil {
			return err
		}
		r.b.WriteString(": ")
		if err := r.value(e.val); err != nil {
			return err
		}
	}
	r.b.WriteByte('}')
	return r.ops.Alloc(2 + 8*d.live)
}

// maxStrDigits is CPython's default limit for int to str conversion (sys.set_int_max_str_digits).
const maxStrDigits = 4300

func bigStr(x *big.Int) (string, error) {
	if x.BitLen() > maxStrDigits*4 {
		return "", errDigits()
	}
	s := x.String()
	if len(strings.TrimPrefix(s, "-")) > maxStrDigits {
		return "", errDigits()
	}
	return s, nil
}

func errDigits() error {
	return Errorf(ValueError, "Exceeds the limit (4300 digits) for integer string conversion; "+
		"use sys.set_int_max_str_digits() to increase the limit")
}

// FloatRepr is repr() of a float: the shortest text that reads back as the same number.
func FloatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// StrRepr writes repr() of a string.
func StrRepr(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b.WriteByte(quote)
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == quote || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == '\n':
				b.WriteString(`\n`)
			case c == '\r':
				b.WriteString(`\r`)
			case c == '\t':
				b.WriteString(`\t`)
			case c < ' ' || c == 0x7f:
				b.WriteString(`\x`)
				hex(b, rune(c), 2)
			default:
				b.WriteByte(c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\udc`)
			hex(b, rune(c), 2)
		case unicode.IsPrint(r):
			b.WriteString(s[i : i+n])
		case r < 0x100:
			b.WriteString(`\x`)
			hex(b, r, 2)
		case r < 0x10000:
			b.WriteString(`\u`)
			hex(b, r, 4)
		default:
			b.WriteString(`\U`)
			hex(b, r, 8)
		}
		i += n
	}
	b.WriteByte(quote)
}

func hex(b *strings.Builder, r rune, width int) {
	const digits = "0123456789abcdef"
	for i := width - 1; i >= 0; i-- {
		b.WriteByte(digits[(r>>(4*i))&15])
	}
}
