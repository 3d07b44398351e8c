package checkout

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil/gittest"
)

func TestAttributes(t *testing.T) {
	r := newRepo(t)
	r.Write("keep.txt", "a\nb\n")
	r.Write("win/x.bat", "a\nb\n")
	r.Write("win/bin.bat", "a\x00\nb\n")
	r.Write("win/odd.bat", "a\nb\n")
	r.Write("auto/t.csv", "a\nb\n")
	r.Write("auto/b.csv", "a\x00b\n")
	r.Write(".gitattributes", "[attr]dos text eol=crlf\n*.bat dos\n/auto/**/*.csv text=auto eol=crlf\n*.csv text=auto eol=crlf\n\"odd name\" -text\n")
	r.Write("win/.gitattributes", "odd.bat -text\nbin.bat binary\n")
	one := r.Commit("one")
	r.sync(one)
	r.clean(one)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, "a\nb\n", read("keep.txt"))
	require.Equal(t, "a\r\nb\r\n", read("win/x.bat"))
	require.Equal(t, "a\x00\nb\n", read("win/bin.bat"))
	require.Equal(t, "a\nb\n", read("win/odd.bat"))
	require.Equal(t, "a\r\nb\r\n", read("auto/t.csv"))
	require.Zero(t, r.sync(one).Written)

	// Touched, but the same: the content with its line ends is compared.
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "win/x.bat"), past, past))
	require.Zero(t, r.sync(one).Written)
	gittest.WriteFile(t, filepath.Join(r.dir, "win/x.bat"), "a\nb\n") // not what a checkout leaves
	require.Equal(t, 1, r.sync(one).LocalChanges.Count)
	require.Equal(t, "a\r\nb\r\n", read("win/x.bat"))

	// New attributes rewrite the files they are about, and no others.
	r.Write("win/.gitattributes", "*.bat -text\n")
	two := r.Commit("two")
	st := r.sync(two)
	require.Zero(t, st.LocalChanges.Count)
	require.Equal(t, 2, st.Written, ".gitattributes and x.bat")
	require.Equal(t, "a\nb\n", read("win/x.bat"))
	r.clean(two)
}

// A file that is streamed is converted too.
func TestBigFileIsConverted(t *testing.T) {
	r := newRepo(t)
	line := strings.Repeat("x", 63) + "\n"
	r.Write("big.bat", strings.Repeat(line, (streamAbove+4096)/len(line)))
	r.Write(".gitattributes", "*.bat eol=crlf\n")
	r.Git("-c", "core.compression=0", "add", "-A")
	one := r.Commit("one")
	r.sync(one)
	r.clean(one)
	require.Zero(t, r.sync(one).Written)
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.dir, "big.bat"), past, past))
	require.Zero(t, r.sync(one).Written)
}

func TestNotes(t *testing.T) {
	r := newRepo(t)
	r.Write(".gitattributes", "*.bin filter=lfs diff=lfs -text\n*.c ident\n*.u16 working-tree-encoding=UTF-16\n*.asc working-tree-encoding=US-ASCII\n*.x filter=clean\n")
	r.Write("a.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("0a", 32)+"\nsize 1\n")
	r.Write("b.c", "$Id$")
	r.Write("c.x", "x")
	r.Write("d.txt", "x")
	r.Write("f.asc", "x\n")
	r.Write("g.asc", "x\n")
	r.Commit("one")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",vendor/lib")
	r.Git("commit", "-q", "-m", "submodule")
	one := plumbing.NewHash(r.Git("rev-parse", "HEAD"))
	st := r.sync(one)
	all := strings.Join(st.Notes, "\n")
	require.Contains(t, all, "submodules left as empty folders: vendor/lib")
	require.Contains(t, all, "1 file is a pointer of git-lfs, not its content: a.bin")
	require.Contains(t, all, "filter in .gitattributes, which is not run: c.x")
	require.Contains(t, all, "2 files have a working-tree-encoding that is not known here, and are written as UTF-8: f.asc, g.asc")
	require.DirExists(t, filepath.Join(r.dir, "vendor/lib"))
	require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain"))
	require.Zero(t, r.sync(one).Written)
	gittest.WriteFile(t, filepath.Join(r.dir, "vendor/lib/file"), "somebody fetched it by hand")
	r.Git("rm", "-q", "--cached", "vendor/lib")
	r.Git("commit", "-q", "-m", "none")
	st = r.sync(plumbing.NewHash(r.Git("rev-parse", "HEAD")))
	require.Contains(t, strings.Join(st.Notes, "\n"), "kept the files of the removed submodule vendor/lib")
	require.FileExists(t, filepath.Join(r.dir, "vendor/lib/file"))
}

