package store

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func TestRollUp(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   int
	}{
		{nil, 0}, {[]int{5}, 0}, {[]int{1, 2, 4, 8}, 0}, {[]int{1, 1}, 2}, {[]int{3, 3, 3, 3, 1000}, 4}, {[]int{3, 3, 10, 1000}, 3},
		{[]int{1, 100, 150, 10000}, 3}, {[]int{1, 2, 5, 9, 100}, 4}, {[]int{4, 4, 4, 20, 50, 1000}, 5},
	} {
		require.Equal(t, c.want, rollUp(c.counts), "%v", c.counts)
	}
	// Whatever is pushed, the number of packs stays small and each is rewritten only a few times.
	var packs []int
	work, total := 0, 0
	for i := range 5000 {
		packs = append(packs, 3+i%7)
		total += 3 + i%7
		slices.Sort(packs)
		if len(packs) <= 20 {
			continue
		}
		n := rollUp(packs)
		sum := 0
		for _, c := range packs[:n] {
			sum += c
		}
		work += sum
		packs = append(packs[n:], sum)
		slices.Sort(packs)
	}
	require.LessOrEqual(t, len(packs), 32)
	require.Less(t, work, 12*total)
}

// pushes pushes n commits of src, one push each, as thin packs, and returns the repository that received them.
func pushes(t testing.TB, src string, n int) *DB {
	t.Helper()
	db := newDB(t)
	for i := n - 1; i >= 0; i-- {
		rev := fmt.Sprintf("master~%d", i)
		revs := []string{rev}
		if i < n-1 {
			revs = append(revs, "^"+fmt.Sprintf("master~%d", i+1))
		}
		push(t, db, fmt.Sprint("p", i), gittest.Pack(t, src, revs, "--thin"))
	}
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	return db
}

func push(t testing.TB, db *DB, id string, data []byte) {
	t.Helper()
	q, err := db.NewQuarantine(id)
	require.NoError(t, err)
	_, err = q.Ingest(context.Background(), bufio.NewReader(bytes.NewReader(data)), IngestOptions{})
	require.NoError(t, err)
	require.NoError(t, q.Migrate())
}

func (db *DB) counted(t testing.TB) Counts {
	t.Helper()
	v, err := db.inventory()
	require.NoError(t, err)
	return v.counts()
}

// Hundreds of small pushes become a few packs; everything exists, also for git, and no concurrent reader misses anything.
func TestMaintainConsolidates(t *testing.T) {
	src := history(t, 30)
	db := pushes(t, src, 30)
	all := gittest.Objects(t, src, "master")
	before := db.counted(t)
	require.Equal(t, 30, before.Packs)

	dry, err := db.Maintain(context.Background(), Repack{ID: "m", Packs: 20, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 30, dry.Consolidated)
	require.Equal(t, 30, db.counted(t).Packs)

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				h := all[n%len(all)]
				if _, _, err := db.Get(h); err != nil {
					t.Errorf("%s: %v", h, err)
					return
				}
				if n%50 == 0 {
					var b bytes.Buffer
					if _, err := WritePack(context.Background(), &b, db, all, PackOptions{OfsDelta: true}); err != nil {
						t.Errorf("pack: %v", err)
						return
					}
				}
			}
		})
	}
	m, err := db.Maintain(context.Background(), Repack{ID: "m", Packs: 20})
	require.NoError(t, err)
	m2, err := db.Maintain(context.Background(), Repack{ID: "m", All: true})
	close(stop)
	readers.Wait()
	require.NoError(t, err)
	require.False(t, m2.Changed(), "%+v", m2)
	require.Equal(t, 30, m.Consolidated)
	require.Equal(t, 1, m.After.Packs)
	require.Equal(t, len(all), m.After.Objects, "no copies are left")
	require.Less(t, m.After.PackBytes, before.PackBytes)
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	gittest.Git(t, db.Dir(), "verify-pack", onePack(t, db))
	same(t, db, src, all)
	// A clone is bit for bit what was pushed.
	clone := filepath.Join(t.TempDir(), "clone")
	gittest.Git(t, src, "clone", "-q", "--bare", "file://"+db.Dir(), clone)
	require.Equal(t, gittest.Git(t, src, "rev-list", "--objects", "master"), gittest.Git(t, clone, "rev-list", "--objects", "master"))
	// Later pushes stay packs until there are many, and the large one is unchanged while they are small.
	more(t, src, 30, 6)
	big := onePack(t, db)
	for i := 5; i >= 0; i-- {
		push(t, db, fmt.Sprint("q", i), gittest.Pack(t, src, []string{fmt.Sprintf("master~%d", i), fmt.Sprintf("^master~%d", i+1)}, "--thin"))
	}
	m, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 20})
	require.NoError(t, err)
	require.False(t, m.Changed())
	m, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 4})
	require.NoError(t, err)
	require.Equal(t, 6, m.Consolidated)
	require.Equal(t, 2, m.After.Packs)
	require.FileExists(t, big)
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	same(t, db, src, gittest.Objects(t, src, "master"))
}

