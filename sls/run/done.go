package run

import (
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/state/core"
)

// doneSoFar returns what was done so far, for another process to continue.
func (r *run) doneSoFar() sls.Done {
	switch {
	case len(r.pre) > 0:
		return sls.Done{Lost: "it has states with prereq"}
	case len(r.env.Accumulated) > 0:
		return sls.Done{Lost: "it has collected texts with file.accumulated"}
	}
	out := sls.Done{Program: r.p.Digest()}
	at := map[string]sls.StateResult{}
	for i, tag := range r.tags {
		at[tag] = r.results[i]
	}
	for i, n := range r.p.Nodes {
		tag := n.Chunk.Tag()
		o := r.running[tag]
		if n.IsTest || o == nil {
			continue
		}
		if o.ret.Result != core.True {
			return sls.Done{Lost: "a state of it has failed"}
		}
		out.States = append(out.States, sls.DoneState{N: i, Ran: o.ran, Changed: o.ret.Changed(), SkipWatch: o.ret.SkipWatch, SkipReq: o.ret.SkipReq, Started: at[tag].Started, Duration: at[tag].Duration})
	}
	return out
}

// resume takes over what an earlier process had done: these states are not run again.
func (r *run) resume(done sls.Done) error {
	if done.Program != r.p.Digest() {
		return fault.New(fault.Failed, "", "the states of %s are not the same as before the wait", r.p.SLS)
	}
	for _, s := range done.States {
		if s.N < 0 || s.N >= len(r.p.Nodes) {
			return fault.New(fault.Internal, "continue "+r.p.SLS, "there is no state %d", s.N)
		}
		c := r.p.Nodes[s.N].Chunk
		o := &outcome{ran: s.Ran, ret: core.Return{Result: core.True, SkipWatch: s.SkipWatch, SkipReq: s.SkipReq, Comment: "it was kept: it had ended before the wait"}}
		if s.Changed {
			o.ret.Changes = py.NewDict("kept", true)
		}
		r.running[c.Tag()] = o
		r.num++
		ref := r.p.Ref(c, r.num)
		ref.Of = r.of
		r.tags = append(r.tags, c.Tag())
		r.results = append(r.results, sls.StateResult{
			StateRef: ref, Outcome: sls.Succeeded, Changed: s.Changed, Comment: o.ret.Comment, Skipped: !s.Ran, Always: always(c), Started: s.Started, Duration: s.Duration,
		})
	}
	return nil
}
