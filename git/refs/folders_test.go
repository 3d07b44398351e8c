package refs

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

func numbered(n int) plumbing.Hash { return plumbing.NewHash(fmt.Sprintf("%040x", n)) }

// memory is a repository in a file system that forgets what was not synced; packed are lines of packed-refs.
func memory(t *testing.T, packed ...string) *vfstest.Mem {
	t.Helper()
	m := vfstest.NewMem(time.Unix(1e9, 0))
	f := m.FS()
	for _, d := range []string{"r/refs/heads", "r/refs/tags"} {
		require.NoError(t, vfs.MkdirAll(f, d, 0o755))
	}
	require.NoError(t, vfs.WriteFileAtomic(f, "r/packed-refs", []byte(packedHeader+strings.Join(packed, "")), 0o644))
	return m
}

// strict is a file system in which a folder's name is durable only if the folder that holds it was synced after it was made, whatever else
// was synced: stricter than vfstest.Mem, whose journal is written in order.
type strict struct {
	vfs.FS
	pending map[string]bool // folders whose names are not durable
}

func (f *strict) Mkdir(path string, perm uint32) error {
	err := f.FS.Mkdir(path, perm)
	if err == nil {
		f.pending[path] = true
	}
	return err
}

func (f *strict) Remove(path string) error {
	err := f.FS.Remove(path)
	if err == nil {
		delete(f.pending, path)
	}
	return err
}

func (f *strict) OpenFile(path string, flag int, perm uint32) (vfs.File, error) {
	h, err := f.FS.OpenFile(path, flag, perm)
	return &strictFile{h, f, path}, err
}

type strictFile struct {
	vfs.File
	fs   *strict
	path string
}

func (h *strictFile) Sync() error {
	err := h.File.Sync()
	for d := range h.fs.pending {
		if err == nil && filepath.Dir(d) == h.path {
			delete(h.fs.pending, d)
		}
	}
	return err
}

// durable fails if a ref with its own file is in a folder whose name a power cut may remove.
func (f *strict) durable(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("r", name)
	if st, err := f.Lstat(path); err != nil || st.IsDir() {
		return
	}
	for d := filepath.Dir(path); d != "r"; d = filepath.Dir(d) {
		require.False(t, f.pending[d], "%s: the name of %s is not durable", name, d)
	}
}

// A ref of packed-refs has no folder when it is written for the first time: the folder is as new as for a new ref.
func TestPackedRefMovesDurably(t *testing.T) {
	const name = "refs/heads/deep/er/one"
	m := memory(t, numbered(1).String()+" "+name+"\n")
	f := &strict{m.FS(), map[string]bool{}}
	s := &Store{Dir: "r", FS: f, LockWait: -1}
	require.NoError(t, s.CompareAndSwap(name, numbered(1), numbered(2)))
	f.durable(t, name)
	h, err := (&Store{Dir: "r", FS: m.Crash(nil).FS()}).Get(name)
	require.NoError(t, err)
	require.Equal(t, numbered(2), h, "the old value came back")
}

// Refs are created and deleted, with their folders, and some are packed. After any number of updates a power cut that keeps only what was synced
// keeps every ref as the last update left it.
func TestRefsSurviveAPowerCutAfterAnyUpdate(t *testing.T) {
	names := []string{"refs/heads/a", "refs/heads/x/b", "refs/heads/x/y/c", "refs/pins/1/one", "refs/pins/1/two", "refs/pins/2/one"}
	const steps = 60
	for n := 1; n <= steps; n++ {
		r := rand.New(rand.NewPCG(1, 2))
		m := memory(t)
		f := &strict{m.FS(), map[string]bool{}}
		s := &Store{Dir: "r", FS: f, LockWait: -1}
		want := map[string]plumbing.Hash{}
		for step := 1; step <= n; step++ {
			someUpdate(t, s, step, names, r, want)
			for _, name := range names {
				f.durable(t, name)
			}
		}
		after := &Store{Dir: "r", FS: m.Crash(nil).FS()}
		for _, name := range names {
			h, err := after.Get(name)
			require.NoError(t, err)
			require.Equal(t, want[name], h, "%s after %d updates", name, n)
		}
	}
}

