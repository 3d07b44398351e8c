package sls

import (
	"container/heap"
	"math"
	"strings"

	"corpus-git/internal/fault"
)

// node is a chunk in the graph of dependencies, or its test run for a prereq.
type node struct {
	c      *chunk
	tag    string
	isTest bool
	out    []edges // to the nodes that depend on this one
	in     []edges // from the nodes that this one depends on
	order  float64
}

// edges are all dependencies between two nodes.
type edges struct {
	to    *node
	types []reqType
}

// graph orders chunks as Salt does: topologically, and where that leaves a choice by the order of definition.
type graph struct {
	nodes  []*node
	byTag  map[string]*node
	tests  map[string]*node // by tag of the chunk
	lookup map[[2]string][]*node
	sls    map[string][]*node
	slsOrd []string
	keys   [][2]string
}

func newGraph(chunks []*chunk, files []string) *graph {
	g := &graph{byTag: map[string]*node{}, tests: map[string]*node{}, lookup: map[[2]string][]*node{}, sls: map[string][]*node{}}
	for _, f := range files {
		g.addSLS(f)
	}
	for _, c := range chunks {
		tag := c.tag()
		n, ok := g.byTag[tag]
		if ok {
			n.c = c // as in Salt, of two states with one tag the last one runs
		} else {
			n = &node{c: c, tag: tag}
			g.byTag[n.tag] = n
			g.nodes = append(g.nodes, n)
		}
		for _, k := range [][2]string{{c.module, c.name}, {c.module, c.id}, {"id", c.id}, {"id", c.name}} {
			g.addLookup(k, n)
		}
		for _, s := range append([]string{c.sls}, c.includedFrom...) {
			g.addSLS(s)
			// A new node can only be the last one of a list, which may be long.
			if l := g.sls[s]; ok {
				g.sls[s] = appendNode(l, n)
			} else if len(l) == 0 || l[len(l)-1] != n {
				g.sls[s] = append(l, n)
			}
		}
	}
	return g
}

func (g *graph) addLookup(k [2]string, n *node) {
	if _, ok := g.lookup[k]; !ok {
		g.keys = append(g.keys, k)
	}
	g.lookup[k] = appendNode(g.lookup[k], n)
}

func (g *graph) addSLS(name string) {
	if _, ok := g.sls[name]; !ok {
		g.slsOrd = append(g.slsOrd, name)
		g.sls[name] = nil
	}
}

func appendNode(l []*node, n *node) []*node {
	for _, x := range l {
		if x == n {
			return l
		}
	}
	return append(l, n)
}

// link adds a dependency: to depends on from.
func link(from, to *node, t reqType) {
	add := func(l []edges, n *node) []edges {
		for i := range l {
			if l[i].to == n {
				for _, x := range l[i].types {
					if x == t {
						return l
					}
				}
				l[i].types = append(l[i].types, t)
				return l
			}
		}
		return append(l, edges{n, []reqType{t}})
	}
	from.out = add(from.out, to)
	to.in = add(to.in, from)
}

// resolve are the nodes that a reference means; ok is false where there is none.
func (g *graph) resolve(r reqRef) (out []*node, ok bool) {
	pattern := strings.ContainsAny(r.target, "*?[]")
	switch {
	case r.module == "sls" && pattern:
		for _, s := range g.slsOrd {
			if glob(r.target, s) {
				out = append(out, g.sls[s]...)
			}
		}
		return out, true
	case r.module == "sls":
		out, ok = g.sls[r.target]
		return out, ok
	case pattern:
		for _, k := range g.keys {
			if k[0] == r.module && glob(r.target, k[1]) {
				for _, n := range g.lookup[k] {
					out = appendNode(out, n)
				}
			}
		}
		if len(out) > 0 {
			return out, true
		}
	}
	out, ok = g.lookup[[2]string{r.module, r.target}]
	return out, ok
}

// connect adds all requisites of the chunks.
func (g *graph) connect() error {
	for _, n := range append([]*node(nil), g.nodes...) {
		for _, t := range []reqType{reqRequire, reqRequireAny, reqWatch, reqWatchAny, reqPrereq, reqOnfail, reqOnfailAny,
			reqOnfailAll, reqOnchanges, reqOnchangesAny} {
			for _, r := range n.c.reqs[t] {
				targets, ok := g.resolve(r)
				if !ok {
					return g.missing(n.c, t.String(), r)
				}
				for _, target := range targets {
					g.depend(n, target, t)
				}
			}
		}
		for _, r := range n.c.reqs[reqListen] {
			if err := g.listens(n.c, "listen", r); err != nil {
				return err
			}
		}
		for _, r := range n.c.listenIn {
			if err := g.listens(n.c, "listen_in", r); err != nil {
				return err
			}
		}
	}
	return nil
}

// listens reports whether the target of a listen is there. Unlike the other requisites, listen knows a state by its ID or name only.
func (g *graph) listens(c *chunk, req string, r reqRef) error {
	if r.module == "sls" || strings.ContainsAny(r.target, "*?[") && len(g.lookup[[2]string{r.module, r.target}]) == 0 {
		at := r.at
		if at.src == nil {
			at = c.at
		}
		return failf(at, "%s of state '%s' names '%s: %s', but takes neither files nor patterns", req, c.id, r.module, r.target).
			WithHint("name each state by its ID, as Salt does not find them here either")
	}
	if _, ok := g.resolve(r); !ok {
		return g.missing(c, req, r)
	}
	return nil
}

