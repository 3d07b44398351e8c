package pages

import (
	"fmt"
	"math"

	"corpus-git/project"
	"corpus-git/project/junit"
	"corpus-git/project/status"
)

// shownFailures is how many tests that failed a page names, however many the record has: a page has its log, too.
const shownFailures = 10

// testsOf is what the page of a deployment shows of its tests.
type testsOf struct {
	Steps    []junit.Summary
	Failures []failure
	More     int
	Problems []string
}

// failure is a test that failed in a step.
type failure struct {
	Step string
	junit.Case
}

func newTestsOf(r *project.Result) (out testsOf) {
	if r == nil {
		return out
	}
	out.Steps = r.Tests
	for _, s := range r.Tests {
		for _, c := range s.Failures {
			if len(out.Failures) < shownFailures {
				out.Failures = append(out.Failures, failure{s.Step, c})
			}
		}
		out.More += s.Bad()
		for _, p := range s.Problems {
			if len(out.Problems) < shownFailures {
				out.Problems = append(out.Problems, s.Step+": "+p)
			}
		}
	}
	out.More -= len(out.Failures)
	return out
}

// trend has a column for each deployment with tests: passed tests below, failed ones above.
type trend struct {
	plot
	Runs []status.TestRun
	// Last is the newest.
	Last junit.Summary
	Text string
}

// leastColumns is for how many deployments there is room: fewer have no wider columns.
const leastColumns = 30

// leastBad is how high a column shows that a test failed, of plotHeight, where many passed.
const leastBad = 4

func trendOf(runs []status.TestRun) (out trend) {
	out.Runs = runs
	bad := 0
	for _, r := range runs {
		out.Max = max(out.Max, r.Tests)
		if r.Failed+r.Errors > 0 {
			bad++
		}
	}
	for i, r := range runs {
		out.Last = junit.Summary{Tests: r.Tests, Failed: r.Failed, Errors: r.Errors, Skipped: r.Skipped, Duration: r.Duration}
		scale := func(n int) int {
			return int(math.Ceil(plotHeight * float64(n) / float64(max(1, out.Max))))
		}
		c := column{X: (i+max(0, leastColumns-len(runs)))*columnStep + 2, BadHeight: scale(out.Last.Bad()), Text: r.Deployment.Short() + ", " + r.At.UTC().Format("2006-01-02 15:04") + ": " + out.Last.Text()}
		if out.Last.Bad() > 0 {
			c.BadHeight = max(leastBad, c.BadHeight)
		}
		c.GoodHeight = min(scale(out.Last.Passed()), plotHeight-c.BadHeight)
		c.GoodY = plotHeight - c.GoodHeight
		c.BadY = c.GoodY - c.BadHeight
		out.Columns = append(out.Columns, c)
	}
	out.Width = max(leastColumns, len(runs)) * columnStep
	if len(runs) > 0 {
		out.Text = fmt.Sprintf("Tests of the last %d deployments that had some: in %d all passed; the newest: %s", len(runs), len(runs)-bad, out.Last.Text())
	}
	return out
}
