package py

import (
	"errors"
	"strconv"
	"strings"
)

// Format is s.format(*args, **kw).
func (o *Ops) Format(s string, argv []any, kw *Dict) (string, error) {
	f := formatter{ops: o, args: argv, kw: kw}
	return f.run(s, 2)
}

type formatter struct {
	ops    *Ops
	args   []any
	kw     *Dict
	auto   int
	manual bool
	used   bool // auto numbering began
}

func (f *formatter) run(s string, depth int) (string, error) {
	if depth < 0 {
		return "", Errorf(ValueError, "Max string recursion exceeded")
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		c := s[i]
		s = s[i+1:]
		if s != "" && s[0] == c {
			b.WriteByte(c)
			s = s[1:]
			continue
		}
		if c == '}' {
			return "", Errorf(ValueError, "Single '}' encountered in format string")
		}
		if s == "" {
			return "", Errorf(ValueError, "Single '{' encountered in format string")
		}
		out, n, err := f.field(s, depth)
		if err != nil {
			return "", err
		}
		if err := f.ops.Alloc(len(out) + i); err != nil {
			return "", err
		}
		if err := f.ops.Work(40 * n); err != nil {
			return "", err
		}
		b.WriteString(out)
		s = s[n:]
	}
	return b.String(), nil
}

// fieldParts returns the parts of a replacement field: NAME!CONVERSION:SPEC; conv is 0 if there is none.
func fieldParts(body string) (name string, conv byte, spec string, err error) {
	name = body
	bracket := false
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch c {
		case '[':
			bracket = true
		case ']':
			bracket = false
		}
		if bracket || c != '!' && c != ':' {
			continue
		}
		name = body[:i]
		if c == ':' {
			spec = body[i+1:]
			break
		}
		rest := body[i+1:]
		if rest == "" {
			return "", 0, "", Errorf(ValueError, "end of string while looking for conversion specifier")
		}
		conv = rest[0]
		if len(rest) > 1 {
			if rest[1] != ':' {
				return "", 0, "", Errorf(ValueError, "expected ':' after conversion specifier")
			}
			spec = rest[2:]
		}
		break
	}
	return name, conv, spec, nil
}

// field formats a replacement field after its brace; it returns its length.
func (f *formatter) field(s string, depth int) (string, int, error) {
	nest, end := 1, 0
	bracket := false
	for ; end < len(s); end++ {
		switch c := s[end]; {
		case c == '[' && nest == 1:
			bracket = true
		case c == ']':
			bracket = false
		case c == '{' && !bracket:
			nest++
		case c == '}' && !bracket:
			nest--
		}
		if nest == 0 {
			break
		}
	}
	if end >= len(s) {
		return "", 0, Errorf(ValueError, "expected '}' before end of string")
	}
	name, conv, spec, err := fieldParts(s[:end])
	if err != nil {
		return "", 0, err
	}
	v, err := f.value(name)
	if err != nil {
		return "", 0, err
	}
	switch conv {
	case 0:
	case 'r', 'a', 's':
		var str string
		if conv == 's' {
			str, err = f.ops.Str(v)
		} else {
			str, err = f.ops.Repr(v)
		}
		if conv == 'a' {
			str = asciiRepr(str)
		}
		if err != nil {
			return "", 0, err
		}
		v = str
	default:
		return "", 0, Errorf(ValueError, "Unknown conversion specifier %s", Repr(string(rune(conv))))
	}
	if strings.ContainsAny(spec, "{}") {
		if spec, err = f.run(spec, depth-1); err != nil {
			return "", 0, err
		}
	}
	out, err := f.ops.FormatValue(v, spec)
	return out, end + 1, err
}

// value finds what a field names: an argument, then its attributes and items.
func (f *formatter) value(name string) (any, error) {
	i := strings.IndexAny(name, ".[")
	first, rest := name, ""
	if i >= 0 {
		first, rest = name[:i], name[i:]
	}
	var v any
	n, err := strconv.Atoi(first)
	switch {
	case first == "":
		if f.manual {
			return nil, Errorf(ValueError, "cannot switch from manual field specification to automatic field numbering")
		}
		f.used = true
		n = f.auto
		f.auto++
		err = nil
	case err == nil:
		if f.used {
			return nil, Errorf(ValueError, "cannot switch from automatic field numbering to manual field specification")
		}
		f.manual = true
	}
	if err == nil && n >= 0 {
		if n >= len(f.args) {
			return nil, Errorf(IndexError, "Replacement index out of range for positional args tuple")
		}
		v = f.args[n]
	} else {
		var ok bool
		if v, ok = f.kw.GetStr(first); !ok {
			return nil, Errorf(KeyError, "a name of the format string is not among the arguments")
		}
	}
	return f.follow(v, rest)
}

// follow returns what v has at the attributes and items that rest names.
func (f *formatter) follow(v any, rest string) (any, error) {
	for rest != "" {
		if rest[0] == '.' {
			j := strings.IndexAny(rest[1:], ".[")
			if j < 0 {
				j = len(rest) - 1
			}
			attr := rest[1 : 1+j]
			rest = rest[1+j:]
			if attr == "" {
				return nil, Errorf(ValueError, "Empty attribute in format string")
			}
			w, ok, err := f.ops.Attr(v, attr)
			if err != nil {
				return nil, err
			}
			if !ok && f.ops != nil && f.ops.Missing != nil {
				w, ok = f.ops.Missing(v, attr), true
			}
			if !ok {
				return nil, Errorf(AttributeError, "'%s' object lacks an attribute of the format string", TypeName(v))
			}
			v = w
			continue
		}
		j := strings.IndexByte(rest, ']')
		if rest[0] != '[' || j < 0 {
			return nil, Errorf(ValueError, "Missing ']' in format string")
		}
		key := rest[1:j]
		rest = rest[j+1:]
		if key == "" {
			return nil, Errorf(ValueError, "Empty attribute in format string")
		}
		if rest != "" && rest[0] != '.' && rest[0] != '[' {
			return nil, Errorf(ValueError, "Only '.' or '[' may follow ']' in format field specifier")
		}
		var k any = key
		if n, err := strconv.ParseUint(key, 10, 62); err == nil {
			k = int64(n)
		}
		w, ok, err := f.ops.Item(v, k)
		if e := (*Error)(nil); f.ops != nil && f.ops.Missing != nil && (err == nil && !ok || errors.As(err, &e) && e.Type == TypeError) {
			w, ok, err = f.ops.Missing(v, k), true, nil
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			if _, isDict := v.(*Dict); isDict {
				return nil, Errorf(KeyError, "a key of the format string is not in the dict")
			}
			return nil, Errorf(IndexError, "%s index out of range", TypeName(v))
		}
		v = w
	}
	return v, nil
}
