package modules

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompareVersions holds the comparison against the table, and against dpkg where that is there.
func TestCompareVersions(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"1.0", "1.0", 0}, {"1.0", "1.1", -1}, {"1.10", "1.9", 1}, {"1.0~rc1", "1.0", -1}, {"1.0~~", "1.0~", -1}, {"1:0.1", "2.0", 1},
		{"1.0-1", "1.0-2", -1}, {"1.0-1", "1.0", 1}, {"1.0", "1.0-0", 0}, {"1.0a", "1.0", 1}, {"1.0+b", "1.0a", 1}, {"1.001", "1.1", 0},
		{"2.4.57-2", "2.4.57-2+deb12u1", -1}, {"0:1.0", "1.0", 0}, {"1.0-1-1", "1.0-1", 1}, {"10~beta", "10", -1}, {"1.2.3", "1.2.a", -1}, {"", "0", 0},
	} {
		require.Equal(t, tt.want, compareVersions(tt.a, tt.b), "%s %s", tt.a, tt.b)
		require.Equal(t, -tt.want, compareVersions(tt.b, tt.a), "%s %s", tt.b, tt.a)
		if err != nil || tt.a == "" {
			continue
		}
		op := map[int]string{-1: "lt", 0: "eq", 1: "gt"}[tt.want]
		require.NoError(t, exec.Command(dpkg, "--compare-versions", tt.a, op, tt.b).Run(), "dpkg: %s %s %s", tt.a, op, tt.b)
	}
}
