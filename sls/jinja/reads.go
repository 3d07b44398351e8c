package jinja

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// Read is a value that a template may read: a chain of attributes and constant subscripts that starts at a name which the template does
// not set itself. Whole reports whether what is below it is read, too; it is not if the template only asks whether the value is there or true.
type Read struct {
	Name  string
	Path  []string
	Whole bool
}

// ReadOptions tell FindReads what the templates have.
type ReadOptions struct {
	// Formats are the data formats of the tags import_F and load_F.
	Formats []string
	// Called returns the value that a call with constant arguments returns, as a Read whose Whole is not used; false for a call that it
	// does not know, which reads its arguments. args contains nil for an argument that is not constant. nil knows no call.
	Called func(name string, path []string, args []any) (Read, bool)
}

// maxReadPath and maxReadChains limit the chains that assignments may lengthen and multiply.
const (
	maxReadPath   = 16
	maxReadChains = 64
	readPasses    = 4
)

// FindReads lists what a template may read, in any branch, loop and macro, without rendering it. A name that the template sets to a chain, with {% set
// %} or {% with %}, stands for that chain everywhere in it; setting it reads nothing. What templates build at run time reads the whole value that it is
// applied to. An error is an *Error.
func FindReads(src string, o ReadOptions) ([]Read, error) {
	loaders := map[string]DataLoader{}
	for _, f := range o.Formats {
		loaders[f] = func(*Context, string) (any, error) { return nil, nil } // parsed, never called
	}
	env := New(Options{DataLoaders: loaders})
	if len(src) > env.limits.Source {
		return nil, &Error{Class: ClassLimit, Msg: "the template is too large"}
	}
	ast, err := parse(env, "", normalizeSource(src, true))
	if err != nil {
		return nil, err
	}
	f := &readFinder{called: o.Called, sets: map[string][]Read{}, given: map[string]bool{}, seen: map[string]bool{}}
	f.names(ast)
	for range readPasses { // a name may be used before the line that sets it, in a loop or a macro
		f.statement(ast)
	}
	return f.found, nil
}

// readFinder walks a template. sets are the chains of the names that the template sets; given are those of them that may have been set before it.
type readFinder struct {
	given  map[string]bool
	called func(name string, path []string, args []any) (Read, bool)
	sets   map[string][]Read
	seen   map[string]bool
	found  []Read
}

// names finds the names that the template sets. One that is set in a branch, or from its own value, may be the caller's, too.
func (f *readFinder) names(ast node) {
	var visit func(n node, branch bool)
	visit = func(n node, branch bool) {
		if isNil(n) {
			return
		}
		switch x := n.(type) {
		case *ifNode:
			branch = true
		case *macroNode:
			f.sets[x.name] = nil
		case *assignNode:
			if t, ok := x.target.(*nameNode); ok {
				walk(x.expr, func(v node) bool {
					same, ok := v.(*nameNode)
					f.given[t.name] = f.given[t.name] || branch || ok && same.name == t.name
					return true
				})
			}
		case *nameNode:
			if x.ctx == ctxStore {
				f.sets[x.name] = nil
			}
		}
		for _, c := range children(n) {
			visit(c, branch)
		}
	}
	visit(ast, false)
}

func (f *readFinder) add(r Read, whole bool) {
	r.Whole = whole
	id := r.Name + "\x00" + strings.Join(r.Path, "\x00")
	if whole {
		id += "\x00\x00"
	}
	if !f.seen[id] {
		f.seen[id] = true
		f.found = append(f.found, r)
	}
}

// whole reads a value with everything below it.
func (f *readFinder) whole(n node) {
	for _, r := range f.value(n) {
		f.add(r, true)
	}
}

// truth reads whether a value is there or true.
func (f *readFinder) truth(n node) {
	switch x := n.(type) {
	case *notNode:
		f.truth(x.expr)
	case *logicNode:
		f.truth(x.left)
		f.truth(x.right)
	default:
		for _, r := range f.value(n) {
			f.add(r, false)
		}
	}
}

// below returns the chains with a key appended.
func below(from []Read, key string) []Read {
	out := make([]Read, 0, len(from))
	for _, r := range from {
		if len(r.Path) < maxReadPath {
			r.Path = append(slices.Clip(r.Path), key)
		}
		out = append(out, r)
	}
	return out
}