func (g *graph) missing(c *chunk, req string, r reqRef) error {
	at := r.at
	if at.src == nil {
		at = c.at
	}
	what := r.module + ": " + r.target
	if r.module == "id" {
		what = r.target
	}
	err := failf(at, "%s of state '%s': there is no state '%s'", req, c.id, what)
	var names []string
	for _, k := range g.keys {
		if k[0] == r.module {
			names = append(names, k[1])
		}
	}
	if near := closest(r.target, names); near != "" {
		return err.WithHint("did you mean '%s'?", near)
	}
	for _, k := range g.keys {
		if k[1] == r.target && k[0] != "id" {
			return err.WithHint("there is a state  %s: %s", k[0], k[1])
		}
	}
	return err.WithHint("check the ID, and whether the SLS that declares it is included")
}

func (g *graph) depend(n, target *node, t reqType) {
	if t != reqPrereq {
		if test := g.tests[n.tag]; test != nil {
			link(target, test, t)
		}
		link(target, n, t)
		return
	}
	// The state with the prereq runs only if a test run of its target would change something, and before it.
	n.c.prerequiring = true
	target.c.prereq = true
	test := g.tests[target.tag]
	if test == nil {
		test = &node{c: target.c, tag: target.tag + "_|-__prereq_test__", isTest: true}
		g.tests[target.tag] = test
		g.nodes = append(g.nodes, test)
		for _, e := range target.in {
			for _, x := range e.types {
				if x != reqPrereq {
					link(e.to, test, x)
				}
			}
		}
	}
	link(test, n, reqPrereq)
	link(n, target, reqRequire)
	if mine := g.tests[n.tag]; mine != nil {
		link(test, mine, reqPrereq)
	}
}

// sorted are the nodes in the order they run.
func (g *graph) sorted() ([]*node, error) {
	maxOrder := 1.0
	for _, n := range g.nodes {
		if n.isTest {
			continue
		}
		if o, ok := n.c.order.(int64); ok && float64(o) > maxOrder-1 && o > 0 {
			maxOrder = float64(o) + 100
		}
	}
	for _, n := range g.nodes {
		n.c.sortKey = orderOf(n.c, maxOrder)
	}
	for _, n := range g.nodes {
		n.order = n.c.sortKey
		best := reqType(0)
		least := math.Inf(1)
		for _, e := range n.out {
			for _, t := range e.types {
				if best <= t {
					best = t
					least = math.Min(least, e.to.c.sortKey)
				}
			}
		}
		if n.order > least {
			n.order = least
		}
	}
	degree := map[*node]int{}
	q := &queue{}
	for _, n := range g.nodes {
		for _, e := range n.in {
			degree[n] += len(e.types)
		}
		if degree[n] == 0 {
			heap.Push(q, n)
		}
	}
	var out []*node
	for q.Len() > 0 {
		n := heap.Pop(q).(*node)
		out = append(out, n)
		for _, e := range n.out {
			degree[e.to] -= len(e.types)
			if degree[e.to] == 0 {
				heap.Push(q, e.to)
			}
		}
	}
	if len(out) < len(g.nodes) {
		return nil, g.loop()
	}
	return out, nil
}

// orderOf is the number that order: stands for. Source: Salt documentation, "Ordering States".
func orderOf(c *chunk, maxOrder float64) float64 {
	var o float64
	switch x := c.order.(type) {
	case int64:
		o = float64(x)
	case float64:
		o = x
	case string:
		switch x {
		case "last":
			o = maxOrder + 1000000
		case "first":
			o = 0
		default:
			o = maxOrder
		}
	default:
		o = maxOrder
	}
	if c.nameOrder > 0 {
		o += float64(c.nameOrder) / 10000
	}
	if o < 0 {
		o += maxOrder + 1000000
	}
	return o
}

// queue is a heap of nodes by order, then module, name and function.
type queue []*node

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.order != b.order {
		return a.order < b.order
	}
	if a.c.sortKey != b.c.sortKey {
		return a.c.sortKey < b.c.sortKey
	}
	la, lb := a.c.module+a.c.name+a.c.fun, b.c.module+b.c.name+b.c.fun
	if la != lb {
		return la < lb
	}
	return a.tag < b.tag
}

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*node)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

// loop names a loop among requisites, state by state.
func (g *graph) loop() error {
	const white, grey, black = 0, 1, 2
	color := map[*node]int{}
	var path []*node
	var types []reqType
	var found []string
	var first *node
	var visit func(n *node) bool
	visit = func(n *node) bool {
		color[n] = grey
		path = append(path, n)
		for _, e := range n.out {
			types = append(types, e.types[0])
			switch color[e.to] {
			case grey:
				start := 0
				for i, p := range path {
					if p == e.to {
						start = i
					}
				}
				first = path[start]
				// Read against the arrows: what a person wrote is "B requires A".
				cycle := append([]*node(nil), path[start:]...)
				ct := append([]reqType(nil), types[start:]...)
				for i := len(cycle) - 1; i >= 0; i-- {
					found = append(found, label(cycle[(i+1)%len(cycle)])+" -"+ct[i].String()+"-> "+label(cycle[i]))
				}
				return true
			case white:
				if visit(e.to) {
					return true
				}
			}
			types = types[:len(types)-1]
		}
		path = path[:len(path)-1]
		color[n] = black
		return false
	}
	for _, n := range g.nodes {
		if color[n] == white && visit(n) {
			break
		}
	}
	if first == nil {
		return fault.New(fault.Internal, "order states", "a loop that cannot be named")
	}
	return failf(first.c.at, "Recursive requisites were found: %s", strings.Join(found, ", ")).
		WithHint("remove one of these requisites")
}

func label(n *node) string { return n.c.module + ":" + n.c.id }
