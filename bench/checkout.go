package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"corpus-git/git/checkout"
	"corpus-git/git/store"
	"corpus-git/internal/vfs"
)

const (
	checkoutFiles  = 70_000
	checkoutRounds = 3
	changeRounds   = 11
	toldRounds     = 21
)

// checkoutBench is a bare repository of two commits, and two working copies: ours, and the peer's, a clone that borrows the same packs.
type checkoutBench struct {
	*lab
	disk, bare, ours, peer string
	first, second          string
	files                  int
	db                     *store.DB
}

// benchCheckout brings 70,000 files of a bare repository, or those of the repositories that -packs names, into a working copy, then one changed file, then nothing; beside git checkout with
// two workers and as shipped, git reset --hard and git status. Files are in the page cache; root measures on an
// ext4 of its own. What is synced is measured apart: git syncs no file of a checkout. What making as many files costs by itself, and with inflating what
// goes into them, is printed beside the first checkout.
func benchCheckout(l *lab) error {
	return l.withCheckouts(func(b *checkoutBench) error {
		if err := b.firstCheckouts(); err != nil {
			return err
		}
		return b.changes()
	})
}

// benchOneFile is benchCheckout without the first checkouts, which are made and not measured.
func benchOneFile(l *lab) error {
	return l.withCheckouts(func(b *checkoutBench) error {
		if err := errors.Join(b.fresh(0), b.checkOut(b.first, nil, false), b.git("checkout", "-q", "-f", b.first), b.settle()); err != nil {
			return err
		}
		return b.changes()
	})
}

func (l *lab) withCheckouts(run func(*checkoutBench) error) error {
	disk, release, err := l.privateDisk()
	if err != nil {
		return err
	}
	defer release()
	b := &checkoutBench{lab: l, disk: disk, bare: filepath.Join(disk, "bare.git"), ours: filepath.Join(disk, "ours"), peer: filepath.Join(disk, "peer")}
	b.files = checkoutFiles
	if l.packs != "" {
		b.first, b.second, b.files, err = l.plantReal(b.bare, strings.Split(l.packs, ","))
	} else {
		b.first, b.second, err = l.plantCommits(b.bare)
	}
	if err != nil {
		return err
	}
	if b.db, err = store.Open(b.bare, store.Options{}); err != nil {
		return err
	}
	defer b.db.Close()
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) // as cmd/corpus-git does
	}
	if err := l.printGitSettings(b.bare); err != nil {
		return err
	}
	return run(b)
}

func (b *checkoutBench) checkOut(c string, seen *vfs.Snapshot, durable bool) error {
	_, err := checkout.Sync(context.Background(), checkout.Request{
		Objects: b.db, Repo: b.bare, Commit: plumbing.NewHash(c), Dir: b.ours, Branch: "refs/heads/master", Workers: 2, NoSync: !durable, Snapshot: seen})
	return err
}

func (b *checkoutBench) git(args ...string) error { return b.sh(b.peer, "git", args...) }
func (b *checkoutBench) settle() error            { return syncFS(b.disk) }

// fresh takes both working copies away, and clones the peer's.
func (b *checkoutBench) fresh(int) error {
	if err := errors.Join(os.RemoveAll(b.ours), os.RemoveAll(b.peer)); err != nil {
		return err
	}
	if err := b.sh(b.disk, "git", "clone", "-q", "-s", "-n", b.bare, b.peer); err != nil {
		return err
	}
	return b.settle()
}

