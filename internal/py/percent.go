package py

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// percent is the state of one s % v.
type percent struct {
	ops  *Ops
	b    strings.Builder
	vals []any // what is left of the values
	dict any   // the mapping of %(name)s, nil if v is not one
	one  bool  // v is a single value
}

// Percent is s % v.
func (o *Ops) Percent(s string, v any) (string, error) {
	p := percent{ops: o}
	used := true
	switch x := v.(type) {
	case Tuple:
		p.vals = x
	default:
		p.vals, p.one = []any{v}, true
		switch v.(type) {
		case *Dict, Mapping:
			p.dict = v
			used = false
		case *List:
			used = false
		}
		if f, ok := v.(Failer); ok {
			if _, isIndexer := v.(Indexer); isIndexer {
				p.dict = f
			}
		}
	}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			break
		}
		if err := p.text(s[:i]); err != nil {
			return "", err
		}
		n, err := p.spec(s[i+1:])
		if err != nil {
			return "", err
		}
		s = s[i+1+n:]
	}
	if err := p.text(s); err != nil {
		return "", err
	}
	if len(p.vals) > 0 && used {
		return "", Errorf(TypeError, "not all arguments converted during string formatting")
	}
	return p.b.String(), nil
}

func (p *percent) text(s string) error {
	p.b.WriteString(s)
	return p.ops.Alloc(len(s))
}

func (p *percent) next() (any, error) {
	if len(p.vals) == 0 {
		return nil, Errorf(TypeError, "not enough arguments for format string")
	}
	v := p.vals[0]
	p.vals = p.vals[1:]
	return v, nil
}

// number reads digits or a star.
func (p *percent) number(s string) (n, used int, err error) {
	if s != "" && s[0] == '*' {
		v, err := p.next()
		if err != nil {
			return 0, 0, err
		}
		i, ok := toInt64(v)
		if !ok {
			return 0, 0, Errorf(TypeError, "* wants int")
		}
		return int(max(min(i, maxWidth+1), -maxWidth-1)), 1, nil
	}
	for used < len(s) && s[used] >= '0' && s[used] <= '9' {
		n = min(n*10+int(s[used]-'0'), maxWidth+1)
		used++
	}
	return n, used, nil
}

// maxWidth limits the width of a formatted field.
const maxWidth = 1 << 31

// keyed returns the value of the key in parentheses that a conversion begins with, and how long that is; 0 if there is none.
func (p *percent) keyed(s string) (value any, n int, err error) {
	if s == "" || s[0] != '(' {
		return nil, 0, nil
	}
	depth, j := 1, 1
	for ; j < len(s); j++ {
		if s[j] == '(' {
			depth++
		} else if s[j] == ')' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if j >= len(s) {
		return nil, 0, Errorf(ValueError, "incomplete format key")
	}
	if p.dict == nil {
		return nil, 0, Errorf(TypeError, "format requires a mapping")
	}
	v, ok, err := p.ops.Item(p.dict, s[1:j])
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, Errorf(KeyError, "a key of the format string is not in the mapping")
	}
	p.vals = nil
	return v, j + 1, nil
}

// spec formats one conversion after its %; it returns its length in the format.
func (p *percent) spec(s string) (int, error) {
	incomplete := Errorf(ValueError, "incomplete format")
	value, i, err := p.keyed(s)
	if err != nil {
		return 0, err
	}
	keyed := i > 0
	f := fieldSpec{align: '>', fill: " "}
	left := false
	zero := false
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			left = true
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		case '#':
			f.alt = true
		case '0':
			zero = true
		default:
			break flags
		}
	}
	if i >= len(s) {
		return 0, incomplete
	}
	w, n, err := p.number(s[i:])
	if err != nil {
		return 0, err
	}
	i += n
	if w < 0 {
		left, w = true, -w
	}
	f.width, f.prec = w, -1
	if i < len(s) && s[i] == '.' {
		i++
		pr, n, err := p.number(s[i:])
		if err != nil {
			return 0, err
		}
		f.prec = max(pr, 0)
		i += n
	}
	if i < len(s) && (s[i] == 'h' || s[i] == 'l' || s[i] == 'L') {
		i++
	}
	if i >= len(s) {
		return 0, incomplete
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	conv := s[i]
	i += size
	if conv == '%' {
		return i, p.text("%")
	}
	if !keyed {
		if value, err = p.next(); err != nil {
			return 0, err
		}
	}
	out, err := p.convert(conv, value, &f, left, zero)
	if err != nil {
		return 0, err
	}
	return i, p.text(out)
}

