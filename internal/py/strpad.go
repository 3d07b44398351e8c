package py

import (
	"strings"
	"unicode/utf8"
)

// SplitLines is s.splitlines(keep): at every line boundary of Unicode.
func SplitLines(s string, keep bool) []string {
	var out []string
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		default:
			i += n
			continue
		}
		end := i
		i += n
		if r == '\r' && i < len(s) && s[i] == '\n' {
			i++
		}
		if keep {
			end = i
		}
		out = append(out, s[start:end])
		start = i
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

func strSplitlines(o *Ops, self any, a args) (any, error) {
	p, err := a.bind(0, "keepends")
	if err != nil {
		return nil, err
	}
	return o.strList(SplitLines(self.(string), Given(p[0]) && Truth(p[0])))
}

func strPartition(_ *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	sep, err := needStr(p[0])
	if err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, Errorf(ValueError, "empty separator")
	}
	s := self.(string)
	if a.fn == "partition" {
		if i := strings.Index(s, sep); i >= 0 {
			return Tuple{s[:i], sep, s[i+len(sep):]}, nil
		}
		return Tuple{s, "", ""}, nil
	}
	if i := strings.LastIndex(s, sep); i >= 0 {
		return Tuple{s[:i], sep, s[i+len(sep):]}, nil
	}
	return Tuple{"", "", s}, nil
}

func strExpandtabs(o *Ops, self any, a args) (any, error) {
	p, err := a.bind(0, "tabsize")
	if err != nil {
		return nil, err
	}
	size := int64(8)
	if Given(p[0]) {
		if size, err = Index(p[0]); err != nil {
			return nil, err
		}
	}
	s := self.(string)
	size = min(size, 1<<30)
	if err := o.Alloc(len(s) + strings.Count(s, "\t")*int(max(size, 0))); err != nil {
		return nil, err
	}
	var b strings.Builder
	col := int64(0)
	for _, r := range s {
		switch r {
		case '\t':
			if size > 0 {
				n := size - col%size
				b.WriteString(strings.Repeat(" ", int(n)))
				col += n
			}
		case '\n', '\r':
			b.WriteRune(r)
			col = 0
		default:
			b.WriteRune(r)
			col++
		}
	}
	return b.String(), nil
}

// Center is s.center(width).
func (o *Ops) Center(s string, width int64) (string, error) {
	v, err := strPad(o, s, args{"center", []any{width}, nil})
	str, _ := v.(string)
	return str, err
}

func strPad(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	width, err := Index(p[0])
	if err != nil {
		return nil, err
	}
	fill := " "
	if Given(p[1]) {
		if fill, err = needStr(p[1]); err != nil {
			return nil, err
		}
		if StrLen(fill) != 1 {
			return nil, Errorf(TypeError, "The fill character must be exactly one character long")
		}
	}
	s := self.(string)
	n := width - int64(StrLen(s))
	if n <= 0 {
		return s, nil
	}
	if n > 1<<32 {
		return nil, o.tooMuch()
	}
	if err := o.Alloc(len(s) + int(n)*len(fill)); err != nil {
		return nil, err
	}
	left, right := int64(0), n
	switch a.fn {
	case "rjust":
		left, right = n, 0
	case "center":
		left = n/2 + (n & width & 1)
		right = n - left
	}
	return strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(right)), nil
}

func strZfill(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	width, err := Index(p[0])
	if err != nil {
		return nil, err
	}
	s := self.(string)
	n := width - int64(StrLen(s))
	if n <= 0 {
		return s, nil
	}
	if n > 1<<32 {
		return nil, o.tooMuch()
	}
	if err := o.Alloc(len(s) + int(n)); err != nil {
		return nil, err
	}
	zeros := strings.Repeat("0", int(n))
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[:1] + zeros + s[1:], nil
	}
	return zeros + s, nil
}

func strMaketrans(_ *Ops, _ any, a args) (any, error) {
	p, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	d := &Dict{}
	if !Given(p[1]) {
		src, ok := p[0].(*Dict)
		if !ok {
			return nil, Errorf(TypeError, "if you give only one argument to maketrans it must be a dict")
		}
		for _, it := range src.Items() {
			k := it.Key
			if s, ok := k.(string); ok {
				r, _ := utf8.DecodeRuneInString(s)
				k = int64(r)
			}
			if err := d.Set(k, it.Value); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	from, err := needStr(p[0])
	if err != nil {
		return nil, err
	}
	to, err := needStr(p[1])
	if err != nil {
		return nil, err
	}
	f, t := []rune(from), []rune(to)
	if len(f) != len(t) {
		return nil, Errorf(ValueError, "the first two maketrans arguments must have equal length")
	}
	for i := range f {
		_ = d.Set(int64(f[i]), int64(t[i])) // an int is hashable
	}
	if Given(p[2]) {
		del, err := needStr(p[2])
		if err != nil {
			return nil, err
		}
		for _, r := range del {
			_ = d.Set(int64(r), nil) // an int is hashable
		}
	}
	return d, nil
}

func strTranslate(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, r := range self.(string) {
		v, ok, err := o.Item(p[0], int64(r))
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case nil:
			if !ok {
				b.WriteRune(r)
			}
		case int64:
			b.WriteRune(rune(x))
		case string:
			b.WriteString(x)
		default:
			return nil, Errorf(TypeError, "character mapping must return integer, None or str")
		}
		if b.Len() > 1<<16 {
			if err := o.Alloc(utf8.UTFMax); err != nil {
				return nil, err
			}
		}
	}
	return b.String(), o.Alloc(b.Len())
}
