package py

import (
	"strings"
	"unicode/utf8"
)

func needStr(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	if err := failing(v); err != nil {
		return "", err
	}
	if s, ok := v.(StrLike); ok {
		return s.PyStr(), nil
	}
	return "", Errorf(TypeError, "must be str, not %s", TypeName(v))
}

// StrLike is an object that is a str to Python, such as a marked-up string.
type StrLike interface{ PyStr() string }

func strReplace(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(2, 3)
	if err != nil {
		return nil, err
	}
	old, err := needStr(p[0])
	if err != nil {
		return nil, err
	}
	repl, err := needStr(p[1])
	if err != nil {
		return nil, err
	}
	n := int64(-1)
	if p[2] != Unset {
		if n, err = Index(p[2]); err != nil {
			return nil, err
		}
	}
	return o.Replace(self.(string), old, repl, int(n))
}

// Replace is s.replace(old, repl, n); a negative n replaces all.
func (o *Ops) Replace(s, old, repl string, n int) (string, error) {
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if err := o.Alloc(len(s) + found*max(len(repl)-len(old), 0)); err != nil {
		return "", err
	}
	if err := o.Work(15 * found); err != nil {
		return "", err
	}
	return strings.Replace(s, old, repl, n), nil
}

func strSplit(o *Ops, self any, a args) (any, error) {
	p, err := a.bind(0, "sep", "maxsplit")
	if err != nil {
		return nil, err
	}
	s := self.(string)
	most := int64(-1)
	if Given(p[1]) {
		if most, err = Index(p[1]); err != nil {
			return nil, err
		}
	}
	limit := len(s) + 1
	if most >= 0 && most < int64(limit) {
		limit = int(most)
	}
	var parts []string
	right := a.fn == "rsplit"
	if !Given(p[0]) || p[0] == nil {
		if err := o.Work(16 * len(s)); err != nil {
			return nil, err
		}
		// Charged before the parts are allocated: they take more room than the text.
		if err := o.allocItems(min(countWords(s), limit)); err != nil {
			return nil, err
		}
		parts = splitSpace(s, limit, right)
	} else {
		sep, err := needStr(p[0])
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, Errorf(ValueError, "empty separator")
		}
		if err := o.allocItems(min(strings.Count(s, sep), limit)); err != nil {
			return nil, err
		}
		if right {
			parts = rsplit(s, sep, limit)
		} else {
			parts = strings.SplitN(s, sep, limit+1)
		}
	}
	return o.strList(parts)
}

func (o *Ops) strList(parts []string) (any, error) {
	if err := o.allocItems(len(parts)); err != nil {
		return nil, err
	}
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return ListOf(out), nil
}

// countWords returns the number of runs of characters that are not whitespace.
func countWords(s string) int {
	n := 0
	space := true
	for _, r := range s {
		is := IsSpace(r)
		if space && !is {
			n++
		}
		space = is
	}
	return n
}

func splitSpace(s string, limit int, right bool) []string {
	if right {
		var parts []string
		for {
			s = strings.TrimRightFunc(s, IsSpace)
			if s == "" {
				break
			}
			i := strings.LastIndexFunc(s, IsSpace)
			if limit == 0 || i < 0 {
				parts = append(parts, s)
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+n:])
			s = s[:i]
			limit--
		}
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		return parts
	}
	var parts []string
	for {
		s = strings.TrimLeftFunc(s, IsSpace)
		if s == "" {
			return parts
		}
		i := strings.IndexFunc(s, IsSpace)
		if limit == 0 || i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = s[i:]
		limit--
	}
}

func rsplit(s, sep string, limit int) []string {
	var parts []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

// joinStrict is sep.join(v): the items must be strings.
func (o *Ops) joinStrict(sep string, v any) (any, error) {
	items, err := o.Slice(v)
	if err != nil {
		if IsErr(err, TypeError) {
			err = Errorf(TypeError, "can only join an iterable")
		}
		return nil, err
	}
	if err := o.Step(len(items)); err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	n := len(sep) * len(items)
	for i, e := range items {
		s, err := needStr(e)
		if err != nil {
			if IsErr(err, TypeError) {
				err = Errorf(TypeError, "sequence item %d: expected str instance, %s found", i, TypeName(e))
			}
			return nil, err
		}
		parts[i] = s
		n += len(s)
	}
	if err := o.Alloc(n); err != nil {
		return nil, err
	}
	return strings.Join(parts, sep), nil
}

// Strip is s.strip() of whitespace.
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// RStrip is s.rstrip() of whitespace.
func RStrip(s string) string { return strings.TrimRightFunc(s, IsSpace) }

func strStrip(_ *Ops, self any, a args) (any, error) {
	p, err := a.positional(0, 1)
	if err != nil {
		return nil, err
	}
	in := IsSpace
	if Given(p[0]) && p[0] != nil {
		set, err := needStr(p[0])
		if err != nil {
			return nil, err
		}
		in = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	s := self.(string)
	if a.fn != "rstrip" {
		s = strings.TrimLeftFunc(s, in)
	}
	if a.fn != "lstrip" {
		s = strings.TrimRightFunc(s, in)
	}
	return s, nil
}

// window returns the part of s that optional start and end arguments select, and the character it starts at.
func window(s string, start, end any) (part string, from int, ok bool, err error) {
	n := StrLen(s)
	if start == Unset {
		start = nil
	}
	if end == Unset {
		end = nil
	}
	from, to, _, err := sliceBounds(start, end, nil, n)
	if err != nil {
		return "", 0, false, err
	}
	if i, isInt := toInt64(start); isInt && i > int64(n) {
		return "", 0, false, nil
	}
	if from > to {
		return "", 0, false, nil
	}
	a := runeOffset(s, from)
	return s[a : a+runeOffset(s[a:], to-from)], from, true, nil
}

func strAffix(_ *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	part, _, ok, err := window(self.(string), p[1], p[2])
	if err != nil {
		return nil, err
	}
	has := strings.HasPrefix
	if a.fn == "endswith" {
		has = strings.HasSuffix
	}
	affixes, isTuple := p[0].(Tuple)
	if !isTuple {
		affixes = Tuple{p[0]}
	}
	for _, x := range affixes {
		s, err := needStr(x)
		if err != nil {
			if IsErr(err, TypeError) {
				err = Errorf(TypeError, "%s first arg must be str or a tuple of str, not %s", a.fn, TypeName(x))
			}
			return nil, err
		}
		if ok && has(part, s) {
			return true, nil
		}
	}
	return false, nil
}

func strFind(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	sub, err := needStr(p[0])
	if err != nil {
		return nil, err
	}
	s := self.(string)
	if err := o.Step(len(s) >> 5); err != nil {
		return nil, err
	}
	part, from, ok, err := window(s, p[1], p[2])
	if err != nil {
		return nil, err
	}
	if a.fn == "count" {
		if !ok {
			return int64(0), nil
		}
		return int64(strings.Count(part, sub)), nil
	}
	i := -1
	if ok {
		i = strings.Index(part, sub)
		if a.fn[0] == 'r' {
			i = strings.LastIndex(part, sub)
		}
	}
	if i < 0 {
		if strings.HasSuffix(a.fn, "index") {
			return nil, Errorf(ValueError, "substring not found")
		}
		return int64(-1), nil
	}
	return int64(from + StrLen(part[:i])), nil
}