func (b *checkoutBench) firstCheckouts() error {
	fmt.Printf("-- first checkout of %d files, warm cache, load %s\n", b.files, load())
	checkout := func() error {
		return b.git("-c", "checkout.workers=2", "-c", "checkout.thresholdForParallelism=1", "checkout", "-q", "-f", b.first)
	}
	ours := func() error { return b.checkOut(b.first, nil, false) }
	if err := compareBusy(checkoutRounds, b.fresh, b.settle, "corpus-git", ours, "git checkout, 2 workers", checkout); err != nil {
		return err
	}
	if err := sameTrees(b.ours, b.peer); err != nil {
		return err
	}
	if b.packs == "" { // whose files are all stored whole
		if err := b.floor(checkout); err != nil {
			return err
		}
	}
	if err := compareBusy(checkoutRounds, b.fresh, b.settle, "corpus-git", ours, "git checkout, as shipped (1 worker)", func() error {
		return b.git("checkout", "-q", "-f", b.first)
	}); err != nil {
		return err
	}
	_, err := compareApart(1, b.fresh, b.settle, "corpus-git, durable", func() error { return b.checkOut(b.first, nil, true) }, "git checkout, 2 workers, and syncfs", func() error {
		return errors.Join(checkout(), b.settle())
	})
	return err
}

// floor measures what files cost by themselves, and with inflating what goes into them, beside the peer's checkout.
func (b *checkoutBench) floor(checkout func() error) error {
	files, err := b.storedFiles(b.bare, b.first, b.db)
	if err != nil {
		return err
	}
	if _, err := compareApart(1, b.fresh, b.settle, "only making such files, 2 threads", func() error { return makeFiles(b.ours, files, 2, false) },
		"git checkout, 2 workers", checkout); err != nil {
		return err
	}
	if _, err := compareApart(1, b.fresh, b.settle, "only inflating and making them, 2 threads", func() error { return makeFiles(b.ours, files, 2, true) },
		"git checkout, 2 workers", checkout); err != nil {
		return err
	}
	return sameTrees(b.ours, b.peer)
}

func (b *checkoutBench) changes() error {
	fmt.Printf("-- one changed file of %d, load %s\n", b.files, load())
	commits := []string{b.second, b.first}
	step := 0
	next := func(i int) error { step = i; return b.settle() }
	one := func(durable bool) func() error {
		return func() error { return b.checkOut(commits[step%2], nil, durable) }
	}
	var seen *vfs.Snapshot
	walk := func(i int) (err error) {
		if err = next(i); err == nil {
			seen, err = walkTree(b.ours)
		}
		runtime.GC() // what this walk leaves to the collector is not the checkout's
		return err
	}
	told := func() error { return b.checkOut(commits[step%2], seen, false) }
	plainCheckout := func() error { return b.git("checkout", "-q", "-f", commits[step%2]) }
	reset := func() error { return b.git("reset", "-q", "--hard", commits[step%2]) }
	for _, peer := range []struct {
		name string
		run  func() error
	}{{"git checkout -f", plainCheckout}, {"git reset --hard", reset}} {
		if err := compareBusy(toldRounds, walk, b.settle, "corpus-git, told what the archive has seen", told, peer.name, peer.run); err != nil {
			return err
		}
	}
	if _, err := compare(changeRounds, next, "corpus-git", one(false), "git reset --hard", reset); err != nil {
		return err
	}
	if _, err := compare(changeRounds, next, "corpus-git, durable", one(true), "git checkout -f", plainCheckout); err != nil {
		return err
	}
	if err := sameTrees(b.ours, b.peer); err != nil {
		return err
	}

	fmt.Printf("-- nothing changed, load %s\n", load())
	if _, err := compare(changeRounds, func(int) error { return b.settle() }, "corpus-git", one(false), "find -printf, which stats each file", func() error {
		return exec.Command("find", b.ours, "-printf", "%T@").Run()
	}); err != nil {
		return err
	}
	_, err := compare(changeRounds, func(int) error { return b.settle() }, "corpus-git", one(false), "git status", func() error { return b.git("status", "--porcelain") })
	return err
}

