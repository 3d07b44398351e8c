package worktree

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/git/object"
)

// age gives everything in a working copy a time in the past and lets a checkout learn it: what is settled is settled then, however coarse
// the file system's clock is.
func (r *repo) age(c plumbing.Hash) {
	r.t.Helper()
	past := time.Now().Add(-time.Hour)
	times := []unix.Timespec{unix.NsecToTimespec(past.UnixNano()), unix.NsecToTimespec(past.UnixNano())}
	require.NoError(r.t, filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
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
	r.t.Helper()
	root, err := openRoot(r.dir)
	require.NoError(r.t, err)
	g, err = openGit(context.Background(), root, &Request{Dir: r.dir})
	require.NoError(r.t, err)
	in, err = g.readIndex()
	require.NoError(r.t, err)
	return root, g, in, func() { g.close(); closeDir(root) }
}

// unsettled gives the paths that need a closer look; ok is false where every folder is walked.
func (r *repo) unsettled() (paths []string, ok bool) {
	r.t.Helper()
	root, g, in, end := r.open()
	defer end()
	x := g.parse(in)
	p := &planner{ctx: context.Background(), old: x.entries, written: in.written, counted: in.memo}
	require.NoError(r.t, p.settle(root, 2))
	for _, i := range p.dirty {
		paths = append(paths, x.entries[i].path)
	}
	return paths, p.settles
}

func TestSettled(t *testing.T) {
	all := []string{"top", "dir/a", "dir/b", "dir/sub/c", "dir/sub/run", "other/x", "other/deep/er/y"}
	for name, c := range map[string]struct {
		change    func(t *testing.T, dir string)
		unsettled []string
		local     []string
		over      []string
		untracked int
	}{
		"nothing": {change: func(*testing.T, string) {}},
		"edited, of the same size and time": {
			change: func(t *testing.T, dir string) {
				fi, err := os.Lstat(filepath.Join(dir, "dir/sub/c"))
				require.NoError(t, err)
				write(t, filepath.Join(dir, "dir/sub/c"), "DIR/SUB/C")
				require.NoError(t, os.Chtimes(filepath.Join(dir, "dir/sub/c"), fi.ModTime(), fi.ModTime()))
			},
			unsettled: []string{"dir/sub/c"}, local: []string{"dir/sub/c"},
		},
		"removed": {
			change:    func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "dir/b"))) },
			unsettled: []string{"dir/a", "dir/b"}, local: []string{"dir/b"},
		},
		"a bit lost": {
			change:    func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, "dir/sub/run"), 0o644)) },
			unsettled: []string{"dir/sub/run"}, local: []string{"dir/sub/run"},
		},
		"a file is a link": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Rename(filepath.Join(dir, "other/x"), filepath.Join(dir, "moved")))
				require.NoError(t, os.Symlink("../moved", filepath.Join(dir, "other/x")))
			},
			unsettled: []string{"other/deep/er/y", "other/x"}, local: []string{"other/x"}, untracked: 1,
		},
		"a folder is a link to where it went": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Rename(filepath.Join(dir, "dir/sub"), filepath.Join(dir, "moved")))
				require.NoError(t, os.Symlink("../moved", filepath.Join(dir, "dir/sub")))
			},
			unsettled: []string{"dir/a", "dir/sub/c", "dir/sub/run"}, local: []string{"dir/sub/c", "dir/sub/run"}, over: []string{"dir/sub"}, untracked: 1,
		},
		"a folder is gone": {
			change:    func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "other/deep"))) },
			unsettled: []string{"other/deep/er/y", "other/x"}, local: []string{"other/deep/er/y"},
		},
		"a file is a folder": {
			change: func(t *testing.T, dir string) {
				require.NoError(t, os.Remove(filepath.Join(dir, "dir/a")))
				require.NoError(t, os.Mkdir(filepath.Join(dir, "dir/a"), 0o755))
			},
			unsettled: []string{"dir/a"}, local: []string{"dir/a"},
		},
		"something new": {
			change:    func(t *testing.T, dir string) { write(t, filepath.Join(dir, "other/deep/new"), "n") },
			unsettled: []string{"other/deep/er/y"}, untracked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			for _, n := range all {
				r.write(n, n)
			}
			require.NoError(t, os.Chmod(filepath.Join(r.src, "dir/sub/run"), 0o755))
			one := r.commit("one")
			r.write("top", "changed")
			two := r.commit("two")
			r.sync(one)
			r.age(one)
			got, ok := r.unsettled()
			require.True(t, ok)
			require.Empty(t, got)
			c.change(t, r.dir)
			got, ok = r.unsettled()
			require.True(t, ok)
			require.Subset(t, c.unsettled, got)
			for _, p := range c.local {
				require.Contains(t, got, p)
			}
			st := r.sync(two)
			require.Equal(t, c.local, st.LocalChanges.First)
			require.Equal(t, c.over, st.Overwritten.First)
			require.Equal(t, c.untracked, st.Untracked)
			require.Equal(t, len(all), st.Written+st.Unchanged)
			require.Empty(t, git(t, r.dir, "status", "--porcelain", "--untracked-files=no"))
			// What is not tracked is still known when nothing is walked.
			r.age(two)
			require.Equal(t, c.untracked, r.sync(two).Untracked)
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "moved")))
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "other/deep/new")))
			require.Zero(t, r.sync(two).Untracked)
			r.clean(two)
		})
	}
}

