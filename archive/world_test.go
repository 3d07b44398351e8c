package archive_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/draw"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/layout"
)

// world is a project in memory with two archives, a spare tree, and a deployment that failed.
type world struct {
	t   *testing.T
	m   *vfstest.Mem
	p   layout.Project
	id  string            // of the archive made before the deployment
	old map[string]string // the trees as that archive holds them
	// atOnce is archive.Config.AtOnce.
	atOnce int64
}

func (w *world) store(f vfs.FS) *archive.Store {
	return archive.New(w.p, archive.Config{FS: f, Now: w.m.Now, Workers: 1, Reserve: noReserve, AtOnce: w.atOnce, User: root})
}

// root is archive.Config.User of tests whose files are in memory, where everybody may give files to anybody.
func root() (uid, gid int) { return 0, 0 }

func memWrite(t *testing.T, f vfs.FS, p, content string) {
	t.Helper()
	h, err := f.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	require.NoError(t, err)
	_, err = h.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, h.Close())
}

func (w *world) facts(n int) archive.Facts {
	return archive.Facts{ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", n), Project: "app", At: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, m: vfstest.NewMem(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), p: layout.Root("/srv").Project("app")}
	f := w.m.FS()
	ok := func(err error) { t.Helper(); require.NoError(t, err) }
	ok(vfs.MkdirAll(f, w.p.Live()+"/dir/sub", 0o755))
	ok(vfs.MkdirAll(f, w.p.Pillar(), 0o755))
	memWrite(t, f, w.p.Pillar()+"/init.sls", "a: 1\n")
	memWrite(t, f, w.p.Live()+"/a", "content of a")
	memWrite(t, f, w.p.Live()+"/dir/b", "content of b")
	memWrite(t, f, w.p.Live()+"/dir/c", "content of c")
	ok(f.Link(w.p.Live()+"/a", w.p.Live()+"/dir/sub/a2"))
	ok(f.Symlink("../a", w.p.Live()+"/dir/link"))
	ok(f.Mknod(w.p.Live()+"/fifo", syscall.S_IFIFO|0o600, 0))
	ok(f.SetXattr(w.p.Live()+"/dir/b", vfs.Xattr{Name: "user.x", Value: []byte("1")}))
	ok(f.Lchown(w.p.Live()+"/dir/b", 7, 8))
	ok(f.Chmod(w.p.Live()+"/dir/b", 0o4711))
	w.m.Advance(time.Minute)
	s := w.store(f)
	for n := 1; n <= 3; n++ {
		a, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(n)})
		ok(err)
		ok(s.SetVerdict(a.ID, archive.Good))
	}
	_, err := s.Rotate(archive.Policy{Keep: 2})
	ok(err)
	ok(s.Wait())
	memWrite(t, f, w.p.Live()+"/dir/c", "c has changed")
	ok(f.SyncFS("/"))
	w.m.Advance(time.Minute)
	w.id = w.facts(4).ID
	w.old = memSnapshot(t, f, w.p)
	return w
}

func (w *world) clone() *world {
	c := *w
	c.m = w.m.Clone()
	return &c
}

// deploy makes the archive, then the changes of the failed deployment.
func (w *world) deploy() {
	f := w.m.FS()
	_, err := w.store(f).Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
	require.NoError(w.t, err)
	require.Equal(w.t, w.old, memSnapshot(w.t, f, w.p))
	memWrite(w.t, f, w.p.Live()+"/dir/b", "broken")
	memWrite(w.t, f, w.p.Live()+"/new", "new")
	require.NoError(w.t, f.Remove(w.p.Live()+"/a"))
	require.NoError(w.t, f.Remove(w.p.Live()+"/dir/link"))
	require.NoError(w.t, vfs.MkdirAll(f, w.p.Live()+"/dir/link/now/a/folder", 0o700))
	memWrite(w.t, f, w.p.Pillar()+"/init.sls", "a: 2\n")
	require.NoError(w.t, f.SyncFS("/"))
	w.m.Advance(time.Minute)
	require.NotEqual(w.t, w.old, memSnapshot(w.t, f, w.p))
}

