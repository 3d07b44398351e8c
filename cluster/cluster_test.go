package cluster_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster"
	"corpus-git/cluster/natstest"
	"corpus-git/internal/db"
	"corpus-git/layout"
)

// cable is a hub's network: while it is cut nothing passes, and connections end.
type cable struct {
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

func (c *cable) Dial(network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, errors.New("cut")
	}
	n, err := net.Dial(network, address)
	if err == nil {
		c.open = append(c.open, n)
	}
	return n, err
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, n := range c.open {
		_ = n.Close()
	}
	c.open = nil
}

// hub is one hub of a test.
type hub struct {
	t     *testing.T
	w     *world
	i     int
	root  layout.Root
	cable *cable
	c     *cluster.Cluster
	d     *sql.DB
	lead  *cluster.Leader
	stop  context.CancelFunc
	ended chan struct{}
	// warned counts its warnings.
	warned atomic.Int64
}

type world struct {
	t       *testing.T
	servers *natstest.Servers
	hubs    []*hub
	all     []cluster.Hub
	led     chan *hub
	// removed is a hub that the others know no more, limit Config.LogLimit.
	removed atomic.Value
	limit   uint64
	silence time.Duration
	// may is Config.MayLead of each hub.
	may func(h *hub, fresh bool) error
}

// known is Config.Hubs.
func (w *world) known() ([]cluster.Hub, error) {
	removed, _ := w.removed.Load().(string)
	return slices.DeleteFunc(slices.Clone(w.all), func(h cluster.Hub) bool { return h.Name == removed }), nil
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, servers: natstest.Start(t), led: make(chan *hub, 10)}
	for i := range 3 {
		h := &hub{t: t, w: w, i: i, root: layout.Root(t.TempDir()), cable: &cable{}}
		w.hubs = append(w.hubs, h)
		w.all = append(w.all, cluster.Hub{Name: w.servers.Name(i), SSH: fmt.Sprint("h", i, ":22")})
		t.Cleanup(h.kill)
	}
	return w
}

// start follows, and leads when it is this hub's turn.
func (h *hub) start() {
	h.t.Helper()
	require.NoError(h.t, h.open(h.t.Context()))
}

func (h *hub) open(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	h.stop, h.ended = cancel, make(chan struct{})
	c, err := cluster.Open(ctx, cluster.Config{
		Self: h.w.all[h.i], Hubs: h.w.known, Root: h.root, State: h.root.DefaultState(), Founder: h.i == 0, LogLimit: h.w.limit, Silence: h.w.silence, MayLead: func(_ context.Context, fresh bool) error {
			if h.w.may == nil {
				return nil
			}
			return h.w.may(h, fresh)
		}, Free: func() (int64, error) { return int64(h.i), nil },
		Log: zerolog.New(zerolog.NewTestWriter(h.t)).With().Str("hub", h.w.all[h.i].Name).Logger().Hook(zerolog.HookFunc(func(_ *zerolog.Event, level zerolog.Level, _ string) {
			if level == zerolog.WarnLevel {
				h.warned.Add(1)
			}
		})),
		Connect: func(opts ...nats.Option) (*nats.Conn, error) {
			return h.w.servers.Connect(h.i, append(opts, nats.SetCustomDialer(h.cable))...)
		},
	})
	if err != nil {
		cancel()
		return err
	}
	h.c = c
	go func() {
		defer close(h.ended)
		if _, err := c.Follow(ctx); err != nil {
			return
		}
		lead, err := c.Lead(ctx)
		if err != nil {
			return
		}
		d, err := db.OpenWith(ctx, h.root.DefaultState().Database(), db.Options{Replicated: true})
		if err != nil {
			return
		}
		lead.Database(d)
		h.lead, h.d = lead, d
		h.w.led <- h
	}()
	return nil
}

// kill ends what a hub does, as a kill of its process would: nothing more is sent, and nothing recorded.
func (h *hub) kill() {
	if h.c == nil {
		return
	}
	h.stop()
	<-h.ended
	_ = h.c.Close()
	if h.d != nil {
		_ = h.d.Close()
	}
	h.c, h.d, h.lead = nil, nil, nil
}

