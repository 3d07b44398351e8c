package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
)

var good = []event.Event{
	{Kind: event.Head, Text: `app  91bd0e2..3f2a9c1  "Fix the header"  by marie, 1 commit, 3 files`},
	{Kind: event.ProcedureStart, Procedure: "archive"},
	{Kind: event.ProcedureDone, Procedure: "archive", Duration: 40 * time.Millisecond, Text: "5,003 files, 22 MB"},
	{Kind: event.ProcedureStart, Procedure: "install", Text: "2 steps, about 2s by past deployments", Lines: []string{"000_dirs", "0100_build_assets"}},
	{Kind: event.StepStart, Step: "000_dirs", N: 1, Of: 2},
	{Kind: event.StepDone, Step: "000_dirs", N: 1, Of: 2, Text: "3 states: 2 unchanged, 1 changed"},
	{Kind: event.StepStart, Step: "0100_build_assets", N: 2, Of: 2},
	{Kind: event.StateStart, Step: "0100_build_assets", State: "npm"},
	{Kind: event.Output, Text: "added 3 packages", Stream: "stdout"},
	{Kind: event.StateDone, Step: "0100_build_assets", State: "npm", Duration: 1290 * time.Millisecond, Status: event.Changed, Text: "cmd.run: npm ci"},
	{Kind: event.StepDone, Step: "0100_build_assets", N: 2, Of: 2, Duration: 1310 * time.Millisecond, Text: "1 state: 1 changed"},
	{Kind: event.Verdict, Status: event.OK, Text: "live in 1.6s: app is 3f2a9c1"},
}

func show(style event.Style, events []event.Event) string {
	var b strings.Builder
	c := event.NewConsole(&b, style)
	for _, e := range events {
		_, _ = c.Show(e)
	}
	return b.String()
}

func TestConsole(t *testing.T) {
	require.Equal(t, `-----> app  91bd0e2..3f2a9c1  "Fix the header"  by marie, 1 commit, 3 files
-----> archive         0.04s  5,003 files, 22 MB
-----> install        2 steps, about 2s by past deployments
       1/2 000_dirs             0.00s  3 states: 2 unchanged, 1 changed
       2/2 0100_build_assets    1.31s  1 state: 1 changed
           npm           1.29s  cmd.run: npm ci
=====> live in 1.6s: app is 3f2a9c1
`, show(event.Style{}, good))
	require.Contains(t, show(event.Style{Verbose: true}, good), "         | added 3 packages\n")
	require.Contains(t, show(event.Style{Colour: true}, good), "\x1b[32m=====> live")
	require.Contains(t, show(event.Style{Output: true}, good), "         | added 3 packages\n")
	require.NotContains(t, show(event.Style{}, good), "added 3 packages")
	require.NotContains(t, show(event.Style{}, []event.Event{{Kind: event.Note, Text: "\x1b[31mred\x1b[0m"}}), "\x1b")
}

func TestStillNamesWhatRuns(t *testing.T) {
	var b strings.Builder
	c := event.NewConsole(&b, event.Style{})
	at := time.Unix(1000, 0)
	require.NoError(t, c.Progress(at))
	require.Empty(t, b.String())
	for _, e := range []event.Event{
		{Kind: event.ProcedureStart, Procedure: "install"},
		{Kind: event.StepStart, Step: "0100_build"},
		{Kind: event.StateStart, Step: "0100_build", State: "npm-install", Time: at, Duration: 40 * time.Second},
	} {
		_, _ = c.Show(e)
	}
	require.NoError(t, c.Progress(at.Add(45*time.Second)))
	require.Equal(t, "       still in 0100_build npm-install, 45s (usually 40s)\n", b.String())
	b.Reset()
	for _, text := range []string{"compiling 1 of 2", "\x1b[32mcompiling 2 of 2\x1b[0m", " "} {
		_, _ = c.Show(event.Event{Kind: event.Output, Step: "0100_build", State: "npm-install", Text: text})
	}
	require.NoError(t, c.Progress(at.Add(75*time.Second)))
	require.Equal(t, "       still in 0100_build npm-install, 75s (usually 40s)\n         | compiling 2 of 2\n", b.String())
	b.Reset()
	_, _ = c.Show(event.Event{Kind: event.StepStart, Step: "0200_next", Time: at})
	require.NoError(t, c.Progress(at.Add(time.Second)))
	require.Equal(t, "       still in 0200_next, 1.0s\n", b.String(), "the line was another step's")
	b.Reset()
	_, _ = c.Show(event.Event{Kind: event.StateStart, Step: "0200_next", State: "quick", Time: at.Add(39900 * time.Millisecond)})
	require.NoError(t, c.Progress(at.Add(40*time.Second)))
	require.Equal(t, "       still in 0200_next, 40s\n", b.String(), "a state that began just now is not what takes the time")
	b.Reset()
	_, _ = c.Show(event.Event{Kind: event.ProcedureDone, Procedure: "install"})
	require.NoError(t, c.Progress(at))
	require.Empty(t, b.String())
}

func TestFigures(t *testing.T) {
	require.Equal(t, "5,003", humanize.Count(5003))
	require.Equal(t, "1,234,567", humanize.Count(1234567))
	require.Equal(t, "-1,234", humanize.Count(-1234))
	require.Equal(t, "999", humanize.Count(999))
	require.Equal(t, "1 file", humanize.Plural(1, "file"))
	require.Equal(t, "0 entries", humanize.Plural(0, "entry", "entries"))
	require.Equal(t, "22 MB", humanize.Bytes(22_000_000))
	require.Equal(t, "1.5 GB", humanize.Bytes(int64(1_500_000_000)))
	require.Equal(t, "812 B", humanize.Bytes(812))
	require.Equal(t, "2m03s", humanize.Seconds(123*time.Second))
	require.Equal(t, "3h20m", humanize.Seconds(200*time.Minute))
}
