package checks

import (
	"context"
	"corpus-git/project"
	"sync"
	"time"
)

// Runner asks checks.
type Runner struct {
	// Command runs a command line for a check of kind command, or argv, the program of a check of kind unit. output is both streams, as far as
	// it was kept; the error tells that it did not start. It ends when ctx does.
	Command func(ctx context.Context, c project.Check, argv []string) (status int, output string, err error)
	// Progress, where not nil, is told of each attempt that is not the last and was not good; from several goroutines.
	Progress func(Result)
	// Hide, where not nil, takes the secrets out of answers before they are shortened: the beginning of a value that was cut off is found by nobody.
	Hide func(string) string
}

// Result is the answer to one check.
type Result struct {
	Check project.Check
	// Good: the last attempt succeeded, and so did those of the time also_after.
	Good bool
	// Attempts is how often it was asked.
	Attempts int
	// Took is the time from the start to the last answer, Answered that of the last attempt alone.
	Took, Answered time.Duration
	// Reason says in one line what was wrong with the last answer.
	Reason string
	// Answer are the first lines of the last answer, where it was not good and had any.
	Answer []string
	// Watched: the answer had been good, and was not any more in the time also_after.
	Watched bool
}

// parallel is how many checks are asked at a time.
const parallel = 8

// Run asks all checks, several at a time, and gives their results in the same order. The error is ctx's cause where
// that ended first; results of checks that had not ended by then are not good.
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

// one asks a check until its answer is good, or its attempts are used up.
func (r Runner) one(ctx context.Context, c project.Check) Result {
	begun := time.Now()
	res := Result{Check: c}
	if !sleep(ctx, c.StartAfter) {
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
		if !sleep(ctx, c.Every) {
			return res.cancelled(ctx)
		}
	}
	if res.Good && c.AlsoAfter > 0 {
		res = r.watch(ctx, c, res)
		res.Took = time.Since(begun)
	}
	return res
}

// leastPause is the least time between two attempts while an answer is watched.
const leastPause = 100 * time.Millisecond

// watch asks on while the time also_after runs: one answer that is not good ends it.
func (r Runner) watch(ctx context.Context, c project.Check, res Result) Result {
	end := time.Now().Add(c.AlsoAfter)
	for {
		left := time.Until(end)
		pause := min(max(c.Every, leastPause), max(left, 0))
		if !sleep(ctx, pause) {
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

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
