package pktline

import (
	"context"
	"io"
	"time"
)

// Drain reads on, and drops, what a client still sends after it was told why it is refused: one that is cut off while it writes
// dies of that and shows no reason, and many come to read it only when all is written. It returns when r ends, after limit bytes,
// when the client pauses for as long as idle, or with ctx.
//
// A read that is under way when it returns goes on: the caller closes the stream behind r, and this ends with it.
func Drain(ctx context.Context, r io.Reader, limit int64, idle time.Duration) {
	more := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 32<<10)
		for left := limit; left > 0; {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			left -= int64(n)
			select {
			case more <- struct{}{}:
			default:
			}
		}
	}()
	pause := time.NewTimer(idle)
	defer pause.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-more:
			pause.Reset(idle)
		case <-pause.C:
			return
		}
	}
}
