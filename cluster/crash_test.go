//go:build fleet

package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/internal/draw"
)

// client pushes to whichever hub leads, and knows what was acknowledged.
type client struct {
	w     *world
	mu    sync.Mutex
	n     int
	acked map[int]bool
	// leads is the hub that leads, nil if none does.
	leads *hub
}

// run restarts a hub whenever it no longer leads, as the server does, until ctx ends: that kills it.
func (cl *client) run(ctx context.Context, h *hub) {
	for ctx.Err() == nil {
		if err := h.open(ctx); err != nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-h.ended:
			if h.lead == nil { // it lost before it began
				break
			}
			cl.mu.Lock()
			cl.leads = h
			cl.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-h.lead.Lost():
			}
		}
		h.stop()
		<-h.ended
		_ = h.c.Close()
		cl.mu.Lock()
		if cl.leads == h {
			cl.leads = nil
		}
		if h.d != nil {
			_ = h.d.Close()
		}
		h.c, h.d, h.lead = nil, nil, nil
		cl.mu.Unlock()
	}
}

// push pushes once, if a hub leads; it was acknowledged if it returns true.
func (cl *client) push(ctx context.Context) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	h := cl.leads
	if h == nil {
		return false
	}
	cl.n++
	n := cl.n
	if _, err := h.d.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS pushes (n INTEGER PRIMARY KEY, v BLOB)`); err != nil {
		return false
	}
	if _, err := h.d.ExecContext(ctx, `INSERT INTO pushes VALUES (?, randomblob(3000))`, n); err != nil {
		return false
	}
	h.write(fmt.Sprintf("projects/p/git/project.git/objects/%02d/%d", n%100, n), fmt.Sprint("object ", n))
	h.write("projects/p/git/project.git/refs/heads/master", fmt.Sprint(n))
	h.write(fmt.Sprintf("projects/p/git/project.git/refs/heads/%d", n%7), fmt.Sprint(n%2))
	_ = os.Remove(filepath.Join(h.root.Path(), fmt.Sprintf("projects/p/git/project.git/refs/heads/%d", n%5)))
	f, err := os.OpenFile(filepath.Join(h.root.DefaultState().Path(), "journal", "p.journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.write(".corpus-git/journal/p.journal", "")
		return false
	}
	_, _ = fmt.Fprintln(f, n)
	_ = f.Close()
	if h.lead.Barrier(ctx, "p") != nil {
		return false
	}
	cl.acked[n] = true
	return true
}

// check compares what was acknowledged with what a hub has.
func (cl *client) check(h *hub) {
	t := cl.w.t
	t.Helper()
	rows, err := h.d.Query(`SELECT n FROM pushes`)
	require.NoError(t, err)
	has := map[int]bool{}
	for rows.Next() {
		var n int
		require.NoError(t, rows.Scan(&n))
		has[n] = true
	}
	require.NoError(t, rows.Close())
	journal, err := os.ReadFile(filepath.Join(h.root.DefaultState().Path(), "journal", "p.journal"))
	require.NoError(t, err)
	lines := map[string]bool{}
	for _, l := range strings.Split(string(journal), "\n") {
		lines[l] = true
	}
	for n := range cl.acked {
		require.True(t, has[n], "push %d was acknowledged and is not in the database of %d", n, h.i)
		require.True(t, lines[fmt.Sprint(n)], "push %d was acknowledged and is not in the journal", n)
		require.FileExists(t, filepath.Join(h.root.Path(), fmt.Sprintf("projects/p/git/project.git/objects/%02d/%d", n%100, n)))
	}
}

// TestCrashHubs kills three hubs and their NATS servers, cuts them off, and lets them begin anew. CORPUS_GIT_CRASH_ROUNDS says how often. Nothing that was acknowledged is lost, and all have the same after each round.
func TestCrashHubs(t *testing.T) {
	r := rand.New(rand.NewPCG(draw.Seed(t), 7)) //nolint:gosec // chooses test cases
	rounds := 10
	if text := os.Getenv("CORPUS_GIT_CRASH_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		rounds = n
	}
	w := newWorld(t)
	cl := &client{w: w, acked: map[int]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running, kills := make([]chan struct{}, 3), make([]context.CancelFunc, 3)
	up := func(i int) {
		one, kill := context.WithCancel(ctx)
		done := make(chan struct{})
		running[i], kills[i] = done, kill
		go func() {
			defer close(done)
			cl.run(one, w.hubs[i])
		}()
	}
	down := func(i int) {
		kills[i]()
		<-running[i]
	}
	go func() { // nobody else looks at it
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.led:
			}
		}
	}()
	for i := range 3 {
		w.hubs[i].write(".corpus-git/journal/p.journal", "")
		up(i)
	}
	did := map[string]int{}
	pushes := func(n int) {
		for done := 0; done < n; {
			if cl.push(ctx) {
				done++
			} else {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	for round := range rounds {
		pushes(1 + r.IntN(5))
		stop := make(chan struct{})
		var busy sync.WaitGroup
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					cl.push(ctx)
					time.Sleep(time.Millisecond)
				}
			}
		})
		i := r.IntN(3)
		what := []string{"kill hub", "cut hub", "stop server", "kill machine", "kill all", "erase hub"}[r.IntN(6)]
		did[what]++
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		switch what {
		case "kill hub":
			down(i)
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			up(i)
		case "cut hub":
			w.hubs[i].cable.set(true)
			time.Sleep(time.Duration(r.IntN(6000)) * time.Millisecond)
			w.hubs[i].cable.set(false)
		case "stop server":
			w.servers.Stop(i)
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			w.servers.Restart(i)
		case "kill machine":
			w.servers.Stop(i)
			down(i)
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			w.servers.Restart(i)
			up(i)
		case "kill all":
			for j := range 3 {
				w.servers.Stop(j)
				down(j)
			}
			for j := range 3 {
				w.servers.Restart(j)
			}
			for j := range 3 {
				up(j)
			}
		case "erase hub":
			down(i)
			require.NoError(t, os.RemoveAll(w.hubs[i].root.DefaultState().Path()))
			require.NoError(t, os.RemoveAll(w.hubs[i].root.Projects()))
			up(i)
		}
		close(stop)
		busy.Wait()
		began := time.Now()
		pushes(1)
		took := time.Since(began)
		cl.settle(ctx)
		t.Logf("round %d: %s %d; pushes go on after %s; %d acknowledged of %d", round, what, i, took.Round(time.Millisecond), len(cl.acked), cl.n)
	}
	t.Log(did)
	for i := range 3 {
		down(i)
	}
}

// settle waits until all hubs have the same, and checks it.
func (cl *client) settle(ctx context.Context) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		cl.mu.Lock()
		h := cl.leads
		if h == nil || h.lead.Barrier(ctx, "") != nil {
			cl.mu.Unlock()
			continue
		}
		all, _, err := h.c.Status(ctx)
		ready := err == nil
		for _, s := range all {
			ready = ready && s.Behind == 0 && (s.Does == cluster.Leads || s.Does == cluster.Follows)
		}
		if ready {
			want := h.tree()
			for _, o := range cl.w.hubs {
				ready = ready && (o == h || o.tree() == want)
			}
		}
		if ready {
			cl.check(h)
			cl.mu.Unlock()
			return
		}
		if time.Since(began) > 2*time.Minute {
			cl.w.t.Log(all)
			for _, o := range cl.w.hubs {
				cl.w.t.Log(o.i, o.tree())
			}
			cl.w.t.Error("the hubs do not get the same")
			cl.mu.Unlock()
			cl.w.t.FailNow()
		}
		cl.mu.Unlock()
	}
}
