package replica_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster/replica"
	"corpus-git/internal/db"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/layout"
)

// hub returns the files of a hub with an empty state.
func hub(t *testing.T, f vfs.FS, dir string) replica.Files {
	t.Helper()
	root := layout.Root(dir)
	require.NoError(t, vfs.MkdirAll(f, root.Projects(), 0o755))
	require.NoError(t, vfs.MkdirAll(f, root.DefaultState().Path(), 0o700))
	return replica.Files{FS: f, Root: root, State: root.DefaultState()}
}

// write writes a file below a hub's root. Names that begin with state/ are in the state directory.
func write(t *testing.T, f replica.Files, name, content string) {
	t.Helper()
	path := place(f, name)
	require.NoError(t, vfs.MkdirAll(f.FS, filepath.Dir(path), 0o755))
	h, err := f.FS.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	require.NoError(t, err)
	_, err = h.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, h.Close())
}

func place(f replica.Files, name string) string {
	if rest, ok := strings.CutPrefix(name, "state/"); ok {
		return filepath.Join(f.State.Path(), rest)
	}
	return filepath.Join(f.Root.Path(), name)
}

// list returns what is below a hub's folders: types, modes, contents, targets, times of files.
func list(t *testing.T, f replica.Files) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(path, name string)
	walk = func(path, name string) {
		names, err := f.FS.ReadDir(path)
		require.NoError(t, err)
		for _, n := range names {
			p := filepath.Join(path, n)
			st, err := f.FS.Lstat(p)
			require.NoError(t, err)
			what := fmt.Sprintf("%o ", st.Mode)
			switch {
			case st.IsDir():
				walk(p, name+"/"+n)
			case st.IsSymlink():
				target, err := f.FS.Readlink(p)
				require.NoError(t, err)
				what += target
			default:
				content, err := vfs.ReadFile(f.FS, p)
				require.NoError(t, err)
				if n != "corpus-git.db" {
					what += fmt.Sprint(st.Mtime, " ")
				}
				what += string(content)
			}
			out[name+"/"+n] = what
		}
	}
	walk(f.Root.Path(), "")
	return out
}

// capture returns what has changed as a batch, empty if nothing has.
func capture(t *testing.T, s *replica.Source, scope replica.Scope) []byte {
	t.Helper()
	var out bytes.Buffer
	b := replica.NewBatch(&out)
	c, err := s.Capture(t.Context(), scope, b)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	c.Done()
	return out.Bytes()
}

