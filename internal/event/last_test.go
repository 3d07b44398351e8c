package event_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
)

func TestLastIsTheLastWholeEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	_, _, err := event.Last(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	l, err := event.Create(path, time.Now, redact.New(nil))
	require.NoError(t, err)
	_, ok, err := event.Last(path)
	require.NoError(t, err)
	require.False(t, ok)
	for range 2000 {
		l.Append(event.Event{Kind: event.Output, Text: "a line that fills more than the end that is looked at"})
	}
	l.Append(event.Event{Kind: event.Verdict, Text: "live"})
	require.NoError(t, l.Close())
	e, ok, err := event.Last(path)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, event.Verdict, e.Kind)
	require.Equal(t, uint64(2001), e.Seq)
	// A truncated line after it does not count.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"seq":2002,"ki`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	e, ok, err = event.Last(path)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "live", e.Text)
}
