package checkout

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"corpus-git/internal/testutil/gittest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// age gives everything in a working copy a time in the past and runs a checkout to record it: after that everything that can be skipped is
// skipped, however coarse the file system's clock is.
func (r *repo) age(c plumbing.Hash) {
	r.T.Helper()
	past := time.Now().Add(-time.Hour)
	times := []unix.Timespec{unix.NsecToTimespec(past.UnixNano()), unix.NsecToTimespec(past.UnixNano())}
	require.NoError(r.T, filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == filepath.Join(r.dir, gitDir) {
			return cmpErr(err, fs.SkipDir)
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, p, times, unix.AT_SYMLINK_NOFOLLOW)
	}))
	r.sync(c)
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// open opens the working copy as a Sync does, until end.
func (r *repo) open() (root int, g *gitFolder, in *indexFile, end func()) {
	r.T.Helper()
	root, err := openRoot(r.dir)
	require.NoError(r.T, err)
	g, err = openGit(context.Background(), root, &Request{Dir: r.dir})
	require.NoError(r.T, err)
	in, err = g.readIndex()
	require.NoError(r.T, err)
	return root, g, in, func() { g.close(); closeDir(root) }
}

// notSkipped returns the paths that need a comparison; ok is false if every folder is walked.
func (r *repo) notSkipped() (paths []string, ok bool) {
	r.T.Helper()
	root, g, in, end := r.open()
	defer end()
	x := g.parse(in)
	p := &planner{ctx: context.Background(), old: x.entries, written: in.written, counted: in.counts}
	require.NoError(r.T, p.scan(root, 2))
	for _, i := range p.dirty {
		paths = append(paths, x.entries[i].Path)
	}
	return paths, p.scanned
}

func TestSkipped(t *testing.T) {
	all := []string{"top", "dir/a", "dir/b", "dir/sub/c", "dir/sub/run", "other/x", "other/deep/er/y"}
	for name, c := range map[string]struct {
		change     func(t *testing.T, dir string)
		notSkipped []string
		local      []string
		over       []string
		untracked  int
	}{
		"nothing": {change: func(*testing.T, string) {}},
		"edited, of the same size and time": {
			change: func(t *testing.T, dir string) {
				fi, err := os.Lstat(filepath.Join(dir, "dir/sub/c"))
				require.NoError(t, err)
				gittest.WriteFile(t, filepath.Join(dir, "dir/sub/c"), "DIR/SUB/C")
				require.NoError(t, os.Chtimes(filepath.Join(dir, "dir/sub/c"), fi.ModTime(), fi.ModTime()))
			},
			notSkipped: []string{"dir/sub/c"}, local: []string{"dir/sub/c"},
		},
		"removed": {
			change:     func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "dir/b"))) },
			notSkipped: []string{"dir/a", "dir/b"}, local: []string{"dir/b"},
		},
		"a bit lost": {
			change:     func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "dir/sub/run"), 0o644)) },
			notSkipped: []string{"dir/sub/run"}, local: []string{"dir/sub/run"},
		},
		"a file is a link": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Rename(filepath.Join(dir, "other/x"), filepath.Join(dir, "moved")))
				require.NoError(t, os.Symlink("../moved", filepath.Join(dir, "other/x")))
			},
			notSkipped: []string{"other/deep/er/y", "other/x"}, local: []string{"other/x"}, untracked: 1,
		},
		"a folder is a link to where it went": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Rename(filepath.Join(dir, "dir/sub"), filepath.Join(dir, "moved")))
				require.NoError(t, os.Symlink("../moved", filepath.Join(dir, "dir/sub")))
			},
			notSkipped: []string{"dir/a", "dir/sub/c", "dir/sub/run"}, local: []string{"dir/sub/c", "dir/sub/run"}, over: []string{"dir/sub"}, untracked: 1,
		},
		"a folder missing": {
			change:     func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "other/deep"))) },
			notSkipped: []string{"other/deep/er/y", "other/x"}, local: []string{"other/deep/er/y"},
		},
		"a file is a folder": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Remove(filepath.Join(dir, "dir/a")))
				require.NoError(t, os.Mkdir(filepath.Join(dir, "dir/a"), 0o755))
			},
			notSkipped: []string{"dir/a"}, local: []string{"dir/a"},
		},
		"something new": {
			change:     func(t *testing.T, dir string) { gittest.WriteFile(t, filepath.Join(dir, "other/deep/new"), "n") },
			notSkipped: []string{"other/deep/er/y"}, untracked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			for _, n := range all {
				r.Write(n, n)
			}
			require.NoError(t, os.Chmod(filepath.Join(r.Dir, "dir/sub/run"), 0o755))
			one := r.Commit("one")
			r.Write("top", "changed")
			two := r.Commit("two")
			r.sync(one)
			r.age(one)
			got, ok := r.notSkipped()
			require.True(t, ok)
			require.Empty(t, got)
			c.change(t, r.dir)
			got, ok = r.notSkipped()
			require.True(t, ok)
			require.Subset(t, c.notSkipped, got)
			for _, p := range c.local {
				require.Contains(t, got, p)
			}
			st := r.sync(two)
			require.Equal(t, c.local, st.LocalChanges.First)
			require.Equal(t, c.over, st.Overwritten.First)
			require.Equal(t, c.untracked, st.Untracked)
			require.Equal(t, len(all), st.Written+st.Unchanged)
			require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain", "--untracked-files=no"))
			// Untracked files are still known if nothing is walked.
			r.age(two)
			require.Equal(t, c.untracked, r.sync(two).Untracked)
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "moved")))
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "other/deep/new")))
			require.Zero(t, r.sync(two).Untracked)
			r.clean(two)
		})
	}
}

