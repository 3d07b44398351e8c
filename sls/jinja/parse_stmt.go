package jinja

import (
	"strconv"
	"strings"
)

// statement parses one tag; it gives several nodes where a tag is short for them.
func (p *parser) statement() []node {
	t := p.cur
	if t.kind != tName {
		p.fail(t.line, "tag name expected")
	}
	p.tagStack = append(p.tagStack, t.str)
	out, known := p.tag(t.str)
	p.tagStack = p.tagStack[:len(p.tagStack)-1]
	if !known {
		p.failEnd(t.str, t.line)
	}
	return out
}

func (p *parser) tag(name string) (out []node, known bool) {
	one := func(n node) ([]node, bool) { return []node{n}, true }
	switch name {
	case "for":
		return one(p.parseFor())
	case "if":
		return one(p.parseIf())
	case "block":
		return one(p.parseBlock())
	case "extends":
		line := p.next().line
		return one(&extendsNode{at(line), p.parseExpr(true)})
	case "print":
		return one(p.parsePrint())
	case "macro":
		return one(p.parseMacro())
	case "include":
		return one(p.parseInclude())
	case "from":
		return one(p.parseFrom())
	case "import":
		return one(p.parseImport())
	case "set":
		return one(p.parseSet())
	case "with":
		return one(p.parseWith())
	case "autoescape":
		line := p.next().line
		opt := p.parseExpr(true)
		body := p.statements([]string{"endautoescape"}, true)
		return one(&scopeNode{at(line), opt, body})
	case "call":
		return one(p.parseCallBlock())
	case "filter":
		return one(p.parseFilterBlock())
	case "do":
		line := p.next().line
		return one(&exprStmtNode{at(line), p.parseTuple(tupleOpts{cond: true})})
	case "break":
		return one(&breakNode{at(p.next().line)})
	case "continue":
		return one(&continueNode{at(p.next().line)})
	}
	return p.dataTag(name)
}

// dataTag parses the tags that read data in a format of Options.DataLoaders: import_<format>, load_<format> and,
// with any format, profile.
func (p *parser) dataTag(name string) (out []node, known bool) {
	if name == "profile" && len(p.env.loaders) > 0 {
		p.next()
		p.expectName("as")
		label := p.parseExpr(true)
		body := p.statements([]string{"endprofile"}, true)
		return append([]node{&exprStmtNode{at(label.pos()), label}}, body...), true
	}
	if format, ok := strings.CutPrefix(name, "import_"); ok && p.env.loaders[format] != nil {
		imp := p.parseImport()
		line := at(imp.pos())
		load := &filterNode{at: line, expr: &nameNode{line, imp.target, ctxLoad}, name: "load_" + format}
		return []node{imp, &assignNode{line, &nameNode{line, imp.target, ctxStore}, load}}, true
	}
	if format, ok := strings.CutPrefix(name, "load_"); ok && p.env.loaders[format] != nil {
		line := at(p.next().line)
		p.expectName("as")
		target := p.parseTarget(false)
		p.lastID++
		macro := "_fi" + strconv.Itoa(p.lastID)
		body := p.statements([]string{"endload"}, true)
		call := &callNode{at: line, expr: &nameNode{line, macro, ctxLoad}}
		load := &filterNode{at: line, expr: call, name: "load_" + format}
		return []node{&macroNode{at: line, name: macro, body: body}, &assignNode{line, target, load}}, true
	}
	return nil, false
}

func (p *parser) parseSet() node {
	line := at(p.next().line)
	target := p.parseTarget(true)
	if p.skipKind(tAssign) {
		return &assignNode{line, target, p.parseTuple(tupleOpts{cond: true})}
	}
	filter := p.parseFilter(nil, false)
	body := p.statements([]string{"endset"}, true)
	return &assignBlockNode{line, target, filter, body}
}

