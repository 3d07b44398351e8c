package salt

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
// It gives the same results as Call, to which it falls back if Salt's Python is not found.
type Session struct {
	// Bin is the path of salt-call.
	Bin string
	// Dir is a directory for this deployment only. It is created at the first Apply, mode 0700; Close removes it.
	Dir string
	// Python is the command of Salt's interpreter; nil finds it by Bin.
	Python []string

	mu     ctxMutex
	proc   *process
	digest string
	python []string
	// perStep is why each step gets a separate salt-call, "" if it does not.
	perStep string
	closed  bool
}

// NewSession returns a session. Nothing is started or written before the first Apply.
func NewSession(bin, dir string) *Session { return &Session{Bin: bin, Dir: dir, mu: newCtxMutex()} }

var _ sls.Runner = (*Session)(nil)

// Name implements sls.Runner.
func (*Session) Name() string { return "salt-call" }

// Check implements sls.Runner. What the built-in runner cannot compile is compiled by Salt, which then runs no state and no
// command of a template: a file whose templates run one is deferred.
func (s *Session) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	c, err := s.salt().Check(ctx, in)
	if err != nil || c.Deferred != nil {
		return c, err
	}
	if in.Plan && ownModules(in) {
		c.Deferred = deferred(c, "the recipe's own Salt modules are not loaded in a plan")
		return c, nil
	}
	var end *answer
	work := func(st *stepRun, again bool) (err error) {
		end, err = st.compile(ctx, s.proc, again)
		return err
	}
	if _, perStep, err := s.withProcess(ctx, in, sls.Discard{}, work); err != nil || perStep {
		return c, err
	}
	return c, addFindings(in, c, end)
}

// addFindings adds to c what Salt found.
func addFindings(in *sls.Input, c *sls.Checked, a *answer) error {
	var doc struct {
		Local json.RawMessage `json:"local"`
	}
	if err := json.Unmarshal(a.Ret, &doc); err != nil {
		return fault.New(fault.Internal, "check "+in.SLS, "%w", err)
	}
	var problems []string
	var text string
	if json.Unmarshal(doc.Local, &text) == nil && text != "" {
		problems = []string{text}
	} else if json.Unmarshal(doc.Local, &problems) != nil {
		problems = nil
	}
	at := func(why string) *sls.Deferred { return deferred(c, why) }
	switch {
	case strings.HasPrefix(a.Refused, "#!"):
		c.Deferred = at("it is written for the renderer " + a.Refused[len("#!"):] + ", which is not run in a plan")
	case a.Refused != "":
		c.Deferred = at(a.Refused + " is run while the template renders")
	case len(problems) > 0 && a.Asked != "": // what it read may be different when the step runs
		c.Deferred = at(a.Asked + " is called while the template renders, which fails as things are now")
	case len(problems) > 0:
		return compileError(in, problems)
	default:
		c.States = a.Of
	}
	return nil
}

func deferred(c *sls.Checked, why string) *sls.Deferred {
	return &sls.Deferred{File: c.File, Line: 1, Why: why}
}

func (s *Session) salt() *Call { return &Call{Bin: s.Bin, Dir: s.Dir} }

// errClosed is the error for a step after Close.
var errClosed = errors.New("the session with Salt is closed")

// Apply implements sls.Runner. When ctx ends, Salt and all its commands are killed; a later Apply starts Salt again.
func (s *Session) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	f, err := in.Roots.SLS(in.SLS)
	if err != nil || in.Done != nil || in.Plan && ownModules(in) {
		return s.salt().Apply(ctx, in, sink) // reports what is missing or skipped, and runs nothing
	}
	res := &sls.StepResult{SLS: in.SLS, File: f.Display(), Runner: s.Name(), Started: in.Host.Now()}
	if !in.Test {
		if err := in.Undo.ManualStep("what Salt changed in " + f.Display()); err != nil {
			return nil, err
		}
	}
	disk, perStep, err := s.withProcess(ctx, in, sink, func(st *stepRun, again bool) (err error) {
		res.States, err = st.run(ctx, s.proc, again)
		return err
	})
	if err != nil {
		return nil, err
	}
	if perStep {
		return s.salt().Apply(ctx, disk, sink)
	}
	res.Duration = in.Host.Now().Sub(res.Started)
	return res, nil
}

