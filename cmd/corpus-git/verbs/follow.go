package verbs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/signals"
)

// progressAfter is the default of Backend.ProgressAfter.
const progressAfter = 30 * time.Second

// watch follows a deployment to its end. With --json the lines go to standard error and the record, once it has ended, to standard output.
func (s *session) watch(name project.Name, id project.ID, style event.Style) error {
	w := s.out
	if s.json {
		w = s.err
	}
	ctx := s.ctx
	style.Colour = s.who.Term.Colour
	f := s.follower(id, w, style)
	err := f.run(ctx)
	if err != nil && s.ctx.Err() != nil {
		if s.b.Detached {
			return fault.New(fault.Busy, "", "disconnected; deployment %s continues", id.Short()).
				WithHint("watch it with  corpus-git logs %s %s -f ; end it with  corpus-git cancel %s", name, id.Short(), name)
		}
		// Nobody else runs it: it must not be left half done.
		ctx = context.WithoutCancel(ctx)
		if _, err := s.b.Runs.Cancel(ctx, name, id, s.who.Pusher()); err != nil && fault.KindOf(err) != fault.Refused {
			return err
		}
		err = f.run(ctx)
	}
	if err != nil {
		return err
	}
	res, err := s.b.Runs.Wait(ctx, id)
	if err != nil {
		return err
	}
	if s.json {
		rec, err := s.b.Runs.Find(ctx, name, string(id))
		if err != nil {
			return err
		}
		if err := s.document(status.DeploymentDocument{Version: status.Version, Deployment: rec}); err != nil {
			return err
		}
	}
	if exit := exitOf(res); exit != 0 {
		return verdict{exit}
	}
	return nil
}

// recheckEvery is Backend.Recheck if that is not set.
const recheckEvery = 15 * time.Second

// guard ends the session's context when the caller loses a right on a project, or may no longer log in: who follows a log would otherwise see it for days.
func (s *session) guard(name project.Name, want project.Right) (stop func()) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.ctx = ctx
	tick := time.NewTicker(cmp.Or(s.b.Recheck, recheckEvery))
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			ok, err := s.b.Access.Can(ctx, s.who.Identity, name, want)
			if ctx.Err() == nil && (err != nil || !ok) {
				cancel(cmp.Or(err, error(fault.New(fault.Refused, "", "%s may no longer %s %s", s.who.Name, want, name))))
				return
			}
		}
	}()
	return func() { cancel(nil) }
}

// left is why who follows sees no more: nil if they left, an error where guard ended it.
func (s *session) left() error {
	var f *fault.Error
	if cause := context.Cause(s.ctx); errors.As(cause, &f) {
		return cause
	}
	return nil
}

// next is one turn of Follow.
type next struct {
	e   event.Event
	err error
}

// follower shows a deployment's events.
type follower struct {
	s       *session
	id      project.ID
	console *event.Console
	// seq is the last event shown: a second run goes on behind it.
	seq uint64
}

func (s *session) follower(id project.ID, w io.Writer, style event.Style) *follower {
	return &follower{s: s, id: id, console: event.NewConsole(w, style)}
}

// run shows what comes until the deployment has ended, and names what runs when nothing is said.
func (f *follower) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	turns := make(chan next)
	go func() {
		defer close(turns)
		for e, err := range f.s.b.Runs.Follow(ctx, f.id, f.seq) {
			select {
			case turns <- next{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	quiet := cmp.Or(f.s.b.ProgressAfter, progressAfter)
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for {
		select {
		case t, open := <-turns:
			switch {
			case !open && ctx.Err() != nil:
				return ctx.Err()
			case !open:
				return nil
			case t.err != nil:
				return t.err
			}
			n, err := f.console.Show(t.e)
			if err != nil {
				return err
			}
			f.seq = t.e.Seq
			if n > 0 {
				silence.Reset(quiet)
			}
		case <-silence.C:
			if err := f.console.Progress(f.s.b.Now()); err != nil {
				return err
			}
			silence.Reset(quiet)
		}
	}
}

// record finds the deployment that a person means: a prefix, or "" for the newest.
func (s *session) record(name project.Name, prefix string) (project.Record, error) {
	if prefix != "" {
		return s.b.Runs.Find(s.ctx, name, prefix)
	}
	recs, err := s.b.Runs.Deployments(s.ctx, name, 1)
	if err != nil {
		return project.Record{}, err
	}
	if len(recs) == 0 {
		return project.Record{}, fault.New(fault.Refused, "", "%s has no deployments yet", name).
			WithHint("push to it, or  corpus-git deploy %s", name)
	}
	return recs[0], nil
}

var errNoLog = errors.New("its log no longer exists")

// interrupted reports deployments that no process runs any more: a server died, and nobody has recovered yet.
func (s *session) interrupted(recs []project.Record) {
	if s.b.Detached || s.json {
		return
	}
	for _, r := range recs {
		if !r.State.Terminal() {
			if w, err := s.b.Signals.List(s.ctx, signals.Filter{Deployment: r.ID, Limit: 100}); err == nil && slices.ContainsFunc(w, func(w signals.WaitStatus) bool { return w.State == signals.Waiting }) {
				_, _ = io.WriteString(s.err, "note: no server is running; deployment "+r.ID.Short()+" waits for signals, and continues when the server starts\n")
				return
			}
			_, _ = io.WriteString(s.err, "note: the server died during deployment "+r.ID.Short()+
				"; it will be recovered at the next start of the server, or with the next deployment\n")
			return
		}
	}
}
