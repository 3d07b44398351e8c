package kv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/kv"
)

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t testing.TB, path string, c *clock) *kv.Store {
	t.Helper()
	d, err := db.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	s, err := kv.Open(t.Context(), d, c.now)
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	path := filepath.Join(t.TempDir(), "x.db")
	s := open(t, path, c)
	ctx := t.Context()
	set := func(p kv.Put) int64 {
		r, err := s.Set(ctx, p)
		require.NoError(t, err)
		return r
	}
	zero := int64(0)
	require.EqualValues(t, 1, set(kv.Put{Key: "shared/a", Value: "1"}))
	require.EqualValues(t, 2, set(kv.Put{Key: "shared/b", Value: "1", If: &zero}))
	require.EqualValues(t, 1, set(kv.Put{Key: "shared/a", Value: "1"}), "the value that it has")
	for _, want := range []int64{0, 1, 7} {
		_, err := s.Set(ctx, kv.Put{Key: "shared/b", Value: "2", If: &want})
		require.Equal(t, fault.Refused, fault.KindOf(err), want)
	}
	two := int64(2)
	require.EqualValues(t, 3, set(kv.Put{Key: "shared/b", Value: "1", If: &two}), "a new revision where one was asked for")
	_, err := s.Set(ctx, kv.Put{Key: "shared/none", If: &two})
	require.Equal(t, fault.Refused, fault.KindOf(err))
	for _, bad := range []string{"", "10.0.0.1:80", `["a"]`, "null", `{"a": 1`} {
		_, err := s.Set(ctx, kv.Put{Key: "services/web/n1", Value: bad})
		require.Equal(t, fault.Usage, fault.KindOf(err), bad)
	}
	for _, bad := range []string{"", "a", "/a", "a/", "a//b", "a/../b", "a/.b", "a b/c", "a/\x00", "a/%"} {
		require.Error(t, kv.CheckKey(bad), bad)
	}

	// A lease that is not renewed ends; a renewal is not a change.
	require.EqualValues(t, 4, set(kv.Put{Key: "services/web/n1", Value: "{}", Lease: 10 * time.Second}))
	c.add(8 * time.Second)
	require.EqualValues(t, 4, set(kv.Put{Key: "services/web/n1", Value: "{}", Lease: 10 * time.Second}))
	c.add(8 * time.Second)
	due, err := s.Expire(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(1018), due.Unix())
	changed := s.Changed()
	c.add(2 * time.Second)
	_, ok, err := s.Get(ctx, "services/web/n1")
	require.NoError(t, err)
	require.False(t, ok, "before anybody swept")
	due, err = s.Expire(ctx)
	require.NoError(t, err)
	require.Zero(t, due)
	<-changed
	require.EqualValues(t, 6, set(kv.Put{Key: "services/web/n1", Value: "{}"}), "the deletion had a revision")

	// Across a restart: a watcher that was disconnected is notified of deleted keys.
	require.NoError(t, s.Delete(ctx, "shared/a", nil))
	require.Equal(t, fault.Refused, fault.KindOf(s.Delete(ctx, "shared/a", nil)))
	s = open(t, path, c)
	list, newest, err := s.Since(ctx, 3)
	require.NoError(t, err)
	require.EqualValues(t, 7, newest)
	require.Len(t, list, 2)
	require.Equal(t, "services/web/n1", list[0].Key)
	require.True(t, list[1].Deleted)
	require.EqualValues(t, 7, list[1].Revision)
	all, err := s.List(ctx, "shared/")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.EqualValues(t, 3, all[0].Revision)
	seen, err := s.Visible(ctx, "app")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"shared/b": "1", "services/web/n1": "{}"}, seen)
}

// Of many callers that create a key one succeeds, and of many that change a revision one does.
func TestOneWins(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "x.db"), &clock{at: time.Unix(1000, 0)})
	for _, want := range []int64{0, 1} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 16 {
			wg.Go(func() {
				_, err := s.Set(t.Context(), kv.Put{Key: "leaders/app", Value: "me", If: &want})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, won)
	}
}

func TestMatch(t *testing.T) {
	for _, x := range []struct {
		pattern, key string
		want         bool
	}{
		{"shared/a", "shared/a", true}, {"shared/a", "shared/ab", false}, {"shared/*", "shared/a/b", true}, {"*", "x/y", true}, {"services/*/web1", "services/db/web1", true},
		{"services/*/web1", "services/db/web2", false}, {"a*a", "a", false}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXcYb", false},
	} {
		require.Equal(t, x.want, kv.Match(x.pattern, x.key), x.pattern+" "+x.key)
	}
}