// withProcess calls work with a process that matches the input; disk is the input with its file roots on disk. perStep reports that
// there is no such process: each step gets a separate salt-call.
func (s *Session) withProcess(ctx context.Context, in *sls.Input, sink sls.Sink, work func(st *stepRun, again bool) error) (disk *sls.Input, perStep bool, err error) {
	if err := s.mu.lock(ctx); err != nil {
		return nil, false, err
	}
	defer s.mu.unlock()
	op := "run " + in.SLS
	if s.closed {
		return nil, false, fault.New(fault.Internal, op, "%w", errClosed)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, false, err
	}
	if disk, err = onDisk(in, s.Dir); err != nil {
		return nil, false, fault.New(fault.Internal, op, "%w", err)
	}
	if s.perStep != "" {
		return disk, true, nil
	}
	stop, err := serveFunctions(ctx, disk, s.Dir)
	if err != nil {
		return nil, false, fault.New(fault.Internal, op, "%w", err)
	}
	defer stop()
	st := &stepRun{in: disk, sink: sink, salt: s.salt(), reported: map[string]bool{}}
	for again := false; ; again = true {
		if err := s.ensure(ctx, st); err != nil {
			return disk, false, err
		}
		if s.perStep != "" {
			sink.Output("", sls.Log, "one salt-call for each step: "+s.perStep)
			return disk, true, nil
		}
		err := work(st, again)
		if !s.proc.alive() {
			s.proc = nil
		}
		if errors.Is(err, errStale) && !again {
			s.stopProcess()
			continue
		}
		return disk, false, err
	}
}

// ensure sets s.proc to a process that was started with the same inputs as a fresh one would be, or sets perStep.
func (s *Session) ensure(ctx context.Context, st *stepRun) error {
	const op = "start Salt"
	if err := st.salt.Configure(st.in); err != nil {
		return fault.New(fault.Internal, op, "%w", err)
	}
	now, modules, err := inputDigest(st.in, s.Dir)
	if err != nil {
		return fault.New(fault.Internal, op, "%w", err)
	}
	if s.proc != nil && (s.digest != now || !s.proc.alive()) {
		s.stopProcess()
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
		p, err := startProcess(ctx, processSpec{host: st.in.Host, python: python, bin: s.Bin, dir: s.Dir, modules: modules})
		if err != nil {
			return fault.New(fault.Internal, op, "%w", err)
		}
		switch err := p.waitReady(ctx, st.log); {
		case errors.Is(err, errNoSalt):
			why = fmt.Sprintf("%s: %v", strings.Join(python, " "), err)
			continue
		case err != nil:
			return err
		}
		s.proc, s.digest, s.python = p, now, python
		return nil
	}
	s.perStep = why
	return nil
}

// emptyCache removes what an earlier process left in Salt's cache. Its lists of files are valid for 20 seconds, so new modules would
// not be synced, and removed ones would still be present.
func emptyCache(dir string) error {
	cache := filepath.Join(dir, "cache")
	if err := os.RemoveAll(cache); err != nil {
		return err
	}
	return os.MkdirAll(cache, 0o700)
}

// stopProcess stops the process, if there is one.
func (s *Session) stopProcess() {
	if s.proc != nil {
		s.proc.stop()
		s.proc = nil
	}
}

// Close ends the process and removes Dir. It waits for a running step; end its context first. A second Close does
// nothing.
func (s *Session) Close() error {
	if err := s.mu.lock(context.Background()); err != nil {
		return err
	}
	defer s.mu.unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stopProcess()
	return os.RemoveAll(s.Dir)
}

// ctxMutex is a mutex whose Lock ends with a context.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

func (t ctxMutex) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t ctxMutex) unlock() { <-t }

// stepRun is one step while it runs.
type stepRun struct {
	in   *sls.Input
	sink sls.Sink
	salt *Call

	// open is the running state, told are those that have ended, both by key.
	open     string
	reported map[string]bool
}

