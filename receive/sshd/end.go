package sshd

import (
	"context"
	"fmt"
	"sync"

	"corpus-git/internal/fault"
)

// End ends all sessions with an error, whatever they are doing: their clients see it with its hint, and its exit status. It returns when they have been told, or when ctx ends. What runs for the
// sessions goes on; it is for a process that is about to end.
func (s *Server) End(ctx context.Context, err error) {
	s.init()
	s.mu.Lock()
	var all sync.WaitGroup
	for _, end := range s.running {
		all.Go(func() { end(err) })
	}
	s.mu.Unlock()
	told := make(chan struct{})
	go func() {
		all.Wait()
		close(told)
	}()
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// track makes a session one that End ends by finish; the function that it returns reverses that.
func (s *Server) track(sess *Session, finish func(exit int)) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[sess] = func(err error) {
		_, _ = fmt.Fprintf(sess.Stderr, "error: %s\n", err)
		if hint := fault.HintOf(err); hint != "" {
			_, _ = fmt.Fprintf(sess.Stderr, "hint: %s\n", hint)
		}
		finish(fault.ExitCode(err))
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, sess)
	}
}
