package saltproc

import (
	"context"
	"errors"

	"corpus-git/sls"
)

// Program is salt-call on this machine, from which each deployment opens a session.
type Program struct {
	// Bin is the path of salt-call.
	Bin string
	// NewDir names a directory that does not exist, for one session; its parents are made.
	NewDir func() string
}

var _ sls.Opener = Program{}

// Name implements sls.Runner.
func (Program) Name() string { return "salt-call" }

// Check implements sls.Runner.
func (p Program) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	return (&sls.SaltCall{Bin: p.Bin}).Check(ctx, in)
}

// Apply implements sls.Runner: a session of one step.
func (p Program) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (res *sls.StepResult, err error) {
	s, end := p.Open()
	defer func() { err = errors.Join(err, end()) }()
	return s.Apply(ctx, in, sink)
}

// Open implements sls.Opener.
func (p Program) Open() (sls.Runner, func() error) {
	s := New(p.Bin, p.NewDir())
	return s, s.Close
}
