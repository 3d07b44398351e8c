package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/archive"
	"corpus-git/layout"
)

const (
	treeFiles   = 63_000
	treeFolders = 7_000
	treeBytes   = 870 << 20
	treeRounds  = 5
	coldRounds  = 2
)

// benchArchive archives a tree like a node_modules folder (70,000 files and folders, 870 MB), again after 1 % of it has
// changed, and rolls back; beside rsync -Aa --delete into an empty folder, in turn. Root measures on an ext4 of its own, with a
// journal, in a loop-mounted image; others on the folder of temporary files, which it says. BENCH_ROUNDS is the number of warm rounds, and about twice the cold ones;
// BENCH_CACHE=cold leaves the warm ones out, BENCH_CACHE=warm the cold ones.
func benchArchive(l *lab) error {
	if _, err := exec.LookPath("rsync"); err != nil {
		return fmt.Errorf("%w: install rsync", err)
	}
	disk, release, err := l.privateDisk()
	if err != nil {
		return err
	}
	defer release()
	b := &archiveBench{dir: disk, p: layout.Root(filepath.Join(disk, "srv")).Project("app")}
	if err := b.plant(); err != nil {
		return err
	}
	fmt.Printf("tree: %d files, %d folders, %.0f MB\n", len(b.files), treeFolders, float64(b.bytes)/1e6)
	warm, cold := treeRounds, coldRounds
	if n, err := strconv.Atoi(os.Getenv("BENCH_ROUNDS")); err == nil && n > 0 {
		warm, cold = n, (n+1)/2
	}
	if os.Getenv("BENCH_CACHE") != "cold" {
		if err := b.series(false, warm); err != nil {
			return err
		}
	}
	if os.Getenv("BENCH_CACHE") == "warm" {
		return nil
	}
	if os.Geteuid() != 0 {
		fmt.Println("cold cache: not measured, only root may drop caches")
		return nil
	}
	return b.series(true, cold)
}

// privateDisk returns an empty file system for the benchmark, and what gives it back.
func (l *lab) privateDisk() (dir string, release func(), err error) {
	plain := func(why string) (string, func(), error) {
		fmt.Printf("NOT on a private ext4 (%s): measured on %s, whose file system may do otherwise\n", why, l.dir)
		return l.dir, func() {}, nil
	}
	if os.Geteuid() != 0 {
		return plain("a loop mount needs root")
	}
	image, mnt := l.path("disk.img"), l.path("mnt")
	f, err := os.Create(image)
	if err != nil {
		return "", nil, err
	}
	err = f.Truncate(12 << 30)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(mnt, 0o755); err != nil {
		return "", nil, err
	}
	if err := l.sh(l.dir, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image); err != nil {
		return plain("no mkfs.ext4")
	}
	if err := l.sh(l.dir, "mount", "-o", "loop,noatime", image, mnt); err != nil {
		return plain("no loop device")
	}
	fmt.Println("on a private ext4 with a journal, loop-mounted")
	return mnt, func() { _ = l.sh(l.dir, "umount", mnt) }, nil
}

type archiveBench struct {
	dir   string
	p     layout.Project
	files []string
	bytes int64
	n     int // archives made
	word  []string
	rnd   *rand.Rand
}

