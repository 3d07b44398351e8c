package machines

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
)

// A rollout contacts each node: a report that says what the last one said changes nothing but its time, and that once a minute. After the node was removed and added again it counts.
func TestReportsThatSayTheSame(t *testing.T) {
	f := newFleet(t)
	var set []map[string]string
	f.Facts = func(_ context.Context, _ string, facts map[string]string) error {
		set = append(set, facts)
		return nil
	}
	at := time.Unix(1000, 0).UTC()
	report := func(os string, after time.Duration) (seen time.Duration) {
		require.NoError(t, f.RecordReport(t.Context(), "web1", fleet.NodeReport{Facts: map[string]string{"os": os}, Seen: at.Add(after)}))
		n, err := f.Get(t.Context(), "web1")
		require.NoError(t, err)
		require.Equal(t, os, n.Facts["os"])
		return n.Seen.Sub(at)
	}
	require.Equal(t, 0*time.Second, report("Debian", 0))
	require.Equal(t, 0*time.Second, report("Debian", 30*time.Second))
	require.Equal(t, time.Minute, report("Debian", time.Minute))
	require.Len(t, set, 1)
	require.Equal(t, 61*time.Second, report("Ubuntu", 61*time.Second))
	require.Len(t, set, 2)

	require.NoError(t, f.Remove(t.Context(), "web1"))
	require.Nil(t, set[2])
	require.NoError(t, f.RecordReport(t.Context(), "web1", fleet.NodeReport{Facts: map[string]string{"os": "Ubuntu"}, Seen: at}))
	require.Len(t, set, 3, "there is no such node")
	require.NoError(t, f.Add(t.Context(), fleet.Node{Name: "web1", Agent: true, Added: at}))
	require.Equal(t, 62*time.Second, report("Ubuntu", 62*time.Second))
	require.Len(t, set, 4)
}