func (p *percent) convert(conv byte, v any, f *fieldSpec, left, zero bool) (string, error) {
	f.typ = conv
	if left {
		f.align = '<'
	}
	switch conv {
	case 's', 'r', 'a':
		s, err := p.ops.Str(v)
		if conv != 's' {
			s, err = p.ops.Repr(v)
		}
		if err != nil {
			return "", err
		}
		if conv == 'a' {
			s = asciiRepr(s)
		}
		if f.prec >= 0 {
			s = s[:runeOffset(s, f.prec)]
		}
		return p.ops.pad(s, f)
	case 'c':
		s, isStr := v.(string)
		if n, ok := toInt64(v); ok {
			s = string(rune(n))
		} else if !isStr || StrLen(s) != 1 {
			return "", orFailing(v, Errorf(TypeError, "%%c requires int or char"))
		}
		return p.ops.pad(s, f)
	}
	if zero && !left {
		f.fill, f.align = "0", '='
	}
	switch conv {
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return p.integer(conv, v, f)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		x, err := toFloat(v)
		if err != nil {
			return "", orFailing(v, err)
		}
		if f.prec < 0 {
			f.prec = 6
		}
		if f.prec > maxPrecision {
			return "", Errorf(OverflowError, "precision is too large")
		}
		if err := p.ops.Alloc(f.prec); err != nil {
			return "", err
		}
		return p.ops.padNumber(signOf(x, f.sign), "", floatDigits(x, f.prec, conv, f.alt), f)
	}
	return "", Errorf(ValueError, "unsupported format character %s", Repr(string(rune(conv))))
}

func orFailing(v any, err error) error {
	if e := failing(v); e != nil {
		return e
	}
	return err
}

func (p *percent) integer(conv byte, v any, f *fieldSpec) (string, error) {
	if x, ok := v.(float64); ok && conv != 'o' && conv != 'x' && conv != 'X' {
		i, err := FloatToInt(x)
		if err != nil {
			return "", err
		}
		v = i
	}
	b := toBig(v)
	if b == nil {
		if conv == 'o' || conv == 'x' || conv == 'X' {
			return "", orFailing(v, Errorf(TypeError, "%%%c format: an integer is required, not %s", conv, TypeName(v)))
		}
		return "", orFailing(v, Errorf(TypeError, "%%%c format: a real number is required, not %s", conv, TypeName(v)))
	}
	base, prefix := 10, ""
	switch conv {
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(rune(conv))
	}
	digits, err := intDigits(b, base)
	if err != nil {
		return "", err
	}
	if conv == 'X' {
		digits = strings.ToUpper(digits)
	}
	if f.prec > maxPrecision {
		return "", Errorf(OverflowError, "precision is too large")
	}
	if n := f.prec - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	if !f.alt || base == 10 {
		prefix = ""
	}
	sign := ""
	if b.Sign() < 0 {
		sign = "-"
	} else if f.sign != 0 {
		sign = string(rune(f.sign))
	}
	return p.ops.padNumber(sign, prefix, digits, f)
}

// signOf returns the sign that a float shows.
func signOf(x float64, want byte) string {
	if x < 0 || x == 0 && new(big.Float).SetFloat64(x).Signbit() {
		return "-"
	}
	if want == '+' || want == ' ' {
		return string(rune(want))
	}
	return ""
}
