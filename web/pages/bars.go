package pages

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/status"
)

// bars shows the durations of the parts of a deployment side by side; widths are thousandths of the total.
type bars struct {
	Bars []bar
	// Text says the same in words.
	Text string
}

type bar struct {
	X, Width, Class int
	Text            string
}

// classes is the number of colours for parts.
const classes = 6

// barsOf shows procedures, and the steps of install instead of install.
func barsOf(r *project.Result) (out bars) {
	if r == nil {
		return out
	}
	steps := false
	for _, t := range r.Timings {
		steps = steps || strings.Count(t.Name, "/") == 1
	}
	var parts []project.Timing
	var whole time.Duration
	for _, t := range r.Timings {
		if n := strings.Count(t.Name, "/"); n > 1 || steps && t.Name == "install" {
			continue
		}
		t.Name = strings.TrimPrefix(t.Name, "install/")
		parts, whole = append(parts, t), whole+t.Duration
	}
	if whole <= 0 {
		return out
	}
	parts = longest(parts)
	var texts []string
	var at time.Duration
	for i, t := range parts {
		text := t.Name + " " + humanize.Seconds(t.Duration)
		from := int(1000 * at / whole)
		at += t.Duration
		out.Bars = append(out.Bars, bar{X: from, Width: max(2, int(1000*at/whole)-from), Class: i % classes, Text: text})
		texts = append(texts, text)
	}
	out.Text = strings.Join(texts, ", ")
	return out
}

// maxBars is how many parts are shown by themselves.
const maxBars = 12

// longest keeps the longest parts in their order, and merges the others.
func longest(parts []project.Timing) []project.Timing {
	if len(parts) <= maxBars {
		return parts
	}
	lengths := make([]time.Duration, len(parts))
	for i, t := range parts {
		lengths[i] = t.Duration
	}
	slices.Sort(lengths)
	least := lengths[len(parts)-maxBars+1]
	var out []project.Timing
	var rest project.Timing
	n := 0
	for _, t := range parts {
		if t.Duration >= least && len(out) < maxBars-1 {
			out = append(out, t)
			continue
		}
		n++
		rest.Duration += t.Duration
	}
	rest.Name = humanize.Plural(n, "other", "others")
	return append(out, rest)
}

// strip is a box for each of the newest deployments of a project, the oldest first: a path (SVG) of those that went well, of those that did not, and of those that go on.
type strip struct {
	Width           int
	Good, Bad, Busy string
	Text            string
}

// stripOf takes the newest first.
func stripOf(marks []status.Mark) (out strip) {
	good := 0
	for i, m := range marks {
		path := &out.Busy
		switch {
		case m.Asked:
		case m.State.Good():
			path, good = &out.Good, good+1
		case m.State.Terminal():
			path = &out.Bad
		}
		*path += fmt.Sprintf("M%d 0h8v16h-8z", 10*(len(marks)-1-i))
	}
	if len(marks) > 0 {
		out.Width, out.Text = 10*len(marks), fmt.Sprintf("%d of %d went well, the newest: %s", good, len(marks), newestOf(marks[0]))
	}
	return out
}

func newestOf(m status.Mark) string {
	if m.Asked {
		return "waits for approval"
	}
	return string(m.State)
}

// plot is a column for each day: what went live below, what did not above it.
type plot struct {
	Columns []column
	Max     int
	Width   int
}

type column struct {
	X, GoodY, GoodHeight, BadY, BadHeight int
	Text                                  string
}

const (
	plotHeight = 100
	columnStep = 20
)

func plotOf(days []status.Day) (out plot) {
	for _, d := range days {
		out.Max = max(out.Max, d.Good+d.Bad)
	}
	for i, d := range days {
		scale := func(n int) int {
			return int(math.Ceil(float64(plotHeight) * float64(n) / float64(max(1, out.Max))))
		}
		c := column{X: i*columnStep + 2, GoodHeight: scale(d.Good), BadHeight: scale(d.Bad), Text: fmt.Sprintf("%s: %d live, %d failed", d.Day.Format("2006-01-02"), d.Good, d.Bad)}
		c.GoodY = plotHeight - c.GoodHeight
		c.BadY = c.GoodY - c.BadHeight
		out.Columns = append(out.Columns, c)
	}
	out.Width = len(days) * columnStep
	return out
}
