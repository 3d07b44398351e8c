package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/compile"
)

// Auto runs a file built in, and hands it to Salt only where it needs what is lacking here. It is for one deployment:
// what Check decided before anything ran, Apply keeps to. A file that was deferred is decided when it compiles, right
// before its first state, and says so where it goes to Salt. Safe for concurrent use.
type Auto struct {
	Builtin *Builtin
	// Salt is nil if salt-call is not installed.
	Salt sls.Runner

	mu     sync.Mutex
	toSalt map[string]bool // by SLS name; absent is undecided
}

var _ sls.Runner = (*Auto)(nil)

// Name implements Runner.
func (*Auto) Name() string { return "auto" }

// Check implements Runner. The answer names the runner that will be used. Without Salt a file that needs it is
// refused: the error names file, line and what is lacking.
func (a *Auto) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	c, err := a.Builtin.Check(ctx, a.asking(in))
	if n, needs := compile.NeedOf(err); needs {
		if a.Salt == nil {
			return nil, refused(err)
		}
		if c, err = a.Salt.Check(ctx, in); err == nil {
			c.Needs = append(c.Needs, n)
		}
	}
	if err != nil {
		return nil, err
	}
	if c.Deferred == nil {
		a.decide(in.SLS, c.Runner != a.Builtin.Name())
	}
	return c, nil
}

// asking returns the input for the built-in runner: with a Salt to go to, what templates may call is a need.
func (a *Auto) asking(in *sls.Input) *sls.Input {
	if a.Salt == nil {
		return in
	}
	out := *in
	out.Branches = true
	return &out
}

func (a *Auto) decide(sls string, salt bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.toSalt == nil {
		a.toSalt = map[string]bool{}
	}
	a.toSalt[sls] = salt
}

func refused(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	out := *f
	out.Kind = fault.Refused
	if out.Hint == "" {
		out.Hint = "install salt-call, or write the step without it"
	}
	return &out
}

// Apply implements Runner. A file of which Check said that it runs built in, and that needs Salt after all (what its
// templates see has changed), goes there with a line of log.
func (a *Auto) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	a.mu.Lock()
	salt := a.toSalt[in.SLS]
	a.mu.Unlock()
	if salt && a.Salt != nil {
		return a.Salt.Apply(ctx, in, sink)
	}
	// A need is found by the compilation, so nothing of this file has run when there is one.
	res, err := a.Builtin.Apply(ctx, a.asking(in), sink)
	n, needs := compile.NeedOf(err)
	if err == nil || !needs {
		return res, err
	}
	if a.Salt == nil {
		return nil, refused(err)
	}
	sink.Output("", sls.Log, fmt.Sprintf("goes to %s: it needs %s (%s:%d)", a.Salt.Name(), n.What, n.File, n.Line))
	return a.Salt.Apply(ctx, in, sink)
}
