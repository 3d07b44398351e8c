package project

import (
	"strconv"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// tree is a mapping whose leaves know their layer.
type tree struct {
	keys  []any
	nodes map[string]*leaf // by the str of the key
}

// leaf is a value that is not a mapping, or the mapping below. Lists are leaves: they replace, they do not merge.
type leaf struct {
	key   any
	value any
	layer Layer
	// secret: the value, or something inserted into it, came from the pillar and is not a number, boolean or null.
	secret bool
	// declared: the recipe declares it as secret.
	declared bool
	sub      *tree
	// values are those of each layer, before references are resolved: the last one counts, unless it is a mapping.
	values []layerValue
}

// layerValue is a layer's value of one key; value is nil if it is a mapping.
type layerValue struct {
	layer   Layer
	value   any
	mapping bool
}

func newTree() *tree { return &tree{nodes: map[string]*leaf{}} }

// keyID tells 1 from "1".
func keyID(k any) string {
	if s, ok := k.(string); ok {
		return "s" + s
	}
	return py.TypeName(k) + py.Repr(k)
}

func (t *tree) get(path []string) *leaf {
	var l *leaf
	for i, p := range path {
		if i > 0 {
			t = l.sub
		}
		if t == nil {
			return nil
		}
		if l = t.nodes["s"+p]; l == nil {
			if n, err := strconv.ParseInt(p, 10, 64); err == nil {
				l = t.nodes[keyID(n)]
			}
		}
		if l == nil {
			return nil
		}
	}
	return l
}

func (t *tree) each(fn func(*leaf)) {
	for _, k := range t.keys {
		fn(t.nodes[keyID(k)])
	}
}

// dict returns the tree as a value that shares nothing with it.
func (t *tree) dict() *py.Dict {
	out := py.NewDict()
	t.each(func(l *leaf) {
		v := l.value
		if l.sub != nil {
			v = l.sub.dict()
		} else {
			v = py.DeepCopy(v)
		}
		_ = out.Set(l.key, v) // it was a key before
	})
	return out
}

type merger struct {
	root *tree
	err  error
}

func (m *merger) fail(layer Layer, key, format string, args ...any) {
	if m.err == nil {
		m.err = cfgError(layer, key, format, args...)
	}
}

// maxCfgDepth is deeper than anything the YAML loader returns.
const maxCfgDepth = 500

// merge merges a mapping over the tree: mappings merge, everything else replaces.
func (m *merger) merge(d *py.Dict, layer Layer) { m.into(m.root, d, layer, 0) }

func (m *merger) into(t *tree, d *py.Dict, layer Layer, depth int) {
	if depth > maxCfgDepth {
		m.err = fault.New(fault.Failed, "configuration", "nested deeper than %d levels", maxCfgDepth)
		return
	}
	d.Range(func(k, v any) bool {
		id := keyID(k)
		l := t.nodes[id]
		if l == nil {
			l = &leaf{key: k}
			t.nodes[id] = l
			t.keys = append(t.keys, k)
		}
		if sub, ok := v.(*py.Dict); ok {
			if l.sub == nil {
				l.sub = newTree()
			}
			l.value, l.layer, l.secret = nil, layer, false
			l.values = append(l.values, layerValue{layer: layer, mapping: true})
			m.into(l.sub, sub, layer, depth+1)
			return m.err == nil
		}
		l.sub, l.value, l.layer, l.secret = nil, v, layer, layer.FromPillar() && canBeSecret(v)
		l.values = append(l.values, layerValue{layer: layer, value: v})
		return true
	})
}

// canBeSecret excludes what stays readable wherever it came from.
func canBeSecret(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64:
		return false
	}
	return true
}
