package audit_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
)

func TestRecordAndList(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer d.Close()
	at := time.Unix(1700000000, 5)
	l, err := audit.Open(t.Context(), d, func() time.Time { return at })
	require.NoError(t, err)
	e := audit.Entry{Actor: "laptop", Fingerprint: "SHA256:x", From: "127.0.0.1", Action: "push", Project: "app", Object: "refs/heads/master", Outcome: "ok", Deployment: "d"}
	require.NoError(t, l.Record(t.Context(), e))
	require.NoError(t, l.Record(t.Context(), audit.Entry{Action: "key add", Object: "ci", Outcome: "ok", Actor: "root", From: "local"}))

	many := make([]audit.Entry, 1000)
	for i := range many {
		many[i] = audit.Entry{Action: "push", Project: "other", Object: strconv.Itoa(i), Outcome: "ok"}
	}
	require.NoError(t, l.RecordAll(t.Context(), many))
	last, err := l.List(t.Context(), "other", 2000)
	require.NoError(t, err)
	require.Len(t, last, 1000)
	require.Equal(t, "999", last[0].Object, "in their order")
	require.True(t, last[0].Time.Equal(at))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, l.RecordAll(stopped, many))

	all, err := l.List(t.Context(), "", 2000)
	require.NoError(t, err)
	require.Len(t, all, 1002, "all or none")
	all = all[1000:]
	require.Equal(t, "key add", all[0].Action)
	e.Seq, e.Time = 1, at
	require.True(t, all[1].Time.Equal(at))
	all[1].Time = at
	require.Equal(t, e, all[1])

	one, err := l.List(t.Context(), "app", 10)
	require.NoError(t, err)
	require.Len(t, one, 1)
}
