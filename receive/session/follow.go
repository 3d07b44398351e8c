package session

import (
	"context"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// show holds the options of a push's output.
type show struct {
	style event.Style
	quiet bool
}

// visible reports whether an event is for a client that asked for quiet: failures, and the verdict.
func (s show) visible(e event.Event, failed bool) bool {
	if !s.quiet {
		return true
	}
	switch e.Kind {
	case event.Failure, event.Verdict:
		return true
	case event.Hint:
		return failed
	}
	return false
}

// follow shows a deployment's events until it has ended. An error is that the client disconnected, or one of the log; neither affects
// the deployment.
//
// A write that blocks delays only this follower: the Deployer's log is read at the follower's pace.
func (p *Push) follow(ctx context.Context, w *wire, id project.ID, s show) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type item struct {
		e   event.Event
		err error
	}
	events := make(chan item)
	go func() {
		defer close(events)
		for e, err := range p.Deployer.Follow(ctx, id, 0) {
			select {
			case events <- item{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	console := event.NewConsole(w, s.style)
	failed := false
	still := time.NewTimer(p.progressAfter())
	defer still.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-still.C:
			if !s.quiet {
				if err := console.Progress(p.now()); err != nil {
					return err
				}
			}
			still.Reset(p.progressAfter())
		case it, ok := <-events:
			if !ok {
				return ctx.Err()
			}
			if it.err != nil {
				return it.err
			}
			failed = failed || it.e.Kind == event.Failure || it.e.Kind == event.Verdict && it.e.Status == event.Bad
			if !s.visible(it.e, failed) {
				continue
			}
			n, err := console.Show(it.e)
			if err != nil {
				return err
			}
			if n > 0 {
				still.Reset(p.progressAfter())
			}
		}
	}
}

// showEvents shows events that are not in the deployment's log.
func (s show) showEvents(w *wire, events ...event.Event) {
	c := event.NewConsole(w, s.style)
	for _, e := range events {
		if s.visible(e, true) {
			if _, err := c.Show(e); err != nil {
				return // the client has disconnected: the next use reports it
			}
		}
	}
}

// Reason returns a deployment's result as the reason of a rejected ref: "failed in 0100_build, state npm-install; rolled back",
// "cancelled by marie; rolled back".
func Reason(r project.Result) string {
	if r.Good() {
		return ""
	}
	if r.State.Good() {
		return reasonText("rolled back, but "+r.Unhealthy, "")
	}
	if r.State == project.Running { // the server stops, and the next one continues it
		return reasonText(r.Reason, "")
	}
	if r.State == project.Refused {
		if r.Reason == "" {
			return "refused"
		}
		if strings.HasPrefix(r.Reason, demands.Waiting) {
			return reasonText(r.Reason, "")
		}
		return reasonText("refused: "+strings.TrimPrefix(r.Reason, "refused: "), "")
	}
	why := r.Reason
	if why == "" {
		why = "failed"
		switch {
		case r.Step != "":
			why += " in " + r.Step
		case r.Procedure != "":
			why += " in " + r.Procedure
		}
		if r.StateID != "" {
			why += ", state " + r.StateID
		}
	}
	if r.State == project.RolledBack {
		if r.Unhealthy != "" {
			return reasonText(why, "; rolled back, but "+r.Unhealthy)
		}
		return reasonText(why, "; rolled back")
	}
	if strings.Contains(why, project.RollbackFailed) {
		return reasonText(why, "") // the log says what is live then
	}
	return reasonText(why, "; failed tree left in place")
}

func (p *Push) progressAfter() time.Duration {
	if p.ProgressAfter > 0 {
		return p.ProgressAfter
	}
	return 30 * time.Second
}