// memSnapshot describes both live trees completely.
func memSnapshot(t *testing.T, f vfs.FS, p layout.Project) map[string]string {
	t.Helper()
	out := map[string]string{}
	links := map[uint64]string{}
	var walk func(string)
	walk = func(path string) {
		st, err := f.Lstat(path)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			return
		}
		xs, err := f.Xattrs(path)
		require.NoError(t, err)
		d := fmt.Sprintf("%o %d:%d %d %v", st.Mode, st.UID, st.GID, st.Mtime, xs)
		switch {
		case st.IsRegular():
			b, err := vfs.ReadFile(f, path)
			require.NoError(t, err)
			d += fmt.Sprintf(" %x", sha256.Sum256(b))
			if first := links[st.Ino]; first != "" {
				d += "=" + first
			} else if st.Nlink > 1 {
				links[st.Ino] = path
			}
		case st.IsSymlink():
			l, err := f.Readlink(path)
			require.NoError(t, err)
			d += l
		case st.IsDir():
			names, err := f.ReadDir(path)
			require.NoError(t, err)
			for _, n := range names {
				walk(path + "/" + n)
			}
		}
		out[path] = d
	}
	walk(p.Live())
	walk(p.Pillar())
	return out
}

// requireArchivesWhole checks that every archive that is listed and not consumed holds what its manifest lists, that
// nothing incomplete is left, and that there is at least one.
func (w *world) requireArchivesWhole(s *archive.Store, f vfs.FS, says string) {
	w.t.Helper()
	require.NoError(w.t, s.Sweep(), says)
	require.NoError(w.t, s.Wait(), says)
	all, err := s.List()
	require.NoError(w.t, err, says)
	whole := 0
	for _, a := range all {
		if !a.Whole {
			continue
		}
		whole++
		proof, err := s.Verify(context.Background(), a.ID)
		require.NoError(w.t, err, says)
		require.True(w.t, proof.Exact(), "%s: %s: %v", says, a.Path, proof.Differences)
	}
	require.GreaterOrEqual(w.t, whole, 1, says)
	names, err := f.ReadDir(w.p.Archives())
	require.NoError(w.t, err)
	for _, n := range names {
		require.False(w.t, strings.HasPrefix(n, ".tmp-") || strings.HasPrefix(n, ".trash-"), "%s leaves %s", says, n)
	}
}

// operation is one operation that may be interrupted anywhere, and run again.
type operation struct {
	name  string
	setup func(*world)
	run   func(*world, *archive.Store) error
	// steady: the live trees are never changed by it. Otherwise each is the old one or the new one, or, inPlace, in between.
	steady, inPlace bool
	long            bool
	// wrap changes the file system for every run.
	wrap func(vfs.FS) vfs.FS
}

// crashKills is 100 or more for make crash.
func crashKills() int {
	n, _ := strconv.Atoi(os.Getenv("CORPUS_GIT_CRASH_KILLS"))
	return n
}

// stride skips calls of the longest operations, chosen by the seed; none if CORPUS_GIT_CRASH_KILLS is 100 or more, as
// for make crash.
func (o operation) stride(t *testing.T) (first, step int) {
	step = 1
	switch {
	case crashKills() >= 100:
	case o.inPlace:
		step = 3
	case o.long:
		step = 13
	}
	first = 1 + draw.Below(t, step)
	if step > 1 {
		t.Logf("every %d. call from the %d.", step, first)
	}
	return first, step
}

type busyFS struct{ vfs.FS }

func (busyFS) Exchange(a, b string) error {
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: syscall.EBUSY}
}

func rollback(w *world, s *archive.Store) error {
	res, err := s.Rollback(context.Background(), w.id)
	if err == nil && !res.Proof.Exact() {
		return fmt.Errorf("proof: %v", res.Proof.Differences)
	}
	return err
}

