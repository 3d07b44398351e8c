package sls

import (
	"context"
	"errors"

	"corpus-git/internal/fault"
)

// Auto runs a file built in, and hands it to Salt only where it needs what is lacking here.
type Auto struct {
	Builtin *Builtin
	// Salt is nil where salt-call is not installed.
	Salt Runner
}

var _ Runner = (*Auto)(nil)

// Name implements Runner.
func (*Auto) Name() string { return "auto" }

// Check implements Runner. The answer names the runner that will be used. Without Salt a file that needs it is
// refused: the error names file, line and what is lacking.
func (a *Auto) Check(ctx context.Context, in *Input) (*Checked, error) {
	c, err := a.Builtin.Check(ctx, in)
	n, needs := NeedOf(err)
	if err == nil || !needs {
		return c, err
	}
	if a.Salt == nil {
		return nil, refuse(err)
	}
	c, err = a.Salt.Check(ctx, in)
	if err != nil {
		return nil, err
	}
	c.Needs = append(c.Needs, n)
	return c, nil
}

func refuse(err error) error {
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

// Apply implements Runner.
func (a *Auto) Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error) {
	res, err := a.Builtin.Apply(ctx, in, sink)
	if _, needs := NeedOf(err); err == nil || !needs {
		return res, err
	}
	if a.Salt == nil {
		return nil, refuse(err)
	}
	return a.Salt.Apply(ctx, in, sink)
}