// next waits until a hub leads.
func (w *world) next() *hub {
	w.t.Helper()
	select {
	case h := <-w.led:
		return h
	case <-w.t.Context().Done():
		w.t.Fatal("no hub leads")
		return nil
	}
}

func (h *hub) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.root.Path(), name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(content), 0o644))
}

// push does what a push does to the state, and waits until it is safe.
func (h *hub) push(n int) {
	h.t.Helper()
	_, err := h.d.ExecContext(h.t.Context(), `CREATE TABLE IF NOT EXISTS pushes (n INTEGER PRIMARY KEY, v BLOB)`)
	require.NoError(h.t, err)
	_, err = h.d.ExecContext(h.t.Context(), `INSERT INTO pushes VALUES (?, randomblob(3000))`, n)
	require.NoError(h.t, err)
	h.write(fmt.Sprintf("projects/p/git/project.git/objects/%02d/object", n), fmt.Sprint("object ", n))
	h.write("projects/p/git/project.git/refs/heads/master", fmt.Sprint(n))
	h.write("projects/p/project/index.html", "not in common")
	f, err := os.OpenFile(filepath.Join(h.root.DefaultState().Path(), "p.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(h.t, err)
	_, err = fmt.Fprintln(f, n)
	require.NoError(h.t, err)
	require.NoError(h.t, f.Close())
	require.NoError(h.t, h.lead.Barrier(h.t.Context(), "p"))
}

// tree returns the files that hubs have in common, and the contents of the database.
func (h *hub) tree() string {
	var out strings.Builder
	state := h.root.DefaultState()
	_ = filepath.WalkDir(h.root.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(h.root.Path(), path)
		if strings.HasPrefix(path, state.Database()) || strings.HasPrefix(path, state.Cluster()) || strings.Contains(rel, "/project/") {
			return nil
		}
		b, err := os.ReadFile(path)
		fmt.Fprintln(&out, rel, string(b), err)
		return nil
	})
	d := h.d
	if d == nil {
		var err error
		if d, err = sql.Open("sqlite", "file:"+state.Database()+"?immutable=1"); err != nil {
			return err.Error()
		}
		defer d.Close()
	}
	for _, q := range []string{`PRAGMA integrity_check`, `SELECT coalesce(group_concat(n || hex(v)), '') FROM (SELECT * FROM pushes ORDER BY n)`} {
		var s string
		err := d.QueryRow(q).Scan(&s)
		fmt.Fprintln(&out, s, err)
	}
	return out.String()
}

// same waits until other hubs have the same as a hub.
func (w *world) same(h *hub, others ...*hub) {
	w.t.Helper()
	want := h.tree()
	for _, o := range others {
		for got := ""; got != want; got = o.tree() {
			if w.t.Context().Err() != nil {
				require.Equal(w.t, want, got)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// The founder leads, new hubs copy its state, and have the same after each push. A hub that is cut off is replaced and told; it copies, because it may be ahead. A leader that ends cleanly
// does not have to. Nothing that was acknowledged is lost if everything is killed.
func TestThreeHubs(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.hubs[0], w.hubs[1], w.hubs[2]
	a.write(".corpus-git/hooks/before.d/x", "a hook from before there were three")
	a.start()
	require.Same(t, a, w.next())
	a.push(1)
	b.write("projects/left/git/x", "of another life")
	b.start()
	c.start()
	w.same(a, b, c)
	for n := 2; n < 6; n++ {
		a.push(n)
	}
	w.same(a, b, c)
	first := a.lead.Epoch()

	// A batch of several messages.
	a.write("projects/p/git/project.git/objects/pack/pack-1.pack", random(3<<20))
	require.NoError(t, a.lead.Barrier(t.Context(), ""))
	w.same(a, b, c)

	// The leader is cut off, and has something that the others do not.
	c.kill()
	a.cable.set(true)
	a.write("projects/p/git/project.git/refs/heads/only-here", "x")
	began := time.Now()
	require.Same(t, b, w.next())
	t.Logf("another hub leads after %s", time.Since(began))
	require.Greater(t, b.lead.Epoch(), first)
	b.push(6)
	old := a.lead
	a.cable.set(false)
	<-old.Lost()
	require.ErrorIs(t, old.Barrier(t.Context(), ""), cluster.ErrLost)
	require.Error(t, old.Close(t.Context()))
	a.kill()
	a.start() // copies
	c.start() // reads on
	w.same(b, a, c)
	require.NoFileExists(t, filepath.Join(a.root.Path(), "projects/p/git/project.git/refs/heads/only-here"))

	// A clean end: nothing has to be copied.
	b.push(7)
	require.NoError(t, b.lead.Close(t.Context()))
	b.kill()
	require.NoError(t, os.RemoveAll(b.root.DefaultState().Socket()))
	next := w.next()
	next.push(8)
	b.start()
	w.same(next, b)
	statuses(t, next)

	// Everything is killed, the servers, too.
	next.push(9)
	want := next.tree()
	for _, h := range w.hubs {
		h.kill()
	}
	for i := range w.hubs {
		w.servers.Stop(i)
	}
	for i := range w.hubs {
		w.servers.Restart(i)
	}
	for _, h := range w.hubs {
		h.start()
	}
	last := w.next()
	require.Equal(t, want, last.tree())
	last.push(10)
	w.same(last, w.hubs...)
	saysOnce(t, w, last)
}

// saysOnce checks that a hub that cannot apply a batch of several messages says so once, however often it tries, and goes on when it can.
func saysOnce(t *testing.T, w *world, leader *hub) {
	t.Helper()
	f := w.hubs[(leader.i+1)%3]
	name := fnv.New64a()
	_, _ = name.Write([]byte("big"))
	blocked := filepath.Join(f.root.Path(), "projects/q/git/project.git", fmt.Sprintf(".tmp-%016x", name.Sum64()))
	require.NoError(t, os.MkdirAll(blocked, 0o755))
	big := make([]byte, 2<<20) // of several messages
	_, _ = rand.Read(big)
	before := f.warned.Load()
	leader.write("projects/q/git/project.git/big", string(big))
	require.NoError(t, leader.lead.Barrier(t.Context(), "q"))
	for f.warned.Load() == before && t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // it tries again meanwhile
	require.Equal(t, before+1, f.warned.Load())
	require.NoError(t, os.Remove(blocked))
	w.same(leader, f)
}

// statuses waits until a hub says the truth about all.
func statuses(t *testing.T, h *hub) {
	t.Helper()
	for {
		all, _, err := h.c.Status(t.Context())
		require.NoError(t, err)
		does := map[string]int{}
		for i, s := range all {
			if s.Behind == 0 && s.Free != nil && *s.Free == int64(i) {
				does[s.Does]++
			}
		}
		if does[cluster.Leads] == 1 && does[cluster.Follows] == 2 {
			leader, epoch, ok := h.c.Leader()
			require.True(t, ok)
			require.Equal(t, h.lead.Epoch(), epoch)
			require.Equal(t, h.w.all[h.i], leader)
			return
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(50 * time.Millisecond)
	}
}

// statuses returns what a hub knows of all.
func (h *hub) statuses() []cluster.Status {
	h.t.Helper()
	all, _, err := h.c.Status(h.t.Context())
	require.NoError(h.t, err)
	return all
}

// applied returns what a hub has applied, as another one knows it.
func (h *hub) applied(other *hub) uint64 {
	h.t.Helper()
	for _, s := range h.statuses() {
		if s.Name == h.w.all[other.i].Name {
			return s.Applied
		}
	}
	return 0
}

// random returns content that can't be compressed.
func random(n int) string {
	var out strings.Builder
	x := uint64(88172645463325252)
	for out.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&out, "%c%c%c%c", byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return out.String()
}
