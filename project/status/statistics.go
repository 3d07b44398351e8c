package status

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"corpus-git/project"
	"corpus-git/project/junit"
)

// Mark is a deployment in a few words.
type Mark struct {
	ID      project.ID
	Trigger project.Trigger
	State   project.State
	At      time.Time
	// Asked: it waits for approval, and State says that it was not deployed yet.
	Asked bool
}

// StatisticsOf is the default number of a project's newest deployments that are counted.
const StatisticsOf = 500

// StatisticsDocument is printed by statistics --json.
type StatisticsDocument struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	Statistics
}

// Statistics are figures of the newest deployments of a project: pushes, redeploys, rollbacks and bundles that ran. Refused deployments never
// ran.
type Statistics struct {
	// Deployments is the number of deployments that the figures cover, Since when the oldest of them began.
	Deployments int       `json:"deployments"`
	Since       time.Time `json:"since,omitzero"`
	Good        int       `json:"live"`
	Bad         int       `json:"failed"`
	Refused     int       `json:"refused"`
	// Whole is the duration of those that went live, Steps that of their procedures and steps, in the order in which they run.
	Whole Spread   `json:"took"`
	Steps []Spread `json:"steps"`
	// Restored counts how often a deployment went live after others that did not, and Restore how long that took: from the end of the first
	// failure.
	Restored int    `json:"restored"`
	Restore  Spread `json:"restore"`
	// Days are the last days up to now, the oldest first.
	Days []Day `json:"days"`
	// Tests sums up the test reports of the newest deployments that had any, the oldest first.
	Tests []TestRun `json:"tests"`
}

// TestRun sums up the test reports of one deployment.
type TestRun struct {
	Deployment project.ID    `json:"deployment"`
	At         time.Time     `json:"at"`
	State      project.State `json:"state"`
	Tests      int           `json:"tests"`
	Failed     int           `json:"failed"`
	Errors     int           `json:"errors"`
	Skipped    int           `json:"skipped"`
	Duration   time.Duration `json:"duration_ns"`
}

// testRuns is the number of deployments in a trend of tests.
const testRuns = 30

// TestRuns returns the test figures of a project's records, which are the newest first; it returns the oldest first. Tasks that run tests count,
// too.
func TestRuns(records []project.Record) []TestRun {
	out := []TestRun{}
	for _, r := range records {
		if r.Result == nil || len(r.Result.Tests) == 0 || len(out) == testRuns {
			continue
		}
		t := junit.Total(r.Result.Tests)
		out = append(out, TestRun{r.ID, r.At, r.State, t.Tests, t.Failed, t.Errors, t.Skipped, t.Duration})
	}
	slices.Reverse(out)
	return out
}

// Spread is the distribution of a duration: in half of the cases Median or less, in 95 of 100 P95 or less (nearest rank).
type Spread struct {
	Name   string        `json:"name,omitempty"`
	N      int           `json:"runs"`
	Median time.Duration `json:"median_ns"`
	P95    time.Duration `json:"p95_ns"`
}

// Day is what ran on one day, in UTC.
type Day struct {
	Day  time.Time `json:"day"`
	Good int       `json:"live"`
	Bad  int       `json:"failed"`
}

// statisticsDays is the number of days that are shown.
const statisticsDays = 30

// Summarize computes the figures of a project's newest records, which are passed the newest first.
func Summarize(records []project.Record, now time.Time) (out Statistics) {
	out.Steps, out.Tests = []Spread{}, TestRuns(records)
	today := now.UTC().Truncate(24 * time.Hour)
	for i := range statisticsDays {
		out.Days = append(out.Days, Day{Day: today.AddDate(0, 0, i+1-statisticsDays)})
	}
	var whole, restore []time.Duration
	steps := map[string][]time.Duration{}
	var order []string
	var broken time.Time
	for _, r := range slices.Backward(records) {
		if r.Result == nil || !counts(r.Trigger) {
			continue
		}
		if r.State == project.Refused {
			out.Refused++
			continue
		}
		if out.Deployments++; out.Deployments == 1 {
			out.Since = r.At
		}
		good := r.State == project.Live
		if i := int(r.At.UTC().Sub(out.Days[0].Day) / (24 * time.Hour)); !r.At.Before(out.Days[0].Day) && i < len(out.Days) {
			out.Days[i].add(good)
		}
		if !good {
			if out.Bad++; broken.IsZero() {
				broken = r.Result.Ended
			}
			continue
		}
		out.Good++
		if !broken.IsZero() {
			restore, broken = append(restore, r.Result.Ended.Sub(broken)), time.Time{}
		}
		whole = append(whole, r.Result.Ended.Sub(r.Result.Started))
		for _, t := range r.Result.Timings {
			if strings.Count(t.Name, "/") > 1 { // a state of a step
				continue
			}
			if steps[t.Name] == nil {
				order = append(order, t.Name)
			}
			steps[t.Name] = append(steps[t.Name], t.Duration)
		}
	}
	out.Whole, out.Restore, out.Restored = spread("", whole), spread("", restore), len(restore)
	for _, name := range order {
		out.Steps = append(out.Steps, spread(name, steps[name]))
	}
	return out
}

// counts reports whether runs of a trigger make something live.
func counts(t project.Trigger) bool {
	switch t {
	case project.TriggerPush, project.TriggerRedeploy, project.TriggerRollback, project.TriggerBundle, project.TriggerPromote:
		return true
	}
	return false
}

func (d *Day) add(good bool) {
	if good {
		d.Good++
	} else {
		d.Bad++
	}
}

// Rate returns how many in a hundred went live.
func (s Statistics) Rate() int {
	return int(math.Round(100 * float64(s.Good) / float64(max(1, s.Good+s.Bad))))
}

func spread(name string, all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{Name: name}
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return Spread{Name: name, N: len(all), Median: at(50), P95: at(95)}
}
