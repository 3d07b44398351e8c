package salt

import (
	"context"
	"errors"

	"corpus-git/sls"
)

// Driver is salt-call on this machine, from which each deployment opens a session.
type Driver struct {
	// Bin is the path of salt-call.
	Bin string
	// NewDir returns the name of a directory that does not exist, for one session; its parents are
	// created.
	NewDir func() string
}

var _ sls.Opener = Driver{}

// Name implements sls.Runner.
func (Driver) Name() string { return "salt-call" }

// Check implements sls.Runner.
func (p Driver) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	return (&Call{Bin: p.Bin}).Check(ctx, in)
}

// Apply implements sls.Runner: a session of one step.
func (p Driver) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (res *sls.StepResult, err error) {
	s, end := p.Open()
	defer func() { err = errors.Join(err, end()) }()
	return s.Apply(ctx, in, sink)
}

// Open implements sls.Opener.
func (p Driver) Open() (sls.Runner, func() error) {
	s := NewSession(p.Bin, p.NewDir())
	return s, s.Close
}
