package submodule_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/store"
	"corpus-git/git/upload"
	"corpus-git/internal/fault"
	"corpus-git/receive/submodule"
)

// bundled packs commits of the submodules of a commit of app.
func (w *world) bundled(set *submodule.Set, want, have []plumbing.Hash) []byte {
	w.t.Helper()
	var b bytes.Buffer
	n, err := set.WritePack(w.t.Context(), &b, want, have)
	require.NoError(w.t, err)
	require.Equal(w.t, n == 0, b.Len() == 0)
	return b.Bytes()
}

func (w *world) receive(dir string, text []byte, commits ...plumbing.Hash) error {
	return submodule.Receive(w.t.Context(), dir, 0o755, submodule.Incoming{What: "submodules", Commits: commits, Pack: bytes.NewReader(text), ID: w.res.ID()})
}

// A machine that reaches nothing gets the submodules of a commit, nested ones included, from one that fetched them; of a later one it gets what changed.
func TestReceive(t *testing.T) {
	w := newWorld(t)
	w.repo("deep")
	w.repo("lib")
	w.commit("deep", "more history", "deep 2\n")
	deep := w.commit("deep", "deep", "deep\n")
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "lib", "stays"), bytes.Repeat([]byte("some text\n"), 100), 0o644))
	w.commit("lib", "stays", "lib\n\n")
	w.commit("lib", "first again", "lib\n")
	s := w.smart(nil)
	lib := w.link("lib", "in/deep", s.URL+"/deep/.git", deep)
	app := w.link("app", "vendor/lib", s.URL+"/lib/.git", lib)
	set, err := w.resolve(app)
	require.NoError(t, err)
	require.Equal(t, plumbing.NewHash(w.git("lib", "rev-parse", "HEAD")), lib)
	all := set.Commits()
	require.ElementsMatch(t, []plumbing.Hash{lib, deep}, all)

	there := filepath.Join(w.dir, "there")
	require.NoError(t, w.receive(there, w.bundled(set, all, nil), all...))
	require.NoError(t, w.receive(there, w.bundled(set, all, nil), all...), "the same again")
	stored, came, err := submodule.Stored(there)
	require.NoError(t, err)
	require.ElementsMatch(t, all, stored)
	require.Equal(t, stored, came)

	// Resolve finds all of it there, and reaches for nothing.
	fetches := w.res.Dir
	w.res.Dir, w.said = there, nil
	got, err := w.resolve(app)
	require.NoError(t, err)
	require.Empty(t, w.said)
	w.here(got, 0, lib, "lib")
	require.Len(t, got.Modules[0].Modules, 1)
	require.Equal(t, deep, got.Modules[0].Modules[0].Commit)
	require.Equal(t, "1", w.git("there/received", "rev-list", "--count", deep.String()), "no history")

	// Maintenance keeps what the superproject needs.
	w.age()
	_, err = submodule.Maintain(t.Context(), there, w.upkeep(nil, app))
	require.NoError(t, err)
	stored, _, err = submodule.Stored(there)
	require.NoError(t, err)
	require.ElementsMatch(t, all, stored)

	// One file of lib changes.
	w.res.Dir = fetches
	lib2 := w.commit("lib", "changed", "lib 2\n")
	app2 := w.link("app", "vendor/lib", s.URL+"/lib/.git", lib2)
	set, err = w.resolve(app2)
	require.NoError(t, err)
	var b bytes.Buffer
	n, err := set.WritePack(t.Context(), &b, []plumbing.Hash{lib2}, all)
	require.NoError(t, err)
	require.Equal(t, 3, n, "commit, tree, file")
	w.res.Dir, w.said = there, nil
	require.NoError(t, submodule.Receive(t.Context(), there, 0o755, submodule.Incoming{
		What: "submodules", Commits: []plumbing.Hash{lib2}, Pack: &b, ID: "now",
		Complete: func() error { // a deployment that begins meanwhile removes nothing of it
			_, err := w.resolve(app)
			return err
		},
	}))
	got, err = w.resolve(app2)
	require.NoError(t, err)
	require.Empty(t, w.said)
	w.here(got, 0, lib2, "lib 2")
	_, err = w.resolve(app)
	require.NoError(t, err, "what was there before still is")

	n, err = set.WritePack(t.Context(), io.Discard, []plumbing.Hash{lib2}, []plumbing.Hash{lib2})
	require.NoError(t, err)
	require.Zero(t, n)
}

