package jinja

// Scoping, as Jinja2 does it: names are resolved when a template is compiled, to variables of the function that the
// template, a block or a macro becomes. The rules are those of Jinja2's idtracking module.

// function is one unit of execution with variables of its own: a template's root, a block, a macro, a recursive loop,
// the condition of a loop.
type function struct {
	parent *function
	vars   map[varKey]*variable
}

type varKey struct {
	level int
	name  string
}

// variable is one slot of a function's frame.
type variable struct {
	fn   *function
	slot int
	name string
}

func newFunction(parent *function) *function {
	return &function{parent: parent, vars: map[varKey]*variable{}}
}

func (fn *function) variable(level int, name string) *variable {
	k := varKey{level, name}
	v := fn.vars[k]
	if v == nil {
		v = &variable{fn: fn, slot: len(fn.vars), name: name}
		fn.vars[k] = v
	}
	return v
}

// loadKind says how a variable gets its value when its scope is entered.
type loadKind uint8

const (
	loadParam     loadKind = iota // by the caller
	loadResolve                   // from the context, by name
	loadAlias                     // from the variable of an outer scope
	loadUndefined                 // not at all
)

type load struct {
	kind  loadKind
	alias *variable
}

// symbols are the names of one scope.
type symbols struct {
	fn     *function
	level  int
	parent *symbols
	refs   map[string]*variable
	loads  map[*variable]load
	order  []*variable // keys of loads, in order
	stores map[string]bool
}

func newSymbols(parent *symbols, fn *function) *symbols {
	s := &symbols{fn: fn, parent: parent, refs: map[string]*variable{}, loads: map[*variable]load{}, stores: map[string]bool{}}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

func (s *symbols) copy() *symbols {
	c := newSymbols(nil, s.fn)
	c.level, c.parent = s.level, s.parent
	c.update(s)
	return c
}

func (s *symbols) update(o *symbols) {
	for k, v := range o.refs {
		s.refs[k] = v
	}
	for _, v := range o.order {
		s.setLoad(v, o.loads[v])
	}
	for k := range o.stores {
		s.stores[k] = true
	}
}

func (s *symbols) setLoad(v *variable, l load) {
	if _, ok := s.loads[v]; !ok {
		s.order = append(s.order, v)
	}
	s.loads[v] = l
}

func (s *symbols) define(name string, l load) *variable {
	v := s.fn.variable(s.level, name)
	s.refs[name] = v
	s.setLoad(v, l)
	return v
}

// find returns the variable that a name means here, nil if it was never seen.
func (s *symbols) find(name string) *variable {
	for ; s != nil; s = s.parent {
		if v := s.refs[name]; v != nil {
			return v
		}
	}
	return nil
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if s.refs[name] != nil {
		return
	}
	if outer := s.parent.find(name); outer != nil {
		s.define(name, load{loadAlias, outer})
		return
	}
	s.define(name, load{kind: loadUndefined})
}

func (s *symbols) param(name string) *variable {
	s.stores[name] = true
	return s.define(name, load{kind: loadParam})
}

func (s *symbols) load(name string) {
	if s.find(name) == nil {
		s.define(name, load{kind: loadResolve})
	}
}

// branches merges the scopes of the branches of an if: a name that only some of them set falls back to what it was.
func (s *symbols) branches(all []*symbols) {
	stores := map[string]bool{}
	for _, b := range all {
		for n := range b.stores {
			if !s.stores[n] {
				stores[n] = true
			}
		}
	}
	for _, b := range all {
		s.update(b)
	}
	for name := range stores {
		target := s.find(name)
		if outer := s.parent.find(name); outer != nil {
			s.setLoad(target, load{loadAlias, outer})
			continue
		}
		s.setLoad(target, load{kind: loadResolve})
	}
}

// visible returns the variables that code in this scope has set: what an include with context sees on top of the context.
func (s *symbols) visible() map[string]*variable {
	out := map[string]*variable{}
	for n := s; n != nil; n = n.parent {
		for name := range n.stores {
			if out[name] == nil {
				out[name] = s.find(name)
			}
		}
	}
	return out
}

// forBranch reports which part of a loop is analysed.
type forBranch uint8

const (
	branchBody forBranch = iota
	branchElse
	branchTest
)

// analyze finds the names of the scope that a node opens.
func (s *symbols) analyze(n node, branch forBranch) {
	switch x := n.(type) {
	case *assignBlockNode:
		s.visitAll(x.body)
	case *callBlockNode:
		s.visitAll(addr(x.args))
		s.visitAll(x.defaults)
		s.visitAll(x.body)
	case *forNode:
		if branch != branchElse {
			s.visitParam(x.target)
		}
		switch branch {
		case branchBody:
			s.visitAll(x.body)
		case branchElse:
			s.visitAll(x.other)
		case branchTest:
			s.visit(x.test)
		}
	case *withNode:
		s.visitAll(x.targets)
		s.visitAll(x.body)
	default:
		s.visitAll(children(n))
	}
}

func (s *symbols) visitAll(nodes []node) {
	for _, n := range nodes {
		s.visit(n)
	}
}

// visitParam declares the targets of a loop.
func (s *symbols) visitParam(n node) {
	walk(n, func(n node) bool {
		if x, ok := n.(*nameNode); ok {
			s.param(x.name)
		}
		return true
	})
}

// visit finds the names that a node uses in this scope; it stays out of the scopes below.
func (s *symbols) visit(n node) {
	if isNil(n) {
		return
	}
	switch x := n.(type) {
	case *nameNode:
		switch x.ctx {
		case ctxParam:
			s.param(x.name)
		case ctxStore:
			s.store(x.name)
		default:
			s.load(x.name)
		}
	case *nsRefNode:
		s.load(x.name)
	case *ifNode:
		s.visitIf(x)
	case *macroNode:
		s.store(x.name)
	case *importNode:
		s.visit(x.template)
		s.store(x.target)
	case *fromNode:
		s.visit(x.template)
		for _, in := range x.names {
			s.store(in.alias)
		}
	case *assignNode:
		s.visit(x.expr)
		s.visit(x.target)
	case *forNode:
		s.visit(x.iter)
	case *callBlockNode:
		s.visit(x.call)
	case *filterBlockNode:
		s.visit(x.filter)
	case *withNode:
		s.visitAll(x.values)
	case *assignBlockNode:
		s.visit(x.target)
	case *scopeNode, *blockNode:
	default:
		s.visitAll(children(n))
	}
}

func (s *symbols) visitIf(x *ifNode) {
	s.visit(x.test)
	inner := func(nodes []node) *symbols {
		c := s.copy()
		c.visitAll(nodes)
		return c
	}
	s.branches([]*symbols{inner(x.body), inner(addr(x.elifs)), inner(x.other)})
}

// undeclared returns those of names that are read below the nodes before anything there sets them.
func undeclared(nodes []node, names ...string) map[string]bool {
	open := map[string]bool{}
	for _, n := range names {
		open[n] = true
	}
	found := map[string]bool{}
	for _, n := range nodes {
		walk(n, func(n node) bool {
			switch x := n.(type) {
			case *nameNode:
				if x.ctx == ctxLoad && open[x.name] {
					found[x.name] = true
				} else {
					delete(open, x.name)
				}
			case *blockNode:
				return false
			}
			return true
		})
	}
	return found
}
