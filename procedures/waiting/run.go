package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/project"
	"corpus-git/project/schema"
	"corpus-git/signals"
	"corpus-git/sls"
)

// Run holds the waits of one running deployment.
type Run struct {
	// Signals may be nil: then only steps that do not wait can run.
	Signals    Signals
	Deployment project.Deployment
	Set        Set
	// Node is set if the steps run on a node of a project, where nothing waits.
	Node bool
	// SkipReason returns why the deployment does not wait for signals, "" if it does.
	SkipReason func() string
	// Pause records durably that a step begins to wait, and what it has done: ended reports that it has ended, otherwise so says it. Then a restart of the
	// server need not end the wait. Goes records that the wait has ended. nil records nothing.
	Pause func(step, wait string, ended bool, so func() sls.Done) error
	Goes  func() error
	// Shows is called with what the step waits for, and with "" when it no longer does; it may be nil. Hide redacts a text, Note reports a line.
	Shows func(text string)
	Hide  func(string) string
	Note  func(format string, args ...any)

	open     bool
	received []schema.Output
}

// ErrSuspended is the cause with which a deployment that waits is left to the next process of the server.
var ErrSuspended = signals.ErrSuspended

// errNoServer is the error if nothing can receive signals.
var errNoServer = fault.New(fault.Refused, "", "signals need a running server").WithHint("start it:  corpus-git serve")

// OnNodes returns the error for waits in steps that run on nodes: signals are sent to the server that received the push, and a wait would
// hold up its stage.
func OnNodes(where string) *fault.Error {
	return fault.New(fault.Refused, where, "a project with nodes cannot wait for signals: its steps run on other machines").
		WithHint("a stage can wait for a condition: .salt/%s", fleet.StagesFile)
}

// Possible refuses declared waits if nothing can receive signals.
func (s Set) Possible(to Signals) error {
	if len(s.list) == 0 || to != nil {
		return nil
	}
	return fault.New(fault.Refused, Shown(), "%w", errNoServer)
}

// Open makes the signals of the declared waits acceptable, once.
func (r *Run) Open(ctx context.Context) error {
	if r.open || len(r.Set.list) == 0 || r.SkipReason() != "" {
		return nil
	}
	r.open = true
	if r.Signals == nil {
		return errNoServer
	}
	return r.Signals.Begin(ctx, r.Deployment, r.Hide, r.Set.list...)
}

// Behind waits for the waits that are declared after a step.
func (r *Run) Behind(ctx context.Context, step string) error {
	for _, w := range r.Set.list {
		if w.Step != step {
			continue
		}
		if why := r.SkipReason(); why != "" {
			if err := r.pass(ctx, w.ID); err != nil {
				return err
			}
			r.Note("%s: %s", w.ID, why)
			continue
		}
		said, err := r.hold(ctx, w.ID, step, nil)
		if err != nil {
			return err
		}
		r.Note("%s", said)
	}
	return nil
}

// For returns the state corpus.wait: it waits as its arguments say, or as declared under its name. so is what the step has done.
func (r *Run) For(ctx context.Context, step, id string, args *py.Dict, so func() sls.Done) (said string, err error) {
	if why := r.SkipReason(); why != "" {
		return why, r.pass(ctx, id)
	}
	w, declared := r.Set.find(id)
	switch {
	case r.Node:
		return "", OnNodes(id)
	case declared && args.Len() > 0:
		return "", fmt.Errorf("%s is declared in %s: set all its keys there", id, Shown())
	case declared && w.Step != "":
		return "", fmt.Errorf("%s says that %s waits after %s", id, w.Step, Shown())
	case r.Signals == nil:
		return "", errors.New(errNoServer.Error())
	case !declared:
		if w, err = w.Given(args); err != nil {
			return "", err
		}
		if err := r.Signals.Begin(ctx, r.Deployment, r.Hide, w); err != nil {
			return "", err
		}
	}
	return r.hold(ctx, id, step, so)
}

// hold waits, reports the wait, and stores the data of the signals as an output of the step. so is what the step has done, nil if it has ended.
func (r *Run) hold(ctx context.Context, id, step string, so func() sls.Done) (said string, err error) {
	if r.Pause != nil {
		if err := r.Pause(step, id, so == nil, so); err != nil {
			return "", err
		}
	}
	out, err := r.Signals.Wait(ctx, r.Deployment.ID, id, step, func(s signals.WaitStatus) {
		if r.Shows != nil {
			r.Shows(s.Wait + ": " + s.Progress())
		}
		r.Note("waiting for %s: %s; until %s", s.Wait, s.Progress(), s.Until.Format("15:04:05"))
	})
	suspended := errors.Is(err, signals.ErrSuspended)
	if r.Shows != nil && !suspended {
		r.Shows("")
	}
	if r.Pause != nil && !suspended {
		if gerr := r.Goes(); gerr != nil {
			return "", gerr
		}
	}
	if err != nil {
		return "", err
	}
	return out.Line, r.keep(id, out.Data)
}

// Received returns the waits of the step that have ended so far.
func (r *Run) Received() (waits []string) {
	for _, o := range r.received {
		waits = append(waits, o.Name)
	}
	return waits
}

// Again takes the data of waits that ended before an earlier process of the server did.
func (r *Run) Again(ctx context.Context, step string, waits []string) error {
	for _, id := range waits {
		out, err := r.Signals.Wait(ctx, r.Deployment.ID, id, step, func(signals.WaitStatus) {})
		if err == nil {
			err = r.keep(id, out.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass skips the wait and uses the data of the last completed one.
func (r *Run) pass(ctx context.Context, id string) error {
	if r.Signals == nil {
		return r.keep(id, nil)
	}
	data, err := r.Signals.Data(ctx, r.Deployment, id)
	if err != nil {
		return err
	}
	return r.keep(id, data)
}

func (r *Run) keep(id string, data map[string]json.RawMessage) error {
	values := py.NewDict()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		v, err := py.LoadJSON(string(data[name]), true)
		if err != nil {
			return err
		}
		values.SetStr(name, v)
	}
	r.received = append(r.received, schema.Output{Name: id, Value: values})
	return nil
}

// Take returns and resets the data of the signals that the step waited for.
func (r *Run) Take() []schema.Output {
	out := r.received
	r.received = nil
	return out
}
