package pages

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
	"corpus-git/project/junit"
	"corpus-git/project/status"
)

func TestTrend(t *testing.T) {
	require.Empty(t, trendOf(nil).Text)
	got := trendOf([]status.TestRun{{Tests: 1000, Failed: 1}, {Tests: 500}, {Tests: 10, Failed: 10}})
	require.Equal(t, leastColumns*columnStep, got.Width)
	require.Equal(t, got.Width-columnStep+2, got.Columns[2].X, "the newest is on the right")
	require.Equal(t, leastBad, got.Columns[0].BadHeight, "one of a thousand is seen")
	require.Equal(t, [2]int{96, 4}, [2]int{got.Columns[0].GoodHeight, got.Columns[0].GoodY})
	require.Equal(t, [2]int{50, 50}, [2]int{got.Columns[1].GoodHeight, got.Columns[1].GoodY})
	require.Equal(t, [2]int{0, 4}, [2]int{got.Columns[2].GoodHeight, got.Columns[2].BadHeight})
	for _, c := range got.Columns {
		require.GreaterOrEqual(t, c.BadY, 0)
	}
	require.Equal(t, "Tests of the last 3 deployments that had some: in 1 all passed; the newest: 10 tests, 10 failed", got.Text)
}

// A page names a few of the tests that failed, and counts the others.
func TestFailuresOnAPage(t *testing.T) {
	r := &project.Result{}
	for _, step := range []string{"a", "b"} {
		r.Tests = append(r.Tests, junit.Summary{Step: step, Tests: 50, Failed: 30, Failures: make([]junit.Case, 8), Problems: make([]string, 8)})
	}
	got := newTestsOf(r)
	require.Len(t, got.Failures, shownFailures)
	require.Equal(t, 50, got.More)
	require.Len(t, got.Problems, shownFailures)
	require.Equal(t, "b", got.Failures[9].Step)
	require.Empty(t, newTestsOf(nil))
}
