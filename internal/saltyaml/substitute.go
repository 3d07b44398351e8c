package saltyaml

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// go.yaml.in refuses two things that libyaml accepts: the escape \/ in double quotes, and ? inside a plain scalar of a flow
// collection. A text that fails is parsed again with stand-ins for both, characters that do not occur in it, so that
// lines and columns stay; the nodes then get the real text back.

type standIns struct{ slash, question rune }

// substitutable reports whether an error can come from one of the two.
func substitutable(err error) bool {
	msg := err.Error()
	return strings.Contains(msg, "found unknown escape character") || strings.Contains(msg, "did not find expected ',' or") ||
		strings.Contains(msg, "cannot start any token")
}

// substitute returns the text with stand-ins; ok is false if there is nothing to replace, or no character is free.
func substitute(text string) (out string, s standIns, ok bool) {
	for r := rune(0xe000); r < 0xf8ff && s.question == 0; r++ {
		switch {
		case strings.ContainsRune(text, r):
		case s.slash == 0:
			s.slash = r
		default:
			s.question = r
		}
	}
	if s.question == 0 {
		return text, s, false
	}
	b := make([]byte, 0, len(text)+len(text)/8)
	last, escaped := ' ', false
	for _, r := range text {
		switch {
		case escaped && r == '/':
			// The backslash is already written: it becomes the slash, and the slash its stand-in.
			b = utf8.AppendRune(append(b[:len(b)-1], '/'), s.slash)
			ok = true
		case r == '?' && !strings.ContainsRune(" \t\n\r,[]{}?", last):
			b = utf8.AppendRune(b, s.question)
			ok = true
		default:
			b = utf8.AppendRune(b, r)
		}
		escaped = r == '\\' && !escaped
		last = r
	}
	return string(b), s, ok
}

// restore puts the real text back into a node and everything below it.
func (s standIns) restore(n *yaml.Node) {
	question := func(t string) string { return strings.ReplaceAll(t, string(s.question), "?") }
	n.Tag, n.Anchor, n.Value = question(n.Tag), question(n.Anchor), question(n.Value)
	if n.Style&yaml.DoubleQuotedStyle != 0 {
		n.Value = strings.ReplaceAll(n.Value, string(s.slash), "")
	} else {
		n.Value = strings.ReplaceAll(n.Value, "/"+string(s.slash), `\/`)
	}
	for _, c := range n.Content {
		s.restore(c)
	}
}