// A year of daily pushes, and some more, with maintenance after each: there are never many packs, and everything exists.
func TestMaintainOfAYear(t *testing.T) {
	db := newDB(t)
	var parent plumbing.Hash
	var all []plumbing.Hash
	most, written := 0, int64(0)
	for day := range 400 {
		var p rawPack
		blob := p.add(plumbing.BlobObject, fmt.Appendf(nil, "<h1>day %d</h1>\n", day))
		tree := p.add(plumbing.TreeObject, append([]byte("100644 index.html\x00"), blob[:]...))
		text := fmt.Sprintf("tree %s\n", tree)
		if day > 0 {
			text += fmt.Sprintf("parent %s\n", parent)
		}
		text += fmt.Sprintf("author A <a@example.org> %d +0000\ncommitter A <a@example.org> %d +0000\n\nday %d\n", 1700000000+86400*day, 1700000000+86400*day, day)
		parent = p.add(plumbing.CommitObject, []byte(text))
		all = append(all, blob, tree, parent)
		push(t, db, fmt.Sprint("day", day), p.bytes())
		m, err := db.Maintain(context.Background(), Repack{ID: "m", Packs: 20})
		require.NoError(t, err)
		most, written = max(most, m.After.Packs), written+m.Written
	}
	require.LessOrEqual(t, most, 28)
	end := db.counted(t)
	require.Equal(t, len(all), end.Objects)
	require.Less(t, written, 8*end.PackBytes, "an object is written anew a few times only")
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", parent.String())
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	for _, h := range all {
		_, data, err := db.Get(h)
		require.NoError(t, err)
		require.NotEmpty(t, data)
	}
	require.Len(t, gittest.Objects(t, db.Dir(), "master"), len(all))
}

// rawPack returns a pack of whole objects.
type rawPack struct {
	body bytes.Buffer
	n    uint32
}

func (p *rawPack) add(t plumbing.ObjectType, data []byte) plumbing.Hash {
	p.n++
	size := len(data)
	c := byte(t)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.body.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	p.body.WriteByte(c)
	z := zlib.NewWriter(&p.body)
	_, _ = z.Write(data)
	_ = z.Close()
	return plumbing.ComputeHash(t, data)
}

func (p *rawPack) bytes() []byte {
	out := append(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.n), p.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func onePack(t testing.TB, db *DB) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(db.Dir(), "objects", "pack", "*.pack"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

// Deltas from different pushes form chains; none grows beyond what a reader follows cheaply.
func TestMaintainBoundsChains(t *testing.T) {
	src := t.TempDir()
	gittest.Git(t, src, "init", "-q", "-b", "master")
	var in bytes.Buffer
	text := strings.Repeat("some line that stays\n", 400)
	for i := range 70 {
		text += fmt.Sprintf("line %d\n", i)
		fmt.Fprintf(&in, "commit refs/heads/master\ncommitter A <a@example.org> %d +0000\ndata 1\nx\nM 644 inline log\ndata %d\n%s\n", 1700000000+i, len(text), text)
	}
	gittest.Output(t, src, in.Bytes(), "fast-import", "--quiet")
	db := pushes(t, src, 70)
	_, err := db.Maintain(context.Background(), Repack{ID: "m", All: true})
	require.NoError(t, err)
	out := gittest.Git(t, db.Dir(), "verify-pack", "-v", onePack(t, db))
	depth, deltas := 0, 0
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) == 7 && len(f[0]) == 40 {
			var d int
			_, err := fmt.Sscan(f[5], &d)
			require.NoError(t, err)
			depth = max(depth, d)
			deltas++
		}
	}
	require.Equal(t, maxNewDepth, depth)
	require.Greater(t, deltas, 60)
	same(t, db, src, gittest.Objects(t, src, "master"))
}

