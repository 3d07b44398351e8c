package jinja

// tupleOpts says how parseTuple reads.
type tupleOpts struct {
	simple    bool // names and literals only
	cond      bool // inline if allowed
	parens    bool // inside brackets, so it may be empty
	namespace bool // ns.attr allowed as a target
}

// parseTuple parses one expression, or several with commas.
func (p *parser) parseTuple(o tupleOpts) node {
	line := p.cur.line
	var args []node
	isTuple := false
	for {
		if len(args) > 0 {
			p.expect(tComma)
		}
		if p.tupleEnd() {
			break
		}
		if o.simple {
			args = append(args, p.parsePrimary(o.namespace))
		} else {
			args = append(args, p.parseExpr(o.cond))
		}
		if p.cur.kind != tComma {
			break
		}
		isTuple = true
		line = p.cur.line
	}
	if !isTuple {
		if len(args) > 0 {
			return args[0]
		}
		if !o.parens {
			p.fail(p.cur.line, "Expected an expression, got %s", quote(p.cur.describe()))
		}
	}
	return &tupleNode{at: at(line), items: args}
}

// tupleEnd reports whether a tuple ends here. Jinja2 also means to stop at the name in or recursive, but its test for
// them never holds.
func (p *parser) tupleEnd() bool {
	switch p.cur.kind {
	case tVarEnd, tBlockEnd, tRParen:
		return true
	}
	return false
}

// parseExpr parses an expression; cond allows the inline if.
func (p *parser) parseExpr(cond bool) node {
	p.enter()
	defer p.leave()
	if !cond {
		return p.parseOr()
	}
	line := p.cur.line
	n := p.parseOr()
	for i := 0; p.skipName("if"); i++ {
		p.chain(i)
		c := &condNode{at: at(line), then: n}
		c.test = p.parseOr()
		if p.skipName("else") {
			c.other = p.parseExpr(true)
		}
		n = c
		line = p.cur.line
	}
	return n
}

func (p *parser) parseOr() node {
	line := p.cur.line
	left := p.parseAnd()
	for i := 0; p.skipName("or"); i++ {
		p.chain(i)
		left = &logicNode{at(line), true, left, p.parseAnd()}
		line = p.cur.line
	}
	return left
}

func (p *parser) parseAnd() node {
	line := p.cur.line
	left := p.parseNot()
	for i := 0; p.skipName("and"); i++ {
		p.chain(i)
		left = &logicNode{at(line), false, left, p.parseNot()}
		line = p.cur.line
	}
	return left
}

func (p *parser) parseNot() node {
	if p.cur.isName("not") {
		p.enter()
		defer p.leave()
		line := p.next().line
		return &notNode{at(line), p.parseNot()}
	}
	return p.parseCompare()
}

func (p *parser) parseCompare() node {
	line := p.cur.line
	n := p.parseMath1()
	var ops []operand
	for {
		p.chain(len(ops))
		op := ""
		switch p.cur.kind {
		case tEq, tNe, tLt, tLtEq, tGt, tGtEq:
			op = describeKind(p.next().kind)
		case tName:
			if p.skipName("in") {
				op = "in"
			} else if p.cur.str == "not" && p.peek().isName("in") {
				p.next()
				p.next()
				op = "not in"
			}
		}
		if op == "" {
			break
		}
		ops = append(ops, operand{op, p.parseMath1()})
		line = p.cur.line
	}
	if ops == nil {
		return n
	}
	return &compareNode{at(line), n, ops}
}

func (p *parser) parseMath1() node {
	line := p.cur.line
	left := p.parseConcat()
	for i := 0; p.cur.kind == tAdd || p.cur.kind == tSub; i++ {
		p.chain(i)
		op := p.next().kind
		left = &binNode{at(line), op, left, p.parseConcat()}
		line = p.cur.line
	}
	return left
}

func (p *parser) parseConcat() node {
	line := p.cur.line
	n := p.parseMath2()
	if p.cur.kind != tTilde {
		return n
	}
	items := []node{n}
	for p.skipKind(tTilde) {
		items = append(items, p.parseMath2())
	}
	return &concatNode{at(line), items}
}

