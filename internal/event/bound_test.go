package event_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
)

// A step prints without end: the log keeps its beginning and its end, reports what is missing, and ends.
func TestALogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l := open(t, path)
	const limit = 256 << 10
	l.Limit(limit)
	l.Append(event.Event{Kind: event.Head, Text: "begins"})
	for step := range 3 {
		for i := range 20_000 {
			l.Append(event.Event{Kind: event.Output, Step: fmt.Sprint(step), Text: fmt.Sprintf("line %d of %d", i, step)})
		}
		l.Append(event.Event{Kind: event.StepDone, Step: fmt.Sprint(step), Text: "done"})
	}
	l.Append(event.Event{Kind: event.Output, Text: "the very last"})
	require.NoError(t, l.Close())
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, st.Size(), int64(limit*5/4))
	require.Greater(t, st.Size(), int64(limit/2))
	events := collect(t, l, 0)
	var texts []string
	for i, e := range events {
		require.Equal(t, uint64(i+1), e.Seq, "numbered without gaps")
		texts = append(texts, e.Text)
	}
	all := strings.Join(texts, "\n")
	require.Contains(t, all, "line 0 of 0\n")
	require.Contains(t, all, "the log has reached 131 kB: of what is printed from here on the last lines are kept (limits.max_log_bytes)")
	require.Equal(t, 1, strings.Count(all, "the log has reached"))
	for step := range 3 {
		require.Contains(t, all, fmt.Sprintf("line 19999 of %d\ndone", step))
	}
	require.Regexp(t, `[0-9,]+ events left out, .* MB; the last ones:`, all)
	require.Equal(t, "the very last", texts[len(texts)-1])
}

// The lines under one event are limited too, including an unterminated line.
func TestAnEventIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l := open(t, path)
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("%d %s", i, strings.Repeat("x", 1<<16)))
	}
	l.Append(event.Event{Kind: event.Failure, Text: strings.Repeat("y", 10<<20), Lines: lines})
	require.NoError(t, l.Close())
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, st.Size(), int64(2<<20))
	e := collect(t, l, 0)[0]
	require.Regexp(t, `^\([0-9]+ lines left out\)$`, e.Lines[0])
	require.True(t, strings.HasPrefix(e.Lines[len(e.Lines)-1], "999 x"))
}
