package refs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"corpus-git/internal/testutil/gittest"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// repo is a bare repository with a few commits a, b, c.
func repo(t testing.TB) (s *Store, a, b, c plumbing.Hash) {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q", "--bare", "-b", "master")
	tree := gittest.Git(t, dir, "hash-object", "-t", "tree", "-w", "/dev/null")
	var h [3]plumbing.Hash
	for i := range h {
		h[i] = plumbing.NewHash(gittest.Git(t, dir, "commit-tree", "-m", fmt.Sprint(i), tree))
	}
	return &Store{Dir: dir, LockWait: -1}, h[0], h[1], h[2]
}

// agree compares all refs with git's.
func agree(t testing.TB, s *Store) {
	t.Helper()
	list, err := s.List("")
	require.NoError(t, err)
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s %s\n", r.Hash, r.Name)
		h, err := s.Get(r.Name)
		require.NoError(t, err)
		require.Equal(t, r.Hash, h)
	}
	require.Equal(t, gittest.Git(t, s.Dir, "for-each-ref", "--format=%(objectname) %(refname)"), strings.TrimSuffix(b.String(), "\n"))
}

var zero plumbing.Hash

func TestCompareAndSwap(t *testing.T) {
	s, a, b, _ := repo(t)
	const name = "refs/heads/x/y"
	require.NoError(t, s.CompareAndSwap(name, zero, a))
	agree(t, s)
	var conflict *ConflictError
	require.ErrorAs(t, s.CompareAndSwap(name, zero, b), &conflict)
	require.Equal(t, a, conflict.Have)
	require.ErrorAs(t, s.CompareAndSwap(name, b, a), &conflict)
	require.NoError(t, s.CompareAndSwap(name, a, b))
	agree(t, s)
	require.ErrorAs(t, s.CompareAndSwap("refs/heads/none", a, zero), &conflict)
	require.NoError(t, s.CompareAndSwap(name, b, zero))
	agree(t, s)
	require.NoDirExists(t, filepath.Join(s.Dir, "refs/heads/x"), "empty folders go")
	require.DirExists(t, filepath.Join(s.Dir, "refs/heads"))
	h, err := s.Get(name)
	require.NoError(t, err)
	require.True(t, h.IsZero())
}

func TestPackedRefs(t *testing.T) {
	s, a, b, c := repo(t)
	for i := range 20 {
		gittest.Git(t, s.Dir, "update-ref", fmt.Sprintf("refs/heads/b%d", i), a.String())
	}
	gittest.Git(t, s.Dir, "tag", "-a", "-m", "t", "v1", a.String())
	gittest.Git(t, s.Dir, "pack-refs", "--all", "--prune")
	agree(t, s)
	list, err := s.List("refs/tags/")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, a, list[0].Peeled)

	require.NoError(t, s.CompareAndSwap("refs/heads/b3", a, b), "a loose file over a packed line")
	agree(t, s)
	require.NoError(t, s.CompareAndSwap("refs/heads/b3", b, zero), "the old packed value does not come back")
	require.NoError(t, s.CompareAndSwap("refs/heads/b4", a, zero))
	agree(t, s)
	require.NoError(t, s.CompareAndSwap("refs/heads/b3", zero, c))
	agree(t, s)
	gittest.Git(t, s.Dir, "pack-refs", "--all", "--prune")
	agree(t, s)
	list, err = s.List("refs/tags/")
	require.NoError(t, err)
	require.Equal(t, a, list[0].Peeled, "peeled lines survive a deletion")
	require.ErrorAs(t, s.CompareAndSwap("refs/heads/b5/x", zero, a), new(*ClashError), "a packed ref is in the way")
}

