package project

import (
	"fmt"
	"slices"
	"time"

	"corpus-git/internal/humanize"
)

// Estimate is an estimated duration from past good runs.
type Estimate struct {
	// Median is the median duration, P90 the 90th percentile; Runs is the number of runs, at most EstimateRuns.
	Median time.Duration `json:"median_ns"`
	P90    time.Duration `json:"p90_ns"`
	Runs   int           `json:"runs"`
}

// EstimateRuns is the maximum number of recent good runs that are used.
const EstimateRuns = 10

// EstimatesOf computes estimates from the results of good runs, the newest first, by Timing.Name; "" is the whole deployment. Without runs there are
// none.
func EstimatesOf(runs []Result) map[string]Estimate {
	took := map[string][]time.Duration{}
	for _, r := range runs[:min(len(runs), EstimateRuns)] {
		took[""] = append(took[""], r.Ended.Sub(r.Started))
		once := map[string]time.Duration{}
		for _, t := range r.Timings {
			once[t.Name] += t.Duration // fixperms runs twice
		}
		for name, d := range once {
			took[name] = append(took[name], d)
		}
	}
	out := make(map[string]Estimate, len(took))
	for name, list := range took {
		slices.Sort(list)
		n := len(list)
		out[name] = Estimate{Median: (list[(n-1)/2] + list[n/2]) / 2, P90: list[(9*n+9)/10-1], Runs: n}
	}
	return out
}

// Upper describes the 90th percentile. Of fewer than EstimateRuns runs it is the longest.
func (e Estimate) Upper() string {
	if e.Runs < EstimateRuns {
		return "the longest " + humanize.Rough(e.P90)
	}
	return "9 of 10 " + humanize.Rough(e.P90) + " or less"
}

// Text returns the estimate in words: by how many deployments, and Upper if there is more than one.
func (e Estimate) Text() string {
	if e.Runs == 1 {
		return "takes about " + humanize.Rough(e.Median) + " by the last good deployment"
	}
	return fmt.Sprintf("takes about %s by the last %d good deployments, %s", humanize.Rough(e.Median), e.Runs, e.Upper())
}