// plant makes the tree: many small files, few large ones, text that compresses like code.
func (b *archiveBench) plant() error {
	b.rnd = rand.New(rand.NewPCG(1, 2))
	for range 4096 {
		w := make([]byte, 3+b.rnd.IntN(8))
		for i := range w {
			w[i] = byte('a' + b.rnd.IntN(26))
		}
		b.word = append(b.word, string(w))
	}
	dirs := []string{b.p.Live()}
	for i := range treeFolders {
		parent := dirs[b.rnd.IntN(len(dirs))]
		if strings.Count(parent[len(b.p.Live()):], "/") > 7 {
			parent = dirs[0]
		}
		d := filepath.Join(parent, fmt.Sprintf("%s-%d", b.word[b.rnd.IntN(len(b.word))], i))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		dirs = append(dirs, d)
	}
	sizes := make([]float64, treeFiles)
	sum := 0.0
	for i := range sizes {
		u := b.rnd.ExpFloat64()
		sizes[i] = 200 + u*u*u*u*60
		sum += sizes[i]
	}
	for i := range sizes {
		p := filepath.Join(dirs[b.rnd.IntN(len(dirs))], fmt.Sprintf("%s-%d.js", b.word[b.rnd.IntN(len(b.word))], i))
		size := int(sizes[i] / sum * treeBytes)
		if err := os.WriteFile(p, b.text(size), 0o644); err != nil {
			return err
		}
		b.files = append(b.files, p)
		b.bytes += int64(size)
	}
	return b.settle(false)
}

func (b *archiveBench) text(size int) []byte {
	out := make([]byte, 0, size+16)
	for len(out) < size {
		out = append(append(out, b.word[b.rnd.IntN(len(b.word))]...), " (){}=;.\n"[b.rnd.IntN(9)])
	}
	return out[:size]
}

// settle leaves nothing to write from before, and the times of changes out of doubt.
func (b *archiveBench) settle(cold bool) error {
	if err := syncFS(b.dir); err != nil {
		return err
	}
	if cold {
		if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
			return err
		}
	}
	time.Sleep(200 * time.Millisecond)
	return nil
}

func syncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// change rewrites one file in a hundred.
func (b *archiveBench) change() error {
	b.n++
	for i := b.n % 100; i < len(b.files); i += 100 {
		st, err := os.Stat(b.files[i])
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.files[i], b.text(int(st.Size())), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *archiveBench) make(s *archive.Store) (archive.Archive, error) {
	b.n++
	return s.Make(context.Background(), archive.MakeRequest{Facts: archive.Facts{
		ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", b.n), At: time.Unix(int64(1_700_000_000+b.n), 0).UTC(),
	}})
}

// round is what one turn of the series measures, in the order of rowNames.
type round [11]time.Duration

var rowNames = [...]string{
	"rsync -Aa --delete into an empty folder", "  the same and syncfs", "first archive (durable)", "archive, 1 % changed (durable)",
	"rollback (durable, proved)", "compaction, in the background", "restore of a packed archive (durable, proved)",
	"  the rollback until the tree was live, durably",
	"floor: find -printf '%m %u %g'", "floor: every file read once, by 32, in the order of inodes",
	"the sync before a commit, 1 % of the tree rewritten",
}

// readAll reads every file in the order of inodes, which is about that of the disk, with as many readers as help.
func (b *archiveBench) readAll() error {
	type file struct {
		path string
		ino  uint64
	}
	var all []file
	for _, p := range b.files {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		all = append(all, file{p, st.Ino})
	}
	slices.SortFunc(all, func(x, y file) int { return cmp.Compare(x.ino, y.ino) })
	var next atomic.Int64
	var readers sync.WaitGroup
	errs := make(chan error, 32)
	for range cap(errs) {
		readers.Go(func() {
			buf := make([]byte, 256<<10)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				f, err := os.Open(all[i].path)
				if err == nil {
					_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	readers.Wait()
	close(errs)
	return <-errs
}

func (b *archiveBench) series(cold bool, rounds int) error {
	name := "warm cache"
	if cold {
		name = "cold cache"
	}
	fmt.Printf("-- %s, %d rounds\n", name, rounds)
	var all []round
	for i := range rounds {
		// Packing and unpacking are long, and measured once.
		r, err := b.round(cold, i == rounds-1 && os.Getenv("BENCH_CACHE") != "cold")
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	for j, n := range rowNames {
		var times []time.Duration
		var plain, durable []float64
		for _, r := range all {
			if r[j] == 0 {
				continue
			}
			times = append(times, r[j])
			plain = append(plain, r[j].Seconds()/r[0].Seconds())
			durable = append(durable, r[j].Seconds()/r[1].Seconds())
		}
		if len(times) == 0 {
			continue // not measured this time
		}
		slices.Sort(times)
		slices.Sort(plain)
		slices.Sort(durable)
		m := len(times) / 2
		fmt.Printf("%-46s median %8.1f ms (%.1f to %.1f)   of rsync %.4f   of rsync and syncfs %.4f\n",
			n, ms(times[m]), ms(times[0]), ms(times[len(times)-1]), plain[m], durable[m])
	}
	return nil
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

// round measures everything once, each from a file system that has nothing left to write; beside each is the load of the
// machine, over the last 1, 5 and 15 minutes. It is long as it is one list of measurements, each of which begins with what the one before it left.
func (b *archiveBench) round(cold, long bool) (r round, err error) {
	ctx := context.Background()
	step := func(into *time.Duration, f func() error) {
		if err == nil {
			err = b.settle(cold)
		}
		if err != nil {
			return
		}
		before := load()
		*into, err = timed(f)
		for i := range r {
			if into == &r[i] {
				fmt.Printf("   %-46s %9.1f ms   load %s, then %s\n", rowNames[i], ms(*into), before, load())
			}
		}
	}
	do := func(f func() error) {
		if err == nil {
			err = f()
		}
	}
	to := filepath.Join(b.dir, "rsync")
	step(&r[0], func() error { return exec.Command("rsync", "-Aa", "--delete", b.p.Live()+"/", to+"/").Run() })
	do(func() error { r[1], err = timed(func() error { return syncFS(b.dir) }); r[1] += r[0]; return err })
	do(func() error { return os.RemoveAll(to) })

	step(&r[8], func() error { return exec.Command("find", b.p.Live(), "-printf", "%m %u %g\n").Run() })
	step(&r[9], b.readAll)

	s := archive.New(b.p, archive.Config{})
	var a archive.Archive
	step(&r[2], func() error { a, err = b.make(s); return err })
	do(func() error { return s.SetVerdict(a.ID, archive.Good) })
	first := a.ID
	do(func() error { _, err := s.Compact(ctx, archive.Policy{Keep: 3}); return err }) // a spare tree
	do(b.change)
	// What a deployment pays between its last step and the move of the branch: the pipeline syncs what was written meanwhile.
	do(func() error {
		r[10], err = timed(func() error { return syncFS(b.dir) })
		fmt.Printf("   %-46s %9.1f ms\n", rowNames[10], ms(r[10]))
		return err
	})
	step(&r[3], func() error { a, err = b.make(s); return err })
	do(func() error {
		if want := int64(len(b.files)/100 + 1); err == nil && a.Made.Copied > want {
			return fmt.Errorf("copied %d files, %d have changed", a.Made.Copied, want)
		}
		return err
	})
	do(b.change)
	step(&r[4], func() error {
		got, err := s.Rollback(ctx, a.ID)
		r[7] = got.Back
		if err == nil && !got.Proof.Exact() {
			err = fmt.Errorf("not exact: %v", got.Proof.Differences)
		}
		return err
	})
	do(func() error { return s.SetVerdict(a.ID, archive.RolledBack) })
	if !long {
		do(s.Wait)
		do(func() error { return os.RemoveAll(b.p.Archives()) })
		return r, err
	}
	do(func() error { a, err = b.make(s); return err })
	do(func() error { return s.SetVerdict(a.ID, archive.Good) })
	step(&r[5], func() error {
		c, err := s.Compact(ctx, archive.Policy{Keep: 3})
		if err == nil && len(c.Packed) != 1 {
			err = fmt.Errorf("%d archives were packed, 1 was to be", len(c.Packed))
		}
		return err
	})
	step(&r[6], func() error {
		got, err := s.Restore(ctx, first, nil)
		if err == nil && !got.Proof.Exact() {
			err = fmt.Errorf("not exact: %v", got.Proof.Differences)
		}
		return err
	})
	do(s.Wait)
	do(func() error { return os.RemoveAll(b.p.Archives()) })
	return r, err
}
