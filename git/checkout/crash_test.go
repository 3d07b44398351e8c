package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/internal/draw"
	"corpus-git/internal/testutil/gittest"
	"corpus-git/internal/trap"
)

// TestMain also runs the checkout of these tests: in its own process it can be killed at any of its calls.
func TestMain(m *testing.M) {
	if err := trap.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if what := os.Getenv("WORKTREE_TEST_SYNC"); what != "" {
		if err := syncAlone(strings.Split(what, "\n")); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func syncAlone(args []string) error {
	objs, err := store.Open(args[0], store.Options{})
	if err != nil {
		return err
	}
	_, err = Sync(context.Background(), Request{Objects: objs, Repo: args[0], Commit: plumbing.NewHash(args[2]), Dir: args[1], Branch: "refs/heads/master"})
	return errors.Join(err, objs.Close())
}

// trapped is a checkout from one commit to another, which dies or fails at a call.
type trapped struct {
	*repo
	one, two     plumbing.Hash
	want         map[plumbing.Hash]string // the manifests
	fromSnapshot bool                     // whether the previous checkout was given a snapshot
	base         string                   // a working copy of one
}

// newTrapped has what a checkout can encounter: files that change, appear, disappear and stay, another mode, links, a folder that becomes
// a file and the other way round, a new folder, and a file that git does not track.
func newTrapped(t *testing.T, dir string) *trapped {
	r := newRepo(t)
	r.dir = filepath.Join(dir, "project")
	r.Write("same", "same")
	r.Write("change", "one")
	r.Write("goes/away", "old")
	r.Write("folder/a", "a")
	r.Write("file", "a file")
	require.NoError(t, os.Symlink("same", filepath.Join(r.Dir, "link")))
	x := &trapped{repo: r, one: r.Commit("one"), base: filepath.Join(t.TempDir(), "base"), want: map[plumbing.Hash]string{}}
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "goes")))
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "folder")))
	require.NoError(t, os.Remove(filepath.Join(r.Dir, "file")))
	require.NoError(t, os.Remove(filepath.Join(r.Dir, "link")))
	require.NoError(t, os.Symlink("change", filepath.Join(r.Dir, "link")))
	r.Write("change", "two, and longer")
	r.Write("folder", "a file now")
	r.Write("file/b", "in a folder now")
	r.Write("new/deep/er", strings.Repeat("new", 50))
	x.two = r.Commit("two")
	for _, c := range []plumbing.Hash{x.one, x.two} {
		x.want[c] = manifest(t, r.fresh(c))
	}
	return x
}

// reset makes the working copy that of commit one, durably, with a file of the machine's own.
func (x *trapped) reset() {
	x.T.Helper()
	require.NoError(x.T, os.RemoveAll(x.dir))
	x.durable = true
	x.sync(x.one)
	gittest.WriteFile(x.T, filepath.Join(x.dir, "upload"), "the user's")
	require.NoError(x.T, exec.Command("sync", "-f", x.dir).Run())
}

