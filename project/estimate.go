package project

import (
	"slices"
	"time"
)

// Estimate is an estimated duration from past good runs.
type Estimate struct {
	// Median is the median duration, P90 the 90th percentile; Runs is how many runs there were, at most EstimateRuns.
	Median time.Duration `json:"median_ns"`
	P90    time.Duration `json:"p90_ns"`
	Runs   int           `json:"runs"`
}

// EstimateRuns is how many of the last good runs are used.
const EstimateRuns = 10

// EstimatesOf makes estimates from the results of good runs, the newest first, by Timing.Name; "" is the whole deployment. Of no runs there are none.
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
