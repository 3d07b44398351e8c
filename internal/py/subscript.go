package py

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Len is len(v); a string's length is in characters.
func (o *Ops) Len(v any) (int, error) {
	switch x := v.(type) {
	case string:
		return StrLen(x), nil
	case *Dict:
		return x.Len(), nil
	case *List:
		return len(x.items), nil
	case Tuple:
		return len(x), nil
	case Sizer:
		return x.Len()
	}
	return 0, Errorf(TypeError, "object of type '%s' has no len()", TypeName(v))
}

// StrLen returns the number of characters of a string.
func StrLen(s string) int { return utf8.RuneCountInString(s) }

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// chars splits a string into its characters.
func chars(s string) []string {
	out := make([]string, 0, len(s))
	for s != "" {
		n := runeLen(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// runeOffset returns the byte where character i starts; len(s) if there are fewer.
func runeOffset(s string, i int) int {
	if isASCII(s) {
		return min(i, len(s))
	}
	off := 0
	for ; i > 0 && off < len(s); i-- {
		off += runeLen(s[off:])
	}
	return off
}

// Item is v[key]. ok is false for a missing key of a dict or an index out of range; a key of the wrong type, or a
// value without items, is a TypeError.
func (o *Ops) Item(v, key any) (item any, ok bool, err error) {
	if x, ok := v.(string); ok && len(x) >= touched {
		if err := o.Touch(len(x)); err != nil {
			return nil, false, err
		}
	}
	if k, ok := key.(string); ok && len(k) >= compared {
		if err := o.Step(len(k) / compared); err != nil {
			return nil, false, err
		}
	}
	switch x := v.(type) {
	case *Dict:
		return x.Lookup(key)
	case *List:
		i, ok, err := seqIndex(key, len(x.items), "list")
		if !ok || err != nil {
			return nil, false, err
		}
		return x.items[i], true, nil
	case Tuple:
		i, ok, err := seqIndex(key, len(x), "tuple")
		if !ok || err != nil {
			return nil, false, err
		}
		return x[i], true, nil
	case string:
		if _, isInt := toInt64(key); !isInt {
			return nil, false, Errorf(TypeError, "string indices must be integers, not '%s'", TypeName(key))
		}
		if err := o.Step(len(x) >> 5); err != nil {
			return nil, false, err
		}
		i, ok, err := seqIndex(key, StrLen(x), "string")
		if !ok || err != nil {
			return nil, false, err
		}
		off := runeOffset(x, i)
		return x[off : off+runeLen(x[off:])], true, nil
	case *Range:
		i, ok, err := seqIndex(key, x.len(), "range object")
		if !ok || err != nil {
			return nil, false, err
		}
		return x.Start + int64(i)*x.Step, true, nil
	case Indexer:
		return x.Item(key)
	}
	if err := failing(v); err != nil {
		return nil, false, err
	}
	return nil, false, Errorf(TypeError, "'%s' object is not subscriptable", TypeName(v))
}

func seqIndex(key any, n int, what string) (int, bool, error) {
	i, ok := toInt64(key)
	if !ok {
		if _, isBig := key.(*big.Int); isBig {
			return 0, false, nil
		}
		return 0, false, Errorf(TypeError, "%s indices must be integers or slices, not %s", what, TypeName(key))
	}
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, false, nil
	}
	return int(i), true, nil
}

// sliceBounds is slice(start, stop, step).indices(n).
func sliceBounds(start, stop, step any, n int) (from, to, by int, err error) {
	by = 1
	clamp := func(v any) (int, error) {
		if err := failing(v); err != nil {
			return 0, err
		}
		switch x := v.(type) {
		case int64:
			return int(max(min(x, math.MaxInt32*1024), -math.MaxInt32*1024)), nil
		case bool:
			i, _ := toInt64(x)
			return int(i), nil
		case *big.Int:
			return x.Sign() * math.MaxInt32 * 1024, nil
		}
		return 0, Errorf(TypeError, "slice indices must be integers or None or have an __index__ method")
	}
	if step != nil {
		if by, err = clamp(step); err != nil {
			return
		}
		if by == 0 {
			return 0, 0, 0, Errorf(ValueError, "slice step cannot be zero")
		}
	}
	lo, hi := 0, n
	if by < 0 {
		lo, hi = -1, n-1
	}
	bound := func(v any, dflt int) (int, error) {
		if v == nil {
			return dflt, nil
		}
		i, err := clamp(v)
		if i < 0 {
			i += n
		}
		return max(min(i, hi), lo), err
	}
	if by > 0 {
		from, err = bound(start, lo)
		if err == nil {
			to, err = bound(stop, hi)
		}
	} else {
		from, err = bound(start, hi)
		if err == nil {
			to, err = bound(stop, lo)
		}
	}
	return
}

// SliceOf is v[start:stop:step]; nil is an omitted bound.
func (o *Ops) SliceOf(v, start, stop, step any) (any, error) {
	if err := o.Read(v); err != nil {
		return nil, err
	}
	pick := func(items []any) ([]any, error) {
		from, to, by, err := sliceBounds(start, stop, step, len(items))
		if err != nil {
			return nil, err
		}
		n := (&Range{int64(from), int64(to), int64(by)}).len()
		if err := o.allocItems(n); err != nil {
			return nil, err
		}
		out := make([]any, 0, n)
		for i := from; len(out) < n; i += by {
			out = append(out, items[i])
		}
		return out, nil
	}
	switch x := v.(type) {
	case string:
		return o.sliceStr(x, start, stop, step)
	case *List:
		s, err := pick(x.items)
		return ListOf(s), err
	case Tuple:
		s, err := pick(x)
		return Tuple(s), err
	case *Range:
		from, to, by, err := sliceBounds(start, stop, step, x.len())
		return &Range{x.Start + int64(from)*x.Step, x.Start + int64(to)*x.Step, x.Step * int64(by)}, err
	case Slicer:
		return x.Slice(start, stop, step)
	}
	if err := failing(v); err != nil {
		return nil, err
	}
	if _, ok := v.(*Dict); ok {
		return nil, Errorf(TypeError, "unhashable type: 'slice'")
	}
	return nil, Errorf(TypeError, "'%s' object is not subscriptable", TypeName(v))
}

// Slicer is an object with its own slices.
type Slicer interface {
	Slice(start, stop, step any) (any, error)
}

func (o *Ops) sliceStr(s string, start, stop, step any) (any, error) {
	if err := o.Alloc(len(s)); err != nil {
		return nil, err
	}
	from, to, by, err := sliceBounds(start, stop, step, StrLen(s))
	if err != nil {
		return nil, err
	}
	if by == 1 {
		if from >= to {
			return "", nil
		}
		a := runeOffset(s, from)
		return s[a : a+runeOffset(s[a:], to-from)], nil
	}
	if err := o.Work(25 * len(s)); err != nil {
		return nil, err
	}
	all := chars(s)
	var b strings.Builder
	for i, n := from, (&Range{int64(from), int64(to), int64(by)}).len(); n > 0; i, n = i+by, n-1 {
		b.WriteString(all[i])
	}
	return b.String(), nil
}

// AsDict is dict(v): of a mapping, or of an iterable of pairs. A dict is returned as it is, not copied.
func (o *Ops) AsDict(v any) (*Dict, error) {
	switch x := v.(type) {
	case *Dict:
		return x, nil
	case Mapping:
		return x.AsDict()
	}
	items, err := o.Slice(v)
	if err != nil {
		return nil, err
	}
	d := &Dict{}
	for i, it := range items {
		pair, err := o.Slice(it)
		if err != nil {
			if IsErr(err, TypeError) {
				err = Errorf(TypeError, "cannot convert dictionary update sequence element #%d to a sequence", i)
			}
			return nil, err
		}
		if len(pair) != 2 {
			return nil, Errorf(ValueError, "dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
		}
		if err := o.Alloc(entryBytes); err != nil {
			return nil, err
		}
		if err := d.Set(pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}