// A pack that is not exactly the commits that it claims to be leaves nothing.
func TestReceiveRefuses(t *testing.T) {
	w := newWorld(t)
	w.repo("lib")
	first := plumbing.NewHash(w.git("lib", "rev-parse", "HEAD"))
	lib := w.commit("lib", "second", "lib 2\n")
	s := w.smart(nil)
	app := w.link("app", "vendor/lib", s.URL+"/lib/.git", lib)
	set, err := w.resolve(app)
	require.NoError(t, err)
	good := w.bundled(set, []plumbing.Hash{lib}, nil)
	db, err := store.Open(filepath.Join(w.dir, "lib", ".git"), store.Options{})
	require.NoError(t, err)
	defer db.Close()
	of := func(wants, haves []plumbing.Hash, whole bool) []byte {
		var b bytes.Buffer
		write := upload.Snapshots
		if whole {
			write = upload.Pack
		}
		_, err := write(t.Context(), db, wants, haves, &b)
		require.NoError(t, err)
		return b.Bytes()
	}
	one := []plumbing.Hash{lib}
	tree := plumbing.NewHash(w.git("lib", "rev-parse", lib.String()+"^{tree}"))
	for name, c := range map[string]struct {
		text    []byte
		commits []plumbing.Hash
		bad     string
	}{
		"another commit":       {good, []plumbing.Hash{first}, "is not in it"},
		"one commit is not in": {good, []plumbing.Hash{lib, first}, "is not in it"},
		"another one too":      {of([]plumbing.Hash{lib, first}, nil, false), one, "3 of its objects belong to none of its commits"},
		"with its history":     {of(one, nil, true), one, "belong to none of its commits"},
		"its file is missing":  {onlyCommitAndTree(w, lib), one, "incomplete"},
		"a tree":               {good, []plumbing.Hash{tree}, "is not in it"},
		"cut off":              {good[:len(good)-30], one, ""},
		"nothing":              {nil, one, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "there")
			err := w.receive(dir, c.text, c.commits...)
			require.Error(t, err)
			require.Equal(t, fault.Refused, fault.KindOf(err), err)
			require.ErrorContains(t, err, c.bad)
			stored, _, err := submodule.Stored(dir)
			require.NoError(t, err)
			require.Empty(t, stored)
			left, err := filepath.Glob(filepath.Join(dir, "*", "objects", "*", "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	// A digest that is wrong, which shows when all is read.
	dir := filepath.Join(w.dir, "there")
	wrong := errors.New("another digest")
	err = submodule.Receive(t.Context(), dir, 0o755, submodule.Incoming{What: "submodules", Commits: one, Pack: bytes.NewReader(good), ID: "x", Complete: func() error { return wrong }})
	require.ErrorIs(t, err, wrong)
	stored, _, err := submodule.Stored(dir)
	require.NoError(t, err)
	require.Empty(t, stored)
	require.NoError(t, w.receive(dir, good, lib))
}

// onlyCommitAndTree packs a commit and its tree, without the files.
func onlyCommitAndTree(w *world, commit plumbing.Hash) []byte {
	list := filepath.Join(w.dir, "list")
	require.NoError(w.t, os.WriteFile(list, []byte(commit.String()+"\n"+w.git("lib", "rev-parse", commit.String()+"^{tree}")+"\n"), 0o644))
	name := w.git("lib", "-c", "alias.p=!git pack-objects -q "+filepath.Join(w.dir, "cut")+" < "+list, "p")
	text, err := os.ReadFile(filepath.Join(w.dir, "cut-"+name+".pack"))
	require.NoError(w.t, err)
	return text
}
