package checkout

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil/gittest"
)

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

// failing is a store that fails after some reads.
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
			// Also what a killed process leaves.
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

// Big files are streamed, and complete.
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
