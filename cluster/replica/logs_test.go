package replica_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster/replica"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
)

// logs are the event logs that a test names as written.
type logs struct {
	t   *testing.T
	f   replica.Files
	now []string
}

func (l *logs) append(n int, text string) {
	l.t.Helper()
	p := l.f.State.EventLog("p", fmt.Sprint(n))
	h, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	require.NoError(l.t, err)
	_, err = h.WriteString(text)
	require.NoError(l.t, err)
	require.NoError(l.t, h.Close())
	l.now = append(l.now, p)
}

func (l *logs) written() []string {
	out := l.now
	l.now = nil
	return out
}

// A project in progress costs a capture the same with twenty event logs as with two thousand.
func TestACaptureLooksAtWrittenLogsOnly(t *testing.T) {
	cost := map[int]int{}
	for _, n := range []int{20, 2000} {
		calls := vfstest.New(vfs.OS{}, nil)
		f := hub(t, calls, t.TempDir())
		for i := range n {
			write(t, f, fmt.Sprintf("state/events/p/%d.jsonl", i), "{}\n")
		}
		write(t, f, "state/underway/p", "")
		write(t, f, "state/journal/p.journal", "accepted\n")
		write(t, f, "projects/p/git/project.git/HEAD", "ref: refs/heads/master\n")
		s, err := replica.NewSource(t.Context(), f)
		require.NoError(t, err)
		l := &logs{t: t, f: f}
		s.Logs(l.written)
		settle(t, f)
		capture(t, s, replica.Scope{Projects: []string{"p"}})
		before := calls.Count()
		l.append(n, "new\n")
		write(t, f, "state/journal/p.journal", "accepted\nbegin install\n")
		require.NotEmpty(t, capture(t, s, replica.Scope{Projects: []string{"p"}}))
		cost[n] = calls.Count() - before
	}
	require.Equal(t, cost[20], cost[2000])
	require.Less(t, cost[20], 60)
}

// What was written to logs is with the other hub after each capture, also if the one before was undone, and if the folder of the project has gone. Removed logs are missed until all is captured.
func TestWrittenLogsAreCaptured(t *testing.T) {
	a, b := hub(t, vfs.OS{}, t.TempDir()), hub(t, vfs.OS{}, t.TempDir())
	write(t, a, "state/underway/p", "")
	s, err := replica.NewSource(t.Context(), a)
	require.NoError(t, err)
	l := &logs{t: t, f: a}
	s.Logs(l.written)
	send := func(scope replica.Scope) {
		t.Helper()
		require.NoError(t, b.Apply(t.Context(), bytes.NewReader(capture(t, s, scope)), false))
	}
	same := func(n int) {
		t.Helper()
		want, err := os.ReadFile(a.State.EventLog("p", fmt.Sprint(n)))
		require.NoError(t, err)
		got, err := os.ReadFile(b.State.EventLog("p", fmt.Sprint(n)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	barrier := replica.Scope{}
	send(barrier) // there are no logs yet
	require.NoError(t, os.MkdirAll(a.State.Events("p"), 0o700))
	l.append(1, "one\n")
	send(barrier)
	same(1)
	l.append(1, "more\n")
	l.append(2, "two\n")
	batch := replica.NewBatch(&bytes.Buffer{})
	c, err := s.Capture(t.Context(), barrier, batch)
	require.NoError(t, err)
	batch.Abandon()
	c.Undo()
	send(barrier)
	same(1)
	same(2)
	l.append(2, "more\n")
	batch = replica.NewBatch(&bytes.Buffer{})
	c, err = s.Capture(t.Context(), replica.Scope{All: true}, batch)
	require.NoError(t, err)
	batch.Abandon()
	c.Undo()
	send(barrier)
	same(2)

	require.NoError(t, os.Remove(a.State.EventLog("p", "1")))
	send(barrier)
	require.FileExists(t, b.State.EventLog("p", "1"))
	send(replica.Scope{All: true})
	require.NoFileExists(t, b.State.EventLog("p", "1"))
	l.append(3, "three\n")
	require.NoError(t, os.RemoveAll(a.State.Events("p")))
	send(barrier)
	require.NoDirExists(t, b.State.Events("p"))
	l.now = append(l.now, a.State.EventLog("p", "3"))
	require.Empty(t, capture(t, s, barrier))

	// Without names, all are looked at.
	s.Logs(nil)
	write(t, a, filepath.Join("state/events/p", "4.jsonl"), "four\n")
	send(barrier)
	same(4)
}
