package saltyaml

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// pair is one entry of a mapping node.
type pair struct{ key, val *yaml.Node }

// builder turns nodes into values. It lives for one document.
type builder struct {
	src    source
	opts   Options
	budget int // nodes that the result may have, aliases followed
	merged int // entries that merge keys have copied
	done   map[*yaml.Node]*Node
	active map[*yaml.Node]bool
	flat   map[*yaml.Node][]pair
	// nonSpecific are the scalars with the tag ! alone
	nonSpecific map[*yaml.Node]bool
}

func newBuilder(src source, opts Options, size int, nonSpecific map[*yaml.Node]bool) *builder {
	return &builder{
		src: src, opts: opts, nonSpecific: nonSpecific,
		// An honest file repeats a block a few dozen times; a bomb doubles it line by line.
		budget: 10_000 + 16*size,
		done:   map[*yaml.Node]*Node{},
		active: map[*yaml.Node]bool{},
		flat:   map[*yaml.Node][]pair{},
	}
}

// TagError reports a tag that PyYAML knows and this package does not.
type TagError struct{ Tag string }

// Error implements error.
func (e *TagError) Error() string { return e.Tag + " is not supported" }

func (b *builder) fail(n *yaml.Node, format string, args ...any) *fault.Error {
	return fault.New(fault.Failed, op, format, args...).WithPos(b.src.pos(n.Line, n.Column))
}

// quote returns a piece of content for an error, or nothing in a private parse.
func (b *builder) quote(s string) string {
	if b.src.private {
		return ""
	}
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "…"
	}
	return " '" + s + "'"
}

// tagOf returns the long tag of a node, resolved if it has none itself.
func tagOf(n *yaml.Node) string {
	if n.Style&yaml.TaggedStyle != 0 {
		if t := n.LongTag(); t != "" {
			return t
		}
	}
	switch n.Kind {
	case yaml.SequenceNode:
		return tagSeq
	case yaml.MappingNode:
		return tagMap
	}
	if !isPlain(n) {
		return tagStr
	}
	return resolvePlain(n.Value)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "sequence"
	case yaml.MappingNode:
		return "mapping"
	}
	return "scalar"
}

// yamlWord returns the kind of a node as people call it.
func yamlWord(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "list"
	case yaml.MappingNode:
		return "mapping"
	}
	return "single value"
}

func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// build returns the value of a node; one node yields one value however often it is referred to.
func (b *builder) build(n *yaml.Node, depth int) (*Node, error) {
	at := n
	n = deref(n)
	if out := b.done[n]; out != nil {
		if err := b.spend(at, out.size); err != nil {
			return nil, err
		}
		return out, nil
	}
	if b.active[n] {
		return nil, b.fail(at, "found unconstructable recursive node")
	}
	if depth > b.opts.MaxDepth {
		return nil, b.fail(at, "nested deeper than %d levels", b.opts.MaxDepth)
	}
	if err := b.spend(at, 1); err != nil {
		return nil, err
	}
	b.active[n] = true
	out, err := b.construct(n, depth)
	delete(b.active, n)
	if err != nil {
		return nil, err
	}
	b.done[n] = out
	return out, nil
}

func (b *builder) spend(at *yaml.Node, size int) error {
	if b.budget -= size; b.budget < 0 {
		return b.fail(at, "aliases make this document far larger than its text")
	}
	return nil
}

