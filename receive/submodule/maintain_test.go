package submodule_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/receive/submodule"
)

// upkeep is a Maintain that keeps what the given commits of app need. hook, if set, is called whenever Maintain yields to others.
func (w *world) upkeep(hook func(), keep ...plumbing.Hash) submodule.Upkeep {
	if hook == nil {
		hook = func() {}
	}
	n := 0
	return submodule.Upkeep{
		Repack: store.Repack{ID: "maintenance", Packs: 3, Pause: func(context.Context) error { hook(); return nil }},
		Grace:  time.Hour,
		Needed: func(_ context.Context, needs *submodule.Needs) error {
			n++
			require.Equal(w.t, 1, n, "asked for once")
			db, err := store.Open(filepath.Join(w.dir, "app", ".git"), store.Options{})
			require.NoError(w.t, err)
			defer db.Close()
			for _, h := range keep {
				if err := needs.Add(db, h); err != nil {
					return err
				}
			}
			return nil
		},
		Alone: func(_ context.Context, f func() error) error {
			hook()
			err := f()
			hook()
			return err
		},
	}
}

// age makes everything below the repositories of submodules a day old.
func (w *world) age() {
	day := time.Now().Add(-24 * time.Hour)
	require.NoError(w.t, filepath.WalkDir(w.res.Dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, day, day)
	}))
}

// days are commits of app, on each of which the submodule lib is another commit; all were deployed.
func (w *world) days(n int) (tops, libs []plumbing.Hash) {
	s := w.smart(nil)
	w.repo("lib")
	for i := range n {
		lib := w.commit("lib", fmt.Sprint("day ", i), fmt.Sprint("day ", i, "\n"))
		top := w.link("app", "lib", s.URL+"/lib/.git", lib)
		set, err := w.resolve(top)
		require.NoError(w.t, err)
		w.here(set, 0, lib, fmt.Sprint("day ", i))
		tops, libs = append(tops, top), append(libs, lib)
	}
	return tops, libs
}

// complete checks that a commit is stored completely, without contacting anybody; or that nothing of it is.
func (w *world) complete(repo string, lib plumbing.Hash, day int, there bool) {
	w.t.Helper()
	rel, err := filepath.Rel(w.dir, repo)
	require.NoError(w.t, err)
	_, err = os.Lstat(filepath.Join(repo, "refs", "corpus", "commits", lib.String()))
	if !there {
		require.ErrorIs(w.t, err, os.ErrNotExist)
		return
	}
	require.NoError(w.t, err)
	require.Equal(w.t, fmt.Sprint("day ", day), w.git(rel, "show", lib.String()+":file"))
}

func TestMaintain(t *testing.T) {
	w := newWorld(t)
	tops, libs := w.days(8)
	dirs, err := submodule.Repositories(w.res.Dir)
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	repo := dirs[0]

	// What was fetched or deployed recently is kept, needed or not; packs are consolidated.
	m, err := submodule.Maintain(context.Background(), w.res.Dir, w.upkeep(nil, tops[7]))
	require.NoError(t, err)
	require.Equal(t, 8, m.Before.Packs)
	require.Equal(t, 8, m.Consolidated)
	require.Equal(t, 1, m.After.Packs)
	require.Zero(t, m.Expired+m.Pruned)
	for i, h := range libs {
		w.complete(repo, h, i, true)
	}

	w.age()
	set, err := w.resolve(tops[3]) // deployed again
	require.NoError(t, err)
	w.here(set, 0, libs[3], "day 3")

	// A dry run: nothing is done.
	o := w.upkeep(nil, tops[6], tops[7])
	o.Repack.DryRun = true
	m, err = submodule.Maintain(context.Background(), w.res.Dir, o)
	require.NoError(t, err)
	require.Equal(t, 5, m.Expired)
	require.Equal(t, 15, m.Pruned, "commit, tree and blob of each")
	for i, h := range libs {
		w.complete(repo, h, i, true)
	}

	// They are in use, or something was pushed: nothing is removed.
	o = w.upkeep(nil, tops[6], tops[7])
	busy := errors.New("busy")
	o.Alone = func(context.Context, func() error) error { return busy }
	_, err = submodule.Maintain(context.Background(), w.res.Dir, o)
	require.ErrorIs(t, err, busy)
	for i, h := range libs {
		w.complete(repo, h, i, true)
	}

	asked := 0
	o = w.upkeep(nil, tops[6], tops[7])
	o.Search = func(dir string, done bool) (bool, error) {
		require.Equal(t, repo, dir)
		if done {
			asked++
		}
		return true, nil
	}
	m, err = submodule.Maintain(context.Background(), w.res.Dir, o)
	require.NoError(t, err)
	require.Equal(t, 5, m.Expired)
	require.Equal(t, 15, m.Pruned)
	require.Equal(t, 9, m.After.Objects)
	require.Equal(t, 1, asked)
	for i, h := range libs {
		w.complete(repo, h, i, i == 3 || i > 5)
	}
	w.here(set, 0, libs[3], "day 3")
	shallow, err := os.ReadFile(filepath.Join(repo, "shallow"))
	require.NoError(t, err)
	require.Len(t, shallow, 3*41, "what is gone has no place in the boundary of history")

	m, err = submodule.Maintain(context.Background(), w.res.Dir, w.upkeep(nil, tops[6], tops[7]))
	require.NoError(t, err)
	require.False(t, m.Changed())

	// What was removed is fetched again when it is needed.
	w.said = nil
	set, err = w.resolve(tops[0])
	require.NoError(t, err)
	require.Len(t, w.said, 1)
	w.here(set, 0, libs[0], "day 0")

	m, err = submodule.Maintain(context.Background(), filepath.Join(w.dir, "nothing"), w.upkeep(nil))
	require.NoError(t, err)
	require.Equal(t, submodule.Maintained{}, m)
}

