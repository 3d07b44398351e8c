package saltyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// emitter writes nodes as libyaml does: the same styles, the same line breaks. Source: libyaml 0.2.5, and the YAML 1.1
// specification for what each style may hold.
type emitter struct {
	opts       DumpOptions
	out        strings.Builder
	column     int
	indent     int
	flowLevel  int
	whitespace bool // the last character was one
	indention  bool // only indentation and indicators are on this line
	done       map[*rnode]bool
}

// context is where a node is.
type context struct{ mapping, simpleKey bool }

func (e *emitter) put(r rune) {
	e.out.WriteRune(r)
	e.column++
}

func (e *emitter) lineBreak() {
	e.out.WriteByte('\n')
	e.column = 0
}

func (e *emitter) writeIndent() {
	indent := max(e.indent, 0)
	if !e.indention || e.column > indent || e.column == indent && !e.whitespace {
		e.lineBreak()
	}
	for e.column < indent {
		e.put(' ')
	}
	e.whitespace, e.indention = true, true
}

func (e *emitter) indicator(s string, needSpace, isSpace, isIndention bool) {
	if needSpace && !e.whitespace {
		e.put(' ')
	}
	for _, r := range s {
		e.put(r)
	}
	e.whitespace = isSpace
	e.indention = e.indention && isIndention
}

// deeper enters a level and returns a function that leaves it.
func (e *emitter) deeper(flow, indentless bool) (back func()) {
	old := e.indent
	switch {
	case e.indent < 0 && flow:
		e.indent = e.opts.Indent
	case e.indent < 0:
		e.indent = 0
	case !indentless:
		e.indent += e.opts.Indent
	}
	return func() { e.indent = old }
}

func (e *emitter) node(n *rnode, ctx context) {
	if n.anchor != "" {
		if e.done[n] {
			e.indicator("*"+n.anchor, true, false, false)
			if ctx.simpleKey {
				e.put(' ')
			}
			return
		}
		e.done[n] = true
		e.indicator("&"+n.anchor, true, false, false)
	}
	flow := e.flowLevel > 0 || n.flow || len(n.items) == 0
	switch {
	case n.kind == Scalar:
		e.scalar(n, ctx)
	case n.kind == Sequence && flow:
		e.flowSequence(n)
	case n.kind == Sequence:
		e.blockSequence(n, ctx)
	case flow:
		e.flowMapping(n)
	default:
		e.blockMapping(n)
	}
}

func (e *emitter) flowSequence(n *rnode) {
	e.indicator("[", true, true, false)
	back := e.deeper(true, false)
	e.flowLevel++
	for i, c := range n.items {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		if e.column > e.opts.Width {
			e.writeIndent()
		}
		e.node(c, context{})
	}
	e.flowLevel--
	back()
	e.indicator("]", false, false, false)
}

func (e *emitter) flowMapping(n *rnode) {
	e.indicator("{", true, true, false)
	back := e.deeper(true, false)
	e.flowLevel++
	for i := 0; i < len(n.items); i += 2 {
		if i > 0 {
			e.indicator(",", false, false, false)
		}
		if e.column > e.opts.Width {
			e.writeIndent()
		}
		k, v := n.items[i], n.items[i+1]
		if e.isSimpleKey(k) {
			e.node(k, context{mapping: true, simpleKey: true})
			e.indicator(":", false, false, false)
		} else {
			e.indicator("?", true, false, false)
			e.node(k, context{mapping: true})
			if e.column > e.opts.Width {
				e.writeIndent()
			}
			e.indicator(":", true, false, false)
		}
		e.node(v, context{mapping: true})
	}
	e.flowLevel--
	back()
	e.indicator("}", false, false, false)
}

func (e *emitter) blockSequence(n *rnode, ctx context) {
	back := e.deeper(false, ctx.mapping && !e.indention)
	for _, c := range n.items {
		e.writeIndent()
		e.indicator("-", true, false, true)
		e.node(c, context{})
	}
	back()
}

