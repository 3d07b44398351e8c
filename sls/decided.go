package sls

import (
	"context"
	"fmt"
	"sync"
)

// Decided is Auto for one deployment: what Check decided before anything ran, Apply keeps to. A file that was
// deferred is decided when it compiles, right before its first state, and says so where it goes to Salt. The zero
// value with Auto set is ready; safe for concurrent use.
type Decided struct {
	Auto *Auto

	mu   sync.Mutex
	salt map[string]bool // by SLS name; absent is undecided
}

var _ Runner = (*Decided)(nil)

// Name implements Runner.
func (d *Decided) Name() string { return d.Auto.Name() }

// Check implements Runner, as Auto does, and remembers the decision.
func (d *Decided) Check(ctx context.Context, in *Input) (*Checked, error) {
	c, err := d.Auto.Check(ctx, in)
	if err == nil && c.Deferred == nil {
		d.decide(in.SLS, c.Runner != d.Auto.Builtin.Name())
	}
	return c, err
}

func (d *Decided) decide(sls string, salt bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.salt == nil {
		d.salt = map[string]bool{}
	}
	d.salt[sls] = salt
}

// Apply implements Runner. A file of which Check said that it runs built in, and that needs Salt after all (what its
// templates see has changed), goes there with a line of log.
func (d *Decided) Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error) {
	d.mu.Lock()
	salt := d.salt[in.SLS]
	d.mu.Unlock()
	if salt && d.Auto.Salt != nil {
		return d.Auto.Salt.Apply(ctx, in, sink)
	}
	// A need is found by the compilation, so nothing of this file has run when there is one.
	res, err := d.Auto.Builtin.Apply(ctx, in, sink)
	n, needs := NeedOf(err)
	if err == nil || !needs {
		return res, err
	}
	if d.Auto.Salt == nil {
		return nil, refuse(err)
	}
	sink.Output("", Log, fmt.Sprintf("goes to %s: it needs %s (%s:%d)", d.Auto.Salt.Name(), n.What, n.File, n.Line))
	return d.Auto.Salt.Apply(ctx, in, sink)
}
