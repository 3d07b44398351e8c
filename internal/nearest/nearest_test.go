package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/nearest"
)

func TestTo(t *testing.T) {
	names := []string{"deploy", "deployments", "logs", "ls", "shop", "shop-test"}
	for typed, want := range map[string]string{
		"deplyo": "deploy", "deployment": "deployments", "log": "logs", "LOGS": "logs", "shpo": "shop", "shop-tset": "shop-test", "shop": "shop",
		"restart": "", "": "", "x": "", "quitedifferent": "",
	} {
		require.Equal(t, want, nearest.To(typed, names), typed)
	}
	require.Empty(t, nearest.To("a", nil))
}