func (e *emitter) blockMapping(n *rnode) {
	back := e.deeper(false, false)
	for i := 0; i < len(n.items); i += 2 {
		e.writeIndent()
		k, v := n.items[i], n.items[i+1]
		if e.isSimpleKey(k) {
			e.node(k, context{mapping: true, simpleKey: true})
			e.indicator(":", false, false, false)
		} else {
			e.indicator("?", true, false, true)
			e.node(k, context{mapping: true})
			e.writeIndent()
			e.indicator(":", true, false, true)
		}
		e.node(v, context{mapping: true})
	}
	back()
}

// maxSimpleKey is the longest key, in bytes, that libyaml writes without "? ".
const maxSimpleKey = 128

func (e *emitter) isSimpleKey(n *rnode) bool {
	if n.kind != Scalar {
		if len(n.items) > 0 && !e.done[n] {
			return false
		}
		return true
	}
	return !strings.ContainsAny(n.text, "\n\r\u0085\u2028\u2029") && len(n.text) <= maxSimpleKey
}

// scalarFacts determine in which styles a text can be written.
type scalarFacts struct {
	multiline, flowPlain, blockPlain, single bool
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func isBlankOrEnd(s string) bool {
	if s == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r == ' ' || r == '\t' || r == 0 || isBreak(r)
}

// printable reports whether libyaml counts a character as printable: no tab, and nothing beyond the basic plane.
func printable(r rune) bool {
	return r == '\n' || r >= ' ' && r <= '~' || r >= 0xa0 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd && r != 0xfeff
}

func (e *emitter) analyze(s string) scalarFacts {
	if s == "" {
		return scalarFacts{blockPlain: true, single: true}
	}
	var blockInd, flowInd, breaks, special, edge, breakSpace, spaceBreak bool
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		blockInd, flowInd = true, true
	}
	precededByBlank, prevSpace, prevBreak := true, false, false
	for i, r := range s {
		rest := s[i+utf8.RuneLen(r):]
		followed := isBlankOrEnd(rest)
		switch {
		case i == 0 && strings.ContainsRune("#,[]{}&*!|>'\"%@`", r), i == 0 && r == '-' && followed:
			flowInd, blockInd = true, true
		case i == 0 && (r == '?' || r == ':'):
			flowInd, blockInd = true, blockInd || followed
		case i == 0:
		case strings.ContainsRune(",?[]{}", r):
			flowInd = true
		case r == ':':
			flowInd, blockInd = true, blockInd || followed
		case r == '#' && precededByBlank:
			flowInd, blockInd = true, true
		}
		if !printable(r) || r >= utf8.RuneSelf && e.opts.ASCII {
			special = true
		}
		switch {
		case isBreak(r):
			breaks = true
			edge = edge || i == 0 || rest == ""
			spaceBreak = spaceBreak || prevSpace
			prevSpace, prevBreak = false, true
		case r == ' ':
			edge = edge || i == 0 || rest == ""
			breakSpace = breakSpace || prevBreak
			prevSpace, prevBreak = true, false
		default:
			prevSpace, prevBreak = false, false
		}
		precededByBlank = r == ' ' || r == '\t' || r == 0 || isBreak(r)
	}
	f := scalarFacts{multiline: breaks, flowPlain: true, blockPlain: true, single: true}
	if edge || breaks {
		f.flowPlain, f.blockPlain = false, false
	}
	if breakSpace || spaceBreak || special {
		f.flowPlain, f.blockPlain, f.single = false, false, false
	}
	f.flowPlain = f.flowPlain && !flowInd
	f.blockPlain = f.blockPlain && !blockInd
	return f
}

func (e *emitter) scalar(n *rnode, ctx context) {
	f := e.analyze(n.text)
	plain := resolvePlain(n.text) == n.tag && !(ctx.simpleKey && f.multiline)
	if e.flowLevel > 0 {
		plain = plain && f.flowPlain
	} else {
		plain = plain && f.blockPlain
	}
	if n.text == "" && (e.flowLevel > 0 || ctx.simpleKey) {
		plain = false
	}
	back := e.deeper(true, false)
	defer back()
	switch {
	case plain:
		e.plain(n.text, !ctx.simpleKey)
	case f.single && !(ctx.simpleKey && f.multiline):
		e.singleQuoted(n.text, !ctx.simpleKey)
	default:
		e.doubleQuoted(n.text, !ctx.simpleKey)
	}
}

