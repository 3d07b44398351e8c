package sls

import (
	"context"
	"sort"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
)

// outcome is what a chunk left behind for those that depend on it.
type outcome struct {
	ret core.Return
	ran bool // false where a requisite kept it from running
}

// run runs a Program.
type run struct {
	p       *Program
	sink    Sink
	env     *core.Env
	running map[string]*outcome // by tag
	pre     map[string]*outcome // test runs for prereq
	results []StateResult
	num, of int
	chunks  []*chunk
	stop    bool
}

// Run runs the states of a program, in order. The error is ctx's, or nil: a failed state is in the results.
func (p *Program) Run(ctx context.Context, sink Sink, backups string) ([]StateResult, error) {
	r := &run{p: p, sink: sink, running: map[string]*outcome{}, pre: map[string]*outcome{}}
	r.env = &core.Env{
		Host: p.in.Host, Roots: p.in.Roots, Pillar: orEmpty(p.in.Pillar), Grains: orEmpty(p.in.Grains), Backups: backups,
		Accumulated: map[string]*core.Accumulator{}, Cache: map[string]any{},
		Render: func(ctx context.Context, t core.Template) (string, error) {
			return p.renderer.Text(ctx, t.Name, t.Source, t.Vars)
		},
		Modules: func(ctx context.Context, name string, args []any, kw *py.Dict) (any, error) {
			return p.renderer.Modules().Call(ctx, name, args, kw)
		},
	}
	for _, n := range p.nodes {
		if !n.isTest {
			r.chunks = append(r.chunks, n.c)
		}
	}
	r.of = len(r.chunks)
	for _, n := range p.nodes {
		if err := context.Cause(ctx); err != nil {
			return r.results, err
		}
		if _, done := r.running[n.c.tag()]; done {
			continue
		}
		if err := r.chunk(ctx, n); err != nil {
			return r.results, err
		}
		if r.stop {
			break
		}
	}
	if err := r.listeners(ctx); err != nil {
		return r.results, err
	}
	return r.results, nil
}

func orEmpty(d *py.Dict) *py.Dict {
	if d == nil {
		return py.NewDict()
	}
	return d
}

// chunk runs one state, or its test run, as its requisites allow.
func (r *run) chunk(ctx context.Context, n *node) error {
	c := n.c
	status, reqs := r.check(n)
	test := c.prereq
	began := r.p.in.Host.Now()
	if !test {
		r.num++
		ref := r.p.ref(c, r.num)
		ref.Of = r.of
		r.sink.StateStart(ref)
	}
	out := &outcome{ran: true}
	notRun := func(res core.Tri, comment string) {
		out.ran = false
		out.ret = core.Return{Result: res, Comment: comment}
	}
	var err error
	switch status {
	case stMet:
		out.ret, err = r.call(ctx, c, reqs, test)
	case stSkipReq:
		notRun(core.True, "State was not run because requisites were skipped by another state")
	case stSkipWatch:
		out.ret, err = r.call(ctx, c, reqs, test)
		if !test {
			out.ret.Comment += " mod_watch was not run because requisites were skipped by another state"
		}
	case stFail:
		if p := r.pre[c.tag()]; p != nil && !test {
			out.ret = p.ret
			out.ret.Changes = nil
			out.ret.Diff = ""
			out.ran = false
		} else {
			notRun(core.False, "One or more requisite failed: "+strings.Join(r.failed(n), ", "))
		}
	case stChange:
		out.ret, err = r.call(ctx, c, reqs, test)
		if err == nil && !test && !out.ret.Changed() && !out.ret.SkipWatch {
			out.ret, err = r.watch(ctx, c, reqs)
		}
	case stPre:
		notRun(core.True, "No changes detected")
	case stOnfail:
		notRun(core.True, "State was not run because onfail req did not change")
	case stOnchanges:
		notRun(core.True, "State was not run because none of the onchanges reqs changed")
	}
	if err != nil {
		return err
	}
	if test {
		c.prereq = false
		r.pre[c.tag()] = out
		// What never runs in a test run is settled for good.
		if out.ran || status == stPre {
			return nil
		}
		r.num++
		ref := r.p.ref(c, r.num)
		ref.Of = r.of
		r.sink.StateStart(ref)
	}
	r.running[c.tag()] = out
	r.done(c, out, began, r.num)
	if !r.p.in.Test && out.ret.Result == core.False && r.failhard(c) {
		r.stop = true
	}
	return nil
}

func (r *run) failhard(c *chunk) bool {
	v, ok := c.global.GetStr("failhard")
	return ok && py.Truth(v)
}

// done reports a state.
func (r *run) done(c *chunk, o *outcome, began time.Time, num int) {
	ref := r.p.ref(c, num)
	ref.Of = r.of
	res := StateResult{
		StateRef: ref, Changed: o.ret.Changed(), Changes: command.JSON(&o.ret), Comment: o.ret.Comment,
		Skipped: !o.ran, Started: began, Duration: r.p.in.Host.Now().Sub(began), Diff: o.ret.Diff,
		Unevaluated: o.ret.Unevaluated,
	}
	switch o.ret.Result {
	case core.True:
		res.Outcome = Succeeded
	case core.None:
		res.Outcome = WouldChange
	default:
		res.Outcome = FailedState
	}
	if o.ret.Command != nil {
		cmd := CommandResult(*o.ret.Command)
		res.Command = &cmd
	}
	if v, ok := c.global.GetStr("no_log"); ok && py.Truth(v) {
		ret := o.ret
		ret.Changes, _ = hidden(ret.Changes).(*py.Dict)
		res.Changes, res.Diff, res.Comment = command.JSON(&ret), "", hiddenText
		if res.Command != nil {
			res.Command.StderrTail = ""
		}
	}
	for _, w := range o.ret.Warnings {
		r.sink.Output(c.id, Log, "warning: "+w)
	}
	r.results = append(r.results, res)
	r.sink.StateDone(res)
}

