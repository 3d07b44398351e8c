package pages

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/project"
)

// stepsOf is a log of steps with lines, of which the last one fails.
func stepsOf(steps, lines int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		seq := uint64(0)
		say := func(e event.Event) bool {
			seq++
			e.Seq, e.Time = seq, time.Unix(0, 0)
			return yield(e, nil)
		}
		for i := range steps {
			name, done := fmt.Sprintf("%04d", i), event.OK
			if i == steps-1 {
				done = event.Bad
			}
			for j := range lines {
				if !say(event.Event{Kind: event.Output, Step: name, Text: fmt.Sprintf("line %d of %s", j, name)}) {
					return
				}
			}
			if !say(event.Event{Kind: event.StepDone, Step: name, Status: done, Text: "done"}) {
				return
			}
		}
		say(event.Event{Kind: event.Verdict, Status: event.Bad, Text: "rolled back"})
	}
}

// A log is shown whole where it is short, with the steps folded that went well, and in parts where it is long; a search looks in all of them.
func TestPartsOfALog(t *testing.T) {
	short := partAt(stepsOf(3, 2), 0, "")
	require.Equal(t, 1, short.Of)
	require.Len(t, short.Groups, 4)
	require.Equal(t, []bool{false, false, true, true}, []bool{short.Groups[0].Open, short.Groups[1].Open, short.Groups[2].Open, short.Groups[3].Open})
	require.Equal(t, []string{"good", "good", "bad", ""}, []string{short.Groups[0].State, short.Groups[1].State, short.Groups[2].State, short.Groups[3].State})

	last := partAt(stepsOf(50, 100), 0, "")
	require.Greater(t, last.Of, 3)
	require.Equal(t, last.Of, last.N)
	next := 1
	for n := 1; n <= last.Of; n++ {
		p := partAt(stepsOf(50, 100), n, "")
		require.Equal(t, last.Of, p.Of)
		for _, g := range p.Groups {
			for _, l := range g.Lines {
				require.Equal(t, next, l.N, "each line is in one part")
				require.Equal(t, n, l.Part)
				next++
			}
		}
	}
	require.Equal(t, 50*101+1, next-1)

	found := partAt(stepsOf(50, 100), 0, "LINE 7 OF 00")
	require.Equal(t, 50, found.Found)
	require.False(t, found.More)
	lines := found.Groups[0].Lines
	require.Len(t, lines, 50)
	require.Equal(t, 1, lines[0].Part)
	require.Equal(t, 8, lines[0].N)
	there := partAt(stepsOf(50, 100), lines[49].Part, "").Groups
	require.LessOrEqual(t, there[0].Lines[0].N, lines[49].N, "its part has it")
	require.Greater(t, lines[49].Part, lines[0].Part)
}

// However many steps there are, a bar has a few parts, which take as long as all of them.
func TestBars(t *testing.T) {
	r := &project.Result{}
	for i := range 40 {
		r.Timings = append(r.Timings, project.Timing{Name: fmt.Sprintf("install/%02d", i), Duration: time.Duration(i) * time.Second}, project.Timing{Name: fmt.Sprintf("install/%02d/state", i), Duration: time.Hour})
	}
	b := barsOf(r)
	require.Len(t, b.Bars, maxBars)
	require.Contains(t, b.Text, "29 others")
	end := b.Bars[maxBars-1]
	require.Equal(t, 1000, end.X+end.Width)
	require.Empty(t, barsOf(nil).Bars)
}
