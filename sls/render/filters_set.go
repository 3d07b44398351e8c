package render

import (
	"strconv"
	"strings"
	"time"

	strftimelib "github.com/ncruces/go-strftime"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// setFilters are those on lists as sets, and on numbers.
func setFilters() map[string]jinja.FilterFunc {
	two := func(fn func(a, b []any) []any) jinja.FilterFunc {
		return simple(func(v any, args []any) (any, error) {
			a, ok1 := itemsOf(v)
			b, ok2 := itemsOf(arg(args, 0, nil))
			if !ok1 || !ok2 {
				return nil, py.Errorf(py.TypeError, "the filter needs two lists")
			}
			return py.ListOf(fn(a, b)), nil
		})
	}
	return map[string]jinja.FilterFunc{
		"union":     two(func(a, b []any) []any { return uniq(append(append([]any{}, a...), b...)) }),
		"intersect": two(func(a, b []any) []any { return uniq(keep(a, b, true)) }),
		"difference": two(func(a, b []any) []any {
			return uniq(keep(a, b, false))
		}),
		"symmetric_difference": two(func(a, b []any) []any {
			return uniq(append(append([]any{}, keep(a, b, false)...), keep(b, a, false)...))
		}),
		"avg": simple(func(v any, _ []any) (any, error) {
			items, ok := itemsOf(v)
			if !ok {
				items = []any{v}
			}
			if len(items) == 0 {
				return 0.0, nil
			}
			total := 0.0
			for _, x := range items {
				f, err := strconv.ParseFloat(py.Str(x), 64)
				if err != nil {
					return nil, py.Errorf(py.TypeError, "avg needs numbers")
				}
				total += f
			}
			return total / float64(len(items)), nil
		}),
	}
}

func has(l []any, v any) bool {
	for _, x := range l {
		if py.Equal(x, v) {
			return true
		}
	}
	return false
}

func uniq(l []any) []any {
	var out []any
	for _, v := range l {
		if !has(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func keep(a, b []any, in bool) []any {
	var out []any
	for _, v := range a {
		if has(b, v) == in {
			out = append(out, v)
		}
	}
	return out
}

// dictKey changes the value at a path of keys in a dict, making the dicts between.
func dictKey(change func(old, v any) any) jinja.FilterFunc {
	return func(_ *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
		d, ok := v.(*py.Dict)
		if !ok {
			return nil, py.Errorf(py.TypeError, "the filter needs a dict")
		}
		delim := py.Str(kwOr(args, kw, 2, "delimiter", ":"))
		keys := strings.Split(py.Str(arg(args, 0, "")), delim)
		cur := d
		for _, k := range keys[:len(keys)-1] {
			next, ok := cur.GetStr(k)
			nd, isDict := next.(*py.Dict)
			if !ok || !isDict {
				nd = py.NewDict()
				cur.SetStr(k, nd)
			}
			cur = nd
		}
		last := keys[len(keys)-1]
		old, _ := cur.GetStr(last)
		cur.SetStr(last, change(old, arg(args, 1, nil)))
		return d, nil
	}
}

func updateValue(old, v any) any {
	a, ok1 := old.(*py.Dict)
	b, ok2 := v.(*py.Dict)
	if !ok2 {
		return old
	}
	if !ok1 {
		a = py.NewDict()
	}
	a.Update(b)
	return a
}

func appendValue(old, v any) any {
	l, ok := old.(*py.List)
	if !ok {
		l = py.NewList()
	}
	l.Append(v)
	return l
}

func extendValue(old, v any) any {
	l, ok := old.(*py.List)
	if !ok {
		l = py.NewList()
	}
	if items, ok := itemsOf(v); ok {
		l.Append(items...)
	}
	return l
}

// strftime formats a time: a number of seconds, or a text in one of the usual forms.
func strftime(v any, args []any) (any, error) {
	var t time.Time
	s := strings.TrimSpace(py.Str(v))
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		sec := int64(f)
		t = time.Unix(sec, int64((f-float64(sec))*1e9))
	} else {
		ok := false
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.999999", "2006-01-02 15:04",
			"2006-01-02", "2006/01/02", "01/02/2006", time.RFC1123Z, time.RFC1123, time.ANSIC, time.UnixDate} {
			if p, err := time.ParseInLocation(layout, s, time.Local); err == nil {
				t, ok = p, true
				break
			}
		}
		if !ok {
			return nil, py.Errorf(py.ValueError, "strftime: the time cannot be read")
		}
	}
	return strftimeFormat(py.Str(arg(args, 0, "%Y-%m-%d")), t), nil
}

func strftimeFormat(format string, t time.Time) string { return strftimelib.Format(format, t) }
