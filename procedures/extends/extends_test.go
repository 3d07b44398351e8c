package extends_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/procedures/extends"
	"corpus-git/project"
)

// world has the recipes of projects: what each extends. A commit is NAME at its revision.
type world map[string]string

func (w world) Resolve(_ context.Context, p extends.Parent) (project.Commit, error) {
	if strings.Contains(p.URL, "down") {
		return "", fault.New(fault.Busy, "", "no answer")
	}
	if _, ok := w[p.ID()]; !ok {
		return "", fault.New(fault.Refused, "", "no project %s", p.ID())
	}
	return project.Commit(p.ID() + "-" + p.Rev + "-now-of-a-commit"), nil
}

func (w world) Recipe(_ context.Context, p extends.Parent, _ project.Commit) (fs.FS, error) {
	text := w[p.ID()]
	if text == "none" {
		return nil, nil
	}
	return fstest.MapFS{extends.File: {Data: []byte(text)}}, nil
}

// resolve resolves what a project's own file says.
func resolve(t *testing.T, own string, w world, pinned map[string]project.Commit) ([]extends.Layer, map[string]project.Commit, error) {
	parents, err := extends.Read(fstest.MapFS{extends.File: {Data: []byte(own)}}, "")
	if err != nil {
		return nil, nil, err
	}
	return extends.Resolve(t.Context(), "app", parents, w, pinned)
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		own   string
		world world
		want  string
		err   string
	}{
		"nothing":           {own: ""},
		"a chain":           {own: "[a]", world: world{"a": "[b]", "b": "[c]", "c": ""}, want: "a b c"},
		"a diamond":         {own: "[a, b]", world: world{"a": "[base]", "b": "[base]", "base": ""}, want: "a b base"},
		"of python.org":     {own: "[b, c]", world: world{"b": "[e, d]", "c": "[d, f]", "d": "[o]", "e": "[o]", "f": "[o]", "o": ""}, want: "b e c d f o"},
		"no order":          {own: "[a, b]", world: world{"a": "[x, y]", "b": "[y, x]", "x": "", "y": ""}, err: "the recipes cannot be ordered consistently: a, b"},
		"itself":            {own: "[app]", world: world{"app": ""}, err: "app extends itself: app → app"},
		"a cycle":           {own: "[a]", world: world{"a": "[b]", "b": "[a]"}, err: "a extends itself: app → a → b → a"},
		"two revisions":     {own: "[a, b@1]", world: world{"a": "[b@2]", "b": ""}, err: "use one revision"},
		"no such project":   {own: "[a]", world: world{}, err: "a: no project a"},
		"no recipe":         {own: "[a]", world: world{"a": "none"}, err: "a has no folder .salt"},
		"a diamond of URLs": {own: "[a, 'https://h/b@1']", world: world{"a": "['HTTPS://H/c@1']", "https://h/b": "['https://h/c@1']", "https://h/c": ""}, want: "a https://h/b https://h/c"},
		"two of a URL":      {own: "['https://h/b@1', 'https://h/c@2']", world: world{"https://h/b": "['https://h/c@1']", "https://h/c": ""}, err: "use one revision"},
		"a cycle of URLs":   {own: "['https://h/b@1']", world: world{"https://h/b": "['https://h/c@1']", "https://h/c": "['https://h/b@1']"}, err: "https://h/b extends itself: app → https://h/b → https://h/c → https://h/b"},
		"a name of a URL":   {own: "['https://h/b@1']", world: world{"https://h/b": "[a]", "a": ""}, err: "https://h/b:.salt/extends.yaml: a is the name of a project"},
		"no answer":         {own: "['https://down/b@1']", world: world{}, err: "no answer"},
		"a bad file of one": {own: "[a]", world: world{"a": "{}"}, err: "must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			layers, found, err := resolve(t, c.own, c.world, nil)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, l := range layers {
				got = append(got, l.ID())
			}
			require.Equal(t, c.want, strings.Join(got, " "))
			require.Len(t, found, len(layers))
		})
	}
}

