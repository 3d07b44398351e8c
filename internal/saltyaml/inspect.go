package saltyaml

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/fault"
)

// inspector walks the nodes in the order of the text.
type inspector struct {
	source
	seen map[string]*yaml.Node
	// nonSpecific are the scalars with the tag "!" alone, of which the parser keeps nothing.
	nonSpecific map[*yaml.Node]bool
	bang        bool // there may be such tags
	// the place that from found last
	line, col, off int
}

func newInspector(s source) *inspector {
	return &inspector{source: s, seen: map[string]*yaml.Node{}, nonSpecific: map[*yaml.Node]bool{}, bang: strings.Contains(s.text, "!"), line: 1, col: 1}
}

// walk refuses what go.yaml.in reads and PyYAML does not: an anchor that occurs twice, a colon before an indicator in a
// flow collection, the escape \' in double quotes.
func (s *inspector) walk(n *yaml.Node, flow bool) error {
	if n.Kind == yaml.AliasNode {
		return nil
	}
	fail := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Failed, op, format, args...).WithPos(s.pos(n.Line, n.Column))
	}
	if n.Anchor != "" {
		if first := s.seen[n.Anchor]; first != nil {
			name := ""
			if !s.private {
				name = " '" + n.Anchor + "'"
			}
			return fail("found duplicate anchor%s", name).WithHint("it stands on line %d already", first.Line)
		}
		s.seen[n.Anchor] = n
	}
	if n.Kind == yaml.ScalarNode {
		plain := isPlain(n)
		switch {
		case flow && plain && (strings.HasSuffix(n.Value, ":") && s.followed(n) || strings.Contains(n.Value, ":?")):
			return fail("found unexpected ':'").WithHint("write a space after the colon of a key, or quote the text")
		case n.Style&yaml.DoubleQuotedStyle != 0 && strings.Contains(n.Value, "'") && badEscape(s.from(n)):
			return fail("found unknown escape character").WithHint("in double quotes a ' needs no backslash")
		case s.bang && n.Style&yaml.TaggedStyle == 0 && (!plain || n.Value == ""):
			if rest, ok := strings.CutPrefix(afterAnchor(s.from(n)), "!"); ok && isBlankOrEnd(rest) {
				s.nonSpecific[n] = true
			}
		}
	}
	flow = flow || n.Style&yaml.FlowStyle != 0
	for _, c := range n.Content {
		if err := s.walk(c, flow); err != nil {
			return err
		}
	}
	return nil
}

// followed reports whether an indicator of a flow collection immediately follows a plain scalar.
func (s *inspector) followed(n *yaml.Node) bool {
	rest, ok := afterPlain(afterAnchor(s.from(n)), n.Value)
	return ok && rest != "" && strings.IndexByte(",[]{}", rest[0]) >= 0
}

// afterPlain returns what follows a plain scalar that t begins with; a blank of its value may be a line break with blanks
// around it in t.
func afterPlain(t, value string) (rest string, ok bool) {
	words := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\n' })
	for i, w := range words {
		if i > 0 {
			t = strings.TrimLeft(t, " \t\r\n")
		}
		if t, ok = strings.CutPrefix(t, w); !ok {
			return "", false
		}
	}
	return t, len(words) > 0
}

// afterAnchor drops an anchor at the start of t.
func afterAnchor(t string) string {
	if strings.HasPrefix(t, "&") {
		if i := strings.IndexAny(t, " \t\n"); i > 0 {
			return strings.TrimLeft(t[i:], " \t")
		}
	}
	return t
}

func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// from returns the text from a node's place on. It continues from where it was, so that a walk reads the text once.
func (s *inspector) from(n *yaml.Node) string {
	if n.Line < s.line || n.Line == s.line && n.Column < s.col {
		s.line, s.col, s.off = 1, 1, 0
	}
	if s.off == 0 && strings.HasPrefix(s.text, "\ufeff") {
		s.off = len("\ufeff")
	}
	for s.line < n.Line && s.off < len(s.text) {
		end, width := lineEnd(s.text[s.off:])
		s.off, s.line, s.col = s.off+end+width, s.line+1, 1
	}
	for s.col < n.Column && s.off < len(s.text) {
		_, w := utf8.DecodeRuneInString(s.text[s.off:])
		s.off, s.col = s.off+w, s.col+1
	}
	return s.text[s.off:]
}

// badEscape reports whether the double-quoted text in t, after its tag and anchor, has the escape \'.
func badEscape(t string) bool {
	i := strings.IndexByte(t, '"')
	for i++; i > 0 && i < len(t); i++ {
		switch t[i] {
		case '"':
			return false
		case '\\':
			if i++; i < len(t) && t[i] == '\'' {
				return true
			}
		}
	}
	return false
}
