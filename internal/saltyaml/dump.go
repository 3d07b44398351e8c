package saltyaml

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"strings"

	"corpus-git/internal/py"
)

// Flow chooses between {a: 1} and indented lines, as PyYAML's default_flow_style does.
type Flow uint8

const (
	// AutoStyle puts what holds only scalars into flow style (default_flow_style=None, Salt's own default).
	AutoStyle Flow = iota
	// FlowStyle puts everything into flow style (True, the default of the yaml filter).
	FlowStyle
	// BlockStyle puts everything into block style (False).
	BlockStyle
)

// DumpOptions are the arguments of yaml.dump that Salt's users reach. The zero value is salt.utils.yaml.safe_dump.
type DumpOptions struct {
	Flow Flow
	// KeepOrder leaves mappings in their own order (sort_keys=False); otherwise keys that can be compared are sorted, except
	// those of a dict that keeps its order.
	KeepOrder bool
	// ASCII escapes all other characters (allow_unicode=False, as Salt's yaml serializer has it).
	ASCII bool
	// Indent is the width of one level, 2 if it is 0; Width is the column after which lines are broken, 80
	// if it is 0.
	Indent, Width int
	// Strict makes a value without a form in YAML an error; otherwise it is written as NULL, as Salt's dumper does.
	Strict bool
}

// Dump writes a value as PyYAML's C safe dumper does under Salt's settings; the text ends with a newline. Salt's
// IndentedSafeOrderedDumper writes the same text, because the C emitter ignores it. A list or dict that occurs several times gets an anchor. The error is a
// *py.Error: nested too deeply, or no form in YAML (with Strict).
func Dump(v any, opts DumpOptions) (string, error) {
	if opts.Indent < 2 || opts.Indent > 9 {
		opts.Indent = 2
	}
	if opts.Width <= opts.Indent*2 {
		opts.Width = 80
	}
	r := representer{opts: opts, seen: map[any]*rnode{}}
	root, err := r.represent(v, 0)
	if err != nil {
		return "", err
	}
	r.anchor(root, map[*rnode]bool{})
	e := emitter{opts: opts, indent: -1, whitespace: true, indention: true, done: map[*rnode]bool{}}
	e.node(root, context{})
	e.writeIndent()
	return e.out.String(), nil
}

// rnode is a value on its way to text.
type rnode struct {
	kind   Kind
	tag    string
	text   string   // of a Scalar
	items  []*rnode // of a Sequence; of a Mapping key, value, key, value
	flow   bool
	anchor string
}

type representer struct {
	opts    DumpOptions
	seen    map[any]*rnode
	anchors int
}

const maxDumpDepth = 900

func (r *representer) represent(v any, depth int) (*rnode, error) {
	if depth > maxDumpDepth {
		return nil, py.Errorf(py.RecursionError, "maximum recursion depth exceeded")
	}
	scalar := func(tag, text string) (*rnode, error) { return &rnode{kind: Scalar, tag: tag, text: text}, nil }
	switch x := v.(type) {
	case nil:
		return scalar(tagNull, "null")
	case string:
		return scalar(tagStr, strings.ToValidUTF8(x, "\ufffd"))
	case bool:
		return scalar(tagBool, map[bool]string{true: "true", false: "false"}[x])
	case int64, *big.Int:
		return scalar(tagInt, py.Str(x))
	case float64:
		return scalar(tagFloat, floatText(x))
	case *py.List:
		return r.sequence(x, x.Items(), depth)
	case py.Tuple:
		return r.sequence(nil, x, depth)
	case *py.Dict:
		return r.mapping(x, x, depth)
	case py.Mapping:
		d, err := x.AsDict()
		if err != nil {
			return nil, err
		}
		return r.mapping(v, d, depth)
	}
	if r.opts.Strict {
		return nil, py.Errorf(py.TypeError, "cannot represent an object of type %s", py.TypeName(v))
	}
	return scalar(tagNull, "NULL")
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	s := strings.ToLower(py.Repr(f))
	if !strings.Contains(s, ".") {
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}

func (r *representer) sequence(id any, items []any, depth int) (*rnode, error) {
	if n := r.seen[id]; id != nil && n != nil {
		return n, nil
	}
	n := &rnode{kind: Sequence, tag: tagSeq}
	if id != nil {
		r.seen[id] = n
	}
	scalars := true
	for _, v := range items {
		c, err := r.represent(v, depth+1)
		if err != nil {
			return nil, err
		}
		scalars = scalars && c.kind == Scalar
		n.items = append(n.items, c)
	}
	n.flow = r.opts.Flow == FlowStyle || r.opts.Flow == AutoStyle && scalars
	return n, nil
}

func (r *representer) mapping(id any, d *py.Dict, depth int) (*rnode, error) {
	if n := r.seen[id]; n != nil {
		return n, nil
	}
	n := &rnode{kind: Mapping, tag: tagMap}
	r.seen[id] = n
	items := d.Items()
	if !r.opts.KeepOrder && !d.KeepsOrder() {
		sortItems(items)
	}
	scalars := true
	for _, it := range items {
		for _, v := range []any{it.Key, it.Value} {
			c, err := r.represent(v, depth+1)
			if err != nil {
				return nil, err
			}
			scalars = scalars && c.kind == Scalar
			n.items = append(n.items, c)
		}
	}
	n.flow = r.opts.Flow == FlowStyle || r.opts.Flow == AutoStyle && scalars
	return n, nil
}

// sortItems sorts by key if all keys are strings, or all are numbers; other keys Python cannot compare.
func sortItems(items []py.Item) {
	strs, nums := 0, 0
	for _, it := range items {
		switch it.Key.(type) {
		case string:
			strs++
		case int64, *big.Int, float64, bool:
			nums++
		}
	}
	switch len(items) {
	case strs:
		sort.SliceStable(items, func(i, j int) bool { return items[i].Key.(string) < items[j].Key.(string) })
	case nums:
		sort.SliceStable(items, func(i, j int) bool { return number(items[i].Key).Cmp(number(items[j].Key)) < 0 })
	}
}

func number(v any) *big.Float {
	f := new(big.Float)
	switch x := v.(type) {
	case int64:
		return f.SetInt64(x)
	case *big.Int:
		return f.SetInt(x)
	case bool:
		if x {
			return f.SetInt64(1)
		}
	case float64:
		if !math.IsNaN(x) {
			return f.SetFloat64(x)
		}
	}
	return f
}

// anchor names the nodes that occur more than once, in the order in which that is found.
func (r *representer) anchor(n *rnode, seen map[*rnode]bool) {
	if n.kind == Scalar {
		return
	}
	if seen[n] {
		if n.anchor == "" {
			r.anchors++
			n.anchor = fmt.Sprintf("id%03d", r.anchors)
		}
		return
	}
	seen[n] = true
	for _, c := range n.items {
		r.anchor(c, seen)
	}
}