// Changes of the index by another program, or wrong counts beside it, only cost a walk.
func TestCountsBelongToTheirIndex(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	r.Write("dir/b", "b")
	one := r.Commit("one")
	r.sync(one)
	gittest.WriteFile(t, filepath.Join(r.dir, "dir/mine"), "untracked")
	r.age(one)
	_, ok := r.notSkipped()
	require.True(t, ok)
	file := filepath.Join(r.dir, gitDir, countsFile)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(good), "1 \"dir/\"\n")
	for name, bad := range map[string]string{
		"empty": "", "cut": string(good[:len(good)-4]), "another version": strings.Replace(string(good), "memo 1", "memo 2", 1),
		"no time": strings.Replace(string(good), " ", "x", 3), "no number": strings.Replace(string(good), "1 \"dir", "one \"dir", 1),
		"twice": strings.Replace(string(good), "1 \"dir/\"\n", "1 \"dir/\"\n1 \"dir/\"\n", 1), "no path": strings.Replace(string(good), "1 \"dir/\"", "1 dir/", 1),
		"another index": strings.Replace(string(good), "\n", "\n0000000000000000000000000000000000000000\n", 1), "damaged": strings.Replace(string(good), "1 \"dir", "2 \"dir", 1),
		"half written": string(good[:len(good)/2]), "nothing of it written": strings.Repeat("\x00", len(good)),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(bad), 0o644))
			_, ok := r.notSkipped()
			require.False(t, ok)
			require.Equal(t, 1, r.sync(one).Untracked)
			_, ok = r.notSkipped()
			require.True(t, ok)
		})
	}
	gittest.Git(t, r.dir, "update-index", "--assume-unchanged", "a")
	_, ok = r.notSkipped()
	require.False(t, ok, "git wrote the index")
	gittest.WriteFile(t, filepath.Join(r.dir, "a"), "changed")
	r.Write("dir/b", "new")
	two := r.Commit("two")
	require.Equal(t, []string{"a"}, r.sync(two).LocalChanges.First, "assumed is not known")
	require.Equal(t, "H", gittest.Git(t, r.dir, "ls-files", "-v", "a")[:1])
}

// A change of line ends affects files in folders that are otherwise the same.
func TestLineEndsAreNotSkipped(t *testing.T) {
	r := newRepo(t)
	r.Write("dir/sub/a", "1\n2\n")
	r.Write("top", "t\n")
	one := r.Commit("one")
	r.Write(".gitattributes", "dir/sub/* eol=crlf\n")
	two := r.Commit("two")
	for _, c := range []plumbing.Hash{one, two, two, one, two} {
		r.sync(c)
		r.age(c)
		r.clean(c)
	}
}