// value returns the chains that an expression may be, after reading what is used to find it.
func (f *readFinder) value(n node) []Read {
	if isNil(n) {
		return nil
	}
	switch x := n.(type) {
	case *nameNode:
		if set, ok := f.sets[x.name]; ok {
			if f.given[x.name] {
				set = append(slices.Clip(set), Read{Name: x.name})
			}
			return set
		}
		return []Read{{Name: x.name}}
	case *attrNode:
		return below(f.value(x.expr), x.attr)
	case *itemNode:
		if k, ok := x.arg.(*constNode); ok {
			return below(f.value(x.expr), py.Str(k.val))
		}
		f.whole(x.arg)
		f.whole(x.expr)
		return nil
	case *condNode:
		f.truth(x.test)
		return slices.Concat(f.value(x.then), f.value(x.other))
	case *logicNode:
		f.truth(x.left)
		return slices.Concat(f.value(x.left), f.value(x.right))
	case *filterNode:
		if x.name == "default" || x.name == "d" {
			return slices.Concat(f.value(x.expr), f.arguments(x.callArgs))
		}
	case *notNode:
		f.truth(x.expr)
		return nil
	case *testNode:
		f.truth(x.expr)
		f.arguments(x.callArgs)
		return nil
	case *compareNode:
		f.compare(x)
		return nil
	case *callNode:
		return f.call(x)
	}
	for _, c := range children(n) {
		f.whole(c)
	}
	return nil
}

// arguments reads the arguments of a call; the result is nil.
func (f *readFinder) arguments(a callArgs) []Read {
	for _, c := range a.children() {
		f.whole(c)
	}
	return nil
}

// compare reads both sides; 'x' in d reads only whether d has x.
func (f *readFinder) compare(x *compareNode) {
	key, isKey := x.expr.(*constNode)
	for _, o := range x.ops {
		if isKey && (o.op == "in" || o.op == "not in") {
			in := f.value(o.expr)
			for _, r := range slices.Concat(in, below(in, py.Str(key.val))) {
				f.add(r, false)
			}
			continue
		}
		f.whole(o.expr)
	}
	f.whole(x.expr)
}

// call reads what a call reads. The methods of mappings that take a key return the value of that key, and update reads its arguments only.
func (f *readFinder) call(x *callNode) []Read {
	if c, ok := chainOf(x.expr); ok && f.called != nil {
		var args []any
		for _, a := range x.args {
			k, isConst := a.(*constNode)
			if !isConst {
				args = append(args, nil)
				continue
			}
			args = append(args, k.val)
		}
		if r, ok := f.called(c.Name, c.Path, args); ok {
			return append(f.rest(x, 0), r)
		}
	}
	m, ok := x.expr.(*attrNode)
	if !ok {
		f.whole(x.expr)
		return f.arguments(x.callArgs)
	}
	switch m.attr {
	case "get", "setdefault", "pop":
		if len(x.args) > 0 {
			if k, ok := x.args[0].(*constNode); ok {
				return append(f.rest(x, 1), below(f.value(m.expr), py.Str(k.val))...)
			}
		}
	case "update":
		f.value(m.expr)
		return f.arguments(x.callArgs)
	}
	f.whole(m.expr)
	return f.arguments(x.callArgs)
}

// rest reads the arguments from one on, which may be what the call returns instead.
func (f *readFinder) rest(x *callNode, from int) (out []Read) {
	a := x.callArgs
	for _, arg := range a.args[min(from, len(a.args)):] {
		out = append(out, f.value(arg)...)
	}
	a.args = nil
	return append(out, f.arguments(a)...)
}

// set makes a name stand for a value; other targets read it.
func (f *readFinder) set(target, value node) {
	name, ok := target.(*nameNode)
	if !ok {
		f.whole(value)
		return
	}
	for _, r := range f.value(value) {
		same := func(o Read) bool { return o.Name == r.Name && slices.Equal(o.Path, r.Path) }
		if known := f.sets[name.name]; !slices.ContainsFunc(known, same) && len(known) < maxReadChains {
			f.sets[name.name] = append(known, r)
		}
	}
}

// statement reads what a statement and those below it read.
func (f *readFinder) statement(n node) {
	if isNil(n) {
		return
	}
	switch x := n.(type) {
	case *assignNode:
		f.set(x.target, x.expr)
	case *withNode:
		for i, t := range x.targets {
			f.set(t, x.values[i])
		}
		f.each(x.body)
	case *ifNode:
		f.truth(x.test)
		f.each(x.body)
		f.each(addr(x.elifs))
		f.each(x.other)
	case *exprStmtNode:
		f.value(x.expr)
	case *macroNode: // its parameters read nothing; a call reads its arguments
		f.each(x.defaults)
		f.each(x.body)
	case *callBlockNode:
		f.statement(x.call)
		f.each(x.defaults)
		f.each(x.body)
	case *outputNode, *forNode, *filterBlockNode, *blockNode, *includeNode, *importNode, *fromNode, *extendsNode,
		*assignBlockNode, *scopeNode, *templateNode:
		f.each(children(n))
	case *breakNode, *continueNode, *dataNode:
	default: // an expression
		f.whole(n)
	}
}

func (f *readFinder) each(all []node) {
	for _, n := range all {
		f.statement(n)
	}
}
