package agent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet/agent"
	"corpus-git/internal/fault"
)

func TestToken(t *testing.T) {
	const host = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl hub"
	text, public, err := agent.NewToken("hub:22", nil, host, "web1")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(public, "ssh-ed25519 "))
	require.NotContains(t, public, text)
	got, err := agent.ParseToken(" " + text + "\n")
	require.NoError(t, err)
	require.Equal(t, "web1", got.Node)
	require.Equal(t, "hub:22", got.Hub)
	other, _, err := agent.NewToken("hub:22", nil, host, "web1")
	require.NoError(t, err)
	require.NotEqual(t, text, other)
	short, _, err := agent.NewToken("hub:22", nil, "no key", "web1")
	require.NoError(t, err)
	for _, bad := range []string{"", "cgj_", "x" + text, text[:20], text + "!", short, "cgj_" + strings.Repeat("A", 1<<20)} {
		_, err := agent.ParseToken(bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), "%.30s", bad)
	}
}
