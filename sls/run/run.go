package run

import (
	"context"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
)

// outcome is the outcome of a chunk for those that depend on it.
type outcome struct {
	ret core.Return
	ran bool // false if a requisite prevented it from running
}

// run runs a Program.
type run struct {
	p       *compile.Program
	sink    sls.Sink
	env     *core.Env
	running map[string]*outcome // by tag
	pre     map[string]*outcome // test runs for prereq
	results []sls.StateResult
	tags    []string // of the results
	num, of int
	chunks  []*compile.Chunk
	stop    bool
}

// runProgram runs the states of a program, in order. An error is that of ctx; failed states are in the results.
func runProgram(ctx context.Context, p *compile.Program, sink sls.Sink, backups string) ([]sls.StateResult, error) {
	r := &run{p: p, sink: sink, running: map[string]*outcome{}, pre: map[string]*outcome{}}
	r.env = &core.Env{
		Host: p.Input.Host, Roots: p.Input.Roots, Pillar: orEmpty(p.Input.Pillar), Grains: orEmpty(p.Input.Grains), Backups: backups, Undo: p.Input.Undo,
		Accumulated: map[string]*core.Accumulator{}, Cache: map[string]any{},
		Render: func(ctx context.Context, t core.Template) (string, error) {
			return p.Renderer.Text(ctx, t.Name, t.Source, t.Vars)
		},
		Modules: func(ctx context.Context, name string, args []any, kw *py.Dict) (any, error) {
			return p.Renderer.Modules().Call(ctx, name, args, kw)
		},
	}
	if p.Input.Wait != nil {
		r.env.Wait = func(ctx context.Context, id string, args *py.Dict) (string, error) {
			return p.Input.Wait(ctx, id, args, r.doneSoFar)
		}
	}
	for _, n := range p.Nodes {
		if !n.IsTest {
			r.chunks = append(r.chunks, n.Chunk)
		}
	}
	r.of = len(r.chunks)
	if p.Input.Done != nil {
		if err := r.resume(*p.Input.Done); err != nil {
			return nil, err
		}
	}
	for _, n := range p.Nodes {
		if err := context.Cause(ctx); err != nil {
			return r.results, err
		}
		if err := p.Input.Asked(); err != nil {
			return r.results, err
		}
		if _, done := r.running[n.Chunk.Tag()]; done {
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
func (r *run) chunk(ctx context.Context, n *compile.Node) error {
	c := n.Chunk
	status, reqs := r.check(n)
	test := c.Prereq
	began := r.p.Input.Host.Now()
	if !test {
		r.num++
		ref := r.p.Ref(c, r.num)
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
		if p := r.pre[c.Tag()]; p != nil && !test {
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
		c.Prereq = false
		r.pre[c.Tag()] = out
		// What never runs in a test run has its final outcome.
		if out.ran || status == stPre {
			return nil
		}
		r.num++
		ref := r.p.Ref(c, r.num)
		ref.Of = r.of
		r.sink.StateStart(ref)
	}
	r.running[c.Tag()] = out
	r.done(c, out, began, r.num)
	if !r.p.Input.Test && out.ret.Result == core.False && r.failhard(c) {
		r.stop = true
	}
	return nil
}

func (r *run) failhard(c *compile.Chunk) bool {
	v, ok := c.Global.GetStr("failhard")
	return ok && py.Truth(v)
}

// done reports a state.
func (r *run) done(c *compile.Chunk, o *outcome, began time.Time, num int) {
	ref := r.p.Ref(c, num)
	ref.Of = r.of
	res := sls.StateResult{
		StateRef: ref, Changed: o.ret.Changed(), Changes: command.JSON(&o.ret), Comment: o.ret.Comment,
		Skipped: !o.ran, Started: began, Duration: r.p.Input.Host.Now().Sub(began), Diff: o.ret.Diff,
		Unevaluated: o.ret.Unevaluated, Always: always(c),
	}
	switch o.ret.Result {
	case core.True:
		res.Outcome = sls.Succeeded
	case core.None:
		res.Outcome = sls.WouldChange
	default:
		res.Outcome = sls.FailedState
	}
	if o.ret.Command != nil {
		cmd := sls.CommandResult(*o.ret.Command)
		res.Command = &cmd
	}
	if v, ok := c.Global.GetStr("no_log"); ok && py.Truth(v) {
		ret := o.ret
		ret.Changes, _ = hideValues(ret.Changes).(*py.Dict)
		res.Changes, res.Diff, res.Comment = command.JSON(&ret), "", hiddenText
		if res.Command != nil {
			res.Command.StderrTail = ""
		}
	}
	for _, w := range o.ret.Warnings {
		r.sink.Output(c.ID, sls.Log, "warning: "+w)
	}
	r.results, r.tags = append(r.results, res), append(r.tags, c.Tag())
	r.sink.StateDone(res)
}

// always reports whether a state is a command, a module's function or an output without any condition.
func always(c *compile.Chunk) bool {
	switch c.Function() {
	case "cmd.run", "cmd.script", "cmd.call", "module.run", "corpus.output":
	default:
		return false
	}
	for _, key := range []string{"onlyif", "unless", "creates"} {
		if _, ok := c.Global.GetStr(key); ok {
			return false
		}
		if _, ok := c.Args.GetStr(key); ok {
			return false
		}
	}
	return len(c.Reqs[compile.ReqOnchanges]) == 0 && len(c.Reqs[compile.ReqOnfail]) == 0 && len(c.Reqs[compile.ReqPrereq]) == 0
}

// listeners runs mod_watch of the states whose listen fired, at the end.
func (r *run) listeners(ctx context.Context) error {
	type listener struct {
		c  *compile.Chunk
		to []compile.ReqRef
	}
	var ls []listener
	for _, c := range r.chunks {
		if len(c.Reqs[compile.ReqListen]) > 0 {
			ls = append(ls, listener{c, c.Reqs[compile.ReqListen]})
		}
		for _, ref := range c.ListenIn {
			targets, _ := r.p.Resolve(ref)
			for _, t := range targets {
				ls = append(ls, listener{t.Chunk, []compile.ReqRef{{Module: c.Module, Target: c.ID}}})
			}
		}
	}
	fired := map[string]bool{}
	var order []*compile.Chunk
	for _, l := range ls {
		for _, ref := range l.to {
			targets, _ := r.p.Resolve(ref)
			for _, t := range targets {
				o := r.running[t.Chunk.Tag()]
				if o != nil && o.ret.Changed() && !fired[l.c.Tag()] {
					fired[l.c.Tag()] = true
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
		began := r.p.Input.Host.Now()
		w := *c
		w.ID, w.Fun = "listener_"+c.ID, "mod_watch" // as Salt names it
		r.num++
		ref := r.p.Ref(&w, r.num)
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