func TestHostileTrees(t *testing.T) {
	r := newRepo(t)
	r.Write("good", "good")
	good := r.Commit("good")
	r.sync(good)
	before := manifest(t, r.dir)
	empty := r.MakeTree()
	for name, entries := range map[string][]string{
		"dot git":          {"100644 .git"},
		"any case":         {"40000 .GiT=" + empty.String()},
		"short name":       {"100644 GIT~1"},
		"trailing dot":     {"100644 .git. ."},
		"stream":           {"100644 .git::$INDEX_ALLOCATION"},
		"ignorable":        {"100644 .g\u200cit"},
		"backslash":        {`100644 .git\config`},
		"dot dot":          {"100644 .."},
		"dot":              {"40000 .=" + empty.String()},
		"slash":            {"100644 ../../etc/passwd"},
		"empty":            {"100644 "},
		"twice":            {"100644 a", "100644 a"},
		"order":            {"100644 b", "100644 a"},
		"link and folder":  {"120000 a", "100644 a.b", "40000 a=" + empty.String()},
		"device":           {"60000 a"},
		"linked modules":   {"120000 .gitmodules"},
		"very long":        {"100644 " + strings.Repeat("x", 256)},
		"no link":          {"120000 a=" + r.Git("hash-object", "-w", "-t", "blob", "/dev/null")},
		"missing":          {"100644 a=" + strings.Repeat("2", 40)},
		"file is a tree":   {"100644 a=" + empty.String()},
		"folder is a file": {"40000 a=" + r.Git("rev-parse", "HEAD:good")},
	} {
		t.Run(name, func(t *testing.T) {
			c := r.CommitTree(r.MakeTree(entries...))
			_, err := Sync(context.Background(), r.request(c))
			require.Error(t, err)
			require.Equal(t, good, r.sync(good).Commit)
			require.Equal(t, before, manifest(t, r.dir))
		})
	}
	// Folders that share their content name more files than there are bytes.
	bomb := r.MakeTree("100644 f")
	for range 12 {
		e := make([]string, 10)
		for i := range e {
			e[i] = "40000 " + string(rune('a'+i)) + "=" + bomb.String()
		}
		bomb = r.MakeTree(e...)
	}
	_, err := Sync(context.Background(), r.request(r.CommitTree(bomb)))
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.ErrorContains(t, err, "more than 1048576 files")
	deep := r.MakeTree("100644 f")
	for range 40 {
		deep = r.MakeTree("40000 " + strings.Repeat("d", 200) + "=" + deep.String())
	}
	_, err = Sync(context.Background(), r.request(r.CommitTree(deep)))
	require.ErrorContains(t, err, "longer than 4095 bytes")
	require.Equal(t, before, manifest(t, r.dir))
}

// failing is a store that loses its power after some reads.
type failing struct {
	store.Reader
	left int
}

var errPower = errors.New("power cut")

func (f *failing) Stream(h plumbing.Hash) (*store.Object, error) {
	if f.left--; f.left < 0 {
		return nil, errPower
	}
	return f.Reader.Stream(h)
}

func TestInterruptedAtEveryFile(t *testing.T) {
	r := newRepo(t)
	for _, n := range []string{"a", "b", "dir/c", "dir/d", "gone/e", "z"} {
		r.Write(n, "one "+n)
	}
	one := r.Commit("one")
	for _, n := range []string{"a", "dir/c", "new/f", "new/g", "z"} {
		r.Write(n, "two "+n)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir, "gone")))
	two := r.Commit("two")
	for cut := range 6 {
		for _, then := range []plumbing.Hash{one, two} {
			require.NoError(t, os.RemoveAll(r.dir))
			r.sync(one)
			req := r.request(two)
			req.Objects, req.Workers = &failing{r.objs, cut}, 1
			_, err := Sync(context.Background(), req)
			if cut < 5 {
				require.ErrorIs(t, err, errPower)
			} else {
				require.NoError(t, err)
			}
			// What a killed process leaves behind, too.
			gittest.WriteFile(t, filepath.Join(r.dir, tmpPrefix+"1"), "half a file")
			gittest.WriteFile(t, filepath.Join(r.dir, "dir", tmpPrefix+"2"), "half a file")
			gittest.WriteFile(t, filepath.Join(r.dir, ".git/index.lock"), lockMark)
			st := r.sync(then)
			if cut < 5 {
				require.Contains(t, strings.Join(st.Notes, "\n"), "interrupted")
			}
			require.NoFileExists(t, filepath.Join(r.dir, ".git", underway))
			require.Zero(t, st.Untracked)
			require.Zero(t, st.LocalChanges.Count)
			require.Zero(t, st.Overwritten.Count)
			r.clean(then)
		}
	}
	require.NoError(t, os.RemoveAll(r.dir))
	gittest.WriteFile(t, filepath.Join(r.dir, "a"), "half")
	require.Equal(t, Paths{1, []string{"a"}}, r.sync(one).Overwritten)
	r.clean(one)
}

