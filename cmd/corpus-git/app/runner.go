package app

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"corpus-git/project"
	"corpus-git/sls"
	"corpus-git/sls/run"
	"corpus-git/sls/salt"
)

// runner is what the configuration says runs SLS files, now; a reload may change it.
type runner struct {
	picking
	c *core
}

var _ sls.Opener = (*runner)(nil)

func newRunner(c *core) *runner {
	r := &runner{c: c}
	r.picking = r.pick
	return r
}

func (r *runner) pick(in *sls.Input) (sls.Runner, error) {
	cfg := r.c.cfg.Load()
	choice := cfg.Runner
	if in.Cfg != nil {
		// The project has the last word.
		if v, ok := in.Cfg.GetStr("runner"); ok {
			if text, ok := v.(string); ok && text != "" {
				choice = text
			}
		}
	}
	builtin := &run.Builtin{Backups: filepath.Join(r.c.state.Path(), "backups")}
	if choice == "builtin" {
		return builtin, nil
	}
	bin := saltCall(cfg.SaltCall, r.c.env)
	if bin == "" {
		if choice == "salt-call" {
			return nil, errNoSalt(cfg.SaltCall)
		}
		return &run.Auto{Builtin: builtin}, nil
	}
	salt := salt.Driver{Bin: bin, NewDir: func() string { return r.c.state.SaltConfig("x", string(project.NewID())) }}
	if choice == "salt-call" {
		return salt, nil
	}
	return &run.Auto{Builtin: builtin, Salt: salt}, nil
}

// Name implements sls.Runner.
func (r *runner) Name() string { return r.c.cfg.Load().Runner }

// Open implements sls.Opener: one deployment keeps the runner that its first step got, and one Salt process.
func (r *runner) Open() (sls.Runner, func() error) {
	o := &opened{runner: r, end: func() error { return nil }}
	o.picking = o.get
	return o, func() error { return o.end() }
}

// opened is the runner of one deployment.
type opened struct {
	picking
	*runner
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

// sweep removes the configuration folders of salt-call and the private copies of recipes that a crash left.
func (r *runner) sweep() {
	for _, dir := range []string{filepath.Dir(r.c.state.SaltConfig("x", "y")), r.c.state.Recipes()} {
		if err := os.RemoveAll(dir); err != nil {
			r.c.log.Warn().Err(err).Str("folder", dir).Msg("remove what deployments left")
		}
	}
}

// saltCall finds the program, "" where it is not installed.
func saltCall(name string, env []string) string {
	if strings.Contains(name, "/") {
		if _, err := exec.LookPath(name); err != nil {
			return ""
		}
		return name
	}
	return salt.Find(env)
}
