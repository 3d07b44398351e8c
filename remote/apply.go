package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"corpus-git/bundle"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Apply is one delivery of a bundle.
type Apply struct {
	// Send writes the bundle. It is called again for each connection; have is what the machine has then.
	Send func(ctx context.Context, have bundle.Tips, w io.Writer) error
	// Project is the bundle's project. Brings is what the machine has of it once it has taken the bundle.
	Project project.Name
	Brings  bundle.Tips
	// StoreOnly deploys nothing, Hold begins and waits: see ApplyRequest.
	StoreOnly, Hold bool
	// Show is called with each event once, in order.
	Show func(event.Event) error
	// Lost is called when the connection was lost, and when it is reestablished.
	Lost func(err error, again time.Duration)
	// ReconnectFor is how long to try to reconnect.
	ReconnectFor time.Duration
}

// ErrNoResult means that the deployment may still run there, and that its result is unknown.
var ErrNoResult = errors.New("the connection was lost before the result came")

// Apply sends a bundle and follows its deployment to the end. It reconnects after a lost connection: the deployment is identified by its
// ID, runs once, and its events continue where they stopped. The exit status is the deployment's.
func (n *Node) Apply(ctx context.Context, a Apply) (f Frame, err error) {
	var seq uint64
	err = reconnecting(ctx, a.ReconnectFor, a.Lost, func() (err error) {
		f, err = n.applyOnce(ctx, a, &seq)
		return err
	})
	return f, err
}

// reconnecting calls once again while it fails because the connection was lost, for at most limit.
func reconnecting(ctx context.Context, limit time.Duration, told func(err error, again time.Duration), once func() error) error {
	begun := time.Now()
	wait := time.Second
	for {
		err := once()
		var lost *ConnectionError
		if err == nil || !errors.As(err, &lost) || fault.KindOf(err) != fault.Busy {
			return err
		}
		if time.Since(begun)+wait > limit {
			return fault.New(fault.Busy, "", "%w: %w", ErrNoResult, err)
		}
		told(err, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// Cancel ends a deployment there, and returns when it has ended. After a lost connection it reconnects for at most limit, and calls lost.
func (n *Node) Cancel(ctx context.Context, q CancelRequest, limit time.Duration, lost func(err error, again time.Duration)) error {
	return reconnecting(ctx, limit, lost, func() error {
		_, err := n.connected(ctx, Request{Cancel: &q})
		return err
	})
}

// Check runs the checks of a project there.
func (n *Node) Check(ctx context.Context, name project.Name) (project.Result, error) {
	return n.result(ctx, Request{Check: name})
}

// Converge applies again there what is live, or compares it.
func (n *Node) Converge(ctx context.Context, q ConvergeRequest) (project.Result, error) {
	return n.result(ctx, Request{Converge: &q})
}

// result is connected, for a request whose response has a result.
func (n *Node) result(ctx context.Context, q Request) (project.Result, error) {
	f, err := n.connected(ctx, q)
	if err == nil && f.Result == nil {
		err = fault.New(fault.Failed, "", "on %s: corpus-git gave no result", printable.Text(n.Host.Target))
	}
	if err != nil {
		return project.Result{}, err
	}
	return *f.Result, nil
}

// connected is ask, over a session that is begun if there is none.
func (n *Node) connected(ctx context.Context, q Request) (Frame, error) {
	if n.conn == nil {
		if _, err := n.connect(ctx); err != nil {
			return Frame{}, err
		}
	}
	return n.ask(ctx, q)
}

func (n *Node) applyOnce(ctx context.Context, a Apply, seq *uint64) (last Frame, err error) {
	if n.conn == nil {
		if _, err := n.connect(ctx); err != nil {
			return last, err
		}
	}
	if n.tips == nil || a.Project != n.Project {
		f, err := n.ask(ctx, Request{Tips: a.Project})
		if err != nil {
			return last, err
		}
		n.tips = tipsOf(f)
	}
	have := *n.tips
	n.tips = nil
	_, err = n.follow(ctx, []Request{{Apply: &ApplyRequest{StoreOnly: a.StoreOnly, Hold: a.Hold, After: *seq}}},
		func(ctx context.Context, w io.Writer) error { return a.Send(ctx, have, w) },
		func(f Frame) error {
			if f.Result != nil {
				last = f
			}
			if f.Event == nil || f.Event.Seq <= *seq {
				return nil
			}
			*seq = f.Event.Seq
			// Another machine's text is cleaned again here.
			f.Event.Text = event.Clean(f.Event.Text)
			for i, l := range f.Event.Lines {
				f.Event.Lines[i] = event.Clean(l)
			}
			return a.Show(*f.Event)
		})
	if err == nil && a.Hold && last.Result == nil {
		n.tips = &a.Brings // it waits, with all that the bundle has
		if have.Recipes == nil {
			n.tips.Recipes = nil
		}
	}
	if last.Result != nil {
		return last, nil // regardless of what happened to the connection then
	}
	if err == nil && !a.StoreOnly && !a.Hold {
		err = fault.New(fault.Failed, "", "on %s: corpus-git said that all is done, and gave no result", printable.Text(n.Host.Target))
	}
	return last, err
}
