package pktline

import (
	"context"
	"io"
	"time"
)

// Drain reads and discards what a client still sends after it was refused: a client that is disconnected while it writes shows no reason,
// and many read the reason only when everything is written. It returns when r ends, after limit bytes, when the client pauses for as long
// as idle, or with ctx.
//
// A read that is blocked when Drain returns continues; closing the stream behind r ends it.
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