// Whatever happens to the files and the database, the other hub has the same after each batch; nothing is captured if nothing has changed, and what belongs to a machine never is.
func TestTheOtherHubHasTheSame(t *testing.T) {
	a, b := hub(t, vfs.OS{}, t.TempDir()), hub(t, vfs.OS{}, t.TempDir())
	own := []string{"state/lock", "state/control.sock", "state/addr.json", "state/clean", "state/server.log", "state/server.log.1", "state/processes/1", "state/nats/key", "state/cluster/self.json",
		"state/cluster/position.json", "state/containers/x/rootfs", "state/undo/1/log", "state/salt/p/1/minion", "state/agent.json", "state/.tmp-0123456789abcdef",
		"projects/p/project/index.html", "projects/p/data/x", "projects/p/git/project.git/objects/incoming-1/pack", "projects/p/git/project.git/refs/heads/master.lock",
		"projects/p/archives/.spare/x", "projects/p/archives/2026-01-02_03_04-05_1/project/index.html", "projects/.trash/x"}
	common := []string{"state/journal/p.journal", "state/events/p/1.jsonl", "state/cluster/hubs.json", "state/rollouts/1.json", "state/resume/p.json", "state/extends/p.json", "state/passwords/p.json",
		"state/ssh_host_ed25519_key", "state/hooks/after.d/x", "state/underway/p", "state/recipes/1/new/a.sls", "projects/p/git/project.git/HEAD", "projects/p/git/project.git/refs/heads/master",
		"projects/p/git/project.git/refs/heads/objects/x", "projects/p/git/project.git/refs/tags/v\xff%41", "projects/p/git/project.git/objects/ab/cdef", "projects/p/git/project.git/objects/pack/pack-1.pack", "projects/p/git/modules/m/objects/ab/cdef",
		"projects/p/archives/2026-01-02_03_04-05_1/deployment.json", "projects/p/local.yaml", "projects/q/git/pillar.git/HEAD"}
	s, err := replica.NewSource(t.Context(), a)
	require.NoError(t, err)
	require.Empty(t, capture(t, s, replica.Scope{All: true}))
	for _, name := range append(own, common...) {
		write(t, a, name, name)
	}
	d, err := db.OpenWith(t.Context(), a.State.Database(), db.Options{Replicated: true})
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Exec(`CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)`)
	require.NoError(t, err)
	same := func(what string) {
		t.Helper()
		batch := capture(t, s, replica.Scope{All: true})
		require.NoError(t, b.Apply(t.Context(), bytes.NewReader(batch), false), what)
		compare(t, a, b, d, what)
		require.NoError(t, b.Apply(t.Context(), bytes.NewReader(batch), false), what)
		compare(t, a, b, d, "again: "+what)
	}
	same("everything")
	for _, name := range common {
		require.FileExists(t, place(b, name))
	}
	for _, name := range own {
		require.NoFileExists(t, place(b, name))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 40 {
		same(change(t, a, d, r, common, i))
	}
	settle(t, a)
	capture(t, s, replica.Scope{All: true})
	require.Empty(t, capture(t, s, replica.Scope{All: true}))
}

// settle waits until no file can change without showing it in its times.
func settle(t *testing.T, f replica.Files) {
	t.Helper()
	write(t, f, "state/journal/settle", "")
	st, err := f.FS.Lstat(place(f, "state/journal/settle"))
	require.NoError(t, err)
	for time.Now().UnixNano()-st.Ctime < int64(60*time.Millisecond) {
		time.Sleep(5 * time.Millisecond)
	}
}

// change changes something.
func change(t *testing.T, f replica.Files, d *sql.DB, r *rand.Rand, names []string, i int) string {
	t.Helper()
	name := names[r.IntN(len(names))]
	path := place(f, name)
	kind := r.IntN(9)
	if strings.Contains(name, "/objects/") && !strings.Contains(name, "/refs/") && kind < 6 && kind != 2 && kind != 3 {
		kind = 6 // an object is never changed
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink != 0 {
		require.NoError(t, os.Remove(path))
	}
	switch kind {
	case 0:
		write(t, f, name, fmt.Sprint("content ", i))
		return "write " + name
	case 1:
		require.NoError(t, vfs.MkdirAll(f.FS, filepath.Dir(path), 0o755))
		h, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintln(h, "line", i)
		require.NoError(t, err)
		require.NoError(t, h.Close())
		return "append to " + name
	case 2:
		require.NoError(t, os.RemoveAll(path))
		return "remove " + name
	case 3:
		require.NoError(t, os.RemoveAll(filepath.Dir(path)))
		return "remove the folder of " + name
	case 4:
		write(t, f, name, "x")
		require.NoError(t, os.Chmod(path, []os.FileMode{0o600, 0o640, 0o444}[r.IntN(3)]))
		return "chmod " + name
	case 5:
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.Symlink(fmt.Sprint("target", i), path))
		return "link " + name
	case 6:
		write(t, f, name+"-new", strings.Repeat(fmt.Sprint(i), 400_000))
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Rename(path+"-new", path))
		return "replace " + name
	case 7:
		_, err := d.Exec(`DELETE FROM t WHERE k < ?`, i/2)
		require.NoError(t, err)
	}
	_, err := d.Exec(`INSERT INTO t VALUES (?, randomblob(?))`, i, r.IntN(9000))
	require.NoError(t, err)
	return "insert"
}

// compare compares what two hubs have in common.
func compare(t *testing.T, a, b replica.Files, d *sql.DB, what string) {
	t.Helper()
	want, got := list(t, a), list(t, b)
	for name, content := range got {
		if strings.HasSuffix(name, "corpus-git.db") {
			continue
		}
		require.Equal(t, want[name], content, "%s: %s", what, name)
	}
	for name := range want {
		base := filepath.Base(name)
		if got[name] == "" && !strings.HasPrefix(base, "corpus-git.db") && strings.HasPrefix(name, "/.corpus-git/journal/") {
			t.Fatal(what, ": missing ", name)
		}
	}
	c, err := sql.Open("sqlite", "file:"+b.State.Database()+"?immutable=1")
	require.NoError(t, err)
	defer c.Close()
	var x, y string
	for db, into := range map[*sql.DB]*string{d: &x, c: &y} {
		require.NoError(t, db.QueryRow(`SELECT coalesce(group_concat(k || hex(v)), '') FROM (SELECT * FROM t ORDER BY k)`).Scan(into))
	}
	require.Equal(t, x, y, what)
}

// A project in which nothing is in progress is not captured with another one; one whose journal has changed is. Refs are captured before objects.
func TestScope(t *testing.T) {
	a := hub(t, vfs.OS{}, t.TempDir())
	s, err := replica.NewSource(t.Context(), a)
	require.NoError(t, err)
	b := hub(t, vfs.OS{}, t.TempDir())
	write(t, a, "projects/p/git/project.git/HEAD", "p")
	write(t, a, "projects/q/git/project.git/HEAD", "q")
	write(t, a, "state/events/q/1.jsonl", "q")
	apply := func(scope replica.Scope) {
		t.Helper()
		require.NoError(t, b.Apply(t.Context(), bytes.NewReader(capture(t, s, scope)), false))
	}
	apply(replica.Scope{Projects: []string{"p"}})
	require.FileExists(t, place(b, "projects/p/git/project.git/HEAD"))
	require.NoFileExists(t, place(b, "projects/q/git/project.git/HEAD"))
	require.NoFileExists(t, place(b, "state/events/q/1.jsonl"))
	write(t, a, "state/journal/q.journal", "q")
	apply(replica.Scope{Projects: []string{"p"}})
	require.FileExists(t, place(b, "projects/q/git/project.git/HEAD"))
	require.FileExists(t, place(b, "state/events/q/1.jsonl"))
	require.NoError(t, os.RemoveAll(place(a, "projects/q")))
	apply(replica.Scope{Projects: []string{"q"}})
	require.NoDirExists(t, place(b, "projects/q"))

	// What could not be sent is captured again.
	write(t, a, "projects/p/git/project.git/refs/heads/x", "x")
	require.NoError(t, os.Remove(place(a, "projects/p/git/project.git/HEAD")))
	c, err := s.Capture(t.Context(), replica.Scope{Projects: []string{"p"}}, replica.NewBatch(&bytes.Buffer{}))
	require.NoError(t, err)
	c.Undo()
	apply(replica.Scope{Projects: []string{"p"}})
	require.FileExists(t, place(b, "projects/p/git/project.git/refs/heads/x"))
	require.NoFileExists(t, place(b, "projects/p/git/project.git/HEAD"))
}