func TestClash(t *testing.T) {
	s, a, b, _ := repo(t)
	require.NoError(t, s.CompareAndSwap("refs/heads/d/e", zero, a))
	var clash *ClashError
	require.ErrorAs(t, s.CompareAndSwap("refs/heads/d", zero, a), &clash)
	require.Equal(t, "refs/heads/d/e", clash.With)
	require.ErrorAs(t, s.CompareAndSwap("refs/heads/d/e/f", zero, a), &clash)
	require.Equal(t, "refs/heads/d/e", clash.With)
	require.ErrorAs(t, s.Update([]Change{{Name: "refs/tags/x", New: a}, {Name: "refs/tags/x/y", New: a}}), &clash)
	agree(t, s)
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, "refs/heads/empty/deep"), 0o777))
	require.NoError(t, s.CompareAndSwap("refs/heads/empty", zero, b), "empty folders give way")
	require.NoError(t, s.Update([]Change{{Name: "refs/heads/d/e", Old: a}, {Name: "refs/heads/d", New: b}}), "so do those that empty in the same update")
	agree(t, s)
	require.Error(t, s.Update([]Change{{Name: "refs/heads/d", Old: b}, {Name: "refs/heads/d", New: b}}))
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	s, a, b, c := repo(t)
	require.NoError(t, s.Update([]Change{{Name: "refs/heads/a", New: a}, {Name: "refs/heads/b", New: b}}))
	before := gittest.Git(t, s.Dir, "for-each-ref")
	for name, changes := range map[string][]Change{
		"wrong old value": {{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/b", Old: a, New: c}},
		"exists":          {{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/b", New: c}},
		"bad name":        {{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/..", New: c}},
		"clash":           {{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/b/c", New: c}},
		"twice":           {{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/a", Old: a}},
	} {
		require.Error(t, s.Update(changes), name)
		require.Equal(t, before, gittest.Git(t, s.Dir, "for-each-ref"), name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "refs/heads/b.lock"), nil, 0o666))
	var locked *LockedError
	require.ErrorAs(t, s.Update([]Change{{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/b", Old: b, New: c}}), &locked)
	require.Equal(t, "refs/heads/b", locked.Name)
	require.NoFileExists(t, filepath.Join(s.Dir, "refs/heads/a.lock"))
	agree(t, s)
	gone, err := s.SweepLocks()
	require.NoError(t, err)
	require.Equal(t, []string{"refs/heads/b.lock"}, gone)
	require.NoError(t, s.Update([]Change{{Name: "refs/heads/a", Old: a, New: c}, {Name: "refs/heads/b", Old: b}, {Name: "refs/tags/t", Any: true, New: a}}))
	agree(t, s)
}

func TestHead(t *testing.T) {
	s, a, _, _ := repo(t)
	h, err := s.Head()
	require.NoError(t, err)
	require.Equal(t, "refs/heads/master", h)
	require.NoError(t, s.SetHead("refs/heads/main"))
	require.Equal(t, "refs/heads/main", gittest.Git(t, s.Dir, "symbolic-ref", "HEAD"))
	hash, err := s.Get("HEAD")
	require.NoError(t, err)
	require.True(t, hash.IsZero(), "unborn")
	require.NoError(t, s.CompareAndSwap("refs/heads/main", zero, a))
	r, err := s.Resolve("HEAD")
	require.NoError(t, err)
	require.Equal(t, Ref{Name: "refs/heads/main", Hash: a}, r)
	require.ErrorAs(t, s.SetHead("refs/tags/x"), new(*NameError))

	gittest.Git(t, s.Dir, "symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/main")
	agree(t, s)
	require.Error(t, s.CompareAndSwap("refs/remotes/o/HEAD", a, zero))
	gittest.Git(t, s.Dir, "symbolic-ref", "refs/remotes/o/HEAD", "refs/remotes/o/HEAD")
	_, err = s.Get("refs/remotes/o/HEAD")
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestCorruptRefIsSaid(t *testing.T) {
	s, a, _, _ := repo(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "refs/heads/torn"), nil, 0o666))
	_, err := s.Get("refs/heads/torn")
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorIs(t, s.CompareAndSwap("refs/heads/torn", zero, a), ErrCorrupt)
	require.NoError(t, s.Update([]Change{{Name: "refs/heads/torn", Any: true, New: a}}))
	agree(t, s)
	_, err = s.Get("refs/heads/../../config")
	require.ErrorAs(t, err, new(*NameError))
	_, err = s.Get("config")
	require.ErrorAs(t, err, new(*NameError))
}

func TestCheckNameAgreesWithGit(t *testing.T) {
	for _, name := range []string{
		"refs/heads/a", "refs/heads/a.b", "refs/heads/é", "refs/heads/a@b", "refs/heads/@", "refs/heads/-a", "refs/heads/a-", "refs/heads/{a}",
		"refs/heads/.a", "refs/heads/a..b", "refs/heads/a.lock", "refs/heads/a.lock/b", "refs/heads/a b", "refs/heads/a~b", "refs/heads/a^", "refs/heads/a:b",
		"refs/heads/a?", "refs/heads/*", "refs/heads/[a", "refs/heads/a\\b", "refs/heads/a@{b", "refs/heads/a.", "refs/heads//a", "refs/heads/a/", "refs/heads/\x01", "refs/heads/\x7f",
		"refs/heads/a./b", "refs/tags/@", "refs/tags/a/@", "refs/tags/-x", "refs/tags/-", "refs/tags/@/@", "refs/tags/a.lock./b", "refs/heads/a/.b", "refs/heads/LOCK", "refs/heads/a.Lock", "refs/heads/",
	} {
		want := exec.Command("git", "check-ref-format", name).Run() == nil
		require.Equal(t, want, CheckName(name) == nil, "%q: %v", name, CheckName(name))
	}
	for _, name := range []string{"", "HEAD", "heads/a", "refs/a", "refs/", "../x", "/refs/heads/a", "refs/heads/" + strings.Repeat("a", 251), strings.Repeat("refs/heads/", 200) + "a"} {
		require.Error(t, CheckName(name), name)
	}
}

// A folder of refs may have a name that no ref has.
func TestFoldersWithADotAtTheirEnd(t *testing.T) {
	s, a, b, _ := repo(t)
	for _, name := range []string{"refs/tags/a./b", "refs/tags/a./c./d", "refs/tags/@/x", "refs/tags/-"} {
		require.NoError(t, s.CompareAndSwap(name, zero, a))
		agree(t, s)
	}
	list, err := s.List("refs/tags/a./c./")
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = s.Pack(Packing{Peel: func(h plumbing.Hash) (plumbing.Hash, error) { return plumbing.ZeroHash, nil }})
	require.NoError(t, err)
	agree(t, s)
	require.NoError(t, s.CompareAndSwap("refs/tags/a./b", a, b))
	var clash *ClashError
	require.ErrorAs(t, s.CompareAndSwap("refs/tags/a./b/c", zero, a), &clash)
	require.NoError(t, s.CompareAndSwap("refs/tags/a./b", b, zero))
	require.NoError(t, s.CompareAndSwap("refs/tags/a./c./d", a, zero))
	require.NoError(t, s.CompareAndSwap("refs/tags/a", zero, a))
	agree(t, s)
}

func TestOneOfManyWins(t *testing.T) {
	s, a, b, c := repo(t)
	s.LockWait = 0
	require.NoError(t, s.CompareAndSwap("refs/heads/m", zero, a))
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			to := b
			if i%2 == 0 {
				to = c
			}
			if s.CompareAndSwap("refs/heads/m", a, to) == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	agree(t, s)
}

// A crash after any number of calls leaves each ref old or new, and the next start cleans up.
func TestCrashAnywhere(t *testing.T) {
	first, a, b, c := repo(t)
	gittest.Git(t, first.Dir, "update-ref", "refs/heads/one", a.String())
	gittest.Git(t, first.Dir, "update-ref", "refs/heads/two", a.String())
	gittest.Git(t, first.Dir, "pack-refs", "--all", "--prune")
	gittest.Git(t, first.Dir, "update-ref", "refs/heads/two", b.String())
	for n := 0; ; n++ {
		s := &Store{Dir: t.TempDir(), LockWait: -1}
		require.NoError(t, os.CopyFS(s.Dir, os.DirFS(first.Dir)))
		s.FS = vfstest.New(vfs.OS{}, vfstest.CrashAt(n))
		err := s.Update([]Change{{Name: "refs/heads/one", Old: a, New: c}, {Name: "refs/heads/two", Old: b}, {Name: "refs/heads/x/three", New: c}})
		after := &Store{Dir: s.Dir, LockWait: -1}
		_, serr := after.SweepLocks()
		require.NoError(t, serr)
		if n%8 == 0 {
			agree(t, after)
		}
		for name, allowed := range map[string][]plumbing.Hash{"refs/heads/one": {a, c}, "refs/heads/two": {b, a, zero}, "refs/heads/x/three": {zero, c}} {
			h, gerr := after.Get(name)
			require.NoError(t, gerr)
			if name == "refs/heads/two" {
				require.NotEqual(t, a, h, "the packed value came back")
			}
			require.Contains(t, allowed, h)
			if err == nil {
				require.Equal(t, allowed[len(allowed)-1], h)
			}
		}
		require.NoError(t, after.Update([]Change{{Name: "refs/heads/x/three", Any: true, New: a}}))
		if err == nil {
			break
		}
	}
}

func FuzzPackedRefs(f *testing.F) {
	h := strings.Repeat("a1", 20)
	f.Add([]byte(packedHeader + h + " refs/heads/a\n" + h + " refs/tags/v\n^" + h + "\n"))
	f.Add([]byte(h + " refs/heads/b\n" + h + " refs/heads/a\n"))
	f.Add([]byte("# pack-refs with: peeled \n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := parsePacked(in)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		for i, r := range p.refs {
			require.True(t, wellFormed(r.Name))
			if i > 0 {
				require.Less(t, p.refs[i-1].Name, r.Name)
			}
			got, ok := p.find(r.Name)
			require.True(t, ok)
			require.Equal(t, r, got)
		}
		again, err := parsePacked(p.format())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

func FuzzCheckName(f *testing.F) {
	f.Add("refs/heads/a")
	f.Add("refs/heads/../x")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		require.Equal(t, name, filepath.Clean(name), "a valid name is a clean path below refs")
		require.True(t, strings.HasPrefix(name, "refs/"))
		require.True(t, wellFormed(name))
	})
}

// A ref that cannot be read does not prevent the others from being listed, even if it is also packed or named by a symbolic one. Changing it fails.
func TestBrokenRefs(t *testing.T) {
	s, a, b, _ := repo(t)
	for _, name := range []string{"refs/heads/good", "refs/heads/junk", "refs/heads/packed", "refs/tags/empty"} {
		require.NoError(t, s.CompareAndSwap(name, plumbing.ZeroHash, a))
	}
	gittest.Git(t, s.Dir, "pack-refs", "--all")
	gittest.Git(t, s.Dir, "symbolic-ref", "refs/heads/link", "refs/heads/junk")
	for name, text := range map[string]string{"refs/heads/junk": "junk\n", "refs/tags/empty": "", "refs/heads/short": a.String()[:39] + "\n", "refs/heads/away": "ref: ../x\n"} {
		gittest.WriteFile(t, filepath.Join(s.Dir, name), text)
	}
	list, broken, err := s.ListReadable("")
	require.NoError(t, err)
	var names, bad []string
	for _, r := range list {
		require.Equal(t, a, r.Hash)
		names = append(names, r.Name)
	}
	for _, x := range broken {
		require.ErrorIs(t, x.Err, ErrCorrupt)
		bad = append(bad, x.Name)
	}
	require.Subset(t, names, []string{"refs/heads/good", "refs/heads/packed"})
	require.ElementsMatch(t, []string{"refs/heads/junk", "refs/tags/empty", "refs/heads/short", "refs/heads/away", "refs/heads/link"}, bad)
	for _, name := range bad {
		require.NotContains(t, names, name)
	}
	_, err = s.List("")
	require.ErrorIs(t, err, ErrCorrupt, "what is decided by all refs is not decided without one")
	require.ErrorIs(t, s.CompareAndSwap("refs/heads/junk", a, b), ErrCorrupt)
	require.NoError(t, s.CompareAndSwap("refs/heads/good", a, b))
}