// An abort in the middle leaves everything as it was; a crash leaves files that the next call removes.
func TestMaintainStops(t *testing.T) {
	src := history(t, 30)
	db := pushes(t, src, 30)
	all := gittest.Objects(t, src, "master")
	busy := errors.New("a deployment began")
	for n := range 3 {
		left := n
		_, err := db.Maintain(context.Background(), Repack{ID: "m", All: true, Pause: func(context.Context) error {
			if left--; left < 0 {
				return busy
			}
			return nil
		}})
		if n < 1 {
			require.ErrorIs(t, err, busy)
			require.Equal(t, 30, db.counted(t).Packs)
			require.Empty(t, glob(t, db, "incoming-*"))
		}
	}
	dir := filepath.Join(db.Dir(), "objects")
	for _, name := range []string{"tmp_obj_x", "pack/tmp_pack_y", "pack/pack-0000000000000000000000000000000000000000.idx"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644))
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-25*time.Hour)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pack/tmp_pack_new"), nil, 0o644))
	m, err := db.Maintain(context.Background(), Repack{ID: "m", Packs: 20})
	require.NoError(t, err)
	require.Equal(t, 3, m.Left)
	require.FileExists(t, filepath.Join(dir, "pack/tmp_pack_new"))
	require.Zero(t, m.After.Left)
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	same(t, db, src, all)
}

// However large the objects are, other work may go first repeatedly while they are read and written.
func TestMaintainPausesOften(t *testing.T) {
	db := newDB(t)
	const size = 1 << 20
	noise := rand.New(rand.NewChaCha8([32]byte{1}))
	for i := range 3 {
		var p rawPack
		data := make([]byte, size)
		for n := range data {
			data[n] = byte(noise.Uint32())
		}
		p.add(plumbing.BlobObject, data)
		push(t, db, fmt.Sprint("p", i), p.bytes())
	}
	pauses := 0
	m, err := db.Maintain(context.Background(), Repack{ID: "m", All: true, Pause: func(context.Context) error { pauses++; return nil }})
	require.NoError(t, err)
	require.Equal(t, 3, m.Consolidated)
	require.Greater(t, m.Written, int64(3*size))
	require.GreaterOrEqual(t, int64(pauses), m.Written/PauseEvery)
}

// A pack with .keep stays, and its objects are not written twice.
func TestMaintainKeeps(t *testing.T) {
	src := history(t, 20)
	db := pushes(t, src, 20)
	packs := glob(t, db, "pack/*.pack")
	kept := packs[0]
	require.NoError(t, os.WriteFile(strings.TrimSuffix(kept, ".pack")+".keep", nil, 0o644))
	m, err := db.Maintain(context.Background(), Repack{ID: "m", All: true})
	require.NoError(t, err)
	require.Equal(t, 19, m.Consolidated)
	require.Equal(t, 2, m.After.Packs)
	require.FileExists(t, kept)
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	same(t, db, src, gittest.Objects(t, src, "master"))
}

func glob(t testing.TB, db *DB, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(db.Dir(), "objects", pattern))
	require.NoError(t, err)
	return list
}

// Loose objects, git's or ours, are packed when there are many.
func TestMaintainPacksLoose(t *testing.T) {
	src := history(t, 5)
	bare := filepath.Join(t.TempDir(), "b.git")
	gittest.Git(t, src, "clone", "-q", "--bare", "--no-local", src, bare)
	packed := glob(t, &DB{dir: bare}, "pack/*.pack")
	data, err := os.ReadFile(packed[0])
	require.NoError(t, err)
	for _, f := range glob(t, &DB{dir: bare}, "pack/*") {
		require.NoError(t, os.Remove(f))
	}
	gittest.Output(t, bare, data, "unpack-objects", "-q")
	db, err := Open(bare, Options{})
	require.NoError(t, err)
	defer db.Close()
	all := gittest.Objects(t, src, "master")
	before := db.counted(t)
	require.NotZero(t, before.Loose)
	m, err := db.Maintain(context.Background(), Repack{ID: "m", Loose: before.Loose})
	require.NoError(t, err)
	require.False(t, m.Changed())
	m, err = db.Maintain(context.Background(), Repack{ID: "m", Loose: before.Loose - 1})
	require.NoError(t, err)
	require.Equal(t, before.Loose, m.Packed)
	require.Zero(t, m.After.Loose)
	gittest.Git(t, bare, "fsck", "--strict")
	same(t, db, src, all)
}