func operations() []operation {
	none := func(f vfs.FS) vfs.FS { return f }
	return []operation{
		{name: "make", setup: func(*world) {}, steady: true, wrap: none, run: func(w *world, s *archive.Store) error {
			_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(4)})
			return err
		}},
		{name: "make files at once", setup: (*world).burst, steady: true, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(9)})
			return err
		}},
		{name: "conclude files made at once", setup: (*world).burstAndDeploy, steady: true, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			staged := s.StageVerdict(w.facts(9).At, w.facts(9).ID, archive.Good)
			settle, err := s.Conclude(w.facts(9).ID, archive.Good, staged, archive.Policy{Keep: 3})
			return errors.Join(err, settle())
		}},
		{name: "rollback to files made at once", setup: (*world).burstAndDeploy, long: true, run: rollback, wrap: none},
		{name: "restore an incremental one", setup: (*world).burstAndBack, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			_, err := s.Restore(context.Background(), w.id, nil)
			return err
		}},
		{name: "rotate", setup: (*world).deploy, steady: true, wrap: none, run: func(w *world, s *archive.Store) error {
			if err := s.SetVerdict(w.id, archive.Good); err != nil {
				return err
			}
			_, err := s.Rotate(archive.Policy{Keep: 1})
			return err
		}},
		{name: "rollback", setup: (*world).deploy, run: rollback, wrap: none},
		{name: "rollback in place", setup: (*world).deploy, run: rollback, inPlace: true, wrap: func(f vfs.FS) vfs.FS { return busyFS{f} }},
		{name: "restore", setup: (*world).deploy, wrap: none, run: func(w *world, s *archive.Store) error {
			_, err := s.Restore(context.Background(), w.id, nil)
			return err
		}},
		{name: "compact", setup: (*world).deploy, steady: true, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			return compact(s)
		}},
		{name: "bring the spare tree up to date", setup: (*world).deployedSince, steady: true, wrap: none, run: func(w *world, s *archive.Store) error {
			made, err := s.Prepare(context.Background(), archive.Policy{Keep: 3})
			if err == nil && !made && s.Spare() == 0 {
				err = errors.New("there is no spare tree")
			}
			if err != nil {
				return err
			}
			a, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(5)})
			if err == nil && a.Packed == nil && a.Made.Notes.Vanished == 0 && len(a.Trees) == 2 { // a fault may be that something has vanished
				w.requireSameContent(a)
			}
			return err
		}},
		{name: "write over an expired tree", setup: (*world).deployedAndChanged, steady: true, wrap: none, run: func(w *world, s *archive.Store) error {
			s.Tend()
			if _, err := s.Rotate(archive.Policy{Keep: 1}); err != nil {
				return err
			}
			if _, err := s.Prepare(context.Background(), archive.Policy{Keep: 3}); err != nil {
				return err
			}
			a, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(5)})
			if err == nil && a.Packed == nil && a.Made.Notes.Vanished == 0 && len(a.Trees) == 2 { // a fault may be that something has vanished
				w.requireSameContent(a)
			}
			return err
		}},
		{name: "use a base written ahead", setup: (*world).moreFiles, steady: true, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			defer s.DropAhead() // a run after one that is complete writes a base if that one found folders to have vanished, and its Make has an archive already
			if _, err := s.Prepare(context.Background(), archive.Policy{Keep: 3}); err != nil {
				return err
			}
			_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(5)})
			return err
		}},
		{name: "restore a packed one", setup: (*world).deployAndPack, long: true, wrap: none, run: func(w *world, s *archive.Store) error {
			_, err := s.Restore(context.Background(), w.id, nil)
			return err
		}},
		{name: "rollback to a packed one", setup: (*world).deployAndPack, long: true, run: rollback, wrap: none},
	}
}

// moreFiles makes trees that are packed at once.
func (w *world) moreFiles() {
	w.atOnce = 1
	for n := range 12 {
		memWrite(w.t, w.m.FS(), fmt.Sprintf("%s/more%d", w.p.Live(), n), fmt.Sprint("content ", n))
	}
	require.NoError(w.t, w.m.FS().SyncFS("/"))
	w.m.Advance(time.Minute)
}

// burst makes archives that are packed at once, because there is no spare tree.
func (w *world) burst() {
	w.moreFiles()
	f := w.m.FS()
	s := w.store(f)
	for n := 4; n <= 8; n++ {
		memWrite(w.t, f, w.p.Live()+"/dir/c", fmt.Sprint("push ", n))
		require.NoError(w.t, f.SyncFS("/"))
		w.m.Advance(time.Minute)
		if n == 7 {
			w.id, w.old = w.facts(n).ID, memSnapshot(w.t, f, w.p)
		}
		a, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(n)})
		require.NoError(w.t, err)
		require.NoError(w.t, s.SetVerdict(a.ID, archive.Good))
	}
	require.NoError(w.t, s.Wait())
	a, err := s.Show(w.id)
	require.NoError(w.t, err)
	require.True(w.t, a.Incremental())
	w.m.Advance(time.Minute)
}

// burstAndDeploy is burst, and a deployment that has made its archive and changed the live trees.
func (w *world) burstAndDeploy() {
	w.burst()
	f := w.m.FS()
	w.id, w.old = w.facts(9).ID, memSnapshot(w.t, f, w.p)
	a, err := w.store(f).Make(context.Background(), archive.MakeRequest{Facts: w.facts(9)})
	require.NoError(w.t, err)
	require.True(w.t, a.Incremental())
	memWrite(w.t, f, w.p.Live()+"/more3", "broken")
	require.NoError(w.t, f.Remove(w.p.Live()+"/more4"))
	require.NoError(w.t, f.SyncFS("/"))
	w.m.Advance(time.Minute)
}

