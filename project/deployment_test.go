package project_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A deployment takes no negative time, and ends after its start, also if the clock was set back between them.
func TestEnd(t *testing.T) {
	start := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		started, now time.Time
		took         time.Duration
	}{
		"as usual":                {start, start.Add(3 * time.Second), 3 * time.Second},
		"it never began":          {time.Time{}, start, 0},
		"the clock was set back":  {start, start.Add(-time.Hour), 0},
		"by a clock that was not": {time.Now(), time.Now().Add(time.Minute), time.Minute},
	} {
		r := project.Result{Started: c.started}
		r.End(c.now)
		require.InDelta(t, c.took, r.Ended.Sub(r.Started), float64(time.Second), name)
		require.False(t, r.Ended.Before(r.Started), name)
		require.False(t, r.Started.IsZero(), name)
	}
}
