package project

import (
	"regexp"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// reference is {key} in a string. A key with a colon is not replaced, as in the original: it is usually JSON.
var reference = regexp.MustCompile(`\{[^{}:\n]+\}`)

const (
	// maxResolved limits the size of one resolved string, maxResolvedAll that of all together: references can double each other.
	maxResolved    = 1 << 20
	maxResolvedAll = 16 << 20
)

// resolver replaces references with the values of the keys of data, then of cfg.
type resolver struct {
	root *tree
	data *tree
	done map[*leaf]bool
	busy map[*leaf]bool
	size int
	err  error
	// generated is CfgInputs.Generated.
	generated func(text string) bool
}

func newResolver(root *tree, generated func(text string) bool) *resolver {
	r := &resolver{root: root, generated: generated, done: map[*leaf]bool{}, busy: map[*leaf]bool{}}
	if l := root.get([]string{"data"}); l != nil {
		r.data = l.sub
	}
	return r
}

func (r *resolver) all() error {
	r.tree(r.root)
	return r.err
}

func (r *resolver) tree(t *tree) {
	t.each(func(l *leaf) {
		if r.err == nil {
			r.leaf(l)
		}
	})
}

// leaf resolves one leaf in place; false if a caller is resolving it already: that is a cycle, and the reference stays.
func (r *resolver) leaf(l *leaf) bool {
	if r.done[l] {
		return true
	}
	if r.busy[l] {
		return false
	}
	r.busy[l] = true
	if l.sub != nil {
		r.tree(l.sub)
	} else {
		var secret bool
		l.value, secret = r.value(l.value)
		l.secret = l.secret || secret
	}
	delete(r.busy, l)
	r.done[l] = true
	return true
}

func (r *resolver) value(v any) (out any, secret bool) {
	switch x := v.(type) {
	case string:
		return r.text(x)
	case *py.List:
		items := make([]any, 0, x.Len())
		for _, i := range x.Items() {
			y, s := r.value(i)
			secret = secret || s
			items = append(items, y)
		}
		return py.ListOf(items), secret
	case py.Tuple:
		items := make(py.Tuple, 0, len(x))
		for _, i := range x {
			y, s := r.value(i)
			secret = secret || s
			items = append(items, y)
		}
		return items, secret
	case *py.Dict: // inside a list
		d := py.NewDict()
		x.Range(func(k, i any) bool {
			y, s := r.value(i)
			secret = secret || s
			_ = d.Set(k, y)
			return true
		})
		return d, secret
	}
	return v, false
}

// lookup finds the leaf that a reference names.
func (r *resolver) lookup(key string) *leaf {
	for _, t := range []*tree{r.data, r.root} {
		if t != nil {
			if l := t.get([]string{key}); l != nil {
				return l
			}
		}
	}
	return nil
}

// text resolves a string. A string that is one reference to a list or a mapping becomes that list or mapping; any
// other reference is replaced with the text of its value.
func (r *resolver) text(s string) (out any, secret bool) {
	secret = r.generated != nil && r.generated(s)
	if !strings.Contains(s, "{") || r.err != nil {
		return s, secret
	}
	var b strings.Builder
	rest := 0
	for _, m := range reference.FindAllStringIndex(s, -1) {
		l := r.lookup(s[m[0]+1 : m[1]-1])
		if l == nil || !r.leaf(l) || r.err != nil {
			continue
		}
		v := l.value
		if l.sub != nil {
			v = l.sub.dict()
		}
		secret = secret || l.hasSecret()
		if m[0] == 0 && m[1] == len(s) {
			switch v.(type) {
			case *py.List, *py.Dict, py.Tuple:
				r.spend(len(py.Str(v)))
				return py.DeepCopy(v), secret
			}
		}
		b.WriteString(s[rest:m[0]])
		b.WriteString(py.Str(v))
		rest = m[1]
		if b.Len() > maxResolved {
			r.spend(maxResolvedAll + 1)
			return s, secret
		}
	}
	b.WriteString(s[rest:])
	r.spend(b.Len())
	return b.String(), secret
}

func (r *resolver) spend(n int) {
	if r.size += n; r.size > maxResolvedAll && r.err == nil {
		r.err = fault.New(fault.Failed, "configuration", "{key} references make the configuration larger than %d MiB", maxResolvedAll>>20).
			WithHint("a value that refers to another twice doubles it: look for chains of such values")
	}
}

// hasSecret reports whether any of the value came from the pillar.
func (l *leaf) hasSecret() bool {
	if l.secret || l.sub == nil {
		return l.secret
	}
	found := false
	l.sub.each(func(c *leaf) { found = found || c.hasSecret() })
	return found
}
