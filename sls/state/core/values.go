package core

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// StringList returns a list in the form used in results.
func StringList(l []string) *py.List {
	out := py.NewList()
	for _, s := range l {
		out.Append(s)
	}
	return out
}

// SameItems reports whether two lists contain the same strings, in any order and number.
func SameItems(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// DictText returns the text of a key; a missing one is "None".
func DictText(d *py.Dict, key string) string {
	v, _ := d.GetStr(key)
	return py.Str(v)
}

// Texts returns a list of strings; a single string is split into words.
func Texts(v any) []string {
	switch x := v.(type) {
	case []string:
		return x
	case *py.List:
		var out []string
		for _, it := range x.Items() {
			out = append(out, py.Str(it))
		}
		return out
	}
	return strings.Fields(py.Str(v))
}
