package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// told counts what a receiver of notifications was sent, by ID; while it is down it answers 500.
type told struct {
	mu   sync.Mutex
	seen map[string]int
	down bool
	lost int // refused while it was down
}

func (w *told) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var n project.Notification
	err := json.NewDecoder(r.Body).Decode(&n)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.down {
		w.lost++
		out.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.seen[n.ID]++
}

func (w *told) set(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.lost = down, 0
}

func (w *told) refused() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

func (w *told) times(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[id]
}

// TestCrashNotifications kills the server at every fourth boundary of a deployment, and between its verdict and the delivery: whatever is recorded was told, once
// or more, when it is up again.
func TestCrashNotifications(t *testing.T) {
	if testing.Short() {
		t.Skip("kills many servers")
	}
	receiver := &told{seen: map[string]int{}}
	s := httptest.NewServer(receiver)
	t.Cleanup(s.Close)
	m := newCrashed(t, 1)
	m.env = append(m.env, "CORPUS_GIT_NOTIFY_RETRY_AFTER=1s", `CORPUS_GIT_NOTIFY_SINKS=[{"name":"test","kind":"json","url":"`+s.URL+`","private":true}]`)
	m.prepare()
	all := func() {
		t.Helper()
		recs := m.records()
		require.NotEmpty(t, recs)
		for _, rec := range recs {
			id := "deployment_" + string(rec.ID) + "_" + project.EventOf(rec)
			require.Eventually(t, func() bool { return receiver.times(id) > 0 }, time.Minute, 5*time.Millisecond, "%s was not told", id)
		}
	}
	for _, make := range []func(m *crashed) action{kinds[1].make, kinds[2].make} {
		for n, lived := 1, false; !lived; n += 4 {
			a := make(m)
			m.clear()
			m.arm(n)
			_, _ = m.start(a)()
			if lived = m.armed(); lived {
				m.disarm()
				all()
				continue
			}
			m.died(<-m.ended)
			m.server = nil
			m.serve()
			all()
			m.fix()
		}
		// The receiver is down while the verdict is told: then the server dies, and only the next one can deliver.
		receiver.set(true)
		a := make(m)
		out, err := m.start(a)()
		require.Equal(t, a.good, err == nil, out)
		require.Eventually(t, func() bool { return receiver.refused() > 0 }, time.Minute, time.Millisecond)
		m.kill()
		receiver.set(false)
		m.serve()
		all()
		m.fix()
	}
}
