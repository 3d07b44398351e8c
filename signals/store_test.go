package signals_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/signals"
)

const id = project.ID("0193a1b2-0000-7000-8000-000000000001")

func hide(s string) string { return strings.ReplaceAll(s, "s3cret", "[hidden]") }

func database(t *testing.T) *sql.DB {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	_, err = d.ExecContext(t.Context(), `CREATE TABLE deployments (id TEXT PRIMARY KEY)`)
	require.NoError(t, err)
	return d
}

// opened is a store with a deployment that waits for two signals of any name (any), and for one of web1 (named).
func opened(t *testing.T) (*signals.Store, *sql.DB) {
	d := database(t)
	s, err := signals.OpenStore(t.Context(), d, time.Now)
	require.NoError(t, err)
	dep := project.Deployment{ID: id, Project: "app", Code: "c0de"}
	require.NoError(t, s.Begin(t.Context(), dep, hide,
		signals.Wait{ID: "any", Names: []string{"1", "2"}, Timeout: time.Hour}, signals.Wait{ID: "named", Names: []string{"web1"}, Named: true, Timeout: time.Hour}))
	require.NoError(t, s.Begin(t.Context(), dep, hide, signals.Wait{ID: "any", Names: []string{"1"}}), "it is open")
	return s, d
}

func TestAddresses(t *testing.T) {
	s, d := opened(t)
	path := s.Path(id, "any", "1")
	a, err := s.Parse(path)
	require.NoError(t, err)
	require.Equal(t, signals.Address{Deployment: id, Wait: "any", Name: "1"}, a)
	seen := map[string]bool{}
	for _, other := range []string{s.Path(id, "any", "2"), s.Path(id, "an", "y1"), s.Path(id+"1", "any", "1"), s.Path("", string(id)+"any", "1")} {
		mac := other[strings.LastIndexByte(other, '/'):]
		require.False(t, seen[mac])
		seen[mac] = true
		_, err := s.Parse(path[:strings.LastIndexByte(path, '/')] + mac)
		require.ErrorIs(t, err, signals.ErrForged)
	}
	for _, forged := range []string{signals.Prefix, path + "/", path[:len(path)-1], path + "A", strings.Replace(path, "any", "named", 1)} {
		_, err := s.Parse(forged)
		require.ErrorIs(t, err, signals.ErrForged, forged)
	}
	again, err := signals.OpenStore(t.Context(), d, time.Now)
	require.NoError(t, err)
	require.Equal(t, path, again.Path(id, "any", "1"), "the key stays")
	other, err := signals.OpenStore(t.Context(), database(t), time.Now)
	require.NoError(t, err)
	_, err = other.Parse(path)
	require.ErrorIs(t, err, signals.ErrForged, "another server's")
}

func TestASignalCountsOnce(t *testing.T) {
	s, _ := opened(t)
	send := func(name string, g signals.Given) (signals.Answer, error) {
		a, err := s.Parse(s.Path(id, "any", name))
		require.NoError(t, err)
		answer, _, err := s.Accept(t.Context(), a, g)
		return answer, err
	}
	got, err := send("1", signals.Given{ID: "x", Data: []byte("1")})
	require.NoError(t, err)
	require.Equal(t, signals.Answer{Version: 1, Counted: true, Wait: "any", State: signals.Open, Received: 1, Count: 2, Missing: []string{"2"}}, got)
	for name, g := range map[string]signals.Given{"1": {ID: "x", Data: []byte("1")}, "2": {ID: "x", Data: []byte("2")}} {
		got, err = send(name, g)
		require.NoError(t, err)
		require.False(t, got.Counted)
	}
	_, err = send("1", signals.Given{ID: "x", Data: []byte("2")})
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	_, err = send("2", signals.Given{ID: "x", Status: "failure"})
	require.ErrorContains(t, err, "x has signalled SUCCESS already for any", "a failure is not taken for a repetition")
	_, err = s.Signal(t.Context(), "app", "", "any", signals.Given{ID: "x", Status: "failure"})
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	got, err = s.Signal(t.Context(), "app", "", "any", signals.Given{ID: "y"})
	require.NoError(t, err)
	require.True(t, got.Counted)
	got, err = s.Signal(t.Context(), "app", "", "any", signals.Given{ID: "y"})
	require.NoError(t, err)
	require.False(t, got.Counted)
	_, err = s.Signal(t.Context(), "app", "", "any", signals.Given{ID: "z"})
	require.ErrorContains(t, err, "all signals of any have come")

	for _, g := range []signals.Given{{}, {ID: "web2"}, {ID: "web1", Status: "MAYBE"}, {ID: "web1", Data: []byte("{")}, {ID: "a b"}, {ID: "web1", Reason: strings.Repeat("x", 1001)}} {
		_, err = s.Signal(t.Context(), "app", id, "named", g)
		require.Equal(t, fault.Usage, fault.KindOf(err), "%+v", g)
	}
	_, err = s.Signal(t.Context(), "app", "", "none", signals.Given{})
	require.Equal(t, fault.Usage, fault.KindOf(err))
	_, err = s.Signal(t.Context(), "other", "", "any", signals.Given{ID: "q"})
	require.Equal(t, fault.Usage, fault.KindOf(err), "it is another project's")
}

