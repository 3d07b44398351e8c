package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaits(t *testing.T) {
	p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, wait_for: [{tcp: \"db1:5432\", every: 1ms}, {checks: green, every: 1ms}]}")
	m := &machines{red: map[string]int{"db1": 2}}
	r, told := rollout(t, p, k, m)
	r.Hub.(*hub).lacks = 2
	require.NoError(t, deploy(t, r))
	require.Contains(t, strings.Join(*told, "\n"), "waiting for tcp db1:5432: connection refused")
	require.Contains(t, strings.Join(*told, "\n"), "waiting for checks green: db1: check up failed")
	i, j := slices.Index(m.asked, "wait tcp db1:5432"), slices.Index(m.asked, "apply db1")
	require.Greater(t, i, j)

	p, k = plan(t, webs, "stages:\n- {name: w, wait_for: [{command: test -e x, every: 1ms, for: 5ms}]}")
	m = &machines{}
	r, _ = rollout(t, p, k, m)
	r.Hub.(*hub).lacks = 1 << 20
	require.ErrorContains(t, deploy(t, r), "stage w: waited 5ms for command test -e x: connection refused")
	require.Empty(t, m.live)
}

// A node that hangs while its checks are asked for is named when the wait has ended; the wait does not hang with it.
func TestWaitForANodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := plan(t, webs, "stages:\n- {name: d, roles: [db]}\n- {name: w, wait_for: [{checks: green, for: 30s}]}")
		r, told := rollout(t, p, k, &machines{hangs: "db1"})
		begun := time.Now()
		require.ErrorContains(t, deploy(t, r), "stage w: waited 30s for checks green: db1: no answer within 30s")
		require.Less(t, time.Since(begun), 31*time.Second)
		require.Contains(t, strings.Join(*told, "\n"), "db1: no answer within 30s")
	})
}