// status says what the requisites of a state allow.
type status uint8

const (
	stMet status = iota
	stFail
	stChange
	stPre
	stOnfail
	stOnchanges
	stSkipReq
	stSkipWatch
)

// check looks at the requisites of a node. Source: Salt documentation, "Requisites".
func (r *run) check(n *node) (status, []core.Requisite) {
	type flag uint8
	const (
		fail flag = iota
		change
		met
		pre
		premet
		onfail
		onchanges
		onchangesmet
		skip
		flags
	)
	byType := map[reqType][]*node{}
	for _, e := range n.in {
		for _, t := range e.types {
			byType[t] = append(byType[t], e.to)
		}
	}
	var all [flags]bool
	var reqs []core.Requisite
	for t := reqType(0); t < reqCount; t++ {
		targets := byType[t]
		if len(targets) == 0 {
			continue
		}
		var seen [flags]bool
		for _, d := range targets {
			results := r.running
			if t == reqPrereq {
				results = r.pre
			}
			o := results[d.c.tag()]
			if o == nil {
				o = r.running[d.c.tag()]
			}
			if o == nil {
				continue // a state that a failhard or a listener left out
			}
			changed := o.ret.Changed()
			reqs = append(reqs, core.Requisite{Type: t.String(), Module: d.c.module, ID: d.c.id, Name: d.c.name, Changed: changed})
			if o.ret.SkipReq {
				seen[skip] = true
			}
			switch t.base() {
			case reqOnfail:
				if o.ret.Result == core.True {
					seen[onfail] = true
					continue
				}
			case reqOnchanges:
				if o.ret.Result == core.False || !changed {
					seen[onchanges] = true
				} else {
					seen[onchangesmet] = true
				}
				continue
			default:
				if o.ret.Result == core.False {
					seen[fail] = true
					continue
				}
			}
			switch {
			case t.base() == reqWatch && changed:
				seen[change] = true
			case t == reqPrereq && o.ret.Result == core.None:
				seen[premet] = true
			case t == reqPrereq:
				seen[pre] = true
			case o.ran:
				seen[met] = true
			}
		}
		if t.any() || t == reqOnfail {
			if seen[met] || seen[change] {
				seen[fail] = false
			}
			if seen[onchangesmet] {
				seen[onchanges], seen[fail] = false, false
			}
			if seen[onfail] && seen[met] {
				seen[onfail] = false
			}
		}
		if t == reqOnfailAll && seen[onfail] {
			seen[met] = false
		}
		for i, s := range seen {
			all[i] = all[i] || s
		}
	}
	switch {
	case all[fail]:
		return stFail, reqs
	case all[skip] && (all[onchangesmet] || all[premet]):
		return stSkipReq, reqs
	case all[skip] && all[change]:
		return stSkipWatch, reqs
	case all[pre]:
		if all[premet] {
			return stMet, reqs
		}
		return stPre, reqs
	case all[onfail] && !all[onchangesmet]:
		return stOnfail, reqs
	case all[onchanges] && !all[onchangesmet]:
		return stOnchanges, reqs
	case all[change]:
		return stChange, reqs
	case all[onfail]:
		return stOnfail, reqs
	}
	return stMet, reqs
}

// failed names the requisites that failed, as SLS.ID.
func (r *run) failed(n *node) []string {
	set := map[string]bool{}
	for _, e := range n.in {
		o := r.pre[e.to.c.tag()]
		if o == nil {
			o = r.running[e.to.c.tag()]
		}
		if o != nil && o.ret.Result == core.False {
			set[e.to.c.sls+"."+e.to.c.id] = true
		}
	}
	out := make([]string, 0, len(set))
	for s := range set {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

// listeners run mod_watch of the states whose listen fired, at the end.
func (r *run) listeners(ctx context.Context) error {
	type listener struct {
		c  *chunk
		to []reqRef
	}
	var ls []listener
	for _, c := range r.chunks {
		if len(c.reqs[reqListen]) > 0 {
			ls = append(ls, listener{c, c.reqs[reqListen]})
		}
		for _, ref := range c.listenIn {
			targets, _ := r.p.graph.resolve(ref)
			for _, t := range targets {
				ls = append(ls, listener{t.c, []reqRef{{module: c.module, target: c.id}}})
			}
		}
	}
	fired := map[string]bool{}
	var order []*chunk
	for _, l := range ls {
		for _, ref := range l.to {
			targets, _ := r.p.graph.resolve(ref)
			for _, t := range targets {
				o := r.running[t.c.tag()]
				if o != nil && o.ret.Changed() && !fired[l.c.tag()] {
					fired[l.c.tag()] = true
					order = append(order, l.c)
				}
			}
		}
	}
	r.of += len(order)
	for _, c := range order {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		began := r.p.in.Host.Now()
		w := *c
		w.id, w.fun = "listener_"+c.id, "mod_watch" // as Salt names it
		r.num++
		ref := r.p.ref(&w, r.num)
		ref.Of = r.of
		r.sink.StateStart(ref)
		ret, err := r.watch(ctx, c, nil)
		if err != nil {
			return err
		}
		r.done(&w, &outcome{ret: ret, ran: true}, began, r.num)
	}
	return nil
}
