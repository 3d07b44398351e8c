package sls

import (
	"context"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// Builtin is the runner that needs no Salt.
type Builtin struct {
	// Backups is where file states with backup: minion keep old files; "" keeps none.
	Backups string
}

var _ Runner = (*Builtin)(nil)

// Name implements Runner.
func (*Builtin) Name() string { return "builtin" }

// Check implements Runner.
func (b *Builtin) Check(ctx context.Context, in *Input) (*Checked, error) {
	static := *in
	static.Mode = Static
	p, err := Compile(ctx, &static)
	if err != nil {
		return nil, err
	}
	if p.Deferred == nil {
		if err := in.changed(p.in.Cfg); err != nil {
			return nil, err
		}
	}
	return &Checked{SLS: in.SLS, File: p.File, Runner: b.Name(), States: len(p.States()), Deferred: p.Deferred}, nil
}

// Apply implements Runner.
func (b *Builtin) Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error) {
	live := *in
	live.Mode = Live
	res := &StepResult{SLS: in.SLS, Runner: b.Name(), Started: in.Host.Now()}
	p, err := compile(ctx, &live, func(line string) { sink.Output("", Log, line) })
	if err != nil {
		return nil, err
	}
	if p.Deferred != nil {
		return nil, fault.New(fault.Internal, "apply "+in.SLS, "a live compilation was deferred")
	}
	res.File = p.File
	res.Warnings = p.Warnings
	res.States, err = p.Run(ctx, sink, b.Backups)
	res.Duration = in.Host.Now().Sub(res.Started)
	if cerr := in.changed(p.in.Cfg); err == nil {
		err = cerr
	}
	return res, err
}

// changed tells what the templates made of cfg.
func (in *Input) changed(cfg *py.Dict) error {
	if in.Changed == nil || cfg == nil {
		return nil
	}
	return in.Changed(cfg)
}