// What a release meant when it was first deployed is what it means ever after.
func TestPins(t *testing.T) {
	p := extends.Pins{FS: vfs.OS{}, Path: t.TempDir() + "/a/app.json"}
	none, err := p.Of("1")
	require.NoError(t, err)
	require.Nil(t, none)
	pins := map[string]project.Commit{"a@v1": "c1", "b": "c2", "ssh://git@h/u@x/y": "c4"}
	_, err = p.Keep("1", extends.Release{Pins: pins})
	require.NoError(t, err)
	_, err = p.Keep("1", extends.Release{Pins: map[string]project.Commit{"a@v1": "c9"}})
	require.NoError(t, err)
	needed, err := p.Keep("2", extends.Release{Pins: map[string]project.Commit{"a@v1": "c3"}})
	require.NoError(t, err)
	require.Equal(t, extends.Needed{Projects: map[project.Name]map[project.Commit]bool{"a": {"c1": true, "c3": true}, "b": {"c2": true}}, Stored: map[project.Commit]bool{"c4": true}}, needed)
	rel, err := p.Of("1")
	require.NoError(t, err)
	require.Equal(t, &extends.Release{Pins: pins}, rel)
	_, found, err := resolve(t, "[a@v1]", world{"a": ""}, rel.Pins)
	require.NoError(t, err)
	require.Equal(t, map[string]project.Commit{"a@v1": "c1"}, found)
}

// What came in a bundle is recorded as the bundle says, once: neither a bundle nor a deployment here changes it.
func TestReceivedPins(t *testing.T) {
	p := extends.Pins{FS: vfs.OS{}, Path: t.TempDir() + "/a/app.json"}
	pins := map[string]project.Commit{"base@main": "c1", "https://h/u@x": "c2"}
	came := extends.Release{Pins: pins, Parts: map[project.Commit]project.Commit{"c1": "p1", "c2": "p2"}}
	require.NoError(t, p.Agrees("1", pins))
	require.NoError(t, p.Receive("1", came))
	require.NoError(t, p.Receive("1", came))
	needed, err := p.Keep("1", extends.Release{Pins: map[string]project.Commit{"base@main": "c9"}})
	require.NoError(t, err)
	require.Equal(t, extends.Needed{Projects: map[project.Name]map[project.Commit]bool{}, Stored: map[project.Commit]bool{"p1": true, "p2": true}}, needed)
	rel, err := p.Of("1")
	require.NoError(t, err)
	require.Equal(t, &came, rel)
	for name, c := range map[string]struct {
		pins map[string]project.Commit
		err  string
	}{
		"another commit": {map[string]project.Commit{"base@main": "c1", "https://h/u@x": "c3"}, "was deployed here before, with https://h/u@x at c2, and the bundle names c3"},
		"one less":       {map[string]project.Commit{"base@main": "c1"}, "with https://h/u@x at c2, and the bundle names none"},
		"one more":       {map[string]project.Commit{"base@main": "c1", "https://h/u@x": "c2", "more": "c4"}, "with fewer recipes than the bundle names"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, p.Agrees("1", c.pins), c.err)
			err := p.Receive("1", extends.Release{Pins: c.pins, Parts: map[project.Commit]project.Commit{}})
			require.Equal(t, fault.Refused, fault.KindOf(err))
			require.ErrorContains(t, err, c.err)
			rel, err := p.Of("1")
			require.NoError(t, err)
			require.Equal(t, &came, rel)
		})
	}
	// One that this machine resolved itself, as an older release did, becomes one of the bundle if it has the same commits.
	_, err = p.Keep("2", extends.Release{Pins: map[string]project.Commit{"base": "c5"}})
	require.NoError(t, err)
	require.NoError(t, p.Receive("2", extends.Release{Pins: map[string]project.Commit{"base": "c5"}, Parts: map[project.Commit]project.Commit{"c5": "p5"}}))
	latest, err := p.Latest(1)
	require.NoError(t, err)
	require.Equal(t, []extends.Release{{Pins: map[string]project.Commit{"base": "c5"}, Parts: map[project.Commit]project.Commit{"c5": "p5"}}}, latest)
	latest, err = p.Latest(9)
	require.NoError(t, err)
	require.Len(t, latest, 2)
}