// What an instance registers replaces what it registered before, and nothing of anybody else.
func TestRegister(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	s := open(t, filepath.Join(t.TempDir(), "x.db"), c)
	ctx := t.Context()
	keys := func() (out []string) {
		list, err := s.List(ctx, kv.Services)
		require.NoError(t, err)
		for _, e := range list {
			out = append(out, e.Key)
		}
		return out
	}
	_, err := s.Set(ctx, kv.Put{Key: "services/old/n1", Value: "{}", By: "boss"})
	require.NoError(t, err)
	require.NoError(t, s.Register(ctx, "n1", map[string]string{"web": `{"port":1}`, "db": "{}"}, time.Minute))
	require.NoError(t, s.Register(ctx, "n2", map[string]string{"web": "{}"}, time.Minute))
	require.Equal(t, []string{"services/db/n1", "services/old/n1", "services/web/n1", "services/web/n2"}, keys())
	before, err := s.Revision(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Register(ctx, "n1", map[string]string{"web": `{"port":1}`, "db": "{}"}, time.Minute))
	after, err := s.Revision(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after, "said again, nothing changes")
	require.NoError(t, s.Register(ctx, "n1", map[string]string{"web": `{"port":2}`}, time.Minute))
	require.Equal(t, []string{"services/old/n1", "services/web/n1", "services/web/n2"}, keys())
	c.add(2 * time.Minute)
	require.Equal(t, []string{"services/old/n1"}, keys())
	for _, bad := range []map[string]string{{"a/b": "{}"}, {"": "{}"}, {"web": "1"}, {"web": "null"}, {"../x": "{}"}} {
		require.Error(t, s.Register(ctx, "n1", bad, time.Minute))
	}
	require.Error(t, s.Register(ctx, "n1/x", nil, time.Minute))
}

// A leader stays while it is a candidate; the next one's token is greater, and so is that of one that returns.
func TestElect(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "x.db"), &clock{at: time.Unix(1000, 0)})
	var last int64
	for _, x := range []struct {
		candidates []string
		leader     string
		same       bool
	}{
		{[]string{"a", "b"}, "a", false}, {[]string{"b", "a"}, "a", true}, {[]string{"b"}, "b", false}, {[]string{"a", "b"}, "b", true}, {[]string{"a"}, "a", false},
	} {
		leader, token, err := s.Elect(t.Context(), "app", x.candidates)
		require.NoError(t, err)
		require.Equal(t, x.leader, leader)
		if x.same {
			require.Equal(t, last, token)
		} else {
			require.Greater(t, token, last)
		}
		last = token
		_, err = s.Set(t.Context(), kv.Put{Key: "shared/x", Value: x.leader + x.candidates[0]})
		require.NoError(t, err)
	}
	_, _, err := s.Elect(t.Context(), "app", nil)
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

