package checkout

import (
	"context"
	"io/fs"
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

// meanwhile does something while a file of a commit is read.
type meanwhile struct {
	store.Reader
	do func()
}

func (m *meanwhile) Stream(h plumbing.Hash) (*store.Object, error) {
	m.do()
	return m.Reader.Stream(h)
}

// The index has the mode, and the owner, that it is to have, and not the mark of the lock that it was.
func TestTheLockBecomesTheIndex(t *testing.T) {
	r := newRepo(t)
	r.Write("a", "a")
	one := r.Commit("one")
	r.Write("a", "b")
	two := r.Commit("two")
	lock, index := filepath.Join(r.dir, ".git/index.lock"), filepath.Join(r.dir, ".git/index")
	is := func(mode fs.FileMode) {
		t.Helper()
		fi, err := os.Stat(index)
		require.NoError(t, err)
		require.Equal(t, mode, fi.Mode())
		require.NoFileExists(t, lock)
		require.Empty(t, gittest.Git(t, r.dir, "status", "--porcelain"))
	}
	r.sync(one)
	require.NoError(t, os.Chmod(index, 0o640))
	r.sync(two)
	is(0o640)
	req := r.request(one)
	req.Owner = &Owner{UID: -1, GID: -1, Perm: func(folder bool, perm uint32) uint32 { return perm &^ 0o007 }}
	_, err := Sync(t.Context(), req)
	require.NoError(t, err)
	is(0o640)
	req.Owner = nil
	// What a killed Sync leaves: half an index in the lock, and an index that still has the mark of the lock.
	half, err := os.ReadFile(index)
	require.NoError(t, err)
	gittest.WriteFile(t, lock, string(half[:len(half)/2]))
	require.NoError(t, os.Chmod(lock, 0o644|fs.ModeSticky))
	require.NoError(t, os.Chmod(index, 0o640|fs.ModeSticky))
	r.sync(one)
	is(0o640)
	// Somebody removes the lock and takes it: that one stays.
	req = r.request(two)
	req.Objects = &meanwhile{r.objs, func() {
		require.NoError(t, os.Remove(lock))
		gittest.WriteFile(t, lock, "theirs")
	}}
	_, err = Sync(t.Context(), req)
	require.NoError(t, err)
	text, err := os.ReadFile(lock)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(text))
	require.NoError(t, os.Remove(lock))
	is(0o640)
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
	// Make the index newer than the files, otherwise they stay racy.
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

	// A folder that is not a checkout stays as it is.
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

// An invalid tag name was created by another program: it is skipped and named, and stops no checkout.
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
