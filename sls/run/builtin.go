package run

import (
	"context"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
)

// Builtin is the runner that needs no Salt.
type Builtin struct {
	// Backups is the folder in which file states with backup: minion keep old files; "" means that
	// none are kept.
	Backups string
}

var _ sls.Runner = (*Builtin)(nil)

// Name implements Runner.
func (*Builtin) Name() string { return "builtin" }

// Check implements Runner.
func (b *Builtin) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	static := *in
	static.Mode = sls.Static
	p, err := compile.SLS(ctx, &static, nil)
	if err != nil {
		return nil, err
	}
	if p.Deferred == nil {
		if err := changed(in, p.Input.Cfg); err != nil {
			return nil, err
		}
	}
	return &sls.Checked{SLS: in.SLS, File: p.File, Runner: b.Name(), States: len(p.States()), Deferred: p.Deferred, Waits: p.Waits(), Warnings: p.Warnings}, nil
}

// Apply implements Runner.
func (b *Builtin) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	live := *in
	live.Mode = sls.Live
	res := &sls.StepResult{SLS: in.SLS, Runner: b.Name(), Started: in.Host.Now()}
	p, err := compile.SLS(ctx, &live, func(line string) { sink.Output("", sls.Log, line) })
	if err != nil {
		return nil, err
	}
	if p.Deferred != nil {
		return nil, fault.New(fault.Internal, "apply "+in.SLS, "a live compilation was deferred")
	}
	res.File = p.File
	for _, w := range p.Warnings {
		res.Warnings = append(res.Warnings, w.String())
	}
	res.States, err = runProgram(ctx, p, sink, b.Backups)
	res.Duration = in.Host.Now().Sub(res.Started)
	if cerr := changed(in, p.Input.Cfg); err == nil {
		err = cerr
	}
	return res, err
}

// changed passes on cfg as the templates changed it.
func changed(in *sls.Input, cfg *py.Dict) error {
	if in.Changed == nil || cfg == nil {
		return nil
	}
	return in.Changed(cfg)
}
