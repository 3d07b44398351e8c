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

// Auto runs a file with the built-in runner, and passes it to Salt only if it needs something that is not supported
// here. It is for one deployment: Apply keeps to what Check decided before anything ran. For a deferred file the
// decision is made when it compiles, right before its first state, and is reported if it goes to Salt. Auto is safe
// for concurrent use.
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
// refused: the error names the file, the line and what is not supported.
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

// asking returns the input for the built-in runner: if there is a Salt to pass the file to, what templates may call
// is a need.
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

// Apply implements Runner. A file that Check assigned to the built-in runner, and that needs Salt after all (because
// what its templates see has changed), is passed to Salt, with a line in the log.
func (a *Auto) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	a.mu.Lock()
	salt := a.toSalt[in.SLS]
	a.mu.Unlock()
	if salt && a.Salt != nil && in.Done == nil {
		return a.Salt.Apply(ctx, in, sink)
	}
	// A need is found by the compilation, so if there is one, nothing of this file has run.
	res, err := a.Builtin.Apply(ctx, a.asking(in), sink)
	n, needs := compile.NeedOf(err)
	if err == nil || !needs {
		return res, err
	}
	if a.Salt == nil || in.Done != nil {
		return nil, refused(err)
	}
	sink.Output("", sls.Log, fmt.Sprintf("goes to %s: it needs %s (%s:%d)", a.Salt.Name(), n.What, n.File, n.Line))
	return a.Salt.Apply(ctx, in, sink)
}