func (b *builder) construct(n *yaml.Node, depth int) (*Node, error) {
	out := &Node{Line: n.Line, Col: n.Column, size: 1}
	tag := tagOf(n)
	if b.nonSpecific[n] {
		// PyYAML resolves a quoted scalar with the tag ! as if it were plain, and treats an empty plain one as a string.
		if tag = resolvePlain(n.Value); isPlain(n) {
			tag = tagStr
		}
	}
	if b.opts.Edits != nil && n.Kind == yaml.SequenceNode && (tag == Append || tag == Remove || tag == Replace) {
		if err := b.sequence(out, n, depth); err != nil {
			return nil, err
		}
		b.opts.Edits[out.Value.(*py.List)] = Edit{Tag: tag, At: b.src.pos(n.Line, n.Column)}
		return out, nil
	}
	if b.opts.Edits != nil && n.Kind == yaml.ScalarNode && tag == Remove && isPlain(n) && (n.Value == "" || n.Value == "~" || n.Value == "null") {
		out.Value = py.NewList()
		b.opts.Edits[out.Value.(*py.List)] = Edit{Tag: tag, Key: true, At: b.src.pos(n.Line, n.Column)}
		return out, nil
	}
	switch tag {
	case tagMap, tagOmap:
		if n.Kind != yaml.MappingNode {
			return nil, b.fail(n, "expected a mapping node, but found %s", kindName(n))
		}
		return out, b.mapping(out, n, depth)
	case tagSeq:
		if n.Kind != yaml.SequenceNode {
			return nil, b.fail(n, "expected a sequence node, but found %s", kindName(n))
		}
		return out, b.sequence(out, n, depth)
	case tagPairs:
		return out, b.pairs(out, n, depth)
	case tagSet, tagBinary:
		return nil, b.fail(n, "%w", &TagError{shortTag(tag)}).WithHint("write a list, or a string")
	case tagStr, tagInt, tagFloat, tagBool, tagNull, tagTimestamp, tagUnicode:
		if n.Kind != yaml.ScalarNode {
			return nil, b.fail(n, "expected a scalar node, but found %s", kindName(n))
		}
		out.Kind = Scalar
		v, err := scalar(tag, n.Value)
		if err != nil {
			return nil, b.fail(n, "bad value%s for the tag %s: %w", b.quote(n.Value), shortTag(tag), err)
		}
		out.Value = v
		return out, nil
	}
	edit := tag == Append || tag == Remove || tag == Replace
	switch {
	case edit && b.opts.Edits != nil && tag == Remove:
		return nil, b.fail(n, "%s must be followed by a list of the elements to remove, or by nothing to remove the key; found a %s", tag, yamlWord(n)).WithHint("as in  hosts: !remove [web1]")
	case edit && b.opts.Edits != nil:
		return nil, b.fail(n, "%s must be followed by a list; found a %s", tag, yamlWord(n)).WithHint("as in  hosts: %s [web1]", tag)
	case b.src.private:
		tag = ""
	default:
		tag = " '" + tag + "'"
	}
	e := b.fail(n, "could not determine a constructor for the tag%s", tag)
	if edit {
		e = e.WithHint("!append, !remove and !replace are only for the lists of a PILLAR.sample; elsewhere a list replaces that of weaker layers, and a text that begins with ! is quoted")
	} else if n.Style&yaml.TaggedStyle != 0 {
		e = e.WithHint("quote a value that begins with !")
	}
	return nil, e
}

func shortTag(tag string) string { return "!!" + strings.TrimPrefix(tag, tagPrefix) }

func scalar(tag, s string) (any, error) {
	switch tag {
	case tagInt:
		return parseInt(s)
	case tagFloat:
		return parseFloat(s)
	case tagNull:
		return nil, nil
	case tagBool:
		switch strings.ToLower(s) {
		case "yes", "true", "on":
			return true, nil
		case "no", "false", "off":
			return false, nil
		}
		return nil, errNotBool
	}
	return s, nil // timestamps too: Salt keeps them as they are written
}

func (b *builder) sequence(out *Node, n *yaml.Node, depth int) error {
	out.Kind = Sequence
	list := py.NewList()
	for _, c := range n.Content {
		item, err := b.build(c, depth+1)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
		out.size += item.size
		list.Append(item.Value)
	}
	out.Value = list
	return nil
}

// pairs is !!pairs: a list of (key, value) tuples.
func (b *builder) pairs(out *Node, n *yaml.Node, depth int) error {
	if n.Kind != yaml.SequenceNode {
		return b.fail(n, "expected a sequence, but found %s", kindName(n))
	}
	out.Kind = Sequence
	list := py.NewList()
	for _, c := range n.Content {
		c = deref(c)
		if c.Kind != yaml.MappingNode || len(c.Content) != 2 {
			return b.fail(c, "expected a single mapping item")
		}
		k, err := b.build(c.Content[0], depth+1)
		if err != nil {
			return err
		}
		v, err := b.build(c.Content[1], depth+1)
		if err != nil {
			return err
		}
		t := py.Tuple{k.Value, v.Value}
		out.Items = append(out.Items, &Node{Kind: Sequence, Value: t, Line: c.Line, Col: c.Column, Items: []*Node{k, v}, size: 1 + k.size + v.size})
		out.size += 1 + k.size + v.size
		list.Append(t)
	}
	out.Value = list
	return nil
}

