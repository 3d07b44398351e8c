package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fieldSpec is a parsed format specification ("Format Specification Mini-Language" of Python's string module).
type fieldSpec struct {
	fill   string
	align  byte // < > = ^, 0: by type
	sign   byte // + - space, 0
	alt    bool
	width  int
	prec   int // -1: none
	group  byte
	typ    byte // 0: none
	noNegZ bool
}

// pad fills a text up to the width.
func (o *Ops) pad(s string, f *fieldSpec) (string, error) {
	n := f.width - StrLen(s)
	if n <= 0 {
		return s, nil
	}
	if f.width > 1<<28 {
		return "", o.tooMuch()
	}
	if err := o.Alloc(n * len(f.fill)); err != nil {
		return "", err
	}
	left := 0
	switch f.align {
	case '>', '=':
		left = n
	case '^':
		left = n / 2
	}
	return strings.Repeat(f.fill, left) + s + strings.Repeat(f.fill, n-left), nil
}

// padNumber is pad for a number: '=' fills between sign and digits.
func (o *Ops) padNumber(sign, prefix, digits string, f *fieldSpec) (string, error) {
	if f.group != 0 {
		digits = groupDigits(digits, f, len(sign)+len(prefix))
	}
	if f.align == '=' {
		n := f.width - len(sign) - len(prefix) - StrLen(digits)
		if f.width > 1<<28 {
			return "", o.tooMuch()
		}
		if n > 0 {
			if err := o.Alloc(n * len(f.fill)); err != nil {
				return "", err
			}
			return sign + prefix + strings.Repeat(f.fill, n) + digits, nil
		}
	}
	return o.pad(sign+prefix+digits, f)
}

// groupDigits puts separators into the whole part; zeros that fill up to the width are grouped too.
func groupDigits(digits string, f *fieldSpec, used int) string {
	end := 0
	for end < len(digits) && (isHexDigit(digits[end])) {
		if f.typ != 'x' && f.typ != 'X' && !(digits[end] >= '0' && digits[end] <= '9') {
			break
		}
		end++
	}
	whole, rest := digits[:end], digits[end:]
	if whole == "" {
		return digits
	}
	size := 3
	if f.group == '_' && strings.IndexByte("boxX", f.typ) >= 0 && f.typ != 0 {
		size = 4
	}
	sep := f.group
	join := func(w string) string {
		var b strings.Builder
		for i := range len(w) {
			if i > 0 && (len(w)-i)%size == 0 {
				b.WriteByte(sep)
			}
			b.WriteByte(w[i])
		}
		return b.String()
	}
	out := join(whole)
	if f.fill == "0" && f.align == '=' && f.width < 1<<20 {
		for len(out)+len(rest)+used < f.width {
			whole = "0" + whole
			out = join(whole)
		}
	}
	return out + rest
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// parseSpec reads a format specification.
func parseSpec(s string) (fieldSpec, error) {
	f := fieldSpec{fill: " ", prec: -1}
	isAlign := func(c byte) bool { return c == '<' || c == '>' || c == '=' || c == '^' }
	if s != "" {
		n := runeLen(s)
		if len(s) > n && isAlign(s[n]) {
			f.fill, f.align = s[:n], s[n]
			s = s[n+1:]
		} else if isAlign(s[0]) {
			f.align = s[0]
			s = s[1:]
		}
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	f.sign = take("+- ")
	if f.sign == '-' {
		f.sign = 0
	}
	f.noNegZ = take("z") != 0
	f.alt = take("#") != 0
	if take("0") != 0 && f.align == 0 {
		f.fill, f.align = "0", '='
	}
	number := func() (int, bool, error) {
		n, i := 0, 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			n = n*10 + int(s[i]-'0')
			if n > maxWidth {
				return 0, false, Errorf(ValueError, "Too many decimal digits in format string")
			}
			i++
		}
		s = s[i:]
		return n, i > 0, nil
	}
	var err error
	if f.width, _, err = number(); err != nil {
		return f, err
	}
	f.group = take(",_")
	if f.group != 0 && take(",_") != 0 {
		return f, Errorf(ValueError, "Cannot specify both ',' and '_'.")
	}
	if take(".") != 0 {
		n, ok, err := number()
		if err != nil {
			return f, err
		}
		if !ok {
			return f, Errorf(ValueError, "Format specifier missing precision")
		}
		f.prec = n
	}
	switch {
	case len(s) > 1:
		return f, Errorf(ValueError, "Invalid format specifier")
	case len(s) == 1:
		f.typ = s[0]
	}
	return f, nil
}

// FormatValue is format(v, spec).
func (o *Ops) FormatValue(v any, spec string) (string, error) {
	if spec == "" {
		return o.Str(v)
	}
	switch x := v.(type) {
	case string, bool, int64, *big.Int, float64:
	case StrLike:
		v = x.PyStr()
	default:
		if err := failing(v); err != nil {
			return "", err
		}
		return "", Errorf(TypeError, "unsupported format string passed to %s.__format__", TypeName(v))
	}
	f, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	unknown := func() error {
		return Errorf(ValueError, "Unknown format code %s for object of type '%s'", Repr(string(rune(f.typ))), TypeName(v))
	}
	if s, ok := v.(string); ok {
		return o.formatStr(s, &f, unknown)
	}
	if IsInt(v) {
		switch f.typ {
		case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		default:
			return o.formatInt(toBig(v), &f, unknown)
		}
	}
	x, err := toFloat(v)
	if err != nil {
		return "", err
	}
	return o.formatFloat(x, &f, unknown)
}

func (o *Ops) formatStr(s string, f *fieldSpec, unknown func() error) (string, error) {
	switch {
	case f.typ != 0 && f.typ != 's':
		return "", unknown()
	case f.sign != 0:
		return "", Errorf(ValueError, "Sign not allowed in string format specifier")
	case f.alt:
		return "", Errorf(ValueError, "Alternate form (#) not allowed in string format specifier")
	case f.align == '=' && f.fill != "0":
		return "", Errorf(ValueError, "'=' alignment not allowed in string format specifier")
	case f.group != 0:
		return "", Errorf(ValueError, "Cannot specify ',' with 's'.")
	}
	if f.align == 0 || f.align == '=' {
		f.align = '<'
	}
	if f.prec >= 0 {
		s = s[:runeOffset(s, f.prec)]
	}
	return o.pad(s, f)
}

func (o *Ops) formatInt(b *big.Int, f *fieldSpec, unknown func() error) (string, error) {
	if f.prec >= 0 {
		return "", Errorf(ValueError, "Precision not allowed in integer format specifier")
	}
	if f.align == 0 {
		f.align = '>'
	}
	base, prefix := 10, ""
	switch f.typ {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(rune(f.typ))
	case 'c':
		if !b.IsInt64() || b.Int64() < 0 || b.Int64() > utf8.MaxRune {
			return "", Errorf(OverflowError, "%%c arg not in range(0x110000)")
		}
		if f.align == '>' {
			f.align = '<'
		}
		return o.pad(string(rune(b.Int64())), f)
	default:
		return "", unknown()
	}
	digits, err := intDigits(b, base)
	if err != nil {
		return "", err
	}
	if f.typ == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alt {
		prefix = ""
	}
	sign := ""
	if b.Sign() < 0 {
		sign = "-"
	} else if f.sign != 0 {
		sign = string(rune(f.sign))
	}
	return o.padNumber(sign, prefix, digits, f)
}

func (o *Ops) formatFloat(x float64, f *fieldSpec, unknown func() error) (string, error) {
	if f.align == 0 {
		f.align = '>'
	}
	if f.prec > maxPrecision {
		return "", Errorf(ValueError, "precision too big")
	}
	if err := o.Alloc(max(f.prec, 0)); err != nil {
		return "", err
	}
	prec := f.prec
	typ := f.typ
	suffix := ""
	var digits string
	switch typ {
	case 0:
		if prec < 0 {
			digits = strings.TrimPrefix(FloatRepr(x), "-")
			break
		}
		digits = shortFloat(x, prec)
	case 'n':
		typ = 'g'
		fallthrough
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		if prec < 0 {
			prec = 6
		}
		if typ == '%' {
			x *= 100
			typ = 'f'
			suffix = "%"
		}
		digits = floatDigits(x, prec, typ, f.alt)
	default:
		return "", unknown()
	}
	sign := signOf(x, f.sign)
	if math.IsNaN(x) {
		sign = strings.TrimPrefix(sign, "-")
	}
	if f.noNegZ && sign == "-" && strings.Trim(digits, "0.") == "" {
		sign = ""
	}
	return o.padNumber(sign, "", digits+suffix, f)
}

// shortFloat returns a float with a precision and no type: like g, but with a digit after the point.
func shortFloat(x float64, prec int) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return floatDigits(x, prec, 'g', false)
	}
	if prec == 0 {
		prec = 1
	}
	e := strconv.FormatFloat(math.Abs(x), 'e', prec-1, 64)
	mant, exp, _ := strings.Cut(e, "e")
	n, _ := strconv.Atoi(exp)
	if n < -4 || n >= prec-1 && x != 0 {
		if n < -4 || n >= prec {
			return trimZeros(mant) + "e" + exp
		}
		// one digit after the point must fit the precision
		return trimZeros(mant) + "e" + exp
	}
	s := trimZeros(strconv.FormatFloat(math.Abs(x), 'f', max(prec-1-n, 0), 64))
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
