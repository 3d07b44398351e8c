package project

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEstimatesOf(t *testing.T) {
	require.Empty(t, EstimatesOf(nil), "never on the first")
	run := func(seconds ...int) (out []Result) {
		for _, s := range seconds {
			d := time.Duration(s) * time.Second
			out = append(out, Result{Started: time.Unix(0, 0), Ended: time.Unix(0, 0).Add(2 * d), Timings: []Timing{{Name: "a", Duration: d}, {Name: "b", Duration: d}, {Name: "b", Duration: d}}})
		}
		return out
	}
	one := EstimatesOf(run(3))
	require.Equal(t, Estimate{Median: 3 * time.Second, P90: 3 * time.Second, Runs: 1}, one["a"])
	require.Equal(t, 6*time.Second, one["b"].Median, "what runs twice counts together")
	require.Equal(t, 6*time.Second, one[""].Median)
	require.Equal(t, Estimate{Median: 1500 * time.Millisecond, P90: 2 * time.Second, Runs: 2}, EstimatesOf(run(2, 1))["a"])
	ten := EstimatesOf(run(10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 500))
	require.Equal(t, Estimate{Median: 5500 * time.Millisecond, P90: 9 * time.Second, Runs: 10}, ten["a"], "the eleventh counts no more")
	require.Equal(t, "takes about 3.0s by the last good deployment", one["a"].Text())
	require.Equal(t, "takes about 2.0s by the last 2 good deployments, the longest 2.0s", EstimatesOf(run(2, 2))["a"].Text())
	require.Equal(t, "the longest 9.0s", EstimatesOf(run(9, 8, 7, 6, 5, 4, 3, 2, 1))["a"].Upper(), "of nine the longest is not one of ten")
	require.Equal(t, "9 of 10 9.0s or less", ten["a"].Upper())
}