// compareBusy is compareApart, and prints the processor time of both sides, too: of this process, and of the programs that the peer runs. A host
// that takes the processors away makes the one longer and not the other.
func compareBusy(n int, before func(i int) error, between func() error, oursName string, ours func() error, peerName string, peer func() error) error {
	var mine, theirs []float64
	metered := func(who int, run func() error, out *[]float64) func() error {
		return func() error {
			var a, b unix.Rusage
			err := errors.Join(unix.Getrusage(who, &a), run(), unix.Getrusage(who, &b))
			*out = append(*out, float64(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano())/1e6)
			return err
		}
	}
	if _, err := compareApart(n, before, between, oursName, metered(unix.RUSAGE_SELF, ours, &mine), peerName, metered(unix.RUSAGE_CHILDREN, peer, &theirs)); err != nil {
		return err
	}
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = mine[i+1] / theirs[i+1] // the first is not counted
	}
	mine, theirs = mine[1:], theirs[1:]
	for _, l := range [][]float64{mine, theirs, ratios} {
		slices.Sort(l)
	}
	fmt.Printf("processor time: %.1f ms (%.1f to %.1f) and %.1f ms (%.1f to %.1f), ratio %.3f\n",
		mine[n/2], mine[0], mine[n-1], theirs[n/2], theirs[0], theirs[n-1], ratios[n/2])
	return nil
}

// plantCommits makes a bare repository of one pack with two commits that differ in one file: 70,000 files of words, 2 kB on average, in
// 7,000 folders, as in the benchmark of the archives.
func (l *lab) plantCommits(bare string) (first, second string, err error) {
	if err := l.sh(filepath.Dir(bare), "git", "init", "-q", "--bare", "-b", "master", bare); err != nil {
		return "", "", err
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stderr = bare, l.env(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	w := bufio.NewWriterSize(in, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	var words [4096]string
	for i := range words {
		words[i] = strconv.FormatUint(rnd.Uint64()>>(8+rnd.IntN(40)), 36)
	}
	blob := func(mark int, text string) { fmt.Fprintf(w, "blob\nmark :%d\ndata %d\n%s\n", mark, len(text), text) }
	commit := func(msg string) {
		fmt.Fprintf(w, "commit refs/heads/master\ncommitter b <b@x> 1700000000 +0000\ndata %d\n%s\n", len(msg), msg)
	}
	var text []byte
	for i := range checkoutFiles {
		text = text[:0]
		for size := 16 << rnd.IntN(10); len(text) < size; {
			text = append(append(text, words[rnd.IntN(len(words))]...), " \n"[rnd.IntN(9)/8])
		}
		blob(i+1, string(text))
	}
	blob(checkoutFiles+1, "changed\n")
	commit("first")
	for i := range checkoutFiles {
		fmt.Fprintf(w, "M 100644 :%d d%d/e%d/f%d.txt\n", i+1, i%23, i%303, i)
	}
	commit("second")
	fmt.Fprintf(w, "M 100644 :%d d7/e7/f7.txt\n", checkoutFiles+1)
	if err := errors.Join(w.Flush(), in.Close(), cmd.Wait()); err != nil {
		return "", "", fmt.Errorf("git fast-import: %w", err)
	}
	if err := l.sh(bare, "git", "repack", "-qad", "--threads=2", "--window=4"); err != nil {
		return "", "", err
	}
	rev := exec.Command("git", "rev-parse", "master~1", "master")
	rev.Dir, rev.Env = bare, l.env()
	out, err := rev.Output()
	first, second, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first, second, err
}

// walkTree sees what an archive does, of a tree that nobody else uses.
func walkTree(dir string) (*vfs.Snapshot, error) {
	type name struct {
		path string
		f    vfs.FileFacts
	}
	var all []name
	begun := time.Now()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		st, err := vfs.OS{}.Lstat(p)
		all = append(all, name{p[len(dir)+1:], vfs.FileFacts{
			Mode: st.Mode, UID: st.UID, GID: st.GID, Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mtime: st.Mtime, Ctime: st.Ctime,
		}})
		return err
	})
	slices.SortFunc(all, func(a, b name) int { return strings.Compare(a.path, b.path) })
	return &vfs.Snapshot{Begun: begun, Each: func(yield func(string, vfs.FileFacts) bool) {
		for i := range all {
			if !yield(all[i].path, all[i].f) {
				return
			}
		}
	}}, err
}

// sameTrees compares two working copies.
func sameTrees(a, b string) error {
	out, err := exec.Command("diff", "-rq", "--no-dereference", "-x", ".git", a, b).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s and %s differ: %w\n%.500s", a, b, err, out)
	}
	return nil
}
