package compile

import (
	"container/heap"
	"math"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

// Node is a chunk in the graph of dependencies, or its test run for a prereq.
type Node struct {
	Chunk  *Chunk
	tag    string
	IsTest bool
	out    []Edges // to the nodes that depend on this one
	In     []Edges // from the nodes that this one depends on
	order  float64
}

// Edges are all dependencies between two nodes.
type Edges struct {
	To    *Node
	Types []ReqType
}

// graph orders chunks as Salt does: topologically, and otherwise by the order of definition.
type graph struct {
	nodes  []*Node
	byTag  map[string]*Node
	tests  map[string]*Node // by tag of the chunk
	lookup map[[2]string][]*Node
	sls    map[string][]*Node
	slsOrd []string
	keys   [][2]string
}

func newGraph(chunks []*Chunk, files []string) *graph {
	g := &graph{byTag: map[string]*Node{}, tests: map[string]*Node{}, lookup: map[[2]string][]*Node{}, sls: map[string][]*Node{}}
	for _, f := range files {
		g.addSLS(f)
	}
	for _, c := range chunks {
		tag := c.Tag()
		n, ok := g.byTag[tag]
		if ok {
			n.Chunk = c // as in Salt, of two states with the same tag the last one runs
		} else {
			n = &Node{Chunk: c, tag: tag}
			g.byTag[n.tag] = n
			g.nodes = append(g.nodes, n)
		}
		for _, k := range [][2]string{{c.Module, c.Name}, {c.Module, c.ID}, {"id", c.ID}, {"id", c.Name}} {
			g.addLookup(k, n)
		}
		for _, s := range append([]string{c.SLS}, c.includedFrom...) {
			g.addSLS(s)
			// A new node can only be the last one of a list, which may be long.
			if l := g.sls[s]; ok {
				g.sls[s] = appendOnce(l, n)
			} else if len(l) == 0 || l[len(l)-1] != n {
				g.sls[s] = append(l, n)
			}
		}
	}
	return g
}

func (g *graph) addLookup(k [2]string, n *Node) {
	if _, ok := g.lookup[k]; !ok {
		g.keys = append(g.keys, k)
	}
	g.lookup[k] = appendOnce(g.lookup[k], n)
}

func (g *graph) addSLS(name string) {
	if _, ok := g.sls[name]; !ok {
		g.slsOrd = append(g.slsOrd, name)
		g.sls[name] = nil
	}
}

func appendOnce(l []*Node, n *Node) []*Node {
	for _, x := range l {
		if x == n {
			return l
		}
	}
	return append(l, n)
}

// link adds a dependency: to depends on from.
func link(from, to *Node, t ReqType) {
	add := func(l []Edges, n *Node) []Edges {
		for i := range l {
			if l[i].To == n {
				for _, x := range l[i].Types {
					if x == t {
						return l
					}
				}
				l[i].Types = append(l[i].Types, t)
				return l
			}
		}
		return append(l, Edges{n, []ReqType{t}})
	}
	from.out = add(from.out, to)
	to.In = add(to.In, from)
}

// resolve returns the nodes that a reference matches; ok is false if there is none.
func (g *graph) resolve(r ReqRef) (out []*Node, ok bool) {
	pattern := strings.ContainsAny(r.Target, "*?[]")
	switch {
	case r.Module == "sls" && pattern:
		for _, s := range g.slsOrd {
			if sls.Glob(r.Target, s) {
				out = append(out, g.sls[s]...)
			}
		}
		return out, true
	case r.Module == "sls":
		out, ok = g.sls[r.Target]
		return out, ok
	case pattern:
		for _, k := range g.keys {
			if k[0] == r.Module && sls.Glob(r.Target, k[1]) {
				for _, n := range g.lookup[k] {
					out = appendOnce(out, n)
				}
			}
		}
		if len(out) > 0 {
			return out, true
		}
	}
	out, ok = g.lookup[[2]string{r.Module, r.Target}]
	return out, ok
}

// connect adds all requisites of the chunks.
func (g *graph) connect() error {
	for _, n := range append([]*Node(nil), g.nodes...) {
		for _, t := range []ReqType{ReqRequire, ReqRequireAny, ReqWatch, ReqWatchAny, ReqPrereq, ReqOnfail, ReqOnfailAny,
			ReqOnfailAll, ReqOnchanges, ReqOnchangesAny} {
			for _, r := range n.Chunk.Reqs[t] {
				targets, ok := g.resolve(r)
				if !ok {
					return g.missing(n.Chunk, t.String(), r)
				}
				for _, target := range targets {
					g.depend(n, target, t)
				}
			}
		}
		for _, r := range n.Chunk.Reqs[ReqListen] {
			if err := g.listens(n.Chunk, "listen", r); err != nil {
				return err
			}
		}
		for _, r := range n.Chunk.ListenIn {
			if err := g.listens(n.Chunk, "listen_in", r); err != nil {
				return err
			}
		}
	}
	return nil
}

// listens reports whether the target of a listen exists. Unlike the other requisites, listen finds a state by its ID or name only.
func (g *graph) listens(c *Chunk, req string, r ReqRef) error {
	if r.Module == "sls" || strings.ContainsAny(r.Target, "*?[") && len(g.lookup[[2]string{r.Module, r.Target}]) == 0 {
		at := r.at
		if at.src == nil {
			at = c.at
		}
		return failf(at, "%s of state '%s' names '%s: %s', but takes neither files nor patterns", req, c.ID, r.Module, r.Target).
			WithHint("name each state by its ID, as Salt does not find them here either")
	}
	if _, ok := g.resolve(r); !ok {
		return g.missing(c, req, r)
	}
	return nil
}

func (g *graph) missing(c *Chunk, req string, r ReqRef) error {
	at := r.at
	if at.src == nil {
		at = c.at
	}
	what := r.Module + ": " + r.Target
	if r.Module == "id" {
		what = r.Target
	}
	err := failf(at, "%s of state '%s': there is no state '%s'", req, c.ID, what)
	var names []string
	for _, k := range g.keys {
		if k[0] == r.Module {
			names = append(names, k[1])
		}
	}
	if near := closest(r.Target, names); near != "" {
		return err.WithHint("did you mean '%s'?", near)
	}
	for _, k := range g.keys {
		if k[1] == r.Target && k[0] != "id" {
			return err.WithHint("there is a state  %s: %s", k[0], k[1])
		}
	}
	return err.WithHint("check the ID, and whether the SLS that declares it is included")
}

func (g *graph) depend(n, target *Node, t ReqType) {
	if t != ReqPrereq {
		if test := g.tests[n.tag]; test != nil {
			link(target, test, t)
		}
		link(target, n, t)
		return
	}
	// The state with the prereq runs only if a test run of its target would change something, and then before the target.
	n.Chunk.prerequiring = true
	target.Chunk.Prereq = true
	test := g.tests[target.tag]
	if test == nil {
		test = &Node{Chunk: target.Chunk, tag: target.tag + "_|-__prereq_test__", IsTest: true}
		g.tests[target.tag] = test
		g.nodes = append(g.nodes, test)
		for _, e := range target.In {
			for _, x := range e.Types {
				if x != ReqPrereq {
					link(e.To, test, x)
				}
			}
		}
	}
	link(test, n, ReqPrereq)
	link(n, target, ReqRequire)
	if mine := g.tests[n.tag]; mine != nil {
		link(test, mine, ReqPrereq)
	}
}

// sorted returns the nodes in the order in which they run.
func (g *graph) sorted() ([]*Node, error) {
	maxOrder := 1.0
	for _, n := range g.nodes {
		if n.IsTest {
			continue
		}
		if o, ok := n.Chunk.order.(int64); ok && float64(o) > maxOrder-1 && o > 0 {
			maxOrder = float64(o) + 100
		}
	}
	for _, n := range g.nodes {
		n.Chunk.sortKey = orderOf(n.Chunk, maxOrder)
	}
	for _, n := range g.nodes {
		n.order = n.Chunk.sortKey
		best := ReqType(0)
		least := math.Inf(1)
		for _, e := range n.out {
			for _, t := range e.Types {
				if best <= t {
					best = t
					least = math.Min(least, e.To.Chunk.sortKey)
				}
			}
		}
		if n.order > least {
			n.order = least
		}
	}
	degree := map[*Node]int{}
	q := &queue{}
	for _, n := range g.nodes {
		for _, e := range n.In {
			degree[n] += len(e.Types)
		}
		if degree[n] == 0 {
			heap.Push(q, n)
		}
	}
	var out []*Node
	for q.Len() > 0 {
		n := heap.Pop(q).(*Node)
		out = append(out, n)
		for _, e := range n.out {
			degree[e.To] -= len(e.Types)
			if degree[e.To] == 0 {
				heap.Push(q, e.To)
			}
		}
	}
	if len(out) < len(g.nodes) {
		return nil, g.cycle()
	}
	return out, nil
}

// orderOf returns the number that the argument order means. Source: Salt documentation, "Ordering States".
func orderOf(c *Chunk, maxOrder float64) float64 {
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
type queue []*Node

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.order != b.order {
		return a.order < b.order
	}
	if a.Chunk.sortKey != b.Chunk.sortKey {
		return a.Chunk.sortKey < b.Chunk.sortKey
	}
	la, lb := a.Chunk.Module+a.Chunk.Name+a.Chunk.Fun, b.Chunk.Module+b.Chunk.Name+b.Chunk.Fun
	if la != lb {
		return la < lb
	}
	return a.tag < b.tag
}

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*Node)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

// cycle names a loop among requisites, state by state.
func (g *graph) cycle() error {
	const white, grey, black = 0, 1, 2
	color := map[*Node]int{}
	var path []*Node
	var types []ReqType
	var found []string
	var first *Node
	var visit func(n *Node) bool
	visit = func(n *Node) bool {
		color[n] = grey
		path = append(path, n)
		for _, e := range n.out {
			types = append(types, e.Types[0])
			switch color[e.To] {
			case grey:
				start := 0
				for i, p := range path {
					if p == e.To {
						start = i
					}
				}
				first = path[start]
				// Edges are followed backwards: the author wrote "B requires A".
				cycle := append([]*Node(nil), path[start:]...)
				ct := append([]ReqType(nil), types[start:]...)
				for i := len(cycle) - 1; i >= 0; i-- {
					found = append(found, label(cycle[(i+1)%len(cycle)])+" -"+ct[i].String()+"-> "+label(cycle[i]))
				}
				return true
			case white:
				if visit(e.To) {
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
	return failf(first.Chunk.at, "Recursive requisites were found: %s", strings.Join(found, ", ")).
		WithHint("remove one of these requisites")
}

func label(n *Node) string { return n.Chunk.Module + ":" + n.Chunk.ID }