// What another program did to the index, or what is wrong with the counts beside it, only costs a walk.
func TestCountsBelongToTheirIndex(t *testing.T) {
	r := newRepo(t)
	r.write("a", "a")
	r.write("dir/b", "b")
	one := r.commit("one")
	r.sync(one)
	write(t, filepath.Join(r.dir, "dir/mine"), "untracked")
	r.age(one)
	_, ok := r.unsettled()
	require.True(t, ok)
	file := filepath.Join(r.dir, gitDir, memoFile)
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
			_, ok := r.unsettled()
			require.False(t, ok)
			require.Equal(t, 1, r.sync(one).Untracked)
			_, ok = r.unsettled()
			require.True(t, ok)
		})
	}
	git(t, r.dir, "update-index", "--assume-unchanged", "a")
	_, ok = r.unsettled()
	require.False(t, ok, "git wrote the index")
	write(t, filepath.Join(r.dir, "a"), "changed")
	r.write("dir/b", "new")
	two := r.commit("two")
	require.Equal(t, []string{"a"}, r.sync(two).LocalChanges.First, "assumed is not known")
	require.Equal(t, "H", git(t, r.dir, "ls-files", "-v", "a")[:1])
}

// A change of line ends is about files in folders that are the same otherwise.
func TestLineEndsUnsettle(t *testing.T) {
	r := newRepo(t)
	r.write("dir/sub/a", "1\n2\n")
	r.write("top", "t\n")
	one := r.commit("one")
	r.write(".gitattributes", "dir/sub/* eol=crlf\n")
	two := r.commit("two")
	for _, c := range []plumbing.Hash{one, two, two, one, two} {
		r.sync(c)
		r.age(c)
		r.clean(c)
	}
}

// A checkout that walks only what is not settled does what one that walks everything does, whatever happened to the working copy.
func TestSettledAgreesWithWalk(t *testing.T) {
	for seed := range int64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(seed))
			r := newRepo(t)
			walked, told, hurt := *r, *r, *r
			walked.dir = filepath.Join(t.TempDir(), "walked")
			told.dir = filepath.Join(t.TempDir(), "told")
			hurt.dir = filepath.Join(t.TempDir(), "hurt")
			var older []byte
			var commits []plumbing.Hash
			for range 6 {
				for range 8 {
					mutate(t, r.src, rnd)
				}
				commits = append(commits, r.commit("c"))
			}
			fast := 0
			for range 20 {
				c := commits[rnd.Intn(len(commits))]
				for range rnd.Intn(3) {
					n := rnd.Int63()
					mutate(t, r.dir, rand.New(rand.NewSource(n)))
					mutate(t, walked.dir, rand.New(rand.NewSource(n)))
					mutate(t, told.dir, rand.New(rand.NewSource(n)))
					mutate(t, hurt.dir, rand.New(rand.NewSource(n)))
				}
				if rnd.Intn(4) == 0 { // an operator's git writes the index
					for _, x := range []*repo{r, &walked, &told, &hurt} {
						if _, err := os.Lstat(filepath.Join(x.dir, gitDir, "index")); err == nil {
							git(t, x.dir, "add", "-A")
						}
					}
				}
				if paths, ok := r.unsettledIfAny(); ok && len(paths) == 0 {
					fast++
				}
				a, errA := Sync(context.Background(), r.request(c))
				_ = os.Remove(filepath.Join(walked.dir, gitDir, memoFile))
				b, errB := Sync(context.Background(), walked.request(c))
				req := told.request(c)
				req.Seen = seeing(t, told.dir)
				d, errD := Sync(context.Background(), req)
				older = hurtMemo(t, filepath.Join(hurt.dir, gitDir, memoFile), older, rnd)
				req = hurt.request(c)
				req.Seen = seeing(t, hurt.dir)
				e, errE := Sync(context.Background(), req)
				if errB != nil {
					require.EqualError(t, errA, errB.Error())
					require.EqualError(t, errD, errB.Error())
					require.EqualError(t, errE, errB.Error())
					for _, x := range []*repo{r, &walked, &told, &hurt} {
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
				for _, x := range []*repo{r, &walked, &told, &hurt} {
					require.Equal(t, want, manifest(t, x.dir))
					require.Empty(t, git(t, x.dir, "status", "--porcelain", "--untracked-files=no"))
					x.age(c)
				}
			}
			require.NotZero(t, fast)
		})
	}
}

