package resume

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/project"
)

func TestCompareNamesWhatDiffers(t *testing.T) {
	was := Point{ID: "0123456789abcdef", Code: "aaaaaaaaaa", Pillar: "bbbbbbbbbb", Set: []project.Setting{{Key: "a", Value: "1"}}, Recipe: "r", Cfg: "c", Tree: "t"}
	require.NoError(t, Compare(was, was))
	for want, change := range map[string]func(*Point){
		"the code is ccccccc, it was aaaaaaa":              func(p *Point) { p.Code = "cccccccccc" },
		"the pillar is none, it was bbbbbbb":               func(p *Point) { p.Pillar = "" },
		"other settings on the command line":               func(p *Point) { p.Set = nil },
		"a secret was set":                                 func(p *Point) { p.Set = []project.Setting{{Key: "a", Secret: true}} },
		"other steps or procedures are selected":           func(p *Point) { p.Select.Skip = []string{"fixperms"} },
		"the recipe has changed":                           func(p *Point) { p.Recipe = "x" },
		"the configuration has changed":                    func(p *Point) { p.Cfg = "x" },
		"files of the live tree have changed":              func(p *Point) { p.Tree = "x" },
		"it was bbbbbbb; files of the live tree have chan": func(p *Point) { p.Pillar, p.Cfg, p.Tree = "dddddddddd", "x", "x" },
	} {
		now := was
		change(&now)
		err := Compare(was, now)
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Refused, fault.KindOf(err))
		require.NotEmpty(t, fault.HintOf(err))
	}
	lost := was
	lost.Lost = "the output x is secret"
	require.ErrorContains(t, Compare(lost, was), "the output x is secret")
}

func TestDigests(t *testing.T) {
	cfg := py.NewDict("deployment_id", "1", "data", py.NewDict("a", int64(1)))
	one, err := Cfg(cfg)
	require.NoError(t, err)
	two, err := Cfg(py.NewDict("deployment_id", "2", "data", py.NewDict("a", int64(1)), "outputs", py.NewDict(), "signals", py.NewDict(), "push_salt_url", "ssh://deploy@host:1/"))
	require.NoError(t, err)
	require.Equal(t, one, two, "what each deployment has of its own does not count, nor where the server listens")
	two, err = Cfg(py.NewDict("data", py.NewDict("a", "1")))
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	require.True(t, cfg.Has("deployment_id"), "the configuration itself is not changed")

	files := fstest.MapFS{"a/b": {Data: []byte("x"), Mode: 0o644}}
	one, err = Files(files)
	require.NoError(t, err)
	files["a/b"].Mode = 0o755
	two, err = Files(files)
	require.NoError(t, err)
	require.NotEqual(t, one, two)

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644))
	one, err = Tree(dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "index"), nil, 0o644))
	two, err = Tree(dir)
	require.NoError(t, err)
	require.Equal(t, one, two, "git's own files do not count")
	for _, change := range []func() error{
		func() error { return os.Chmod(filepath.Join(dir, "a"), 0o600) },
		func() error { return os.Chtimes(filepath.Join(dir, "a"), time.Time{}, time.Unix(5, 0)) },
		func() error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o644) },
		func() error { return os.Remove(filepath.Join(dir, "b")) },
	} {
		require.NoError(t, change())
		two, err = Tree(dir)
		require.NoError(t, err)
		require.NotEqual(t, one, two)
		one = two
	}
}

func TestPointIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resume", "app.json")
	none, err := Load(file)
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, Save(file, Point{ID: "1", Steps: []string{"a"}, Failed: "b", Outputs: []project.Output{{Step: "a", Name: "n", Value: []byte("1")}}}))
	got, err := Load(file)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, got.Steps)
	require.JSONEq(t, "1", string(got.Outputs[0].Value))
	fi, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, fi.Mode().Perm())
	require.NoError(t, Drop(file))
	require.NoError(t, Drop(file))
}
