package jinja

import "strings"

// Bounds of the parser: deeper nesting than any real template has.
const (
	maxNesting  = 200 // brackets, unary operators, blocks
	maxChain    = 2000
	maxTokenLen = 1 << 20
)

// parser turns tokens into nodes, by Jinja2's grammar.
type parser struct {
	env      *Environment
	name     string
	lex      *lexer
	cur      token
	ahead    []token
	depth    int
	tagStack []string
	endStack [][]string
	lastID   int
}

// parseError carries an error out of the recursion; it never leaves parse.
type parseError struct{ err error }

func parse(env *Environment, name, src string) (t *templateNode, err error) {
	p := &parser{env: env, name: name, lex: newLexer(&env.syntax, src)}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			t, err = nil, pe.err
		}
	}()
	p.next()
	body := p.subparse(nil)
	return &templateNode{at: 1, body: body}, nil
}

func (p *parser) fail(line int, format string, args ...any) {
	panic(parseError{syntaxError(line, format, args...)})
}

// next goes on one token and gives the one it left.
func (p *parser) next() token {
	old := p.cur
	if len(p.ahead) > 0 {
		p.cur = p.ahead[0]
		p.ahead = p.ahead[1:]
		return old
	}
	t, err := p.lex.next()
	if err != nil {
		panic(parseError{err})
	}
	if t.kind == tEOF && old.line > 0 {
		t.line = old.line
	}
	p.cur = t
	return old
}

// peek returns the token after the current one.
func (p *parser) peek() token {
	if len(p.ahead) == 0 {
		t, err := p.lex.next()
		if err != nil {
			panic(parseError{err})
		}
		p.ahead = append(p.ahead, t)
	}
	return p.ahead[0]
}

func (p *parser) skipKind(k kind) bool {
	if p.cur.kind == k {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(k kind) token {
	if p.cur.kind != k {
		p.unexpected(describeKind(k))
	}
	return p.next()
}

func (p *parser) expectName(name string) token {
	if !p.cur.isName(name) {
		p.unexpected(name)
	}
	return p.next()
}

func (p *parser) unexpected(want string) {
	if p.cur.kind == tEOF {
		p.fail(p.cur.line, "unexpected end of template, expected %s.", quote(want))
	}
	p.fail(p.cur.line, "expected token %s, got %s", quote(want), quote(p.cur.describe()))
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		panic(parseError{&raised{class: ClassLimit, msg: "the template is nested too deeply", line: p.cur.line}})
	}
}

func (p *parser) leave() { p.depth-- }

// chain bounds the length of a chain of operators, which nests without brackets.
func (p *parser) chain(n int) {
	if n > maxChain {
		panic(parseError{&raised{class: ClassLimit, msg: "the expression is too long", line: p.cur.line}})
	}
}

func (p *parser) failEnd(name string, line int) {
	var msg []string
	if name == "" {
		msg = append(msg, "Unexpected end of template.")
	} else {
		msg = append(msg, "Encountered unknown tag "+quote(name)+".")
	}
	if n := len(p.endStack); n > 0 {
		var looking []string
		for _, e := range p.endStack[n-1] {
			looking = append(looking, quote(e))
		}
		found := false
		for _, ends := range p.endStack {
			for _, e := range ends {
				found = found || name != "" && e == name
			}
		}
		currently := strings.Join(looking, " or ")
		if found {
			msg = append(msg, "You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for "+currently+".")
		} else {
			msg = append(msg, "Jinja was looking for the following tags: "+currently+".")
		}
	}
	if n := len(p.tagStack); n > 0 {
		msg = append(msg, "The innermost block that needs to be closed is "+quote(p.tagStack[n-1])+".")
	}
	p.fail(line, "%s", strings.Join(msg, " "))
}

// subparse parses text and tags until one of the end tags, which stays the current token.
func (p *parser) subparse(ends []string) []node {
	var body, data []node
	if ends != nil {
		p.endStack = append(p.endStack, ends)
		defer func() { p.endStack = p.endStack[:len(p.endStack)-1] }()
	}
	flush := func() {
		if len(data) > 0 {
			body = append(body, &outputNode{at: at(data[0].pos()), nodes: data})
			data = nil
		}
	}
	for {
		switch p.cur.kind {
		case tEOF:
			flush()
			return body
		case tData:
			data = append(data, &dataNode{at: at(p.cur.line), text: p.cur.str})
			p.next()
		case tVarBegin:
			p.next()
			data = append(data, p.parseTuple(tupleOpts{cond: true}))
			p.expect(tVarEnd)
		case tBlockBegin:
			flush()
			p.next()
			if p.cur.kind == tName {
				for _, e := range ends {
					if p.cur.str == e {
						return body
					}
				}
			}
			body = append(body, p.statement()...)
			p.expect(tBlockEnd)
		default:
			p.fail(p.cur.line, "internal parsing error")
		}
	}
}

// statements parses a body until an end tag; drop removes the end tag's name.
func (p *parser) statements(ends []string, drop bool) []node {
	p.skipKind(tColon)
	p.expect(tBlockEnd)
	p.enter()
	body := p.subparse(ends)
	p.leave()
	if p.cur.kind == tEOF {
		p.endStack = append(p.endStack, ends)
		p.failEnd("", p.cur.line)
	}
	if drop {
		p.next()
	}
	return body
}