func TestEntry(t *testing.T) {
	for in, want := range map[string]extends.Parent{
		"base":                             {Name: "base"},
		"base@v1":                          {Name: "base", Rev: "v1"},
		"HTTPS://Git.Example.org/a.git@v1": {URL: "https://git.example.org/a.git", Rev: "v1"},
		"ssh://git@h:2222/a/b@feature/x":   {URL: "ssh://git@h:2222/a/b", Rev: "feature/x"},
		"https://h/a/@v1":                  {URL: "https://h/a", Rev: "v1"},
	} {
		got, err := extends.ParseEntry(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
		again, err := extends.ParseEntry(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for in, want := range map[string]string{
		"https://h/a":              "has no revision",
		"https://marie:pw@h/a@v1":  "has a user, password",
		"https://token@h/a@v1":     "has a user, password",
		"ssh://git:pw@h/a@v1":      "has a user, password",
		"https://h/a?token=pw@v1":  "has a user, password",
		"https:///a@v1":            "no host or path",
		"https://h/@v1":            "no host or path",
		"https://h/a@--upload":     "is not a branch, tag or commit",
		"https://h/a@a..b":         "is not a branch, tag or commit",
		"file:///srv/a@v1":         "unsupported URL scheme",
		"ext::sh -c x://h/a@v1":    "unsupported URL scheme",
		"https://h/%00a@v1":        "cannot be read",
		"git@github.com:a/b.git@1": "is not a branch, tag or commit",
	} {
		_, err := extends.ParseEntry(in)
		require.ErrorContains(t, err, want, in)
		require.NotContains(t, err.Error(), "pw")
		_, err = extends.Parse(".salt/extends.yaml", []byte("- a\n- '"+in+"'\n"))
		require.ErrorContains(t, err, want, in)
		at, _ := fault.PosOf(err)
		require.Equal(t, 2, at.Line, in)
		require.NotContains(t, at.Text, "pw")
	}
}

func TestOverlay(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	own := fstest.MapFS{"010.sls": file("own"), "files/a": file("own a"), "hidden": file("a file"), "link": {Data: []byte("files"), Mode: fs.ModeSymlink | 0o777}}
	base := fstest.MapFS{"010.sls": file("base"), "020.sls": file("base"), "files/a": file("base a"), "files/b": file("base b"), "hidden/x": file("x"), "link/y": file("y"), "deep/er/z": file("z")}
	o := extends.Overlay(own, base)
	require.NoError(t, fstest.TestFS(o, "010.sls", "020.sls", "files/a", "files/b", "hidden", "deep/er/z"))
	for name, want := range map[string]string{"010.sls": "own", "020.sls": "base", "files/a": "own a", "files/b": "base b"} {
		got, err := fs.ReadFile(o, name)
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
	_, err := fs.Stat(o, "hidden/x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.Stat(o, "link/y")
	require.Error(t, err) // the link is the own recipe's, and leads to its folder
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"[a, b@v1]\n", "- a@refs/heads/x\n- ../b\n", "{}", "[a, a]", "[a@-x]", "[1]", "['https://h/a.git@v1', 'ssh://git@h/~x@y']", "['https://u:p@h/a@v1']"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := extends.Parse(".salt/extends.yaml", []byte(text))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, p := range got {
			again, err := extends.ParseEntry(p.String())
			require.NoError(t, err)
			require.Equal(t, p, again)
			require.NotEqual(t, p.URL == "", p.Name == "")
			require.NotContains(t, p.Rev, "..")
			require.False(t, strings.HasPrefix(p.Rev, "-"))
		}
	})
}
