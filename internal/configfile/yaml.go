package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/py"
)

// plainText is a text that every version of YAML reads as the same text without quotes, if it is none of the words.
var plainText = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*$`)

// yamlWords are texts that some version of YAML reads as something else.
var yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}

// maxYAMLDepth limits nesting.
const maxYAMLDepth = 200

// textNode returns a text as a node that is a text in YAML 1.1 and 1.2.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case plainText.MatchString(s) && !slices.Contains(yamlWords, strings.ToLower(s)):
		n.Style = 0
	case strings.Contains(s, "\n") && !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n") && !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' && c != '\n' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 || c == 0xfeff
	}) &&
		!strings.Contains(s, " \n"):
		n.Style = yaml.LiteralStyle
	}
	return n
}

// nodeOf returns a value as a node.
func nodeOf(keys []string, value any, depth int) (*yaml.Node, error) {
	if depth > maxYAMLDepth {
		return nil, wrong(keys, "nested deeper than %d levels", maxYAMLDepth)
	}
	plain := func(tag, text string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
	}
	switch v := value.(type) {
	case nil:
		return plain("!!null", "null")
	case string:
		return textNode(v), nil
	case bool:
		if v {
			return plain("!!bool", "true")
		}
		return plain("!!bool", "false")
	case float64:
		switch {
		case math.IsNaN(v):
			return plain("!!float", ".nan")
		case math.IsInf(v, 1):
			return plain("!!float", ".inf")
		case math.IsInf(v, -1):
			return plain("!!float", "-.inf")
		}
		text := py.Str(v)
		if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") { // YAML 1.1 needs the point
			text = mantissa + ".0e" + exponent
		}
		return plain("!!float", text)
	case *py.List:
		out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i, x := range v.Items() {
			n, err := nodeOf(append(keys[:len(keys):len(keys)], fmt.Sprint(i)), x, depth+1)
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, n)
		}
		return out, nil
	case *py.Dict:
		out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		_, err := mergeNode(keys, out, v, depth)
		return out, err
	}
	if py.IsInt(value) {
		return plain("!!int", py.Str(value))
	}
	return nil, wrong(keys, "has no form in YAML: %s", py.TypeName(value))
}

// entry returns the index of a key in a mapping node, -1 if it has none.
func entry(n *yaml.Node, key *yaml.Node) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.ShortTag() == key.ShortTag() && k.Value == key.Value {
			return i
		}
	}
	return -1
}

// mergeNode merges values over a mapping node, and reports whether any differed.
func mergeNode(keys []string, into *yaml.Node, values *py.Dict, depth int) (changed bool, err error) {
	for _, e := range values.Items() {
		at := append(keys[:len(keys):len(keys)], py.Str(e.Key))
		key, err := nodeOf(at, e.Key, depth)
		if err != nil {
			return false, err
		}
		if key.Kind != yaml.ScalarNode {
			return false, wrong(at, "cannot be a key")
		}
		i := entry(into, key)
		d, isDict := e.Value.(*py.Dict)
		if i >= 0 && isDict {
			if alias := into.Content[i+1]; alias.Kind == yaml.AliasNode { // what else refers to the anchor stays as it is
				into.Content[i+1] = copyNode(alias.Alias, 0)
			}
			if below := into.Content[i+1]; below.Kind == yaml.MappingNode {
				differs, err := mergeNode(at, below, d, depth+1)
				if err != nil {
					return false, err
				}
				changed = changed || differs
				continue
			}
		}
		value, err := nodeOf(at, e.Value, depth+1)
		if err != nil {
			return false, err
		}
		switch {
		case i < 0:
			into.Content, changed = append(into.Content, key, value), true
		case !sameNode(into.Content[i+1], value):
			old := into.Content[i+1]
			value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
			into.Content[i+1], changed = value, true
		}
	}
	if len(into.Content) > 0 && into.Style == yaml.FlowStyle && changed && len(into.Content) == 2 && depth == 0 {
		into.Style = 0 // {} that got its first key
	}
	return changed, nil
}

// copyNode copies a node without its anchor; aliases in it stay.
func copyNode(n *yaml.Node, depth int) *yaml.Node {
	out := *n
	out.Anchor = ""
	if depth < maxYAMLDepth {
		out.Content = nil
		for _, c := range n.Content {
			out.Content = append(out.Content, copyNode(c, depth+1))
		}
	}
	return &out
}

func sameNode(a, b *yaml.Node) bool {
	var x, y any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

func removeNode(n *yaml.Node, path []string) bool {
	i := entry(n, textNode(path[0]))
	switch {
	case n.Kind != yaml.MappingNode || i < 0:
		return false
	case len(path) > 1:
		return removeNode(n.Content[i+1], path[1:])
	}
	n.Content = slices.Delete(n.Content, i, i+2)
	return true
}

// editYAML is Edit.
func editYAML(old []byte, values *py.Dict, remove [][]string) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	changed := old == nil
	if len(old) > 0 {
		dec := yaml.NewDecoder(bytes.NewReader(old))
		var read, more yaml.Node
		var whole any
		switch err := dec.Decode(&read); {
		case err == nil && dec.Decode(&more) == nil:
			return nil, errors.New("the existing file has several YAML documents")
		case err == nil && read.Decode(&whole) != nil: // such as an anchor that contains itself
			return nil, errors.New("the existing file is not valid YAML")
		case err == nil && len(read.Content) == 1 && read.Content[0].Kind == yaml.MappingNode:
			doc = &read
		case err == nil && len(read.Content) == 1 && read.Content[0].ShortTag() == "!!null":
			changed = true
		case err == nil:
			return nil, errors.New("the existing file is not a YAML mapping")
		case len(bytes.TrimSpace(old)) > 0 && err.Error() != "EOF":
			return nil, errors.New("the existing file is not valid YAML")
		}
	}
	root := doc.Content[0]
	for _, path := range remove {
		changed = removeNode(root, path) || changed
	}
	differs, err := mergeNode(nil, root, values, 0)
	if err != nil {
		return nil, err
	}
	if !changed && !differs {
		return old, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
