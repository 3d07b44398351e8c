package hubs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/layout"
	"corpus-git/project/status"
)

// A NATS server whose name the others have not heard yet, and a hub that must not lead, are named.
func TestUnknownServer(t *testing.T) {
	p := problems{now: time.Now(), d: status.Hubs{Self: "hub1", Leader: "hub1", Hubs: []status.Hub{
		{Name: "hub1", State: cluster.Leads, Barred: "from before"}, {Name: "hub2", State: cluster.Follows, Barred: "its program is older"}, {Name: "hub3", State: cluster.Follows},
	}}}
	p.running(nil, cluster.Log{Missing: []string{"Server name unknown at this time (peerID: ETLC28hp)", "hub3"}}, layout.State(t.TempDir()))
	var said []string
	for _, one := range p.out {
		said = append(said, one.Hub+": "+one.Problem)
	}
	require.Equal(t, []string{"hub2: hub2 must not lead: its program is older", ": a NATS server that has not been heard since those of the others were started does not have the whole log of the hubs", "hub3: the NATS server of hub3 does not have the whole log of the hubs"}, said)
}

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