func (b *builder) mapping(out *Node, n *yaml.Node, depth int) error {
	out.Kind = Mapping
	entries, err := b.flatten(n, nil)
	if err != nil {
		return err
	}
	dict := py.NewDict()
	for _, e := range entries {
		var k *Node
		if kn := deref(e.key); kn.Kind == yaml.ScalarNode && tagOf(kn) == tagValue {
			k = &Node{Kind: Scalar, Value: kn.Value, Line: kn.Line, Col: kn.Column, size: 1}
		} else if k, err = b.build(e.key, depth+1); err != nil {
			return err
		}
		if err := py.Hashable(k.Value); err != nil {
			e := b.fail(e.key, "found unacceptable key: a %s cannot be a key", kindName(deref(e.key)))
			if deref(n).Style&yaml.FlowStyle != 0 {
				e = e.WithHint("quote a value that begins with {{")
			}
			return e
		}
		v, err := b.build(e.val, depth+1)
		if err != nil {
			return err
		}
		if dict.Has(k.Value) {
			return b.conflict(e.key, k, out)
		}
		if err := dict.Set(k.Value, v.Value); err != nil {
			return b.fail(e.key, "found unacceptable key")
		}
		out.Keys = append(out.Keys, k)
		out.Items = append(out.Items, v)
		out.size += k.size + v.size
	}
	out.Value = dict
	return nil
}

func (b *builder) conflict(at *yaml.Node, k *Node, out *Node) error {
	name := ""
	if !b.src.private {
		name = b.quote(py.Str(k.Value))
	}
	e := b.fail(at, "found conflicting ID%s: a key may stand only once in a mapping", name)
	for _, prev := range out.Keys {
		one := py.NewDict()
		if one.Set(prev.Value, nil) == nil && one.Has(k.Value) {
			return e.WithHint("it stands on line %d already", prev.Line)
		}
	}
	return e
}

// flatten returns the entries of a mapping with its merge keys replaced by what they add: first the merged
// entries whose keys the mapping does not have itself, then its own. Unlike YAML 1.1, but as Salt does, two merged
// mappings with one key are a conflict.
func (b *builder) flatten(n *yaml.Node, above []*yaml.Node) ([]pair, error) {
	if out, ok := b.flat[n]; ok {
		return out, nil
	}
	for _, a := range above {
		if a == n {
			return nil, b.fail(n, "a merge key refers to the mapping that it stands in")
		}
	}
	if len(above) > b.opts.MaxDepth {
		return nil, b.fail(n, "nested deeper than %d levels", b.opts.MaxDepth)
	}
	above = append(above[:len(above):len(above)], n)
	var own, brought []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1]}
		if k := deref(p.key); k.Kind != yaml.ScalarNode || tagOf(k) != tagMerge {
			own = append(own, p)
			continue
		}
		m, err := b.mergeValue(deref(p.val), above)
		if err != nil {
			return nil, err
		}
		brought = append(brought, m...)
		if b.merged += len(m); b.merged > b.budget {
			return nil, b.fail(p.key, "aliases make this document far larger than its text")
		}
	}
	out := own
	if len(brought) > 0 {
		has := map[string]bool{}
		for _, p := range own {
			if k := deref(p.key); k.Kind == yaml.ScalarNode {
				has[k.Value] = true
			}
		}
		out = nil
		for _, p := range brought {
			if k := deref(p.key); k.Kind == yaml.ScalarNode && has[k.Value] {
				continue
			}
			out = append(out, p)
		}
		out = append(out, own...)
	}
	b.flat[n] = out
	return out, nil
}

// mergeValue returns what one merge key adds: a mapping, or a list of mappings, the last one first.
func (b *builder) mergeValue(v *yaml.Node, above []*yaml.Node) ([]pair, error) {
	switch v.Kind {
	case yaml.MappingNode:
		return b.flatten(v, above)
	case yaml.SequenceNode:
		var out []pair
		for i := len(v.Content) - 1; i >= 0; i-- {
			c := deref(v.Content[i])
			if c.Kind != yaml.MappingNode {
				return nil, b.fail(v.Content[i], "expected a mapping for merging, but found %s", kindName(c))
			}
			m, err := b.flatten(c, above)
			if err != nil {
				return nil, err
			}
			if b.merged += len(m); b.merged > b.budget {
				return nil, b.fail(v, "aliases make this document far larger than its text")
			}
			out = append(out, m...)
		}
		return out, nil
	}
	return nil, b.fail(v, "expected a mapping or list of mappings for merging, but found %s", kindName(v))
}
