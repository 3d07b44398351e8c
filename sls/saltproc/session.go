package saltproc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

// Session runs SLS files through Salt, all in one process. Fill in the fields, and Close it after the last step.
// It gives the same results as sls.SaltCall, which it falls back to where Salt's Python is not found.
type Session struct {
	// Bin is the path of salt-call.
	Bin string
	// Dir is a directory of this deployment alone. It is made at the first Apply, mode 0700; Close removes it.
	Dir string
	// Python is the command of Salt's interpreter; nil finds it by Bin.
	Python []string

	turn   turn
	proc   *process
	basis  string
	python []string
	// perStep is why each step gets a salt-call of its own, "" where it does not.
	perStep string
	closed  bool
}

// New makes a session. Nothing is started or written before the first Apply.
func New(bin, dir string) *Session { return &Session{Bin: bin, Dir: dir, turn: newTurn()} }

var _ sls.Runner = (*Session)(nil)

// Name implements sls.Runner.
func (*Session) Name() string { return "salt-call" }

// Check implements sls.Runner. It starts no Salt: Salt has no compilation that looks at nothing.
func (s *Session) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	return s.salt().Check(ctx, in)
}

func (s *Session) salt() *sls.SaltCall { return &sls.SaltCall{Bin: s.Bin, Dir: s.Dir} }

// errClosed is a step after Close.
var errClosed = errors.New("the session with Salt is closed")

// Apply implements sls.Runner. When ctx ends, Salt and all its commands are killed; a later Apply starts Salt again.
func (s *Session) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if err := s.turn.take(ctx); err != nil {
		return nil, err
	}
	defer s.turn.give()
	op := "run " + in.SLS
	if s.closed {
		return nil, fault.New(fault.Internal, op, "%w", errClosed)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return s.salt().Apply(ctx, in, sink) // says what is not there, and runs nothing
	}
	if in, err = sls.OnDisk(in, s.Dir); err != nil {
		return nil, fault.New(fault.Internal, op, "%w", err)
	}
	if s.perStep != "" {
		return s.salt().Apply(ctx, in, sink)
	}
	res := &sls.StepResult{SLS: in.SLS, File: f.Display(), Runner: s.Name(), Started: in.Host.Now()}
	st := &stepping{in: in, sink: sink, salt: s.salt(), told: map[string]bool{}}
	for again := false; ; again = true {
		if err := s.ensure(ctx, st); err != nil {
			return nil, err
		}
		if s.perStep != "" {
			sink.Output("", sls.Log, "one salt-call for each step: "+s.perStep)
			return s.salt().Apply(ctx, in, sink)
		}
		res.States, err = st.run(ctx, s.proc, again)
		if !s.proc.alive() {
			s.proc = nil
		}
		if errors.Is(err, errStale) && !again {
			s.end()
			continue
		}
		break
	}
	res.Duration = in.Host.Now().Sub(res.Started)
	if err != nil {
		return nil, err
	}
	return res, nil
}

// ensure makes s.proc a process that was made from what a fresh one would be made from, or sets perStep.
func (s *Session) ensure(ctx context.Context, st *stepping) error {
	const op = "start Salt"
	if err := st.salt.Configure(st.in); err != nil {
		return fault.New(fault.Internal, op, "%w", err)
	}
	now, modules, err := basis(st.in, s.Dir)
	if err != nil {
		return fault.New(fault.Internal, op, "%w", err)
	}
	if s.proc != nil && (s.basis != now || !s.proc.alive()) {
		s.end()
	}
	if s.proc != nil {
		return nil
	}
	if err := emptyCache(s.Dir); err != nil {
		return fault.New(fault.Internal, op, "%w", err)
	}
	candidates := [][]string{s.python}
	switch {
	case s.python != nil:
	case s.Python != nil:
		candidates = [][]string{s.Python}
	default:
		candidates = interpreters(s.Bin, st.in.Host.Environ)
	}
	why := "the Python of " + s.Bin + " was not found"
	for _, python := range candidates {
		p, err := launch(ctx, spec{host: st.in.Host, python: python, bin: s.Bin, dir: s.Dir, modules: modules})
		if err != nil {
			return fault.New(fault.Internal, op, "%w", err)
		}
		switch err := p.await(ctx, st.log); {
		case errors.Is(err, errNoSalt):
			why = fmt.Sprintf("%s: %v", strings.Join(python, " "), err)
			continue
		case err != nil:
			return err
		}
		s.proc, s.basis, s.python = p, now, python
		return nil
	}
	s.perStep = why
	return nil
}

// emptyCache forgets what an earlier process left in Salt's cache. Its lists of files count for 20 seconds, so modules
// that are new would not be synced; and those that are gone would still be there.
func emptyCache(dir string) error {
	cache := filepath.Join(dir, "cache")
	if err := os.RemoveAll(cache); err != nil {
		return err
	}
	return os.MkdirAll(cache, 0o700)
}