// burstAndBack is burst after which the live trees have changed.
func (w *world) burstAndBack() {
	w.burst()
	f := w.m.FS()
	memWrite(w.t, f, w.p.Live()+"/more3", "broken")
	require.NoError(w.t, f.Remove(w.p.Live()+"/more4"))
	require.NoError(w.t, f.SyncFS("/"))
	w.m.Advance(time.Minute)
}

// deployedSince leaves a spare tree that is older than the last deployment.
func (w *world) deployedSince() {
	w.deployedAndChanged()
	s := w.store(w.m.FS())
	r, err := s.Rotate(archive.Policy{Keep: 1})
	require.NoError(w.t, err)
	require.True(w.t, r.Recycled)
	require.NoError(w.t, s.Wait())
	require.NoError(w.t, w.m.FS().SyncFS("/"))
}

// deployedAndChanged leaves archives that no limit was applied to.
func (w *world) deployedAndChanged() {
	f, s := w.m.FS(), w.store(w.m.FS())
	facts := w.facts(4)
	facts.At = w.m.Now()
	_, err := s.Make(context.Background(), archive.MakeRequest{Facts: facts})
	require.NoError(w.t, err)
	require.NoError(w.t, s.SetVerdict(w.id, archive.Good))
	require.NoError(w.t, s.Wait())
	memWrite(w.t, f, w.p.Live()+"/dir/b", "the deployment's")
	memWrite(w.t, f, w.p.Live()+"/new", "new")
	require.NoError(w.t, f.Remove(w.p.Live()+"/dir/link"))
	require.NoError(w.t, vfs.MkdirAll(f, w.p.Live()+"/dir/link/now/a/folder", 0o700))
	require.NoError(w.t, f.SyncFS("/"))
	w.m.Advance(time.Minute)
}

// requireSameContent compares each file of the live tree with the archive's.
func (w *world) requireSameContent(a archive.Archive) {
	for p, d := range memSnapshot(w.t, w.m.FS(), w.p) {
		rel, ok := strings.CutPrefix(p, w.p.Live()+"/")
		if st, err := w.m.FS().Lstat(p); !ok || err != nil || !st.IsRegular() {
			continue
		}
		want, err := vfs.ReadFile(w.m.FS(), p)
		require.NoError(w.t, err)
		got, err := vfs.ReadFile(w.m.FS(), a.Path+"/project/"+rel)
		require.NoError(w.t, err)
		require.Equal(w.t, string(want), string(got), "%s: %s", p, d)
	}
}

func compact(s *archive.Store) error {
	c, err := s.Compact(context.Background(), archive.Policy{Keep: 3})
	if err == nil && len(c.Refused) > 0 {
		err = c.Refused[0].Err
	}
	return err
}

// deployAndPack also packs the archive from before the deployment: there is a later one.
func (w *world) deployAndPack() {
	w.deploy()
	s := w.store(w.m.FS())
	require.NoError(w.t, s.SetVerdict(w.id, archive.Good))
	_, err := s.Make(context.Background(), archive.MakeRequest{Facts: w.facts(5)})
	require.NoError(w.t, err)
	require.NoError(w.t, compact(s))
	require.NoError(w.t, s.Wait())
	a, err := s.Show(w.id)
	require.NoError(w.t, err)
	require.NotNil(w.t, a.Packed)
	require.NoError(w.t, w.m.FS().SyncFS("/"))
	w.m.Advance(time.Minute)
}

// liveTrees splits a snapshot by tree.
func liveTrees(w *world, snap map[string]string) (live, pillar map[string]string) {
	live, pillar = map[string]string{}, map[string]string{}
	for p, d := range snap {
		if strings.HasPrefix(p, w.p.Pillar()) {
			pillar[p] = d
		} else {
			live[p] = d
		}
	}
	return live, pillar
}

// requireWholeTrees checks that each live tree is the one from before the operation or the archived one.
func (w *world) requireWholeTrees(o operation, before, now map[string]string, says string) {
	w.t.Helper()
	if o.steady {
		require.Equal(w.t, before, now, says)
		return
	}
	if o.inPlace {
		return
	}
	bl, bp := liveTrees(w, before)
	nl, np := liveTrees(w, now)
	ol, op := liveTrees(w, w.old)
	require.Contains(w.t, []map[string]string{bl, ol}, nl, says)
	require.Contains(w.t, []map[string]string{bp, op}, np, says)
}

// want is what the live trees are once the operation has ended.
func (w *world) want(o operation, before map[string]string) map[string]string {
	if o.steady {
		return before
	}
	return w.old
}
