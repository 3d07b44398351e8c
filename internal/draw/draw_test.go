package draw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/draw"
)

func TestSeed(t *testing.T) {
	t.Setenv(draw.Variable, "")
	require.EqualValues(t, 1, draw.Seed(t))
	t.Setenv(draw.Variable, "42")
	require.EqualValues(t, 42, draw.Seed(t))
	all := map[int]bool{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		t.Run(name, func(t *testing.T) {
			n := draw.Below(t, 5)
			require.Equal(t, n, draw.Below(t, 5), "the same test draws the same")
			require.True(t, n >= 0 && n < 5)
			all[n] = true
		})
	}
	require.Greater(t, len(all), 1, "each test draws its own")
}