// pruning prunes with the refs that git finds.
func pruning(t testing.TB, db *DB, grace time.Duration) *Prune {
	return &Prune{
		Grace: grace,
		Tips: func() (out []plumbing.Hash, err error) {
			for l := range strings.Lines(gittest.Git(t, db.Dir(), "for-each-ref", "--format=%(objectname)")) {
				out = append(out, plumbing.NewHash(strings.TrimSpace(l)))
			}
			return out, nil
		},
		Alone: func(_ context.Context, f func() error) error { return f() },
	}
}

// Objects that no ref reaches are removed when they are old enough, from packs and from loose files; objects that they refer to stay as
// long as they do.
func TestMaintainPrunes(t *testing.T) {
	src := history(t, 30)
	db := pushes(t, src, 30)
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master~10").String())
	gittest.Git(t, db.Dir(), "update-ref", "refs/tags/old", gittest.Hash(t, src, "master~12").String())
	loose, err := db.Put(plumbing.BlobObject, []byte("nobody's"))
	require.NoError(t, err)
	gone := plumbing.NewHash(strings.TrimSpace(gittest.Git(t, src, "rev-parse", "master")))
	day := 24 * time.Hour

	// Too young.
	m, err := db.Maintain(context.Background(), Repack{ID: "m", Packs: 100, Loose: 100, Prune: pruning(t, db, day)})
	require.NoError(t, err)
	require.Zero(t, m.Pruned)
	require.NotZero(t, m.Young)
	ok, err := db.Has(gone)
	require.NoError(t, err)
	require.True(t, ok)

	// A pack of old objects that is written today is as old as they are; a young one keeps what its objects refer to.
	for _, f := range append(glob(t, db, "pack/*"), db.main.loosePath(loose)) {
		require.NoError(t, os.Chtimes(f, time.Time{}, time.Now().Add(-3*day)))
	}
	_, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 10, Loose: 100})
	require.NoError(t, err)
	st, err := os.Stat(onePack(t, db))
	require.NoError(t, err)
	require.Greater(t, time.Since(st.ModTime()), 2*day)
	gittest.Git(t, src, "checkout", "-q", "-b", "side", "master~5")
	more(t, src, 500, 1)
	push(t, db, "side", gittest.Pack(t, src, []string{"side", "^side~1"}, "--thin"))
	side := gittest.Objects(t, src, "side")

	// Somebody uses the repository: nothing is removed, and the work is undone.
	was := db.counted(t)
	inUse := errors.New("in use")
	p := pruning(t, db, day)
	p.Alone = func(context.Context, func() error) error { return inUse }
	_, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 10, Loose: 100, Prune: p})
	require.ErrorIs(t, err, inUse)
	require.Equal(t, was, db.counted(t))
	// A ref is set to an object that was about to be removed.
	p = pruning(t, db, day)
	p.Alone = func(_ context.Context, f func() error) error {
		gittest.Git(t, db.Dir(), "update-ref", "refs/heads/back", gone.String())
		return f()
	}
	_, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 10, Loose: 100, Prune: p})
	require.ErrorIs(t, err, errMoved)
	require.Equal(t, was, db.counted(t))
	gittest.Git(t, db.Dir(), "update-ref", "-d", "refs/heads/back")

	gittest.Git(t, db.Dir(), "commit-graph", "write", "--reachable")
	gittest.Git(t, db.Dir(), "multi-pack-index", "write")
	m, err = db.Maintain(context.Background(), Repack{ID: "m", Packs: 10, Loose: 100, Prune: pruning(t, db, day)})
	require.NoError(t, err)
	require.NotZero(t, m.Pruned)
	require.Zero(t, m.After.Loose)
	for _, h := range []plumbing.Hash{gone, loose} {
		ok, err := db.Has(h)
		require.NoError(t, err)
		require.False(t, ok)
	}
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	same(t, db, src, append(side, gittest.Objects(t, src, "master~10")...))

	// A damaged history is no reason to remove anything.
	tree := plumbing.NewHash(strings.TrimSpace(gittest.Git(t, src, "rev-parse", "side^{tree}")))
	require.NoError(t, os.MkdirAll(filepath.Dir(db.main.loosePath(tree)), 0o755))
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/side", gittest.Hash(t, src, "side").String())
	path := onePackWith(t, db, tree)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		require.NoError(t, os.Chmod(path, 0o644))
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	require.NoError(t, err)
	_, off, _, err := db.Locate(tree)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, off+8)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	was = db.counted(t)
	_, err = db.Maintain(context.Background(), Repack{ID: "m", All: true, Prune: pruning(t, db, 0)})
	require.Error(t, err)
	require.Equal(t, was, db.counted(t))
	_, err = db.Maintain(context.Background(), Repack{ID: "m", All: true})
	require.Error(t, err, "a damaged object is not copied as if it were good")
	require.Equal(t, was, db.counted(t))
}