// errStale reports that a fresh process would run the step differently.
var errStale = errors.New("the Salt process is stale")

func key(function, id, name string) string { return function + "\x00" + id + "\x00" + name }

// compile only compiles the step; the answer is the one of kind result.
func (st *stepRun) compile(ctx context.Context, p *process, anyway bool) (*answer, error) {
	return st.ask(ctx, p, request{SLS: st.in.SLS, Check: true, Plan: st.in.Plan, Anyway: anyway})
}

// run sends the step and forwards the answers to the sink, until all have arrived.
func (st *stepRun) run(ctx context.Context, p *process, anyway bool) ([]sls.StateResult, error) {
	a, err := st.ask(ctx, p, request{SLS: st.in.SLS, Test: st.in.Test, Plan: st.in.Plan, Anyway: anyway})
	if err != nil {
		return nil, err
	}
	states, err := st.salt.results(st.in, a.Ret)
	if err != nil {
		return nil, err
	}
	for _, r := range states {
		if k := key(r.Function, r.ID, r.Name); !st.reported[k] {
			st.report(r)
		}
	}
	return states, nil
}

// ask sends a request and forwards the answers to the sink, until the result and everything before it have arrived.
func (st *stepRun) ask(ctx context.Context, p *process, req request) (*answer, error) {
	req.Mark = fmt.Sprintf("end of step %d", p.steps)
	op := "run " + st.in.SLS
	if err := p.ask(req); err != nil {
		return nil, p.exitError(op, "the Salt process took no step")
	}
	var doc, end *answer
	for marked := false; end == nil || !marked; {
		a, ok, err := p.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.exitError(op, "the Salt process died"+st.inState())
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
			doc = &a
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
		return nil, fault.New(fault.Internal, op, "%s%s and no result%s", how, st.inState(), p.logged())
	}
	return doc, nil
}

// inState returns the name of the running state, for use within a sentence.
func (st *stepRun) inState() string {
	f := strings.Split(st.open, "\x00")
	if len(f) != 3 {
		return ""
	}
	return " in state " + f[1] + " (" + f[0] + ")"
}

func (st *stepRun) log(line string) {
	// Which state it belongs to is not known: the two pipes have no order between them.
	if l := saltLog(line); l != "" {
		st.sink.Output("", sls.Log, l)
	}
}

func (st *stepRun) started(a answer) {
	k := key(a.State+"."+a.Fun, a.ID, a.Name)
	if was := strings.Split(st.open, "\x00"); len(was) == 3 && was[1] == a.ID && was[2] == a.Name {
		return // its mod_watch
	}
	st.open = k
	ref := sls.StateRef{ID: a.ID, Name: a.Name, Function: a.State + "." + a.Fun, SLS: a.SLS, Num: len(st.reported) + 1}
	ref.Of = max(a.Of, ref.Num)
	ref.File, ref.Line = findID(st.in, a.SLS, a.ID)
	st.sink.StateStart(ref)
}

func (st *stepRun) ended(a answer) {
	tag, err := json.Marshal(a.Tag)
	if err != nil || len(a.Ret) == 0 {
		return
	}
	one := bytes.Join([][]byte{[]byte(`{"local":{`), tag, []byte(`:`), a.Ret, []byte(`}}`)}, nil)
	states, err := st.salt.results(st.in, one)
	if err != nil || len(states) != 1 {
		return // the result of the step has it as well
	}
	r := states[0]
	r.Num = len(st.reported) + 1
	r.Of = max(a.Of, r.Num)
	st.report(r)
}

// report sends the end of a state to the sink, and its start if that was never sent.
func (st *stepRun) report(r sls.StateResult) {
	k := key(r.Function, r.ID, r.Name)
	if st.open != k {
		st.sink.StateStart(r.StateRef)
	}
	st.open = ""
	st.reported[k] = true
	st.sink.StateDone(r)
}

func stream(name string) sls.Stream {
	if name == "stderr" {
		return sls.Stderr
	}
	return sls.Stdout
}
