package jinja

import (
	"corpus-git/internal/py"
)

// Call is a chain of attributes and constant subscripts that starts at a name, as it is in a template:
// salt['cmd.run'], pillar.get. Called reports whether it is called there; Always, whether every rendering comes by: it is in no branch,
// loop or macro, and in no template that extends another one.
type Call struct {
	Name   string   // the name it starts at: "salt"
	Path   []string // "cmd.run"
	Expr   string   // salt['cmd.run']
	Line   int
	Called bool
	Always bool
}

// Calls lists the chains that the template uses, in the order of the text, without rendering anything. Names that
// templates build at run time are not seen.
func (t *Template) Calls() []Call {
	var out []Call
	var visit func(n node, called, always bool)
	visit = func(n node, called, always bool) {
		if isNil(n) {
			return
		}
		if c, ok := chainOf(n); ok {
			c.Called, c.Always = called, always
			out = append(out, c)
			return
		}
		if call, ok := n.(*callNode); ok {
			visit(call.expr, true, always)
			for _, a := range call.callArgs.children() {
				visit(a, false, always)
			}
			return
		}
		first := firstOnly(n)
		for _, c := range children(n) {
			visit(c, false, always && (first == nil || !isNil(first) && c == first))
		}
	}
	extends := false
	walk(t.ast, func(n node) bool {
		_, ok := n.(*extendsNode)
		extends = extends || ok
		return true
	})
	visit(t.ast, false, !extends)
	return out
}

// firstOnly returns the part of n that every rendering of n comes by, where the others depend on something; nil if all of it is rendered.
func firstOnly(n node) node {
	switch x := n.(type) {
	case *condNode:
		return x.test
	case *logicNode:
		return x.left
	case *ifNode:
		return x.test
	case *forNode:
		return x.iter
	case *callBlockNode:
		return x.call
	case *macroNode:
		return (*macroNode)(nil)
	}
	return nil
}

func chainOf(n node) (Call, bool) {
	switch x := n.(type) {
	case *nameNode:
		return Call{Name: x.name, Expr: x.name, Line: x.pos()}, x.ctx == ctxLoad
	case *attrNode:
		c, ok := chainOf(x.expr)
		c.Path = append(c.Path, x.attr)
		c.Expr += "." + x.attr
		return c, ok
	case *itemNode:
		k, isConst := x.arg.(*constNode)
		if !isConst {
			return Call{}, false
		}
		c, ok := chainOf(x.expr)
		c.Path = append(c.Path, py.Str(k.val))
		c.Expr += "[" + py.Repr(k.val) + "]"
		return c, ok
	}
	return Call{}, false
}

// References lists the templates that this one names in constant includes, imports and extends, in order.
func (t *Template) References() []string {
	var out []string
	add := func(n node) {
		switch x := n.(type) {
		case *constNode:
			if s, ok := x.val.(string); ok {
				out = append(out, s)
			}
		case *listNode:
			for _, i := range x.items {
				if k, ok := i.(*constNode); ok {
					out = append(out, py.Str(k.val))
				}
			}
		}
	}
	walk(t.ast, func(n node) bool {
		switch x := n.(type) {
		case *includeNode:
			add(x.template)
		case *importNode:
			add(x.template)
		case *fromNode:
			add(x.template)
		case *extendsNode:
			add(x.template)
		}
		return true
	})
	return out
}