// end stops the process, if there is one.
func (s *Session) end() {
	if s.proc != nil {
		s.proc.stop()
		s.proc = nil
	}
}

// Close ends the process and removes Dir. It waits for a step that runs; end its context first. A second Close does
// nothing.
func (s *Session) Close() error {
	if err := s.turn.take(context.Background()); err != nil {
		return err
	}
	defer s.turn.give()
	if s.closed {
		return nil
	}
	s.closed = true
	s.end()
	return os.RemoveAll(s.Dir)
}

// turn is a lock whose wait can be given up.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// stepping is one step while it runs.
type stepping struct {
	in   *sls.Input
	sink sls.Sink
	salt *sls.SaltCall

	// open is the state that runs, told are those that ended, both by key.
	open string
	told map[string]bool
}

// errStale tells that a fresh process would run the step otherwise.
var errStale = errors.New("the Salt process is stale")

func key(function, id, name string) string { return function + "\x00" + id + "\x00" + name }

// run sends the step and tells the sink what the answers say, until all of it is there.
func (st *stepping) run(ctx context.Context, p *process, anyway bool) ([]sls.StateResult, error) {
	req := request{SLS: st.in.SLS, Test: st.in.Test, Mark: fmt.Sprintf("end of step %d", p.steps), Anyway: anyway}
	op := "run " + st.in.SLS
	if err := p.ask(req); err != nil {
		return nil, p.died(op, "the Salt process took no step")
	}
	var doc json.RawMessage
	var end *answer
	for marked := false; end == nil || !marked; {
		a, ok, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.died(op, "the Salt process died"+st.during())
		}
		switch a.Kind {
		case stale:
			return nil, errStale
		case start:
			st.started(a)
		case done:
			st.ended(a)
		case output:
			st.sink.Output(a.ID, stream(a.Stream), a.Line)
		case result:
			doc = a.Ret
		case ended:
			end = &a
		case logged:
			before, rest, found := strings.Cut(a.Line, mark)
			if found && rest == req.Mark {
				marked = true
			}
			if before != "" || !found {
				st.log(before)
			}
		}
	}
	if doc == nil {
		how := fmt.Sprintf("exit status %d", end.Status)
		if end.Signal != 0 {
			how = fmt.Sprintf("killed by signal %d", end.Signal)
		}
		return nil, fault.New(fault.Internal, op, "%s%s and no result%s", how, st.during(), p.logged())
	}
	states, err := st.salt.Results(st.in, doc)
	if err != nil {
		return nil, err
	}
	for _, r := range states {
		if k := key(r.Function, r.ID, r.Name); !st.told[k] {
			st.tell(r)
		}
	}
	return states, nil
}

// during names the state that ran, in the middle of a sentence.
func (st *stepping) during() string {
	f := strings.Split(st.open, "\x00")
	if len(f) != 3 {
		return ""
	}
	return " in state " + f[1] + " (" + f[0] + ")"
}

func (st *stepping) log(line string) {
	// Which state it belongs to is not known: the two pipes have no order between them.
	if l := sls.SaltLogLine(line); l != "" {
		st.sink.Output("", sls.Log, l)
	}
}

func (st *stepping) started(a answer) {
	k := key(a.State+"."+a.Fun, a.ID, a.Name)
	if was := strings.Split(st.open, "\x00"); len(was) == 3 && was[1] == a.ID && was[2] == a.Name {
		return // its mod_watch
	}
	st.open = k
	ref := sls.StateRef{ID: a.ID, Name: a.Name, Function: a.State + "." + a.Fun, SLS: a.SLS, Num: len(st.told) + 1}
	ref.Of = max(a.Of, ref.Num)
	ref.File, ref.Line = sls.Locate(st.in, a.SLS, a.ID)
	st.sink.StateStart(ref)
}

func (st *stepping) ended(a answer) {
	tag, err := json.Marshal(a.Tag)
	if err != nil || len(a.Ret) == 0 {
		return
	}
	one := bytes.Join([][]byte{[]byte(`{"local":{`), tag, []byte(`:`), a.Ret, []byte(`}}`)}, nil)
	states, err := st.salt.Results(st.in, one)
	if err != nil || len(states) != 1 {
		return // the result of the step has it as well
	}
	r := states[0]
	r.Num = len(st.told) + 1
	r.Of = max(a.Of, r.Num)
	st.tell(r)
}

// tell tells the end of a state, and its start where it never began.
func (st *stepping) tell(r sls.StateResult) {
	k := key(r.Function, r.ID, r.Name)
	if st.open != k {
		st.sink.StateStart(r.StateRef)
	}
	st.open = ""
	st.told[k] = true
	st.sink.StateDone(r)
}

func stream(name string) sls.Stream {
	if name == "stderr" {
		return sls.Stderr
	}
	return sls.Stdout
}
