// Package choose selects what runs SLS files: the built-in runner, Salt, or both, as the server's configuration says and a project
// overrides.
package choose

import (
	"context"
	"os/exec"
	"strings"
	"sync"

	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/run"
	"corpus-git/sls/salt"
)

// Runner runs each step with the currently configured runner; a reload may change it.
type Runner struct {
	picking
	cfg Config
}

// Config configures a Runner.
type Config struct {
	// Settings returns the names of the runner (auto, builtin, salt-call) and of salt-call, as configured now.
	Settings func() (runner, saltCall string)
	// Backups is the folder in which the built-in runner keeps files that file states replace.
	Backups string
	// SaltDir returns the name of a new folder for the configuration of one salt-call.
	SaltDir func() string
	// Env is the environment whose PATH is searched for salt-call.
	Env []string
}

var _ sls.Opener = (*Runner)(nil)

// New returns a runner.
func New(cfg Config) *Runner {
	r := &Runner{cfg: cfg}
	r.picking = r.pick
	return r
}

func (r *Runner) pick(in *sls.Input) (sls.Runner, error) {
	choice, program := r.cfg.Settings()
	if in.Cfg != nil {
		// The project's setting overrides the server's.
		if v, ok := in.Cfg.GetStr("runner"); ok {
			if text, ok := v.(string); ok && text != "" {
				choice = text
			}
		}
	}
	builtin := &run.Builtin{Backups: r.cfg.Backups}
	if choice == "builtin" {
		return builtin, nil
	}
	bin := SaltCall(program, r.cfg.Env)
	if bin == "" {
		if choice == "salt-call" {
			return nil, fault.New(fault.Refused, "", "the configuration says runner: salt-call, and there is no %s", program).
				WithHint("install Salt, or set salt_call to its path, or  runner: auto")
		}
		return &run.Auto{Builtin: builtin}, nil
	}
	driver := salt.Driver{Bin: bin, NewDir: r.cfg.SaltDir}
	if choice == "salt-call" {
		return driver, nil
	}
	return &run.Auto{Builtin: builtin, Salt: driver}, nil
}

// Name implements sls.Runner.
func (r *Runner) Name() string {
	name, _ := r.cfg.Settings()
	return name
}

// Open implements sls.Opener: one deployment keeps the runner of its first step, and one Salt process.
func (r *Runner) Open() (sls.Runner, func() error) {
	o := &opened{Runner: r, end: func() error { return nil }}
	o.picking = o.get
	return o, func() error { return o.end() }
}

// opened is the runner of one deployment.
type opened struct {
	picking
	*Runner
	once   sync.Once
	picked sls.Runner
	err    error
	end    func() error
}

func (o *opened) get(in *sls.Input) (sls.Runner, error) {
	o.once.Do(func() {
		o.picked, o.err = o.pick(in)
		switch p := o.picked.(type) {
		case *run.Auto:
			if p.Salt != nil {
				p.Salt, o.end = sls.Open(p.Salt)
			}
		case sls.Opener:
			o.picked, o.end = p.Open()
		}
	})
	return o.picked, o.err
}

// picking finds the runner for a step, and runs it there.
type picking func(in *sls.Input) (sls.Runner, error)

// Check implements sls.Runner.
func (pick picking) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	p, err := pick(in)
	if err != nil {
		return nil, err
	}
	return p.Check(ctx, in)
}

// Apply implements sls.Runner.
func (pick picking) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	p, err := pick(in)
	if err != nil {
		return nil, err
	}
	return p.Apply(ctx, in, sink)
}

// SaltCall finds the program, "" if it is not installed.
func SaltCall(name string, env []string) string {
	if strings.Contains(name, "/") {
		if _, err := exec.LookPath(name); err != nil {
			return ""
		}
		return name
	}
	return salt.Find(env)
}
