package humanize_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/humanize"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, "never", humanize.Age(now, time.Time{}))
	for ago, want := range map[time.Duration]string{
		-time.Second: "just now", 4 * time.Second: "just now", 5 * time.Second: "5s ago", 59 * time.Second: "59s ago", time.Minute: "1m ago", 59 * time.Minute: "59m ago",
		time.Hour: "1h ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", 59 * 24 * time.Hour: "59d ago", 60 * 24 * time.Hour: "2026-03-02",
	} {
		require.Equal(t, want, humanize.Age(now, now.Add(-ago)))
	}
}