func TestBadIndexIsRebuilt(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	r.Write("dir/b", "b")
	one := r.Commit("one")
	r.sync(one)
	index := filepath.Join(r.dir, ".git/index")
	good, err := os.ReadFile(index)
	require.NoError(t, err)
	for _, bad := range [][]byte{nil, []byte("DIRC"), good[:len(good)/2], append([]byte("X"), good...)} {
		require.NoError(t, os.WriteFile(index, bad, 0o644))
		st := r.sync(one)
		require.Equal(t, 2, st.Unchanged)
		require.Zero(t, st.Overwritten.Count)
		require.Len(t, st.Notes, 1)
		r.clean(one)
	}
	for _, version := range []string{"2", "3", "4"} {
		gittest.Git(t, r.dir, "update-index", "--index-version", version)
		require.Zero(t, len(r.sync(one).Notes))
	}
	gittest.Git(t, r.dir, "update-index", "--split-index")
	r.sync(one)
	r.clean(one)
}

func TestLocks(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	r.sync(one)
	lock := filepath.Join(r.dir, ".git/index.lock")
	gittest.WriteFile(t, lock, "")
	req := r.request(one)
	req.LockWait = time.Millisecond
	_, err := Sync(context.Background(), req)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	require.Contains(t, fault.HintOf(err), lock)
	require.FileExists(t, lock)
	req.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	st, err := Sync(context.Background(), req)
	require.NoError(t, err)
	require.Len(t, st.Notes, 1)

	f, err := os.Open(filepath.Join(r.dir, ".git", ownLock))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	_, err = Sync(context.Background(), req)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Sync(ctx, r.request(one))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, f.Close())
	_, err = Sync(ctx, r.request(one))
	require.ErrorIs(t, err, context.Canceled)
	r.sync(one)
}

func TestOperatorsWork(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	r.sync(one)
	gittest.Git(t, r.dir, "config", "user.color", "blue")
	gittest.Git(t, r.dir, "config", "core.fileMode", "true")
	gittest.Git(t, r.dir, "config", "remote.origin.url", "elsewhere")
	gittest.WriteFile(t, filepath.Join(r.dir, "staged"), "added by hand")
	gittest.Git(t, r.dir, "add", "staged")
	gittest.Git(t, r.dir, "commit", "-q", "-m", "hotfix")
	hotfix := gittest.Git(t, r.dir, "rev-parse", "HEAD")
	gittest.WriteFile(t, filepath.Join(r.dir, ".git/MERGE_HEAD"), hotfix+"\n")
	r.Write("a", "b")
	two := r.Commit("two")
	st := r.sync(two)
	all := strings.Join(st.Notes, "\n")
	require.Contains(t, all, "commits of its own: "+hotfix[:12])
	require.Contains(t, all, "MERGE_HEAD")
	require.Equal(t, plumbing.NewHash(hotfix), st.Previous)
	r.clean(two)
	require.Equal(t, "blue", gittest.Git(t, r.dir, "config", "user.color"))
	require.Equal(t, r.Bare(), gittest.Git(t, r.dir, "config", "remote.origin.url"))
	require.Equal(t, hotfix, gittest.Git(t, r.dir, "rev-parse", "HEAD@{1}"))

	req := r.request(one)
	req.Branch, req.Tags = "", map[string]plumbing.Hash{"refs/tags/v1": one}
	_, err := Sync(context.Background(), req)
	require.NoError(t, err)
	r.clean(one)
	require.Equal(t, "v1", gittest.Git(t, r.dir, "describe", "--tags"))
	require.Equal(t, "HEAD", gittest.Git(t, r.dir, "rev-parse", "--abbrev-ref", "HEAD"))
}