func onePackWith(t testing.TB, db *DB, h plumbing.Hash) string {
	t.Helper()
	p, _, ok, err := db.Locate(h)
	require.NoError(t, err)
	require.True(t, ok)
	return p.Path()
}

// Small pushes become loose objects if that is requested, large ones stay packs; interrupted, either is completed.
func TestUnpack(t *testing.T) {
	src := history(t, 12)
	db := newDB(t)
	for i, revs := range [][]string{{"master~1"}, {"master", "^master~1"}} {
		q, err := db.NewQuarantine(fmt.Sprint("q", i))
		require.NoError(t, err)
		in, err := q.Ingest(context.Background(), bufio.NewReader(bytes.NewReader(gittest.Pack(t, src, revs, "--thin"))), IngestOptions{Unpack: 40})
		require.NoError(t, err)
		require.NoError(t, q.Migrate())
		require.NoError(t, q.Migrate())
		require.NoDirExists(t, q.dir)
		_, _, err = q.Get(gittest.Hash(t, src, strings.TrimPrefix(revs[0], "^")))
		require.NoError(t, err)
		c := db.counted(t)
		require.Equal(t, 1, c.Packs, "the first push has %d objects", in.Objects)
		require.Equal(t, i > 0, c.Loose > 0)
	}
	same(t, db, src, gittest.Objects(t, src, "master"))
	gittest.Git(t, db.Dir(), "update-ref", "refs/heads/master", gittest.Hash(t, src, "master").String())
	gittest.Git(t, db.Dir(), "fsck", "--strict")
	m, err := db.Maintain(context.Background(), Repack{ID: "m", All: true})
	require.NoError(t, err)
	require.Zero(t, m.After.Loose)
	require.Equal(t, 1, m.After.Packs)
	same(t, db, src, gittest.Objects(t, src, "master"))
}

// BenchmarkMigrate compares what a push of one changed file costs as a pack and as loose objects; see bench/RESULTS.md.
func BenchmarkMigrate(b *testing.B) {
	for _, c := range []struct {
		name  string
		limit int
	}{{"pack", 0}, {"loose", 100}} {
		b.Run(c.name, func(b *testing.B) {
			db := newDB(b)
			parent := plumbing.ZeroHash
			for i := range b.N {
				b.StopTimer()
				var p rawPack
				blob := p.add(plumbing.BlobObject, fmt.Appendf(nil, "<h1>%d</h1>\n", i))
				tree := p.add(plumbing.TreeObject, append([]byte("100644 index.html\x00"), blob[:]...))
				text := fmt.Sprintf("tree %s\n", tree)
				if i > 0 {
					text += fmt.Sprintf("parent %s\n", parent)
				}
				parent = p.add(plumbing.CommitObject, []byte(text+"author A <a@example.org> 1 +0000\ncommitter A <a@example.org> 1 +0000\n\nx\n"))
				data := p.bytes()
				b.StartTimer()
				q, err := db.NewQuarantine(fmt.Sprint("q", i))
				require.NoError(b, err)
				_, err = q.Ingest(context.Background(), bufio.NewReader(bytes.NewReader(data)), IngestOptions{Unpack: c.limit})
				require.NoError(b, err)
				require.NoError(b, q.Migrate())
			}
		})
	}
}