// run checks commit two out in its own process.
func (x *trapped) run(decide trap.Decide, options ...trap.Option) (string, error) {
	x.T.Helper()
	exe, err := os.Executable()
	require.NoError(x.T, err)
	cmd := exec.CommandContext(x.T.Context(), exe)
	cmd.Env = append(os.Environ(), "WORKTREE_TEST_SYNC="+strings.Join([]string{x.Bare(), x.dir, x.two.String()}, "\n"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	var mu sync.Mutex // what decide has written may be read by the caller afterwards
	require.NoError(x.T, trap.Start(cmd, func(c trap.Call) syscall.Errno {
		mu.Lock()
		defer mu.Unlock()
		return decide(c)
	}, options...))
	err = cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	return out.String(), err
}

// complete checks that the next checkout of a commit completes whatever dir holds, and that every file exists.
func (x *trapped) complete(dir string, c plumbing.Hash, says string) {
	x.T.Helper()
	req := x.request(c)
	req.Dir, req.NoSync = dir, true
	if x.fromSnapshot = !x.fromSnapshot; x.fromSnapshot {
		req.Snapshot = snapshotOf(x.T, dir)
	}
	_, err := Sync(context.Background(), req)
	require.NoError(x.T, err, says)
	x.holds(dir, c, says)
}

// holds checks that dir is a checkout of c, by git and by content.
func (x *trapped) holds(dir string, c plumbing.Hash, says string) {
	x.T.Helper()
	upload := filepath.Join(dir, "upload")
	b, err := os.ReadFile(upload)
	require.NoError(x.T, err, says)
	require.Equal(x.T, "the user's", string(b), says)
	require.Equal(x.T, lines(x.want[c], upload1), lines(manifest(x.T, dir)), says)
	require.Equal(x.T, "?? upload", gittest.Git(x.T, dir, "status", "--porcelain"), says)
	require.Equal(x.T, c.String(), gittest.Git(x.T, dir, "rev-parse", "HEAD"), says)
	require.NoFileExists(x.T, filepath.Join(dir, ".git", indexLock), says)
	fi, err := os.Stat(filepath.Join(dir, ".git/index"))
	require.NoError(x.T, err, says)
	require.Zero(x.T, fi.Mode()&os.ModeSticky, says)
}

const upload1 = `f "upload" false "the user's"`

// lines are those of manifests that are about files and links, sorted: git does not track empty folders.
func lines(manifests ...string) (out []string) {
	for _, m := range manifests {
		for line := range strings.Lines(m) {
			if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "d ") {
				out = append(out, line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// eachOldOrNew checks that every file is either the old one or the new one: nothing is half written under its name.
func (x *trapped) eachOldOrNew(says string) {
	x.T.Helper()
	known := lines(x.want[x.one], x.want[x.two], upload1)
	for _, line := range lines(manifest(x.T, x.dir)) {
		// What a killed process was writing is under a temporary name, or in a folder that it made.
		if !slices.Contains(known, line) && !strings.Contains(line, tmpPrefix) && !strings.HasPrefix(line, `f "new/deep/`) && !strings.HasPrefix(line, `f "file/`) {
			require.Fail(x.T, "neither old nor new", "%s: %s", says, line)
		}
	}
}

// stride reports which calls are tested: each if CORPUS_GIT_CRASH_KILLS is 100 or more; otherwise one in n, chosen
// by the seed.
func stride(t *testing.T, n int) (first, step int) {
	if kills, _ := strconv.Atoi(os.Getenv("CORPUS_GIT_CRASH_KILLS")); kills >= 100 {
		return 1, 1
	}
	first = 1 + draw.Below(t, n)
	t.Logf("every %d. call from the %d.; CORPUS_GIT_CRASH_KILLS=100 takes each", n, first)
	return first, n
}

// faults are the errors that a file system may return, except that something does not exist: the tests above cover that.
func faults() []syscall.Errno {
	return []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EBUSY, syscall.EPERM}
}

// Each call in turn fails, including reads; a disk that is full or read-only stays so. Either the checkout still succeeds,
// and then it is complete, or it reports the disk's error; no file is half written, and the next one completes.
func TestEveryCallMayFail(t *testing.T) {
	t.Parallel()
	x := newTrapped(t, t.TempDir())
	first, step := stride(t, 23)
	rounds := 1
	if step == 1 { // each call fails in every way
		rounds = len(faults())
	}
	for round := range rounds {
		failed := 0
		for n := first; x.failsAt(n, faults()[(n+round)%len(faults())], &failed); n += step {
		}
		require.Positive(t, failed)
	}
}

// failsAt checks commit two out with one failing call. It reports whether there was such a call.
func (x *trapped) failsAt(n int, errno syscall.Errno, failed *int) bool {
	t := x.T
	x.reset()
	calls, at := 0, ""
	out, err := x.run(func(c trap.Call) syscall.Errno {
		if !strings.HasPrefix(c.Path, filepath.Dir(x.dir)) && !strings.HasPrefix(c.Path, x.Dir) {
			return 0
		}
		calls++
		lasting := (errno == syscall.ENOSPC && c.Name == "write") || (errno == syscall.EROFS && !strings.HasPrefix(c.Name, "read"))
		if calls == n || (calls > n && at != "" && lasting && c.Args[2]&uint64(os.O_WRONLY|os.O_RDWR) != 0) {
			at = c.String()
			return errno
		}
		return 0
	}, trap.WithReads)
	if calls < n {
		require.NoError(t, err, out)
		return false
	}
	says := fmt.Sprintf("call %d, %s: %v: %s", n, at, errno, out)
	x.eachOldOrNew(says)
	if err == nil {
		x.holds(x.dir, x.two, says)
		return true
	}
	*failed++
	require.Contains(t, out, errno.Error(), says)
	x.complete(x.dir, x.two, says)
	return true
}

// The process is killed at each call that changes something. No file is half written, and the next checkout, of either commit, completes.
func TestItMayBeKilledAnywhere(t *testing.T) {
	t.Parallel()
	x := newTrapped(t, t.TempDir())
	first, step := stride(t, 9)
	for n := first; ; n += step {
		x.reset()
		calls, at := 0, ""
		_, err := x.run(func(c trap.Call) syscall.Errno {
			if !strings.HasPrefix(c.Path, filepath.Dir(x.dir)) {
				return 0
			}
			if calls++; calls < n {
				return 0
			}
			at = c.String()
			return trap.Kill
		})
		if at == "" {
			require.NoError(t, err)
			require.Greater(t, calls, 50)
			break
		}
		says := fmt.Sprintf("killed at call %d, %s", n, at)
		require.Error(t, err, says)
		x.eachOldOrNew(says)
		x.complete(x.dir, []plumbing.Hash{x.one, x.two}[n%2], says)
	}
}

// The power fails at each call that changes something, with none of what was not synced kept, and with its names kept.
// The next checkout, of either commit, completes what remains; once the checkout has returned, everything is there.
func TestThePowerMayFailAnywhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts file systems")
	}
	disk, err := trap.NewDisk(t.TempDir(), 24)
	if err != nil {
		t.Skipf("no loop mounts here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, disk.Close()) })
	x := newTrapped(t, disk.Dir)
	first, step := stride(t, 11)
	x.reset()
	type cut struct{ image, says string }
	var mu sync.Mutex
	var cuts []cut
	take := func(says string) {
		for _, names := range []bool{false, true} {
			image, err := disk.Cut(names)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			cuts = append(cuts, cut{image, fmt.Sprintf("power fails before %s, names=%v", says, names)})
			mu.Unlock()
		}
	}
	calls := 0
	out, err := x.run(func(c trap.Call) syscall.Errno {
		if strings.HasPrefix(c.Path, disk.Dir) {
			if calls++; calls >= first && (calls-first)%step == 0 {
				take(c.String())
			}
		}
		return 0
	})
	require.NoError(t, err, out)
	take("the end")
	require.Greater(t, calls, 50)
	for i, c := range cuts {
		dir, end, err := disk.Mount(c.image)
		require.NoError(t, err, c.says)
		dir = filepath.Join(dir, "project")
		if i >= len(cuts)-2 {
			x.holds(dir, x.two, c.says)
		} else {
			x.complete(dir, []plumbing.Hash{x.one, x.two}[i/2%2], c.says)
		}
		require.NoError(t, end())
	}
}