func (p *parser) parseMath2() node {
	line := p.cur.line
	left := p.parsePow()
	for i := 0; ; i++ {
		p.chain(i)
		switch p.cur.kind {
		case tMul, tDiv, tFloorDiv, tMod:
			op := p.next().kind
			left = &binNode{at(line), op, left, p.parsePow()}
			line = p.cur.line
		default:
			return left
		}
	}
}

func (p *parser) parsePow() node {
	line := p.cur.line
	left := p.parseUnary(true)
	for i := 0; p.cur.kind == tPow; i++ {
		p.chain(i)
		p.next()
		left = &binNode{at(line), tPow, left, p.parseUnary(true)}
		line = p.cur.line
	}
	return left
}

func (p *parser) parseUnary(withFilter bool) node {
	line := p.cur.line
	var n node
	switch p.cur.kind {
	case tSub, tAdd:
		p.enter()
		neg := p.next().kind == tSub
		n = &unaryNode{at(line), neg, p.parseUnary(false)}
		p.leave()
	default:
		n = p.parsePrimary(false)
	}
	n = p.parsePostfix(n)
	if withFilter {
		n = p.parseFilterExpr(n)
	}
	return n
}

func (p *parser) parsePrimary(namespace bool) node {
	t := p.cur
	line := at(t.line)
	switch t.kind {
	case tName:
		p.next()
		switch t.str {
		case "true", "True":
			return &constNode{line, true}
		case "false", "False":
			return &constNode{line, false}
		case "none", "None":
			return &constNode{line, nil}
		}
		if namespace && p.skipKind(tDot) {
			return &nsRefNode{line, t.str, p.expect(tName).str}
		}
		return &nameNode{line, t.str, ctxLoad}
	case tString:
		p.next()
		s := t.str
		if p.cur.kind == tString {
			buf := []byte(s)
			for p.cur.kind == tString {
				buf = append(buf, p.next().str...)
			}
			s = string(buf)
		}
		return &constNode{line, s}
	case tInteger, tFloat:
		p.next()
		return &constNode{line, t.val}
	case tLParen:
		p.next()
		p.enter()
		n := p.parseTuple(tupleOpts{cond: true, parens: true})
		p.leave()
		p.expect(tRParen)
		return n
	case tLBracket:
		return p.parseList()
	case tLBrace:
		return p.parseDict()
	}
	p.fail(t.line, "unexpected %s", quote(t.describe()))
	return nil
}

func (p *parser) parseList() node {
	n := &listNode{at: at(p.expect(tLBracket).line)}
	for p.cur.kind != tRBracket {
		if len(n.items) > 0 {
			p.expect(tComma)
		}
		if p.cur.kind == tRBracket {
			break
		}
		n.items = append(n.items, p.parseExpr(true))
	}
	p.expect(tRBracket)
	return n
}

func (p *parser) parseDict() node {
	n := &dictNode{at: at(p.expect(tLBrace).line)}
	for p.cur.kind != tRBrace {
		if len(n.pairs) > 0 {
			p.expect(tComma)
		}
		if p.cur.kind == tRBrace {
			break
		}
		k := p.parseExpr(true)
		p.expect(tColon)
		n.pairs = append(n.pairs, &pairNode{at(k.pos()), k, p.parseExpr(true)})
	}
	p.expect(tRBrace)
	return n
}

func (p *parser) parsePostfix(n node) node {
	for i := 0; ; i++ {
		p.chain(i)
		switch p.cur.kind {
		case tDot, tLBracket:
			n = p.parseSubscript(n)
		case tLParen:
			n = p.parseCall(n)
		default:
			return n
		}
	}
}

func (p *parser) parseFilterExpr(n node) node {
	for i := 0; ; i++ {
		p.chain(i)
		switch {
		case p.cur.kind == tPipe:
			n = p.parseFilter(n, false)
		case p.cur.isName("is"):
			n = p.parseTest(n)
		case p.cur.kind == tLParen:
			n = p.parseCall(n)
		default:
			return n
		}
	}
}