func TestRefresh(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	r.Write("dir/b", "b")
	one := r.Commit("one")
	r.sync(one)
	// Make the index newer than the files, or they stay racy.
	past := time.Now().Add(-time.Hour)
	for _, n := range []string{"a", "dir/b"} {
		require.NoError(t, os.Chtimes(filepath.Join(r.dir, n), past, past))
	}
	r.sync(one)
	n, err := Refresh(context.Background(), r.dir)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, os.Chmod(filepath.Join(r.dir, "a"), 0o660))
	gittest.WriteFile(t, filepath.Join(r.dir, "dir/b"), "changed")
	n, err = Refresh(context.Background(), r.dir)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, Paths{1, []string{"dir/b"}}, r.sync(one).LocalChanges)

	// A folder that is no checkout stays as it is.
	plain := t.TempDir()
	n, err = Refresh(context.Background(), plain)
	require.NoError(t, err)
	require.Zero(t, n)
	list, err := os.ReadDir(plain)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestRequestIsChecked(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	for name, change := range map[string]func(*Request){
		"no objects":  func(q *Request) { q.Objects = nil },
		"no commit":   func(q *Request) { q.Commit = plumbing.ZeroHash },
		"relative":    func(q *Request) { q.Dir = "x" },
		"branch":      func(q *Request) { q.Branch = "master" },
		"odd branch":  func(q *Request) { q.Branch = "refs/heads/../../x" },
		"line in dir": func(q *Request) { q.Repo = "/a\nb" },
	} {
		q := r.request(one)
		change(&q)
		_, err := Sync(context.Background(), q)
		require.Equal(t, fault.Usage, fault.KindOf(err), name)
	}
	q := r.request(plumbing.NewHash(r.Git("rev-parse", one.String()+"^{tree}")))
	_, err := Sync(context.Background(), q)
	require.Error(t, err)
}

// A name that is no tag's came there by other hands: it is left out and named, and stops no checkout.
func TestOddTagIsLeftOut(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	for _, odd := range []string{"refs/heads/x", "refs/tags/../x", "refs/tags/a.lock", "refs/tags/a b", "refs/tags/"} {
		q := r.request(one)
		q.Tags = map[string]plumbing.Hash{odd: one, "refs/tags/@": one, "refs/tags/-x": one}
		st, err := Sync(context.Background(), q)
		require.NoError(t, err, odd)
		require.Equal(t, []string{"left out of the working copy: the tag " + odd + ", whose name git does not take"}, st.Notes, odd)
		require.Equal(t, "-x\n@", gittest.Git(t, r.dir, "tag"))
		require.Equal(t, one.String(), gittest.Git(t, r.dir, "rev-parse", "refs/tags/@"))
		require.NoError(t, exec.Command("git", "-C", r.dir, "status").Run())
		require.Error(t, exec.Command("git", "-C", r.dir, "rev-parse", "--verify", "-q", "refs/heads/x").Run())
	}
}

// Big files are streamed, and come out whole.
func TestBigFile(t *testing.T) {
	r := newRepo(t)
	big := strings.Repeat("0123456789abcdef", (streamAbove+4096)/16)
	r.Write("big", big)
	one := r.Commit("one")
	r.Write("big", big+"more")
	two := r.Commit("two")
	for range 2 {
		r.sync(one)
		r.clean(one)
		r.sync(two)
		r.clean(two)
		r.Git("gc", "-q")
	}
}

type shortStream struct{ store.Reader }

func (s shortStream) Stream(h plumbing.Hash) (*store.Object, error) {
	o, err := s.Reader.Stream(h)
	if err == nil && o.Size > streamAbove {
		o.ReadCloser = io.NopCloser(io.LimitReader(o.ReadCloser, 10))
	}
	return o, err
}

func TestCutStreamIsAnError(t *testing.T) {
	r := newRepo(t)
	r.Write("big", strings.Repeat("x", streamAbove+1))
	q := r.request(r.Commit("one"))
	q.Objects = shortStream{r.objs}
	_, err := Sync(context.Background(), q)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoFileExists(t, filepath.Join(r.dir, "big"))
}
