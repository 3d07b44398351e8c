package py

import (
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONOptions are those of Python's json.dumps; the zero value has its defaults.
type JSONOptions struct {
	// Pretty puts every item on its own line, indented by Indent per level (indent=N or indent="…").
	Pretty bool
	Indent string
	// SortKeys orders the keys of every mapping (sort_keys=True).
	SortKeys bool
	// Unicode writes non-ASCII text as it is (ensure_ascii=False).
	Unicode bool
	// ItemSep and KeySep replace ", " (or "," with Pretty) and ": ".
	ItemSep, KeySep string
	// Default turns an object that JSON does not know into one that it does (default=).
	Default func(v any) (any, error)
}

// ToJSON is json.dumps(v) without limits.
func ToJSON(v any, opt JSONOptions) (string, error) { return (*Ops)(nil).ToJSON(v, opt) }

// ToJSON is json.dumps(v).
func (o *Ops) ToJSON(v any, opt JSONOptions) (string, error) {
	if opt.ItemSep == "" {
		opt.ItemSep = ", "
		if opt.Pretty {
			opt.ItemSep = ","
		}
	}
	if opt.KeySep == "" {
		opt.KeySep = ": "
	}
	w := jsonWriter{ops: o, opt: opt}
	if err := w.write(v); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

type jsonWriter struct {
	ops   *Ops
	opt   JSONOptions
	b     strings.Builder
	stack []any
}

func (w *jsonWriter) newline() {
	if w.opt.Pretty {
		w.b.WriteByte('\n')
		for range w.stack {
			w.b.WriteString(w.opt.Indent)
		}
	}
}

func (w *jsonWriter) push(v any) error {
	for _, s := range w.stack {
		if v != nil && s == v {
			return Errorf(ValueError, "Circular reference detected")
		}
	}
	if len(w.stack) >= maxDepth {
		return Errorf(RecursionError, "maximum recursion depth exceeded while encoding a JSON object")
	}
	w.stack = append(w.stack, v)
	return w.ops.Step(1 + len(w.stack)/4)
}

func (w *jsonWriter) pop() { w.stack = w.stack[:len(w.stack)-1] }

func (w *jsonWriter) write(v any) error {
	from := w.b.Len()
	switch x := v.(type) {
	case string:
		if err := w.ops.Touch(4 * len(x)); err != nil { // a character to escape takes longer than one to copy
			return err
		}
		w.str(x)
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(x))
	case int64:
		w.b.WriteString(strconv.FormatInt(x, 10))
	case *big.Int:
		s, err := bigStr(x)
		if err != nil {
			return err
		}
		w.b.WriteString(s)
	case float64:
		w.b.WriteString(jsonFloat(x))
	case *List:
		return w.seq(v, x.items)
	case Tuple:
		return w.seq(nil, x)
	case *Dict:
		return w.dict(x)
	default:
		return w.object(v)
	}
	return w.ops.Alloc(2 * (w.b.Len() - from))
}

func (w *jsonWriter) object(v any) error {
	if s, ok := v.(StrLike); ok {
		return w.write(s.PyStr())
	}
	if m, ok := v.(Mapping); ok {
		d, err := m.AsDict()
		if err != nil {
			return err
		}
		return w.dict(d)
	}
	if w.opt.Default == nil {
		return Errorf(TypeError, "Object of type %s is not JSON serializable", TypeName(v))
	}
	d, err := w.opt.Default(v)
	if err != nil {
		return err
	}
	if err := w.push(v); err != nil {
		return err
	}
	defer w.pop()
	return w.write(d)
}

func (w *jsonWriter) seq(id any, items []any) error {
	if len(items) == 0 {
		w.b.WriteString("[]")
		return w.ops.Alloc(2)
	}
	if err := w.push(id); err != nil {
		return err
	}
	w.b.WriteByte('[')
	for i, e := range items {
		from := w.b.Len()
		if i > 0 {
			w.b.WriteString(w.opt.ItemSep)
		}
		w.newline()
		if err := w.ops.Alloc(2 * (w.b.Len() - from)); err != nil {
			return err
		}
		if err := w.write(e); err != nil {
			return err
		}
	}
	w.pop()
	w.newline()
	w.b.WriteByte(']')
	return w.ops.Alloc(2 + 2*len(w.stack)*len(w.opt.Indent))
}

func (w *jsonWriter) dict(d *Dict) error {
	if d.Len() == 0 {
		w.b.WriteString("{}")
		return w.ops.Alloc(2)
	}
	items := d.Items()
	if w.opt.SortKeys {
		var err error
		sort.SliceStable(items, func(i, j int) bool {
			c, e := w.ops.Compare(items[i].Key, items[j].Key, "<")
			if e != nil && err == nil {
				err = e
			}
			return c == -1
		})
		if err != nil {
			return err
		}
	}
	if err := w.push(d); err != nil {
		return err
	}
	w.b.WriteByte('{')
	for i, it := range items {
		from := w.b.Len()
		if i > 0 {
			w.b.WriteString(w.opt.ItemSep)
		}
		w.newline()
		k, err := jsonKey(it.Key)
		if err != nil {
			return err
		}
		w.str(k)
		w.b.WriteString(w.opt.KeySep)
		if err := w.ops.Alloc(2 * (w.b.Len() - from)); err != nil {
			return err
		}
		if err := w.write(it.Value); err != nil {
			return err
		}
	}
	w.pop()
	w.newline()
	w.b.WriteByte('}')
	return w.ops.Alloc(2 + 2*len(w.stack)*len(w.opt.Indent))
}

func jsonKey(k any) (string, error) {
	switch x := k.(type) {
	case string:
		return x, nil
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case *big.Int:
		return bigStr(x)
	case float64:
		return jsonFloat(x), nil
	}
	return "", Errorf(TypeError, "keys must be str, int, float, bool or None, not %s", TypeName(k))
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return FloatRepr(f)
}

func (w *jsonWriter) str(s string) {
	b := &w.b
	b.WriteByte('"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c == '\n':
				b.WriteString(`\n`)
			case c == '\r':
				b.WriteString(`\r`)
			case c == '\t':
				b.WriteString(`\t`)
			case c == '\b':
				b.WriteString(`\b`)
			case c == '\f':
				b.WriteString(`\f`)
			case c < ' ':
				b.WriteString(`\u`)
				hex(b, rune(c), 4)
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
		case w.opt.Unicode:
			b.WriteString(s[i : i+n])
		case r < 0x10000:
			b.WriteString(`\u`)
			hex(b, r, 4)
		default:
			b.WriteString(`\u`)
			hex(b, 0xD800+(r-0x10000)>>10, 4)
			b.WriteString(`\u`)
			hex(b, 0xDC00+(r-0x10000)&0x3FF, 4)
		}
		i += n
	}
	b.WriteByte('"')
}
