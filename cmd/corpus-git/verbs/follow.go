package verbs

import (
	"context"
	"errors"
	"io"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
)

// quiet is how long a deployment may say nothing before the running step is named.
const quiet = 30 * time.Second

// watch follows a deployment to its end. With --json the lines go to standard error and the record, once it
// has ended, to standard output.
func (s *session) watch(name project.Name, id project.ID, verbose bool) error {
	w := s.out
	if s.json {
		w = s.err
	}
	ctx := s.ctx
	err := s.follow(ctx, id, w, verbose)
	if err != nil && s.ctx.Err() != nil {
		if s.b.Detached {
			return fault.New(fault.Busy, "", "you left; deployment %s goes on", id.Short()).
				WithHint("watch it with  corpus-git logs %s %s -f ; end it with  corpus-git cancel %s", name, id.Short(), name)
		}
		// Nobody else runs it: it must not be left half done.
		ctx = context.WithoutCancel(ctx)
		if _, err := s.b.Runs.Cancel(ctx, name, id, s.who.Pusher()); err != nil && fault.KindOf(err) != fault.Refused {
			return err
		}
		err = s.follow(ctx, id, w, verbose)
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

// next is one turn of Follow.
type next struct {
	e   event.Event
	err error
}

// follow shows a deployment's events until it has ended, and names what runs when nothing is said.
func (s *session) follow(ctx context.Context, id project.ID, w io.Writer, verbose bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	turns := make(chan next)
	go func() {
		defer close(turns)
		for e, err := range s.b.Runs.Follow(ctx, id, 0) {
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
	console := event.NewConsole(w, event.Style{Colour: s.who.Term.Colour, Verbose: verbose})
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
			n, err := console.Show(t.e)
			if err != nil {
				return err
			}
			if n > 0 {
				silence.Reset(quiet)
			}
		case <-silence.C:
			if err := console.Still(s.b.Now()); err != nil {
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

var errNoLog = errors.New("its log is gone")