// someUpdate changes some of names, records that in want, or packs at every ninth step.
func someUpdate(t *testing.T, s *Store, step int, names []string, r *rand.Rand, want map[string]plumbing.Hash) {
	t.Helper()
	if step%9 == 0 {
		_, err := s.Pack(Packing{Hidden: "refs/pins/", Peel: func(plumbing.Hash) (plumbing.Hash, error) { return zero, nil }})
		require.NoError(t, err)
		return
	}
	var changes []Change
	for _, name := range names {
		switch r.IntN(4) {
		case 0:
			want[name] = numbered(step)
		case 1:
			want[name] = zero
		default:
			continue
		}
		changes = append(changes, Change{Name: name, Any: true, New: want[name]})
	}
	require.NoError(t, s.Update(changes))
}

// The folders above a ref are synced once, and again after they were made again.
func TestFoldersAreSyncedOnce(t *testing.T) {
	m := memory(t)
	f := vfstest.New(m.FS(), nil)
	s := &Store{Dir: "r", FS: f, LockWait: -1}
	seen := 0
	synced := func(c Change) (paths []string) {
		t.Helper()
		require.NoError(t, s.Update([]Change{c}))
		all := f.Ops()
		for _, op := range all[seen:] {
			if op.Name == "fsync" && filepath.Ext(op.Path) != ".lock" {
				paths = append(paths, op.Path)
			}
		}
		seen = len(all)
		return paths
	}
	chain := []string{"r/refs", "r/refs/pins", "r/refs/pins/1"}
	require.ElementsMatch(t, chain, synced(Change{Name: "refs/pins/1/one", New: numbered(1)}))
	require.ElementsMatch(t, chain[2:], synced(Change{Name: "refs/pins/1/two", New: numbered(1)}), "the folders are durable")
	require.ElementsMatch(t, chain[2:], synced(Change{Name: "refs/pins/1/one", Any: true}))
	require.ElementsMatch(t, chain[2:], synced(Change{Name: "refs/pins/1/two", Any: true}), "and with it goes the folder")
	require.ElementsMatch(t, chain[1:], synced(Change{Name: "refs/pins/1/two", New: numbered(1)}), "which is another one now")
	s = &Store{Dir: "r", FS: f, LockWait: -1}
	require.ElementsMatch(t, chain, synced(Change{Name: "refs/pins/1/two", Any: true, New: numbered(2)}), "a new process knows nothing")
}

// Changes that are published step by step: a power cut between any two steps leaves the old values or the new ones, and what was not synced is never published.
func TestStagedChanges(t *testing.T) {
	for steps := range 4 {
		m := memory(t, numbered(1).String()+" refs/heads/a\n")
		f := &strict{m.FS(), map[string]bool{}}
		s := &Store{Dir: "r", FS: f, LockWait: -1}
		p, err := s.Stage([]Change{{Name: "refs/heads/a", Old: numbered(1), New: numbered(2)}, {Name: "refs/pins/1/one", New: numbered(3)}})
		require.NoError(t, err)
		require.Error(t, p.Publish(), "nothing of it is durable")
		var locked *LockedError
		require.ErrorAs(t, s.CompareAndSwap("refs/heads/a", numbered(1), numbered(4)), &locked)
		want := map[string]int{"refs/heads/a": 1, "refs/pins/1/one": 0}
		if steps > 0 {
			require.NoError(t, p.Sync(0))
		}
		if steps > 1 {
			require.NoError(t, p.Publish())
			p.Abort() // changes nothing now
			h, err := s.Get("refs/heads/a")
			require.NoError(t, err)
			require.Equal(t, numbered(2), h)
		}
		if steps > 2 {
			require.NoError(t, p.Settle(0))
			want = map[string]int{"refs/heads/a": 2, "refs/pins/1/one": 3}
			f.durable(t, "refs/pins/1/one")
		}
		after := &Store{Dir: "r", FS: m.Crash(nil).FS(), LockWait: -1}
		_, err = after.SweepLocks()
		require.NoError(t, err)
		for name, n := range want {
			h, err := after.Get(name)
			require.NoError(t, err)
			if n == 0 {
				require.True(t, h.IsZero())
			} else {
				require.Equal(t, numbered(n), h, "%s after %d steps", name, steps)
			}
		}
	}
}

// Folders that Keep names stay when their last ref is deleted; others are removed.
func TestKeptFolders(t *testing.T) {
	m := memory(t)
	s := &Store{Dir: "r", FS: m.FS(), LockWait: -1, Keep: []string{"refs/pins"}}
	require.NoError(t, s.CompareAndSwap("refs/pins/1/one", plumbing.ZeroHash, numbered(1)))
	require.NoError(t, s.CompareAndSwap("refs/pins/1/one", numbered(1), plumbing.ZeroHash))
	_, err := m.FS().Lstat("r/refs/pins/1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = m.FS().Lstat("r/refs/pins")
	require.NoError(t, err)
}
