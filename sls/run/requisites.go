package run

import (
	"sort"

	"corpus-git/sls/compile"
	"corpus-git/sls/state/core"
)

// status is what the requisites of a state allow.
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

// flag is what the results of requisites mean, in the terms of Salt's own check.
type flag uint8

const (
	fail         flag = iota // one of require, watch or prereq failed
	change                   // a watched state changed
	met                      // one ran, and succeeded
	pre                      // the test run of a prereq would change nothing
	premet                   // it would change something
	onfail                   // one of onfail did not fail
	onchanges                // one of onchanges did not change
	onchangesmet             // one of onchanges changed
	skip                     // one said that no requisite on it fires
	flagCount
)

// flags are the flags that are set.
type flags [flagCount]bool

// check evaluates the requisites of a node, kind by kind. Source: Salt documentation, "Requisites".
func (r *run) check(n *compile.Node) (status, []core.Requisite) {
	byType := map[compile.ReqType][]*compile.Node{}
	for _, e := range n.In {
		for _, t := range e.Types {
			byType[t] = append(byType[t], e.To)
		}
	}
	var all flags
	var reqs []core.Requisite
	for t := compile.ReqType(0); t < compile.ReqCount; t++ {
		if len(byType[t]) == 0 {
			continue
		}
		var seen flags
		for _, d := range byType[t] {
			o := r.outcomeFor(t, d)
			if o == nil {
				continue // a state that was skipped because of a failhard or a listener
			}
			reqs = append(reqs, core.Requisite{Type: t.String(), Module: d.Chunk.Module, ID: d.Chunk.ID, Name: d.Chunk.Name, Changed: o.ret.Changed()})
			seen.add(t, o)
		}
		seen.reduce(t)
		for i, s := range seen {
			all[i] = all[i] || s
		}
	}
	return all.status(), reqs
}

// outcomeFor returns the outcome of a state that another one depends on; that of its test run if it has this one as prereq.
func (r *run) outcomeFor(t compile.ReqType, d *compile.Node) *outcome {
	if t == compile.ReqPrereq {
		if o := r.pre[d.Chunk.Tag()]; o != nil {
			return o
		}
	}
	return r.running[d.Chunk.Tag()]
}

// add sets the flags for one result of a requisite of a kind.
func (f *flags) add(t compile.ReqType, o *outcome) {
	changed := o.ret.Changed()
	if o.ret.SkipReq {
		f[skip] = true
	}
	switch t.Base() {
	case compile.ReqOnfail:
		if o.ret.Result == core.True {
			f[onfail] = true
			return
		}
	case compile.ReqOnchanges:
		if o.ret.Result == core.False || !changed {
			f[onchanges] = true
		} else {
			f[onchangesmet] = true
		}
		return
	default:
		if o.ret.Result == core.False {
			f[fail] = true
			return
		}
	}
	switch {
	case t.Base() == compile.ReqWatch && changed:
		f[change] = true
	case t == compile.ReqPrereq && o.ret.Result == core.None:
		f[premet] = true
	case t == compile.ReqPrereq:
		f[pre] = true
	case o.ran:
		f[met] = true
	}
}

// reduce clears the flags that do not count once all requisites of a kind were evaluated: for kinds of which one is enough,
// and for onfail_all.
func (f *flags) reduce(t compile.ReqType) {
	if t.Any() || t == compile.ReqOnfail {
		if f[met] || f[change] {
			f[fail] = false
		}
		if f[onchangesmet] {
			f[onchanges], f[fail] = false, false
		}
		if f[onfail] && f[met] {
			f[onfail] = false
		}
	}
	if t == compile.ReqOnfailAll && f[onfail] {
		f[met] = false
	}
}

// status returns what the flags of all kinds allow.
func (f *flags) status() status {
	switch {
	case f[fail]:
		return stFail
	case f[skip] && (f[onchangesmet] || f[premet]):
		return stSkipReq
	case f[skip] && f[change]:
		return stSkipWatch
	case f[pre] && f[premet]:
		return stMet
	case f[pre]:
		return stPre
	case f[onfail] && !f[onchangesmet]:
		return stOnfail
	case f[onchanges] && !f[onchangesmet]:
		return stOnchanges
	case f[change]:
		return stChange
	case f[onfail]:
		return stOnfail
	}
	return stMet
}

// failed names the requisites that failed, as SLS.ID.
func (r *run) failed(n *compile.Node) []string {
	set := map[string]bool{}
	for _, e := range n.In {
		o := r.pre[e.To.Chunk.Tag()]
		if o == nil {
			o = r.running[e.To.Chunk.Tag()]
		}
		if o != nil && o.ret.Result == core.False {
			set[e.To.Chunk.SLS+"."+e.To.Chunk.ID] = true
		}
	}
	out := make([]string, 0, len(set))
	for s := range set {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}