func (p *parser) parseFor() node {
	n := &forNode{at: at(p.expectName("for").line)}
	n.target = p.parseTarget(false)
	p.expectName("in")
	n.iter = p.parseTuple(tupleOpts{})
	if p.skipName("if") {
		n.test = p.parseExpr(true)
	}
	n.recursive = p.skipName("recursive")
	n.body = p.statements([]string{"endfor", "else"}, false)
	if p.next().str != "endfor" {
		n.other = p.statements([]string{"endfor"}, true)
		if n.other == nil {
			n.other = []node{}
		}
	}
	return n
}

func (p *parser) parseIf() node {
	root := &ifNode{at: at(p.expectName("if").line)}
	n := root
	for {
		n.test = p.parseTuple(tupleOpts{})
		n.body = p.statements([]string{"elif", "else", "endif"}, false)
		t := p.next()
		if t.isName("elif") {
			n = &ifNode{at: at(p.cur.line)}
			root.elifs = append(root.elifs, n)
			p.chain(len(root.elifs))
			continue
		}
		if t.isName("else") {
			root.other = p.statements([]string{"endif"}, true)
		}
		return root
	}
}

func (p *parser) parseWith() node {
	n := &withNode{at: at(p.next().line)}
	for p.cur.kind != tBlockEnd {
		if len(n.targets) > 0 {
			p.expect(tComma)
		}
		target := p.parseTarget(false)
		setCtx(target, ctxParam)
		n.targets = append(n.targets, target)
		p.expect(tAssign)
		n.values = append(n.values, p.parseExpr(true))
	}
	n.body = p.statements([]string{"endwith"}, true)
	return n
}

func (p *parser) parseBlock() node {
	n := &blockNode{at: at(p.next().line)}
	n.name = p.expect(tName).str
	n.scoped = p.skipName("scoped")
	n.required = p.skipName("required")
	if p.cur.kind == tSub {
		p.fail(p.cur.line, "Block names in Jinja have to be valid Python identifiers and may not"+
			" contain hyphens, use an underscore instead.")
	}
	n.body = p.statements([]string{"endblock"}, true)
	if n.required {
		for _, b := range n.body {
			out, ok := b.(*outputNode)
			for i := 0; ok && i < len(out.nodes); i++ {
				var d *dataNode
				if d, ok = out.nodes[i].(*dataNode); ok {
					ok = skipSpace(d.text, 0) == len(d.text)
				}
			}
			if !ok {
				p.fail(p.cur.line, "Required blocks can only contain comments or whitespace")
			}
		}
	}
	p.skipName(n.name)
	return n
}

func (p *parser) parsePrint() node {
	n := &outputNode{at: at(p.next().line)}
	for p.cur.kind != tBlockEnd {
		if len(n.nodes) > 0 {
			p.expect(tComma)
		}
		n.nodes = append(n.nodes, p.parseExpr(true))
	}
	return n
}

// importContext parses "with context" and "without context".
func (p *parser) importContext(dflt bool) bool {
	if (p.cur.isName("with") || p.cur.isName("without")) && p.peek().isName("context") {
		with := p.next().str == "with"
		p.next()
		return with
	}
	return dflt
}

func (p *parser) parseInclude() node {
	n := &includeNode{at: at(p.next().line)}
	n.template = p.parseExpr(true)
	if p.cur.isName("ignore") && p.peek().isName("missing") {
		n.ignoreMissing = true
		p.next()
		p.next()
	}
	n.withContext = p.importContext(true)
	return n
}

func (p *parser) parseImport() *importNode {
	n := &importNode{at: at(p.next().line)}
	n.template = p.parseExpr(true)
	p.expectName("as")
	n.target = p.parseName().name
	n.withContext = p.importContext(false)
	return n
}

