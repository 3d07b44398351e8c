package maintenance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
)

// still is a pace whose clock advances only by its own waits, which it records.
type still struct {
	pace
	waits []time.Duration
	// passed is called after each wait.
	passed func()
}

func newStill(rate int64) *still {
	s := &still{passed: func() {}}
	s.own = func(context.Context) error { return nil }
	s.busy = func() int { return 0 }
	s.rate = func() int64 { return rate }
	s.after = func(d time.Duration) <-chan time.Time {
		s.waits = append(s.waits, d)
		s.passed()
		c := make(chan time.Time, 1)
		c <- time.Time{}
		return c
	}
	return s
}

func (s *still) all() (sum time.Duration) {
	for _, d := range s.waits {
		sum += d
	}
	return sum
}

// A piece may be written once enough time has passed for the rate.
func TestMaintenanceKeepsItsRate(t *testing.T) {
	s := newStill(1 << 20)
	const pieces = 64
	for range pieces {
		require.NoError(t, s.pause(t.Context()))
	}
	require.Equal(t, pieces*store.PauseEvery*time.Second/(1<<20), s.all())
	s.rate = func() int64 { return 4 << 20 } // reloaded
	s.waits = nil
	require.NoError(t, s.pause(t.Context()))
	require.Equal(t, store.PauseEvery*time.Second/(4<<20), s.all())
}

// A deployment of the same project ends maintenance before the next piece, whether it was already running or begins during the
// pause.
func TestMaintenanceEndsForItsOwnDeployment(t *testing.T) {
	s := newStill(1 << 20)
	s.own = func(context.Context) error { return errDeploying }
	require.ErrorIs(t, s.pause(t.Context()), errDeploying)
	require.Empty(t, s.waits)

	s = newStill(1 << 20)
	s.passed = func() { s.own = func(context.Context) error { return errDeploying } }
	require.ErrorIs(t, s.pause(t.Context()), errDeploying)
	require.Len(t, s.waits, 1)
}

// While other projects are being deployed nothing is written, except on a server that is always deploying: after ten minutes in
// total it continues.
func TestMaintenanceWaitsForOtherDeployments(t *testing.T) {
	s := newStill(1 << 20)
	deploying := 5
	s.busy = func() int { return deploying }
	s.passed = func() { deploying = max(0, deploying-1) }
	require.NoError(t, s.pause(t.Context()))
	require.Zero(t, deploying)
	require.Len(t, s.waits, 5)

	s.busy, s.passed = func() int { return 1 }, func() {}
	require.NoError(t, s.pause(t.Context()))
	piece := store.PauseEvery * time.Second / (1 << 20)
	require.Equal(t, othersWait, s.all()-2*piece)
	s.waits = nil
	require.NoError(t, s.pause(t.Context()))
	require.Equal(t, piece, s.all(), "it has waited long enough")

	s = newStill(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	s.busy = func() int { return 1 }
	s.after = func(time.Duration) <-chan time.Time {
		cancel()
		return nil
	}
	require.ErrorIs(t, s.pause(ctx), context.Canceled)
}
