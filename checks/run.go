package checks

import (
	"context"
	"corpus-git/internal/sleep"
	"corpus-git/project"
	"sync"
	"time"
)

// Runner runs checks.
type Runner struct {
	// Command runs a command line for a check of kind command, or argv, the program of a check of kind unit. output is both streams,
	// truncated; the error reports that it did not start. It ends when ctx does.
	Command func(ctx context.Context, c project.Check, argv []string) (status int, output string, err error)
	// Progress, if not nil, is called for each failed attempt except the last; from several goroutines.
	Progress func(Result)
	// Hide, if not nil, redacts answers before they are shortened: a truncated secret would not be found.
	Hide func(string) string
}

// Result is the result of one check.
type Result struct {
	Check project.Check
	// Good reports that the last attempt succeeded, and all those during also_after.
	Good bool
	// Attempts is how often the check was tried.
	Attempts int
	// Took is the time from the start to the last answer, Answered that of the last attempt alone.
	Took, Answered time.Duration
	// Reason is, in one line, what was wrong with the last answer.
	Reason string
	// Answer are the first lines of the last answer of a check that failed.
	Answer []string
	// Watched reports that the check succeeded, and failed again during also_after.
	Watched bool
}

// parallel is how many checks run at a time.
const parallel = 8

// Run runs all checks, several at a time, and returns their results in the same order. The error is ctx's cause if ctx ended first;
// checks that had not ended by then count as failed.
func (r Runner) Run(ctx context.Context, list []project.Check) ([]Result, error) {
	out := make([]Result, len(list))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i] = r.one(ctx, c)
		})
	}
	wg.Wait()
	return out, context.Cause(ctx)
}

// one tries a check until it succeeds, or its attempts are used up.
func (r Runner) one(ctx context.Context, c project.Check) Result {
	begun := time.Now()
	res := Result{Check: c}
	if sleep.For(ctx, c.StartAfter) != nil {
		return res.cancelled(ctx)
	}
	for {
		res = r.attempt(ctx, c, res)
		res.Took = time.Since(begun)
		if ctx.Err() != nil {
			return res.cancelled(ctx)
		}
		if res.Good || res.Attempts >= c.Attempts {
			break
		}
		if r.Progress != nil {
			r.Progress(res)
		}
		if sleep.For(ctx, c.Every) != nil {
			return res.cancelled(ctx)
		}
	}
	if res.Good && c.AlsoAfter > 0 {
		res = r.watch(ctx, c, res)
		res.Took = time.Since(begun)
	}
	return res
}

// leastPause is the least time between two attempts during also_after.
const leastPause = 100 * time.Millisecond

// watch repeats the check during also_after: one failure ends it.
func (r Runner) watch(ctx context.Context, c project.Check, res Result) Result {
	end := time.Now().Add(c.AlsoAfter)
	for {
		left := time.Until(end)
		pause := min(max(c.Every, leastPause), max(left, 0))
		if sleep.For(ctx, pause) != nil {
			return res.cancelled(ctx)
		}
		res = r.attempt(ctx, c, res)
		if ctx.Err() != nil {
			return res.cancelled(ctx)
		}
		if !res.Good {
			res.Watched = true
			return res
		}
		if left <= 0 || !time.Now().Before(end) {
			return res
		}
	}
}

func (r Runner) attempt(ctx context.Context, c project.Check, res Result) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	begun := time.Now()
	answer, err := r.ask(ctx, c)
	res.Attempts++
	res.Answered = time.Since(begun)
	res.Good, res.Reason, res.Answer = err == nil, "", nil
	if err != nil {
		res.Reason, res.Answer = r.reason(ctx, c, err), r.firstLines(answer)
	}
	return res
}

func (r Result) cancelled(ctx context.Context) Result {
	r.Good = false
	if cause := context.Cause(ctx); cause != nil {
		r.Reason = cause.Error()
	}
	return r
}

func (r Runner) ask(ctx context.Context, c project.Check) (answer []byte, err error) {
	switch c.Kind {
	case project.CheckHTTP:
		return r.askHTTP(ctx, c)
	case project.CheckTCP:
		return nil, connect(ctx, "tcp", c.Target)
	case project.CheckUnix:
		return nil, connect(ctx, "unix", c.Target)
	case project.CheckCertificate:
		return nil, askCertificate(ctx, c)
	case project.CheckUnit:
		return r.askUnit(ctx, c)
	default:
		return r.askCommand(ctx, c)
	}
}
