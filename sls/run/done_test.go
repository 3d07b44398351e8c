package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
)

const waits = `
before:
  cmd.run:
    - name: echo before >> {{cfg.data.dir}}/log
same:
  cmd.run:
    - name: echo same >> {{cfg.data.dir}}/log
    - unless: "true"
workers:
  corpus.wait: []
on change:
  cmd.run:
    - name: echo changed >> {{cfg.data.dir}}/log
    - onchanges: [{cmd: before}]
on no change:
  cmd.run:
    - name: echo never >> {{cfg.data.dir}}/log
    - onchanges: [{cmd: same}]
`

// pause runs the file until it waits, and returns what it had done.
func pause(t *testing.T, in *sls.Input) (done sls.Done) {
	t.Helper()
	stop := errors.New("the server stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	paused := *in
	paused.Wait = func(_ context.Context, id string, _ *py.Dict, so func() sls.Done) (string, error) {
		require.Equal(t, "workers", id)
		done = so()
		cancel(stop)
		return "", stop
	}
	_, err := (&Builtin{}).Apply(ctx, &paused, &recorder{})
	require.ErrorIs(t, err, stop)
	// Another process reads it.
	text, err := json.Marshal(done)
	require.NoError(t, err)
	var read sls.Done
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// What ended before a wait is not run again after a restart, and counts for what depends on it.
func TestContinue(t *testing.T) {
	in := input(t, map[string]string{"app.sls": waits})
	dir := py.Str(value(in.Cfg, "data", "dir"))
	done := pause(t, in)
	require.Empty(t, done.Lost)
	in.Done = &done
	in.Wait = func(context.Context, string, *py.Dict, func() sls.Done) (string, error) { return "all have come", nil }
	rec := &recorder{}
	res, err := (&Builtin{}).Apply(t.Context(), in, rec)
	require.NoError(t, err)
	require.True(t, res.OK())
	var changed, skipped []string
	for _, s := range res.States {
		if s.Changed {
			changed = append(changed, s.ID)
		}
		if s.Skipped {
			skipped = append(skipped, s.ID)
		}
	}
	require.Equal(t, []string{"before", "on change"}, changed)
	require.Equal(t, []string{"on no change"}, skipped)
	require.Len(t, rec.done, 3, "what was kept was reported before")
	require.Equal(t, 3, rec.done[0].Num)
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	require.Equal(t, "before\nchanged\n", string(text))
}

// A file that compiles to something else is not continued, and nothing of it runs.
func TestContinueOtherStates(t *testing.T) {
	in := input(t, map[string]string{"app.sls": waits})
	done := pause(t, in)
	other := input(t, map[string]string{"app.sls": waits + "  test.nop: []\n"})
	other.Cfg, other.Done = in.Cfg, &done
	_, err := (&Builtin{}).Apply(t.Context(), other, &recorder{})
	require.Equal(t, fault.Failed, fault.KindOf(err))
	require.ErrorContains(t, err, "the states of app are not the same as before the wait")
}

func TestContinueLost(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  cmd.run:\n    - name: \"false\"\nworkers:\n  corpus.wait: []\n":                                                                                          "a state of it has failed",
		"a:\n  file.accumulated:\n    - filename: /x\n    - text: t\n    - require_in: [{file: x}]\nworkers:\n  corpus.wait: []\nx:\n  file.managed:\n    - name: /x\n": "file.accumulated",
		"a:\n  test.nop:\n    - prereq: [{test: b}]\nb:\n  test.succeed_with_changes: []\nworkers:\n  corpus.wait: []\n":                                                "prereq",
	} {
		require.Contains(t, pause(t, input(t, map[string]string{"app.sls": text})).Lost, want)
	}
}

func value(d *py.Dict, keys ...string) any {
	var v any = d
	for _, k := range keys {
		v, _ = v.(*py.Dict).GetStr(k)
	}
	return v
}
