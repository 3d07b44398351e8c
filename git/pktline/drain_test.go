package pktline

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// endless never stops sending, and counts.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

func TestDrain(t *testing.T) {
	const idle = 5 * time.Second
	// The clock is the bubble's: it advances only while everybody waits.
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, start time.Time)
	}{
		{"to the end", func(t *testing.T, start time.Time) {
			r := strings.NewReader(strings.Repeat("x", 100_000))
			Drain(t.Context(), r, 1<<20, idle)
			require.Zero(t, r.Len())
			require.Zero(t, time.Since(start))
		}},
		{"to the limit", func(t *testing.T, start time.Time) {
			r := &endless{}
			Drain(t.Context(), r, 1<<20, idle)
			require.EqualValues(t, 1<<20, r.n)
			require.Zero(t, time.Since(start))
		}},
		{"until a pause", func(t *testing.T, start time.Time) {
			r, w := io.Pipe()
			defer r.Close() // ends the read that is under way
			go func() {
				for range 10 { // slow, but no pause
					time.Sleep(idle - time.Second)
					_, _ = w.Write([]byte("more"))
				}
			}()
			Drain(t.Context(), r, 1<<20, idle)
			require.Equal(t, 10*(idle-time.Second)+idle, time.Since(start))
		}},
		{"until the caller is done", func(t *testing.T, start time.Time) {
			r, _ := io.Pipe()
			defer r.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			Drain(ctx, r, 1<<20, idle)
			require.Equal(t, time.Second, time.Since(start))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t, time.Now()) })
		})
	}
}
