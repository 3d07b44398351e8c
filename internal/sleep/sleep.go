// Package sleep waits for a time, or until a context ends. It keeps nothing.
package sleep

import (
	"context"
	"time"
)

// For waits for d. It returns the cause of ctx's end if that comes first, or has already come; then it does not wait.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