// A checkout that walks only what is not skipped has the same result as one that walks everything, whatever happened to the working copy.
func TestSkippingAgreesWithWalk(t *testing.T) {
	for seed := range int64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(seed))
			r := newRepo(t)
			walked, fromSnapshot, hurt := *r, *r, *r
			walked.dir = filepath.Join(t.TempDir(), "walked")
			fromSnapshot.dir = filepath.Join(t.TempDir(), "with")
			hurt.dir = filepath.Join(t.TempDir(), "hurt")
			var older []byte
			var commits []plumbing.Hash
			for range 6 {
				for range 8 {
					mutate(t, r.Dir, rnd)
				}
				commits = append(commits, r.Commit("c"))
			}
			fast := 0
			for range 20 {
				c := commits[rnd.Intn(len(commits))]
				for range rnd.Intn(3) {
					n := rnd.Int63()
					mutate(t, r.dir, rand.New(rand.NewSource(n)))
					mutate(t, walked.dir, rand.New(rand.NewSource(n)))
					mutate(t, fromSnapshot.dir, rand.New(rand.NewSource(n)))
					mutate(t, hurt.dir, rand.New(rand.NewSource(n)))
				}
				if rnd.Intn(4) == 0 { // an operator's git writes the index
					for _, x := range []*repo{r, &walked, &fromSnapshot, &hurt} {
						if _, err := os.Lstat(filepath.Join(x.dir, gitDir, "index")); err == nil {
							gittest.Git(t, x.dir, "add", "-A")
						}
					}
				}
				if paths, ok := r.notSkippedIfAny(); ok && len(paths) == 0 {
					fast++
				}
				a, errA := Sync(context.Background(), r.request(c))
				_ = os.Remove(filepath.Join(walked.dir, gitDir, countsFile))
				b, errB := Sync(context.Background(), walked.request(c))
				req := fromSnapshot.request(c)
				req.Snapshot = snapshotOf(t, fromSnapshot.dir)
				d, errD := Sync(context.Background(), req)
				older = damageCounts(t, filepath.Join(hurt.dir, gitDir, countsFile), older, rnd)
				req = hurt.request(c)
				req.Snapshot = snapshotOf(t, hurt.dir)
				e, errE := Sync(context.Background(), req)
				if errB != nil {
					require.EqualError(t, errA, errB.Error())
					require.EqualError(t, errD, errB.Error())
					require.EqualError(t, errE, errB.Error())
					for _, x := range []*repo{r, &walked, &fromSnapshot, &hurt} {
						require.NoError(t, os.RemoveAll(x.dir))
						x.sync(c)
					}
				} else {
					require.NoError(t, errA)
					require.Equal(t, b, a)
					require.NoError(t, errD)
					require.Equal(t, b, d)
					require.NoError(t, errE)
					require.Equal(t, b, e)
				}
				want := manifest(t, walked.dir)
				for _, x := range []*repo{r, &walked, &fromSnapshot, &hurt} {
					require.Equal(t, want, manifest(t, x.dir))
					require.Empty(t, gittest.Git(t, x.dir, "status", "--porcelain", "--untracked-files=no"))
					x.age(c)
				}
			}
			require.NotZero(t, fast)
		})
	}
}

// damageCounts does one of the things to the folder counts that a crash, another version or a bad disk may do, or nothing; older is an earlier
// version of the counts.
func damageCounts(t *testing.T, file string, older []byte, rnd *rand.Rand) (now []byte) {
	t.Helper()
	now, err := os.ReadFile(file)
	if err != nil {
		return older
	}
	bad := bytes.Clone(now)
	switch rnd.Intn(7) {
	case 0:
		require.NoError(t, os.Remove(file))
		return now
	case 1:
		bad = older
	case 2:
		bad[rnd.Intn(len(bad))] ^= 1 << rnd.Intn(8)
	case 3:
		bad = bad[:rnd.Intn(len(bad))]
	case 4:
		bad = bytes.Replace(bad, []byte("memo 1"), []byte("memo 0"), 1)
	case 5:
		bad = make([]byte, len(bad))
	}
	require.NoError(t, os.WriteFile(file, bad, 0o644))
	return now
}

func (r *repo) notSkippedIfAny() (paths []string, ok bool) {
	if _, err := os.Lstat(filepath.Join(r.dir, gitDir, "index")); err != nil {
		return nil, false
	}
	return r.notSkipped()
}

// A refreshed index is younger than files that may have changed unnoticed: they are still compared.
func TestRefreshForgetsRacyFiles(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	r.Write("b", "b")
	one := r.Commit("one")
	r.sync(one)
	r.age(one)
	// b gets the index's own time, and other content that its facts do not show.
	fi, err := os.Lstat(filepath.Join(r.dir, ".git/index"))
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "b"), fi.ModTime(), fi.ModTime()))
	r.sync(one)
	index := filepath.Join(r.dir, ".git/index")
	require.NoError(t, os.Chtimes(index, fi.ModTime(), fi.ModTime()))
	require.NoError(t, os.Chmod(filepath.Join(r.dir, "a"), 0o640))
	n, err := Refresh(context.Background(), r.dir)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	data, err := os.ReadFile(index)
	require.NoError(t, err)
	x, err := readList(data, false)
	require.NoError(t, err)
	require.NotZero(t, x.entries[0].Stat)
	require.Zero(t, x.entries[1].Stat)
	require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain"))
	r.sync(one)
	r.clean(one)
}
