package event_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
)

type hide string

func (h hide) String(s string) string { return strings.ReplaceAll(s, string(h), "[hidden]") }

func open(t *testing.T, path string) *event.Log {
	t.Helper()
	l, err := event.Create(path, time.Now, hide("s3cret\nvalue"))
	require.NoError(t, err)
	return l
}

func collect(t *testing.T, l *event.Log, seq uint64) []event.Event {
	t.Helper()
	var out []event.Event
	for e, err := range l.Follow(t.Context(), seq) {
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

func TestFollowersSeeEverythingInOrder(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "events", "a.jsonl"))
	const n = 500
	var wg sync.WaitGroup
	got := make([][]event.Event, 4)
	for i := range got {
		wg.Go(func() {
			for e, err := range l.Follow(t.Context(), uint64(i*100)) {
				if err != nil {
					t.Error(err)
				}
				got[i] = append(got[i], e)
			}
		})
	}
	for range n {
		require.NotZero(t, l.Append(event.Event{Kind: event.Note, Text: "x"}))
	}
	require.NoError(t, l.Close())
	wg.Wait()
	for i, events := range got {
		require.Len(t, events, n-i*100)
		for j, e := range events {
			require.Equal(t, uint64(i*100+j+1), e.Seq)
		}
	}
	require.Zero(t, l.Append(event.Event{Kind: event.Note}))
}

func TestFollowEndsWithItsContext(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "a.jsonl"))
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.Follow(ctx, 0) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestTornTailIsCutAndNumberingGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l := open(t, path)
	l.Append(event.Event{Kind: event.Note, Text: "one"})
	l.Append(event.Event{Kind: event.Note, Text: "two"})
	require.NoError(t, l.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := len(data) - 1; cut > len(data)/2+1; cut-- {
		require.NoError(t, os.WriteFile(path, data[:cut], 0o600))
		l := open(t, path)
		l.Append(event.Event{Kind: event.Note, Text: "again"})
		require.NoError(t, l.Close())
		events := collect(t, l, 0)
		require.Len(t, events, 2)
		require.Equal(t, uint64(2), events[1].Seq)
		require.Equal(t, "again", events[1].Text)
	}
}

func TestAppendHidesSecretsAcrossLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	l := open(t, path)
	l.Append(event.Event{Kind: event.Failure, Text: "x", Lines: []string{"before s3cret", "value after"}})
	require.NoError(t, l.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(data), "s3cret")
	require.Equal(t, []string{"before [hidden] after"}, collect(t, l, 0)[0].Lines)
}

func TestCreateRefusesNoRedactor(t *testing.T) {
	_, err := event.Create(filepath.Join(t.TempDir(), "a"), time.Now, nil)
	require.Error(t, err)
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                      "plain",
		"tab\tstays":                 "tab\tstays",
		"\x1b[31mred\x1b[0m":         "\x1b[31mred\x1b[0m",
		"\x1b[31mred":                "\x1b[31mred\x1b[0m",
		"\x1b]0;title\x07text":       "text",
		"\x1b]8;;http://x\x1b\\link": "link",
		"\x1b[2Kclear\x1b[1;1H":      "clear",
		"10%\r50%\r100%":             "100%",
		"bell\x07 nul\x00 del\x7f":   "bell nul del",
		"bad \xff utf8":              "bad \ufffd utf8",
		"c1 \u009b31m":               "c1 31m",
		"\x1b[8mnot seen":            "not seen",
		"\x1b[1;08mnot seen":         "not seen",
		"\x1b[38;5;8mgrey\x1b[0m":    "\x1b[38;5;8mgrey\x1b[0m",
		"\x1b[?25lhidden cursor":     "hidden cursor",
		"end\r\n":                    "end",
		"unfinished \x1b[31":         "unfinished ",
		"unfinished osc \x1b]0;evil": "unfinished osc ",
		"\x1b[31\x1b[0msplit":        "\x1b[0msplit",
		"\x1b[>4;2mmodifyOtherKeys":  "modifyOtherKeys",
	} {
		require.Equal(t, want, event.Clean(in), "%q", in)
	}
	long := event.Clean(strings.Repeat("é", event.MaxLine))
	require.LessOrEqual(t, len(long), event.MaxLine+8)
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;x\x07\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := event.Clean(s)
		for i, r := range event.StripColour(got) {
			require.False(t, (r < 0x20 && r != '\t') || (r >= 0x7f && r < 0xa0), "control %#x at %d of %q", r, i, got)
		}
		require.Equal(t, got, event.Clean(got))
	})
}