func (p *parser) parseSubscript(n node) node {
	t := p.next()
	line := at(t.line)
	if t.kind == tDot {
		a := p.next()
		switch a.kind {
		case tName:
			return &attrNode{line, n, a.str}
		case tInteger:
			return &itemNode{line, n, &constNode{at(a.line), a.val}}
		}
		p.fail(a.line, "expected name or number")
	}
	var args []node
	for p.cur.kind != tRBracket {
		if len(args) > 0 {
			p.expect(tComma)
		}
		args = append(args, p.parseSubscribed())
	}
	p.expect(tRBracket)
	if len(args) == 1 {
		return &itemNode{line, n, args[0]}
	}
	return &itemNode{line, n, &tupleNode{at: line, items: args}}
}

func (p *parser) parseSubscribed() node {
	n := &sliceNode{at: at(p.cur.line)}
	if !p.skipKind(tColon) {
		e := p.parseExpr(true)
		if !p.skipKind(tColon) {
			return e
		}
		n.start = e
	}
	end := func() bool {
		return p.cur.kind == tRBracket || p.cur.kind == tComma
	}
	if p.cur.kind != tColon && !end() {
		n.stop = p.parseExpr(true)
	}
	if p.skipKind(tColon) && !end() {
		n.step = p.parseExpr(true)
	}
	return n
}

func (p *parser) parseCallArgs() callArgs {
	t := p.expect(tLParen)
	var c callArgs
	ensure := func(ok bool) {
		if !ok {
			p.fail(t.line, "invalid syntax for function call expression")
		}
	}
	for comma := false; p.cur.kind != tRParen; comma = true {
		if comma {
			p.expect(tComma)
			if p.cur.kind == tRParen {
				break
			}
		}
		switch {
		case p.cur.kind == tMul:
			ensure(c.dynArgs == nil && c.dynKwarg == nil)
			p.next()
			c.dynArgs = p.parseExpr(true)
		case p.cur.kind == tPow:
			ensure(c.dynKwarg == nil)
			p.next()
			c.dynKwarg = p.parseExpr(true)
		case p.cur.kind == tName && p.peek().kind == tAssign:
			ensure(c.dynKwarg == nil)
			key := p.next().str
			p.next()
			v := p.parseExpr(true)
			c.kwargs = append(c.kwargs, &kwNode{at(v.pos()), key, v})
		default:
			ensure(c.dynArgs == nil && c.dynKwarg == nil && len(c.kwargs) == 0)
			c.args = append(c.args, p.parseExpr(true))
		}
	}
	p.expect(tRParen)
	return c
}

func (p *parser) parseCall(n node) node {
	line := at(p.cur.line)
	return &callNode{line, n, p.parseCallArgs()}
}

func (p *parser) dottedName() string {
	name := p.expect(tName).str
	for p.skipKind(tDot) {
		name += "." + p.expect(tName).str
	}
	return name
}

// parseFilter parses a chain of filters; it gives n itself if there is none.
func (p *parser) parseFilter(n node, inline bool) node {
	for i := 0; p.cur.kind == tPipe || inline; i++ {
		p.chain(i)
		if !inline {
			p.next()
		}
		f := &filterNode{at: at(p.cur.line), expr: n}
		f.name = p.dottedName()
		if p.cur.kind == tLParen {
			f.callArgs = p.parseCallArgs()
		}
		n = f
		inline = false
	}
	return n
}

func (p *parser) parseTest(n node) node {
	line := at(p.next().line)
	negated := p.skipName("not")
	t := &testNode{at: line, expr: n}
	t.name = p.dottedName()
	switch p.cur.kind {
	case tLParen:
		t.callArgs = p.parseCallArgs()
	case tName, tString, tInteger, tFloat, tLBracket, tLBrace:
		if p.cur.isName("else") || p.cur.isName("or") || p.cur.isName("and") {
			break
		}
		if p.cur.isName("is") {
			p.fail(p.cur.line, "You cannot chain multiple tests with is")
		}
		t.args = []node{p.parsePostfix(p.parsePrimary(false))}
	}
	if negated {
		return &notNode{line, t}
	}
	return t
}
