package py

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Set is a Python set. Its order, which Python does not define, is that in which the members were added; non-negative
// whole numbers are in order, as CPython orders small ones.
type Set struct{ members *Dict }

// NewSet is set(items). The error is Python's TypeError for a member that cannot be one.
func NewSet(items []any) (*Set, error) {
	s := &Set{members: NewDict()}
	ordered := true
	for _, v := range items {
		if s.members.Has(v) {
			continue
		}
		if err := s.members.Set(v, nil); err != nil {
			return nil, err
		}
		n, isInt := v.(int64)
		ordered = ordered && isInt && n >= 0
	}
	if ordered {
		keys := s.members.Keys()
		slices.SortFunc(keys, func(a, b any) int { return int(min(max(a.(int64)-b.(int64), -1), 1)) })
		s.members.Clear()
		for _, k := range keys {
			_ = s.members.Set(k, nil) // a number is hashable
		}
	}
	return s, nil
}

// TypeName implements Typed.
func (s *Set) TypeName() string { return "set" }

// Len implements Sizer.
func (s *Set) Len() (int, error) { return s.members.Len(), nil }

// Iter implements Iterable.
func (s *Set) Iter() (Iterator, error) { return NewIter(s.members.Keys()), nil }

// Items returns the members, in a new slice.
func (s *Set) Items() []any { return s.members.Keys() }

// Contains implements Container.
func (s *Set) Contains(v any) (bool, error) {
	_, ok, err := s.members.Lookup(v)
	return ok, err
}

// HashError implements Unhashable.
func (s *Set) HashError() error { return Errorf(TypeError, "unhashable type: 'set'") }

// Equal implements Equaler.
func (s *Set) Equal(other any) (bool, error) {
	o, ok := other.(*Set)
	if !ok || o.members.Len() != s.members.Len() {
		return false, nil
	}
	for _, v := range o.Items() {
		if !s.members.Has(v) {
			return false, nil
		}
	}
	return true, nil
}

// Bytes is Python's bytes.
type Bytes string

// TypeName implements Typed.
func (b Bytes) TypeName() string { return "bytes" }

// Len implements Sizer.
func (b Bytes) Len() (int, error) { return len(b), nil }

// Iter implements Iterable: the bytes as numbers.
func (b Bytes) Iter() (Iterator, error) {
	i := 0
	return IterFunc(func() (any, bool, error) {
		if i >= len(b) {
			return nil, false, nil
		}
		i++
		return int64(b[i-1]), true, nil
	}), nil
}

// Repr implements Reprer.
func (b Bytes) Repr() (string, error) {
	quote := byte('\'')
	if strings.IndexByte(string(b), '\'') >= 0 && strings.IndexByte(string(b), '"') < 0 {
		quote = '"'
	}
	out := []byte{'b', quote}
	for i := range len(b) {
		switch c := b[i]; {
		case c == quote || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ' && c < 0x7f:
			out = append(out, c)
		case c == '\n' || c == '\r' || c == '\t':
			out = append(out, '\\', map[byte]byte{'\n': 'n', '\r': 'r', '\t': 't'}[c])
		default:
			out = append(out, '\\', 'x', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	return string(append(out, quote)), nil
}

// Equal implements Equaler.
func (b Bytes) Equal(other any) (bool, error) {
	o, ok := other.(Bytes)
	return ok && o == b, nil
}

// Text returns the bytes as a str; ok is false if they are not UTF-8.
func (b Bytes) Text() (string, bool) { return string(b), utf8.ValidString(string(b)) }

// IsHashable reports what isinstance(v, collections.abc.Hashable) does: whether the type of v has a hash.
func IsHashable(v any) bool {
	switch x := v.(type) {
	case *List, *Dict, *Set:
		return false
	case dictView:
		return x.kind == "values"
	case Mapping:
		return false
	}
	return true
}

// IntText is int(s, base): whether Python reads s as a whole number of that base.
func IntText(s string, base int) bool {
	_, err := parseInt(s, base)
	return err == nil
}

// Digits reports whether a text is str.isdigit() and, if so, its number if that fits.
func Digits(s string) (n int64, ok bool) {
	is := strIs("isdigit")
	if !is(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
