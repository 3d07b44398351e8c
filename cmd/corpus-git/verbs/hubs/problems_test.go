package hubs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/layout"
	"corpus-git/project/status"
)

// A disk that is nearly full is named before NATS can't store the log any more; a hub of a release that does not report its space is not.
func TestScarceSpace(t *testing.T) {
	none, much := int64(0), int64(scarce)
	p := problems{now: time.Now(), d: status.Hubs{Self: "hub1", Leader: "hub1", Hubs: []status.Hub{
		{Name: "hub1", State: cluster.Leads, LogSpace: &none}, {Name: "hub2", State: cluster.Follows, LogSpace: &much}, {Name: "hub3", State: cluster.Follows},
	}}}
	p.running(nil, cluster.Log{}, layout.State(t.TempDir()))
	require.Len(t, p.out, 1)
	require.Equal(t, "hub1", p.out[0].Hub)
	require.Equal(t, "hub1 has 0 B left for the log of the hubs", p.out[0].Problem)
	require.NotEmpty(t, p.out[0].Hint)
}
