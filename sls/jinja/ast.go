package jinja

// The nodes of a parsed template. They mirror Jinja2's own, as its scoping rules are defined on them.

type node interface{ pos() int }

// at is the line of a node.
type at int

func (a at) pos() int { return int(a) }

// nameCtx reports how a name is used.
type nameCtx uint8

const (
	ctxLoad nameCtx = iota
	ctxStore
	ctxParam
)

// Expressions.
type (
	nameNode struct {
		at
		name string
		ctx  nameCtx
	}
	nsRefNode struct {
		at
		name, attr string
	}
	constNode struct {
		at
		val any
	}
	dataNode struct {
		at
		text string
	}
	tupleNode struct {
		at
		items []node
		store bool
	}
	listNode struct {
		at
		items []node
	}
	pairNode struct {
		at
		key, val node
	}
	dictNode struct {
		at
		pairs []*pairNode
	}
	condNode struct {
		at
		test, then, other node // other may be nil
	}
	binNode struct {
		at
		op          kind
		left, right node
	}
	logicNode struct {
		at
		or          bool
		left, right node
	}
	notNode struct {
		at
		expr node
	}
	unaryNode struct {
		at
		neg  bool
		expr node
	}
	operand struct {
		op   string // "==", "in", "not in" …
		expr node
	}
	compareNode struct {
		at
		expr node
		ops  []operand
	}
	concatNode struct {
		at
		items []node
	}
	attrNode struct {
		at
		expr node
		attr string
	}
	itemNode struct {
		at
		expr, arg node
	}
	sliceNode struct {
		at
		start, stop, step node // each may be nil
	}
	kwNode struct {
		at
		key string
		val node
	}
	callArgs struct {
		args     []node
		kwargs   []*kwNode
		dynArgs  node
		dynKwarg node
	}
	callNode struct {
		at
		expr node
		callArgs
	}
	filterNode struct {
		at
		expr node // nil inside a filter block
		name string
		callArgs
	}
	testNode struct {
		at
		expr node
		name string
		callArgs
	}
)

// Statements.
type (
	outputNode struct {
		at
		nodes []node
	}
	forNode struct {
		at
		target, iter node
		body, other  []node
		test         node
		recursive    bool
	}
	ifNode struct {
		at
		test  node
		body  []node
		elifs []*ifNode
		other []node
	}
	macroNode struct {
		at
		name     string
		args     []*nameNode
		defaults []node
		body     []node
	}
	callBlockNode struct {
		at
		call     *callNode
		args     []*nameNode
		defaults []node
		body     []node
	}
	filterBlockNode struct {
		at
		body   []node
		filter node
	}
	withNode struct {
		at
		targets, values []node
		body            []node
	}
	blockNode struct {
		at
		name             string
		body             []node
		scoped, required bool
	}
	includeNode struct {
		at
		template      node
		withContext   bool
		ignoreMissing bool
	}
	importNode struct {
		at
		template    node
		target      string
		withContext bool
	}
	importName struct{ name, alias string }
	fromNode   struct {
		at
		template    node
		names       []importName
		withContext bool
	}
	extendsNode struct {
		at
		template node
	}
	assignNode struct {
		at
		target, expr node
	}
	assignBlockNode struct {
		at
		target, filter node // filter may be nil
		body           []node
	}
	exprStmtNode struct {
		at
		expr node
	}
	scopeNode struct {
		at
		option node
		body   []node
	}
	breakNode    struct{ at }
	continueNode struct{ at }
	templateNode struct {
		at
		body []node
	}
)

func addr[T node](in []T) []node {
	out := make([]node, len(in))
	for i, n := range in {
		out[i] = n
	}
	return out
}

func (c *callArgs) children() []node {
	out := append([]node(nil), c.args...)
	for _, k := range c.kwargs {
		out = append(out, k)
	}
	return append(out, c.dynArgs, c.dynKwarg)
}

// children returns the nodes below n, in the order of Jinja2's fields; nil entries are to be skipped.
func children(n node) []node {
	switch x := n.(type) {
	case *tupleNode:
		return x.items
	case *listNode:
		return x.items
	case *dictNode:
		return addr(x.pairs)
	case *pairNode:
		return []node{x.key, x.val}
	case *condNode:
		return []node{x.test, x.then, x.other}
	case *binNode:
		return []node{x.left, x.right}
	case *logicNode:
		return []node{x.left, x.right}
	case *notNode:
		return []node{x.expr}
	case *unaryNode:
		return []node{x.expr}
	case *compareNode:
		out := []node{x.expr}
		for _, o := range x.ops {
			out = append(out, o.expr)
		}
		return out
	case *concatNode:
		return x.items
	case *attrNode:
		return []node{x.expr}
	case *itemNode:
		return []node{x.expr, x.arg}
	case *sliceNode:
		return []node{x.start, x.stop, x.step}
	case *kwNode:
		return []node{x.val}
	case *callNode:
		return append([]node{x.expr}, x.callArgs.children()...)
	case *filterNode:
		return append([]node{x.expr}, x.callArgs.children()...)
	case *testNode:
		return append([]node{x.expr}, x.callArgs.children()...)
	}
	return stmtChildren(n)
}

func stmtChildren(n node) []node {
	var out []node
	switch x := n.(type) {
	case *outputNode:
		return x.nodes
	case *forNode:
		out = append(out, x.target, x.iter)
		out = append(out, x.body...)
		out = append(out, x.other...)
		return append(out, x.test)
	case *ifNode:
		out = append(out, x.test)
		out = append(out, x.body...)
		out = append(out, addr(x.elifs)...)
		return append(out, x.other...)
	case *macroNode:
		out = append(out, addr(x.args)...)
		out = append(out, x.defaults...)
		return append(out, x.body...)
	case *callBlockNode:
		out = append(out, x.call)
		out = append(out, addr(x.args)...)
		out = append(out, x.defaults...)
		return append(out, x.body...)
	case *filterBlockNode:
		out = append(out, x.body...)
		return append(out, x.filter)
	case *withNode:
		out = append(out, x.targets...)
		out = append(out, x.values...)
		return append(out, x.body...)
	case *blockNode:
		return x.body
	case *includeNode:
		return []node{x.template}
	case *importNode:
		return []node{x.template}
	case *fromNode:
		return []node{x.template}
	case *extendsNode:
		return []node{x.template}
	case *assignNode:
		return []node{x.target, x.expr}
	case *assignBlockNode:
		out = append(out, x.target, x.filter)
		return append(out, x.body...)
	case *exprStmtNode:
		return []node{x.expr}
	case *scopeNode:
		out = append(out, x.option)
		return append(out, x.body...)
	case *templateNode:
		return x.body
	}
	return nil
}

// isNil tells a missing child, also one that is a typed nil.
func isNil(n node) bool {
	if n == nil {
		return true
	}
	switch x := n.(type) {
	case *filterNode:
		return x == nil
	case *callNode:
		return x == nil
	}
	return false
}

// walk calls fn for n and everything below it, parents first; fn gives false to stay out of a node.
func walk(n node, fn func(node) bool) {
	if isNil(n) || !fn(n) {
		return
	}
	for _, c := range children(n) {
		walk(c, fn)
	}
}