// A scope with a project that does not exist captures nothing, also on a hub that has deployed nothing and has no folder of events.
func TestAProjectThatDoesNotExist(t *testing.T) {
	f := hub(t, vfs.OS{}, t.TempDir())
	s, err := replica.NewSource(t.Context(), f)
	require.NoError(t, err)
	capture(t, s, replica.Scope{All: true})
	for range 3 {
		b := replica.NewBatch(&bytes.Buffer{})
		c, err := s.Capture(t.Context(), replica.Scope{Projects: []string{"list"}}, b)
		require.NoError(t, err)
		require.Zero(t, b.Records)
		c.Done()
	}
}

// A batch names no file that hubs do not have in common.
func TestForeignNamesAreRefused(t *testing.T) {
	a, b := hub(t, vfs.OS{}, t.TempDir()), hub(t, vfs.OS{}, t.TempDir())
	for _, name := range []string{"state/cluster/self.json", "state/../x", "projects/p/project/x", "/etc/passwd", "state", "state/nats/key", "projects/p/git/../project/x", "etc/passwd", "state//x"} {
		require.ErrorContains(t, b.Apply(t.Context(), bytes.NewReader(replica.ForgedForTest(t, name)), false), "do not have this in common", name)
	}
	require.NoError(t, b.Apply(t.Context(), bytes.NewReader(replica.ForgedForTest(t, "state/hooks/x")), false))
	require.Error(t, b.Apply(t.Context(), bytes.NewReader(replica.ForgedForTest(t, "state/hooks/x")[:20]), false))
	_ = a
}

// Whenever the power fails while a batch is applied, applying it again leaves what it should; and once Apply has returned, a power failure changes nothing.
func TestPowerFailures(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := hub(t, vfs.OS{}, t.TempDir())
	base := []string{"state/journal/p.journal", "state/hooks/x", "projects/p/git/project.git/HEAD", "projects/p/git/project.git/objects/ab/c", "projects/p/local.yaml"}
	s, err := replica.NewSource(t.Context(), a)
	require.NoError(t, err)
	for _, name := range base {
		write(t, a, name, name)
	}
	d, err := db.OpenWith(t.Context(), a.State.Database(), db.Options{Replicated: true})
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Exec(`CREATE TABLE t (v BLOB)`)
	require.NoError(t, err)
	first := capture(t, s, replica.Scope{All: true})
	h, err := os.OpenFile(place(a, base[0]), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = h.WriteString("more")
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.NoError(t, os.Remove(place(a, base[1])))
	write(t, a, base[2], "ref: other")
	require.NoError(t, os.Chmod(place(a, base[4]), 0o600))
	write(t, a, "projects/p/git/project.git/objects/cd/e", "new")
	_, err = d.Exec(`INSERT INTO t VALUES (randomblob(9000))`)
	require.NoError(t, err)
	second := capture(t, s, replica.Scope{All: true})

	mem := vfstest.NewMem(start)
	b := hub(t, mem.FS(), "/srv")
	require.NoError(t, b.Apply(t.Context(), bytes.NewReader(first), false))
	at := func(m *vfstest.Mem, f vfs.FS) replica.Files {
		b := b
		b.FS = f
		if f == nil {
			b.FS = m.FS()
		}
		return b
	}
	whole := mem.Clone()
	counting := vfstest.New(whole.FS(), func(int, vfstest.Op) error { return nil })
	require.NoError(t, at(nil, counting).Apply(t.Context(), bytes.NewReader(second), false))
	want := list(t, at(whole, nil))
	require.Contains(t, want["/.corpus-git/journal/p.journal"], "more")
	calls := counting.Count()
	require.Greater(t, calls, 40)
	keep := rand.New(rand.NewPCG(5, 6))
	for n := range calls {
		m := mem.Clone()
		err := at(nil, vfstest.New(m.FS(), vfstest.CrashAt(n))).Apply(context.WithoutCancel(t.Context()), bytes.NewReader(second), false)
		require.Error(t, err, n)
		m = m.Crash(keep)
		require.NoError(t, at(m, nil).Apply(t.Context(), bytes.NewReader(second), false), n)
		require.Equal(t, want, list(t, at(m, nil)), n)
		m = m.Crash(keep)
		require.Equal(t, want, list(t, at(m, nil)), "after %d", n)
	}
}