func (p *parser) parseFrom() node {
	n := &fromNode{at: at(p.next().line)}
	n.template = p.parseExpr(true)
	p.expectName("import")
	context := func() bool {
		if (p.cur.str == "with" || p.cur.str == "without") && p.peek().isName("context") {
			n.withContext = p.next().str == "with"
			p.next()
			return true
		}
		return false
	}
	for {
		if len(n.names) > 0 {
			p.expect(tComma)
		}
		if p.cur.kind != tName {
			p.expect(tName)
		}
		if context() {
			return n
		}
		t := p.parseName()
		if strings.HasPrefix(t.name, "_") {
			panic(parseError{&raised{class: ClassAssertion, line: t.pos(),
				msg: "names starting with an underline can not be imported"}})
		}
		in := importName{t.name, t.name}
		if p.skipName("as") {
			in.alias = p.parseName().name
		}
		n.names = append(n.names, in)
		if context() || p.cur.kind != tComma {
			return n
		}
	}
}

func (p *parser) parseSignature() (args []*nameNode, defaults []node) {
	p.expect(tLParen)
	for p.cur.kind != tRParen {
		if len(args) > 0 {
			p.expect(tComma)
		}
		arg := p.parseName()
		arg.ctx = ctxParam
		if p.skipKind(tAssign) {
			defaults = append(defaults, p.parseExpr(true))
		} else if len(defaults) > 0 {
			p.fail(p.cur.line, "non-default argument follows default argument")
		}
		args = append(args, arg)
	}
	p.expect(tRParen)
	return args, defaults
}

func (p *parser) parseMacro() node {
	n := &macroNode{at: at(p.next().line)}
	n.name = p.parseName().name
	n.args, n.defaults = p.parseSignature()
	n.body = p.statements([]string{"endmacro"}, true)
	return n
}

func (p *parser) parseCallBlock() node {
	n := &callBlockNode{at: at(p.next().line)}
	if p.cur.kind == tLParen {
		n.args, n.defaults = p.parseSignature()
	}
	call, ok := p.parseExpr(true).(*callNode)
	if !ok {
		p.fail(n.pos(), "expected call")
	}
	n.call = call
	n.body = p.statements([]string{"endcall"}, true)
	return n
}

func (p *parser) parseFilterBlock() node {
	n := &filterBlockNode{at: at(p.next().line)}
	n.filter = p.parseFilter(nil, true)
	n.body = p.statements([]string{"endfilter"}, true)
	return n
}

func (p *parser) parseName() *nameNode {
	t := p.expect(tName)
	n := &nameNode{at(t.line), t.str, ctxStore}
	p.checkAssign(n)
	return n
}

// parseTarget parses what is left of an assignment; namespace allows ns.attr.
func (p *parser) parseTarget(namespace bool) node {
	n := p.parseTuple(tupleOpts{simple: true, namespace: namespace})
	setCtx(n, ctxStore)
	p.checkAssign(n)
	return n
}

func (p *parser) checkAssign(n node) {
	if canAssign(n) {
		return
	}
	p.fail(n.pos(), "can't assign to %s", quote(nodeClass(n)))
}

func canAssign(n node) bool {
	switch x := n.(type) {
	case *nameNode:
		switch x.name {
		case "true", "false", "none", "True", "False", "None":
			return false
		}
		return true
	case *nsRefNode:
		return true
	case *tupleNode:
		for _, i := range x.items {
			if !canAssign(i) {
				return false
			}
		}
		return true
	}
	return false
}

// nodeClass names a node as Jinja2's message "can't assign to" does.
func nodeClass(n node) string {
	switch n.(type) {
	case *nameNode:
		return "name"
	case *constNode:
		return "const"
	case *listNode:
		return "list"
	case *dictNode:
		return "dict"
	case *tupleNode:
		return "tuple"
	}
	return "expr"
}

func setCtx(n node, c nameCtx) {
	walk(n, func(n node) bool {
		switch x := n.(type) {
		case *nameNode:
			x.ctx = c
		case *tupleNode:
			x.store = true
		}
		return true
	})
}