// TestMaintainNested: what a submodule's own submodules need is kept, too.
func TestMaintainNested(t *testing.T) {
	w := newWorld(t)
	s := w.smart(nil)
	w.repo("deep")
	deep := w.commit("deep", "tip", "tip\n")
	w.repo("lib")
	first := w.link("lib", "deep", s.URL+"/deep/.git", deep)
	one := w.link("app", "lib", s.URL+"/lib/.git", first)
	_, err := w.resolve(one)
	require.NoError(t, err)
	newer := w.commit("deep", "newer", "newer\n")
	second := w.link("lib", "deep", s.URL+"/deep/.git", newer)
	two := w.link("app", "lib", s.URL+"/lib/.git", second)
	_, err = w.resolve(two)
	require.NoError(t, err)
	w.age()

	m, err := submodule.Maintain(context.Background(), w.res.Dir, w.upkeep(nil, one))
	require.NoError(t, err)
	require.Equal(t, 2, m.Repositories)
	require.Equal(t, 2, m.Expired)
	w.res.Offline = true
	set, err := w.resolve(one)
	require.NoError(t, err)
	require.Len(t, set.Modules, 1)
	require.Equal(t, first, set.Modules[0].Commit)
	require.Len(t, set.Modules[0].Modules, 1)
	require.Equal(t, deep, set.Modules[0].Modules[0].Commit)
	set, err = w.resolve(two)
	require.NoError(t, err)
	require.Empty(t, set.Modules)

	// A superproject that does not exist, or has no submodules, needs nothing.
	w.res.Offline = false
	w.age()
	m, err = submodule.Maintain(context.Background(), w.res.Dir, w.upkeep(nil, plumbing.NewHash("12"), plumbing.NewHash(w.git("app", "rev-list", "--max-parents=0", "HEAD"))))
	require.NoError(t, err)
	require.Equal(t, 2, m.Expired)
	require.Zero(t, m.After.Objects)
	_, err = w.resolve(two)
	require.NoError(t, err)
}

// TestMaintainCrash: a machine that stops at any point of a Maintain leaves everything that is needed complete, and the next one
// finishes the work.
func TestMaintainCrash(t *testing.T) {
	w := newWorld(t)
	tops, libs := w.days(6)
	w.age()
	// An entry for what is no longer stored, as a crash before the last step leaves it.
	dirs, err := submodule.Repositories(w.res.Dir)
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(dirs[0], "shallow"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("1212121212121212121212121212121212121212\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	var left []string
	snapshot := func() {
		to := filepath.Join(w.dir, fmt.Sprint("left-", len(left)))
		require.NoError(t, os.CopyFS(to, os.DirFS(w.res.Dir)))
		left = append(left, to)
	}
	m, err := submodule.Maintain(context.Background(), w.res.Dir, w.upkeep(snapshot, tops[4], tops[5]))
	require.NoError(t, err)
	require.Equal(t, 4, m.Expired)
	snapshot()
	require.Greater(t, len(left), 5)
	for _, dir := range left {
		w.res.Dir = dir
		// The start of the next process, and a deployment of what is live.
		w.said = nil
		set, err := w.resolve(tops[5])
		require.NoError(t, err)
		require.Empty(t, w.said, "nothing needs to be fetched")
		w.here(set, 0, libs[5], "day 5")
		w.age()
		_, err = submodule.Maintain(context.Background(), dir, w.upkeep(nil, tops[4], tops[5]))
		require.NoError(t, err)
		dirs, err := submodule.Repositories(dir)
		require.NoError(t, err)
		for i, h := range libs {
			w.complete(dirs[0], h, i, i > 3)
		}
		rel, err := filepath.Rel(w.dir, dirs[0])
		require.NoError(t, err)
		w.git(rel, "fsck", "--strict")
		shallow, err := os.ReadFile(filepath.Join(dirs[0], "shallow"))
		require.NoError(t, err)
		require.Len(t, shallow, 2*41)
		objects, err := filepath.Glob(filepath.Join(dirs[0], "objects", "pack", "*.pack"))
		require.NoError(t, err)
		require.Len(t, objects, 1)
	}
}