func nextIsSpace(s string, i int) bool { return i+1 < len(s) && s[i+1] == ' ' }

func (e *emitter) plain(s string, allowBreaks bool) {
	if !e.whitespace && (s != "" || e.flowLevel > 0) {
		e.put(' ')
	}
	spaces := false
	for i, r := range s {
		if r == ' ' {
			if allowBreaks && !spaces && e.column > e.opts.Width && !nextIsSpace(s, i) {
				e.writeIndent()
			} else {
				e.put(r)
			}
			spaces = true
			continue
		}
		e.put(r)
		e.indention, spaces = false, false
	}
	e.whitespace, e.indention = false, false
}

func (e *emitter) singleQuoted(s string, allowBreaks bool) {
	e.indicator("'", true, false, false)
	spaces, breaks := false, false
	for i, r := range s {
		switch {
		case r == ' ':
			if allowBreaks && !spaces && e.column > e.opts.Width && i > 0 && i < len(s)-1 && !nextIsSpace(s, i) {
				e.writeIndent()
			} else {
				e.put(r)
			}
			spaces = true
		case isBreak(r):
			if !breaks && r == '\n' {
				e.lineBreak()
			}
			if r == '\n' {
				e.lineBreak()
			} else {
				e.out.WriteRune(r)
				e.column = 0
			}
			e.indention, breaks = true, true
		default:
			if breaks {
				e.writeIndent()
			}
			if r == '\'' {
				e.put(r)
			}
			e.put(r)
			e.indention, spaces, breaks = false, false, false
		}
	}
	if breaks {
		e.writeIndent()
	}
	e.indicator("'", false, false, false)
	e.whitespace, e.indention = false, false
}

var escapes = map[rune]byte{0: '0', 7: 'a', 8: 'b', '\t': 't', '\n': 'n', 0xb: 'v', 0xc: 'f', '\r': 'r', 0x1b: 'e', '"': '"', '\\': '\\',
	0x85: 'N', 0xa0: '_', 0x2028: 'L', 0x2029: 'P'}

func (e *emitter) doubleQuoted(s string, allowBreaks bool) {
	e.indicator(`"`, true, false, false)
	spaces := false
	for i, r := range s {
		switch {
		case !printable(r) || r >= utf8.RuneSelf && e.opts.ASCII || isBreak(r) || r == '"' || r == '\\':
			text := ""
			if c, ok := escapes[r]; ok {
				text = `\` + string(c)
			} else if r <= 0xff {
				text = fmt.Sprintf(`\x%02X`, r)
			} else if r <= 0xffff {
				text = fmt.Sprintf(`\u%04X`, r)
			} else {
				text = fmt.Sprintf(`\U%08X`, r)
			}
			for _, c := range text {
				e.put(c)
			}
			spaces = false
		case r == ' ':
			if allowBreaks && !spaces && e.column > e.opts.Width && i > 0 && i < len(s)-1 {
				e.writeIndent()
				if nextIsSpace(s, i) {
					e.put('\\')
				}
			} else {
				e.put(r)
			}
			spaces = true
		default:
			e.put(r)
			spaces = false
		}
	}
	e.indicator(`"`, false, false, false)
	e.whitespace, e.indention = false, false
}

// DoubleQuoted and SingleQuoted write a text as a quoted scalar, never broken into lines of a width; ascii escapes all
// other characters. Source: PyYAML, emitter.write_double_quoted and write_single_quoted.
func DoubleQuoted(s string, ascii bool) string {
	e := emitter{opts: DumpOptions{Indent: 2, Width: 1 << 60, ASCII: ascii}, whitespace: true}
	e.doubleQuoted(s, false)
	return e.out.String()
}

// SingleQuoted is described at DoubleQuoted.
func SingleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	breaks := false
	for _, r := range s {
		is := r == '\n' || r == 0x85 || r == 0x2028 || r == 0x2029
		if is && !breaks && r == '\n' {
			b.WriteByte('\n')
		}
		if r == '\'' {
			b.WriteByte('\'')
		}
		b.WriteRune(r)
		breaks = is
	}
	b.WriteByte('\'')
	return b.String()
}