// The facts of a node are changed only where they differ, go with the node, and are seen by the projects of that node only.
func TestFacts(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "x.db"), &clock{at: time.Unix(1000, 0)})
	ctx := t.Context()
	require.NoError(t, s.SetFacts(ctx, "web1", map[string]string{"os": "Debian", "cpus": "4", "not a key": "x"}))
	require.NoError(t, s.SetFacts(ctx, "web10", map[string]string{"os": "Ubuntu"}))
	before, err := s.Revision(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, before)
	require.NoError(t, s.SetFacts(ctx, "web1", map[string]string{"os": "Debian", "cpus": "4"}))
	after, err := s.Revision(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after, "reported again, nothing changes")
	require.NoError(t, s.SetFacts(ctx, "web1", map[string]string{"os": "Debian", "mem": "8"}))
	changed, _, err := s.Since(ctx, before)
	require.NoError(t, err)
	require.Len(t, changed, 2, "one was set, one deleted")

	seen, err := s.Visible(ctx, "app", "web1")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"nodes/web1/facts/os": "Debian", "nodes/web1/facts/mem": "8"}, seen)
	seen, err = s.Visible(ctx, "app")
	require.NoError(t, err)
	require.Empty(t, seen)
	nodes := []string{"web1"}
	for i := range 100 {
		nodes = append(nodes, fmt.Sprint("db", i))
	}
	seen, err = s.Visible(ctx, "app", nodes...)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"nodes/web1/facts/os": "Debian", "nodes/web1/facts/mem": "8"}, seen, "of many nodes, too")
	require.NoError(t, s.SetFacts(ctx, "web1", map[string]string{"os": "Fedora"}))
	seen, err = s.Visible(ctx, "app", nodes...)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"nodes/web1/facts/os": "Fedora"}, seen, "as they are now")

	require.NoError(t, s.SetFacts(ctx, "web1", nil))
	seen, err = s.Visible(ctx, "app", nodes...)
	require.NoError(t, err)
	require.Empty(t, seen)
	left, err := s.List(ctx, kv.Nodes)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "nodes/web10/facts/os", left[0].Key)

	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprint("f", i)] = "x"
	}
	require.Equal(t, fault.Refused, fault.KindOf(s.SetFacts(ctx, "web1", many)))
	// Too many to see: none is, and the deployment goes on, unless it reads one.
	require.NoError(t, s.SetFacts(ctx, "web1", map[string]string{"a": strings.Repeat("x", 60<<10), "b": strings.Repeat("x", 60<<10), "c": strings.Repeat("x", 60<<10)}))
	require.NoError(t, s.SetFacts(ctx, "web2", map[string]string{"a": strings.Repeat("x", 60<<10), "b": strings.Repeat("x", 60<<10)}))
	require.Empty(t, kv.Hidden(seen, "nodes/web1/facts/a"))
	seen, err = s.Visible(ctx, "app", "web1", "web2")
	require.NoError(t, err)
	for _, key := range []string{"nodes/web1/facts/a", "nodes/", "nod", ""} {
		require.Contains(t, kv.Hidden(seen, key), "the facts of the 2 nodes of the project are longer than 256 KiB", key)
	}
	require.Empty(t, kv.Hidden(seen, "shared/x"))
	delete(seen, "nodes/")
	require.Empty(t, seen)
	require.Equal(t, fault.Refused, fault.KindOf(kv.CheckWritable("kv set", "nodes/web1/facts/os")))
	require.NoError(t, kv.CheckWritable("kv set", "shared/nodes/x"))
}

// After a restore every key has a revision that was not given before, in the same order; what watches projects continues where it was, and a change that expects an old revision is refused.
func TestRestored(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := db.Open(ctx, path)
	require.NoError(t, err)
	s, err := kv.Open(ctx, d, time.Now)
	require.NoError(t, err)
	_, token, err := s.Elect(ctx, "app", []string{"web1"})
	require.NoError(t, err)
	_, err = s.Set(ctx, kv.Put{Key: "shared/a", Value: "1"})
	require.NoError(t, err)
	before, _, err := s.Since(ctx, 0)
	require.NoError(t, err)
	_, err = d.Exec(`CREATE TABLE kv_watch (project TEXT PRIMARY KEY, seen INTEGER NOT NULL)`)
	require.NoError(t, err)
	_, err = d.Exec(`INSERT INTO kv_watch VALUES ('app', ?)`, before[0].Revision)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	const lost = 1000 // changes after the backup

	require.NoError(t, kv.Restored(ctx, path))
	require.NoError(t, kv.Restored(ctx, path), "restored again, from a backup of the restored server")
	require.NoFileExists(t, path+"-wal")
	d, err = db.Open(ctx, path)
	require.NoError(t, err)
	s, err = kv.Open(ctx, d, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	all, newest, err := s.Since(ctx, before[1].Revision+lost)
	require.NoError(t, err)
	require.Len(t, all, 2, "whoever has seen a lost change is told all keys")
	require.Equal(t, "projects/app/leader", all[0].Key)
	require.Equal(t, all[1].Revision, newest)
	_, again, err := s.Elect(ctx, "app", []string{"web1"})
	require.NoError(t, err)
	require.Greater(t, again, token+lost)
	var seen int64
	require.NoError(t, d.QueryRow(`SELECT seen FROM kv_watch`).Scan(&seen))
	require.Equal(t, all[0].Revision, seen)
	_, err = s.Set(ctx, kv.Put{Key: "shared/a", Value: "2", If: &before[1].Revision})
	require.Equal(t, fault.Refused, fault.KindOf(err))

	older := filepath.Join(t.TempDir(), "older.db")
	require.NoError(t, kv.Restored(ctx, older))
	require.NoFileExists(t, older)
	require.NoError(t, os.WriteFile(older, nil, 0o600))
	require.NoError(t, kv.Restored(ctx, older), "of a release without keys")
}

// BenchmarkVisible reads the keys of a project, which a deployment does a few times.
func BenchmarkVisible(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "x.db"), &clock{at: time.Unix(1000, 0)})
	for b.Loop() {
		_, err := s.Visible(b.Context(), "app")
		require.NoError(b, err)
	}
}