func TestHowAWaitEnds(t *testing.T) {
	ctx := t.Context()
	quiet := func(signals.WaitStatus) {}
	t.Run("complete", func(t *testing.T) {
		s, _ := opened(t)
		for _, x := range []string{"a", "b"} {
			_, err := s.Signal(ctx, "app", id, "any", signals.Given{ID: x, Data: []byte(`"` + x + ` s3cret"`)})
			require.NoError(t, err)
		}
		out, err := s.Wait(ctx, id, "any", "010", quiet)
		require.NoError(t, err)
		require.Equal(t, `"a s3cret"`, string(out.Data["a"]))
		kept, err := s.Data(ctx, project.Deployment{Project: "app", Code: "c0de"}, "any")
		require.NoError(t, err)
		require.Equal(t, "null", string(kept["a"]), "a value with a secret is not stored")
		kept, err = s.Data(ctx, project.Deployment{Project: "app", Code: "other"}, "any")
		require.NoError(t, err)
		require.Empty(t, kept)
		again, err := s.Wait(ctx, id, "any", "010", quiet)
		require.NoError(t, err)
		require.Equal(t, out, again)
	})
	t.Run("failure", func(t *testing.T) {
		s, _ := opened(t)
		_, err := s.Signal(ctx, "app", id, "named", signals.Given{ID: "web1", Status: signals.Failure, Reason: "no s3cret"})
		require.NoError(t, err)
		_, err = s.Wait(ctx, id, "named", "010", quiet)
		require.Equal(t, fault.Failed, fault.KindOf(err))
		require.ErrorContains(t, err, "waiting for named: web1 signalled FAILURE: no [hidden]")
		_, err = s.Signal(ctx, "app", id, "named", signals.Given{ID: "web1"})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
	})
	t.Run("cancel", func(t *testing.T) {
		s, _ := opened(t)
		ctx, cancel := context.WithCancelCause(ctx)
		stop := errors.New("cancelled")
		_, err := s.Wait(ctx, id, "any", "010", func(w signals.WaitStatus) {
			require.Equal(t, "0 of 2 signals, missing: 1, 2", w.Progress())
			cancel(stop)
		})
		require.ErrorIs(t, err, stop)
		_, err = s.Signal(t.Context(), "app", id, "any", signals.Given{})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
	})
	t.Run("the deployment", func(t *testing.T) {
		s, _ := opened(t)
		require.NoError(t, s.Ended(ctx, id))
		_, err := s.Signal(ctx, "app", id, "any", signals.Given{})
		require.ErrorContains(t, err, "too late: the wait any of deployment 0193a1b2 is cancelled")
		_, err = s.Wait(ctx, id, "any", "010", quiet)
		require.Error(t, err)
	})
	t.Run("the server", func(t *testing.T) {
		s, d := opened(t)
		stop, cancel := context.WithCancelCause(ctx)
		_, err := s.Wait(stop, id, "any", "010", func(signals.WaitStatus) { cancel(signals.ErrSuspended) })
		require.ErrorIs(t, err, signals.ErrSuspended)
		first := signals.Given{Name: "1", ID: "web1", Data: []byte(`{"port": 1}`)}
		_, err = s.Signal(ctx, "app", id, "any", first)
		require.NoError(t, err, "what comes while it stops counts")
		next, err := signals.OpenStore(ctx, d, time.Now)
		require.NoError(t, err)
		a, err := next.Parse(s.Path(id, "any", "1"))
		require.NoError(t, err)
		_, name, err := next.Accept(ctx, a, signals.Given{})
		require.Equal(t, fault.Conflict, fault.KindOf(err), "nothing waits on yet")
		require.Equal(t, project.Name("app"), name)
		require.NoError(t, next.Reopen(ctx, id, hide))
		answer, err := next.Signal(ctx, "app", id, "any", first)
		require.NoError(t, err)
		require.False(t, answer.Counted, "the same once more")
		require.Equal(t, 1, answer.Received)
		_, err = next.Signal(ctx, "app", id, "any", signals.Given{Name: "1", ID: "web1", Data: []byte(`2`)})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		_, err = next.Signal(ctx, "app", id, "named", signals.Given{ID: "other"})
		require.Equal(t, fault.Usage, fault.KindOf(err), "its names are known again")
		_, err = next.Signal(ctx, "app", id, "any", signals.Given{ID: "web2"})
		require.NoError(t, err)
		out, err := next.Wait(ctx, id, "any", "010", quiet)
		require.NoError(t, err)
		require.Equal(t, `{"port": 1}`, string(out.Data["web1"]))
		require.NoError(t, next.Ended(ctx, id))
	})
	t.Run("the clock is set back while no server runs", func(t *testing.T) {
		s, d := opened(t)
		stop, cancel := context.WithCancelCause(ctx)
		_, err := s.Wait(stop, id, "named", "010", func(signals.WaitStatus) { cancel(signals.ErrSuspended) })
		require.ErrorIs(t, err, signals.ErrSuspended)
		past := func() time.Time { return time.Now().Add(-1000 * time.Hour) }
		next, err := signals.OpenStore(ctx, d, past)
		require.NoError(t, err)
		require.NoError(t, next.Reopen(ctx, id, hide))
		stop, cancel = context.WithCancelCause(ctx)
		_, err = next.Wait(stop, id, "named", "010", func(w signals.WaitStatus) {
			require.LessOrEqual(t, w.Until.Sub(past()), time.Hour, "its timeout")
			require.Greater(t, w.Until.Sub(past()), 59*time.Minute)
			cancel(signals.ErrSuspended)
		})
		require.ErrorIs(t, err, signals.ErrSuspended)
	})
	t.Run("the deadline goes on", func(t *testing.T) {
		s, d := opened(t)
		stop, cancel := context.WithCancelCause(ctx)
		_, err := s.Wait(stop, id, "named", "010", func(signals.WaitStatus) { cancel(signals.ErrSuspended) })
		require.ErrorIs(t, err, signals.ErrSuspended)
		later := func() time.Time { return time.Now().Add(time.Hour) }
		next, err := signals.OpenStore(ctx, d, later)
		require.NoError(t, err)
		require.NoError(t, next.Reopen(ctx, id, hide))
		_, err = next.Signal(ctx, "app", id, "named", signals.Given{ID: "web1"})
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		_, err = next.Wait(ctx, id, "named", "010", quiet)
		require.ErrorContains(t, err, "waiting for named: not signalled within 1h: 0 of 1 signal, missing: web1")
	})
	t.Run("data that is not stored", func(t *testing.T) {
		s, d := opened(t)
		_, err := s.Signal(ctx, "app", id, "any", signals.Given{Data: []byte(`"a s3cret"`)})
		require.NoError(t, err)
		next, err := signals.OpenStore(ctx, d, time.Now)
		require.NoError(t, err)
		err = next.Reopen(ctx, id, hide)
		require.ErrorContains(t, err, "the data of the signal 1 of any contained a secret")
		require.Equal(t, fault.Refused, fault.KindOf(err))
		require.NoError(t, next.Ended(ctx, id))
		list, err := next.List(ctx, signals.Filter{Limit: 10})
		require.NoError(t, err)
		for _, w := range list {
			require.Equal(t, signals.Cancelled, w.State)
		}
	})
	t.Run("its record", func(t *testing.T) {
		s, d := opened(t)
		_, err := d.ExecContext(ctx, `INSERT INTO deployments(id) VALUES(?)`, id)
		require.NoError(t, err)
		_, err = s.Signal(ctx, "app", id, "any", signals.Given{})
		require.NoError(t, err)
		_, err = d.ExecContext(ctx, `UPDATE wait_signals SET status = 'FAILURE'`)
		require.ErrorContains(t, err, "a signal never changes")
		require.NoError(t, s.Ended(ctx, id))
		_, err = d.ExecContext(ctx, `UPDATE waits SET state = 'open'`)
		require.ErrorContains(t, err, "this wait has ended")
		_, err = d.ExecContext(ctx, `DELETE FROM deployments`)
		require.NoError(t, err)
		list, err := s.List(ctx, signals.Filter{Limit: 10})
		require.NoError(t, err)
		require.Empty(t, list)
	})
}