// hurtMemo does one of the things to a memo that a crash, another version or a bad disk may, or nothing; older is one from before.
func hurtMemo(t *testing.T, file string, older []byte, rnd *rand.Rand) (now []byte) {
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

func (r *repo) unsettledIfAny() (paths []string, ok bool) {
	if _, err := os.Lstat(filepath.Join(r.dir, gitDir, "index")); err != nil {
		return nil, false
	}
	return r.unsettled()
}

// What is copied from the old index is what would be written without it.
func TestIndexIsPatched(t *testing.T) {
	x := &gitIndex{}
	for i := range 300 {
		x.entries = append(x.entries, entry{path: fmt.Sprintf("d%02d/%03d%s", i/10, i, strings.Repeat("x", i%9)), mode: object.ModeFile, oid: plumbing.Hash{byte(i)}, st: stat{size: uint32(i)}})
	}
	old, err := parseIndex(x.encode(), false)
	require.NoError(t, err)
	rnd := rand.New(rand.NewSource(1))
	for range 50 {
		next := &gitIndex{raw: old.raw}
		plain := &gitIndex{}
		for _, e := range old.entries {
			switch rnd.Intn(12) {
			case 0:
				continue
			case 1:
				e.st.size, e.at = rnd.Uint32(), 0
			case 2:
				e.mode, e.at = object.ModeExecutable, 0
			}
			next.entries = append(next.entries, e)
			e.at = 0
			plain.entries = append(plain.entries, e)
		}
		require.Equal(t, plain.encode(), next.encode())
		require.Equal(t, plain.id, next.id)
	}
}

// A large index that is parsed in parts is what it is entry by entry, whatever is wrong with it and wherever entries are in conflict.
func TestIndexInParts(t *testing.T) {
	const n = parseAtOnce + 3
	x := &gitIndex{tree: &cacheTree{count: n, oid: plumbing.Hash{1}}}
	for i := range n {
		x.entries = append(x.entries, entry{path: fmt.Sprintf("d%02d/%05d%s", i/100, i, strings.Repeat("x", i%9)), mode: object.ModeFile, oid: plumbing.Hash{byte(i)}})
	}
	good := x.encode()
	rnd := rand.New(rand.NewSource(1))
	inParts := 0
	for round := range 60 {
		data := bytes.Clone(good[:len(good)-len(x.id.sum)])
		starts := entryStarts(data, 2, n)
		switch {
		case round == 0:
		case round < 10: // a name twice, in two stages, before or behind the border of two parts
			border := partStart(1+round%(parseParts-1), n)
			at := starts[border]
			second := data[at:starts[border+1]]
			second[60] |= 0x20
			first := bytes.Clone(second)
			first[60] = first[60]&^0x30 | 0x10
			data = slices.Concat(data[:at], first, data[at:])
			binary.BigEndian.PutUint32(data[8:], n+1)
		case round < 20:
			data = data[:rnd.Intn(len(data))]
			data = append(data, make([]byte, max(0, 12-len(data)))...)
		case round < 30: // the extension
			data[int(starts[n])+rnd.Intn(len(data)-int(starts[n]))] ^= 1 << rnd.Intn(8)
		default:
			data[12+rnd.Intn(len(data)-12)] ^= 1 << rnd.Intn(8)
		}
		got, gotErr := parseBody(data, data)
		want := &gitIndex{raw: data}
		version, count := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
		if version != 2 || int64(count) > int64(len(data))/entryFixed {
			require.Error(t, gotErr)
			continue
		}
		wantErr := want.parseEach(data, string(data), version, count)
		require.Equal(t, wantErr, gotErr)
		if wantErr == nil {
			require.Equal(t, want.entries, got.entries)
			require.Equal(t, want.tree, got.tree)
		}
		if starts := entryStarts(data, version, count); starts != nil && (&gitIndex{raw: data}).parseParts(data, string(data), version, starts) {
			inParts++
			require.NoError(t, wantErr)
		}
	}
	require.Greater(t, inParts, 10)
}

// A refreshed index is younger than files that may have changed without showing it: they are compared all the same.
func TestRefreshForgetsRacyFiles(t *testing.T) {
	r := newRepo(t)
	r.write("a", "a")
	r.write("b", "b")
	one := r.commit("one")
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
	x, err := parseIndex(data, false)
	require.NoError(t, err)
	require.NotZero(t, x.entries[0].st)
	require.Zero(t, x.entries[1].st)
	require.Empty(t, git(t, r.dir, "status", "--porcelain"))
	r.sync(one)
	r.clean(one)
}
