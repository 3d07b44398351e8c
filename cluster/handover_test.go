package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A leader that ends in order hands over: another hub leads although none would after a silence, again and again, and no hub copies.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.silence = time.Hour
	for _, h := range w.hubs {
		h.start()
	}
	leader := w.next()
	leader.push(1)
	w.same(leader, w.hubs...)
	for n := 2; n < 6; n++ {
		epoch := leader.lead.Epoch()
		require.NoError(t, leader.lead.Close(t.Context()))
		leader.kill()
		next := w.next()
		require.NotSame(t, leader, next)
		require.Equal(t, epoch+1, next.lead.Epoch())
		leader.start()
		next.push(n)
		w.same(next, w.hubs...)
		leader = next
	}
}

// The log is shortened to what all hubs have applied. A hub that is down keeps it long up to the limit, and copies when it is back; a hub that was removed does not.
func TestShortenedLog(t *testing.T) {
	w := newWorld(t)
	for _, h := range w.hubs {
		h.start()
	}
	a := w.next()
	a.push(1)
	w.same(a, w.hubs...)
	others := []*hub{}
	for _, h := range w.hubs {
		if h != a {
			others = append(others, h)
		}
	}
	b, c := others[0], others[1]

	shortens := func(n int) {
		t.Helper()
		for ; ; n++ {
			before := a.applied(a)
			a.push(n)
			w.same(a, b)
			first, err := a.lead.Shorten(t.Context())
			require.NoError(t, err)
			if first > before {
				return
			}
			require.NoError(t, t.Context().Err())
			time.Sleep(100 * time.Millisecond)
		}
	}
	// While it is down the log waits for it.
	c.kill()
	down := a.applied(c)
	a.push(2)
	w.same(a, b)
	first, err := a.lead.Shorten(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, first, down+1)
	// It was removed: nothing is kept for it, without a restart of the others.
	w.removed.Store(w.all[c.i].Name)
	shortens(3)
	for _, s := range a.statuses() {
		require.NotEqual(t, w.all[c.i].Name, s.Name)
	}
	// It is added again, and copies, since the log does not have what it lacks.
	w.removed.Store("")
	c.start()
	w.same(a, b, c)
}

// A log that is larger than the limit is shortened to what the hubs have applied that are heard.
func TestLimitedLog(t *testing.T) {
	w := newWorld(t)
	w.limit = 1 << 20
	for _, h := range w.hubs {
		h.start()
	}
	a := w.next()
	a.push(1)
	w.same(a, w.hubs...)
	c := w.hubs[(a.i+1)%3]
	b := w.hubs[(a.i+2)%3]
	c.kill()
	down := a.applied(c)
	for n := 2; ; n++ {
		a.write(fmt.Sprintf("projects/p/git/project.git/objects/pack/pack-%d.pack", n), random(1<<19))
		a.push(n)
		w.same(a, b)
		first, err := a.lead.Shorten(t.Context())
		require.NoError(t, err)
		if first > down+1 {
			break
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(300 * time.Millisecond)
	}
	c.start()
	w.same(a, b, c)
}

// A barrier of the state contains the projects that are named, also new ones and those that are gone.
func TestBarrierOfNamedProjects(t *testing.T) {
	w := newWorld(t)
	a, b := w.hubs[0], w.hubs[1]
	a.start()
	require.Same(t, a, w.next())
	a.push(1)
	b.start()
	w.same(a, b)
	a.write("projects/fresh/git/project.git/HEAD", "ref: refs/heads/master\n")
	require.NoError(t, os.RemoveAll(filepath.Join(a.root.Path(), "projects/p")))
	require.NoError(t, a.lead.BarrierState(t.Context(), "project", "fresh", "p"))
	w.same(a, b)
	require.FileExists(t, filepath.Join(b.root.Path(), "projects/fresh/git/project.git/HEAD"))
	require.NoDirExists(t, filepath.Join(b.root.Path(), "projects/p/git"))
}

// A hub that must not lead goes on following, says why, and another one leads as soon as it may.
func TestMayLead(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.hubs[0], w.hubs[1], w.hubs[2]
	var mu sync.Mutex
	asked := map[*hub][]bool{}
	barred := map[*hub]error{}
	w.may = func(h *hub, fresh bool) error {
		mu.Lock()
		defer mu.Unlock()
		asked[h] = append(asked[h], fresh)
		return barred[h]
	}
	for _, h := range w.hubs {
		h.start()
	}
	require.Same(t, a, w.next())
	a.push(1)
	w.same(a, b, c)
	mu.Lock()
	barred[b], barred[c] = errors.New("the database\nis newer"), errors.New("likewise")
	mu.Unlock()
	a.kill()
	says := func(h, of *hub) string {
		for _, s := range h.statuses() {
			if s.Name == w.all[of.i].Name {
				return s.Barred
			}
		}
		return ""
	}
	for says(b, b) != "the database: is newer" || says(b, c) != "likewise" {
		require.NoError(t, t.Context().Err())
		time.Sleep(50 * time.Millisecond)
	}
	mu.Lock()
	delete(barred, c)
	mu.Unlock()
	require.Same(t, c, w.next())
	require.EqualValues(t, 2, c.lead.Epoch(), "no other one has tried")
	c.push(2)
	w.same(c, b)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []bool{true}, asked[a])
	require.NotContains(t, append(asked[b], asked[c]...), true, "they have heard of a leader")
}
