package bundle_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

var (
	lib   = project.Commit(strings.Repeat("c3", 20))
	deep  = project.Commit(strings.Repeat("d4", 20))
	other = project.Commit(strings.Repeat("e5", 20))
)

// A bundle brings what a machine lacks of the submodules, and nothing to one that does not say that it takes them.
func TestSubmodules(t *testing.T) {
	from, open := pair()
	from[project.Code].has[code], from[project.PillarRepo].has[pillar] = "the code", "the pillar"
	from[project.Code].links = map[project.Commit][]project.Commit{code: {lib, deep}}
	from[project.Code].modules = map[project.Commit]string{lib: "the lib", deep: "the deep"}
	from[project.PillarRepo].links = map[project.Commit][]project.Commit{pillar: {other}}
	from[project.PillarRepo].modules = map[project.Commit]string{other: "the other"}
	for name, c := range map[string]struct {
		have       bundle.Tips
		task       string
		code, data map[project.Commit]string
	}{
		"nothing is known": {have: bundle.Unknown(), code: map[project.Commit]string{lib: "the lib of 0", deep: "the deep of 0"}, data: map[project.Commit]string{other: "the other of 0"}},
		"an older release": {have: bundle.Tips{}},
		"a task":           {have: bundle.Unknown(), task: "x"},
		"it has them":      {have: bundle.Tips{Submodules: &bundle.Submodules{Commits: []project.Commit{deep, lib}}, PillarSubmodules: &bundle.Submodules{Commits: []project.Commit{other}}}},
		"it has one":       {have: bundle.Tips{Submodules: &bundle.Submodules{Commits: []project.Commit{lib}}}, code: map[project.Commit]string{deep: "the deep of 0"}},
		"it has one by a bundle": {
			have: bundle.Tips{Submodules: &bundle.Submodules{Commits: []project.Commit{lib, other}, Bundled: []project.Commit{lib}}},
			code: map[project.Commit]string{deep: "the deep of 1"},
		},
		"it has all but them": {
			have: bundle.Tips{Code: []project.Commit{code}, Pillar: []project.Commit{pillar}, Submodules: &bundle.Submodules{}},
			code: map[project.Commit]string{lib: "the lib of 0", deep: "the deep of 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var packs bundle.Packs
			defer packs.Close()
			for range 2 { // the second is of kept packs
				m := manifest()
				m.Task = c.task
				var b bytes.Buffer
				m, err := bundle.Make(t.Context(), &b, m, open, c.have, &packs, signer(t), t.TempDir())
				require.NoError(t, err)
				brought := 0
				for _, p := range m.Packs {
					brought += len(p.Commits)
				}
				require.Equal(t, len(c.code)+len(c.data), brought)
				to, into := pair()
				to[project.Code].has[code], to[project.PillarRepo].has[pillar] = "here", "here"
				r, err := bundle.Open(bytes.NewReader(b.Bytes()), bundle.Anybody)
				require.NoError(t, err)
				if c.task == "" {
					require.NoError(t, r.Take(t.Context(), into, "refs/x"))
				}
				if c.code == nil {
					c.code = map[project.Commit]string{}
				}
				if c.data == nil {
					c.data = map[project.Commit]string{}
				}
				require.Equal(t, c.code, to[project.Code].modules)
				require.Equal(t, c.data, to[project.PillarRepo].modules)
				r, err = bundle.Open(bytes.NewReader(b.Bytes()), bundle.Anybody)
				require.NoError(t, err)
				require.NoError(t, r.Verify(), "nothing is behind the last pack")
			}
		})
	}
}

// Whatever a manifest says of its packs is refused before one is read.
func TestPacksOfSubmodules(t *testing.T) {
	sum := strings.Repeat("0", 64)
	good := bundle.Pack{Repo: bundle.CodeSubmodules, Objects: 1, Bytes: 1, SHA256: sum, Commits: []project.Commit{lib}}
	for name, c := range map[string]struct {
		packs    []bundle.Pack
		noPillar bool
		bad      string
	}{
		"good":               {packs: []bundle.Pack{good}},
		"without commits":    {packs: []bundle.Pack{{Repo: bundle.CodeSubmodules, Bytes: 1, SHA256: sum}}, bad: "a pack of"},
		"too many":           {packs: []bundle.Pack{{Repo: bundle.CodeSubmodules, Bytes: 1, SHA256: sum, Commits: make([]project.Commit, 1001)}}, bad: "a pack of"},
		"not a commit":       {packs: []bundle.Pack{{Repo: bundle.CodeSubmodules, Bytes: 1, SHA256: sum, Commits: []project.Commit{"../x"}}}, bad: "not a commit"},
		"of the code":        {packs: []bundle.Pack{{Repo: project.Code, Bytes: 1, SHA256: sum, Commits: []project.Commit{lib}}}, bad: "a pack of"},
		"unknown":            {packs: []bundle.Pack{{Repo: "more", Bytes: 1, SHA256: sum, Commits: []project.Commit{lib}}}, bad: "a pack of"},
		"two":                {packs: []bundle.Pack{good, good}, bad: "too many"},
		"without the pillar": {packs: []bundle.Pack{{Repo: bundle.PillarSubmodules, Bytes: 1, SHA256: sum, Commits: []project.Commit{lib}}}, noPillar: true, bad: "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest()
			if c.noPillar {
				m.Release.Pillar, m.Release.PillarBranch = "", ""
			}
			var err error
			m.Digest, err = m.Release.Digest()
			require.NoError(t, err)
			m.Packs = c.packs
			line, err := json.Marshal(m)
			require.NoError(t, err)
			sig, err := bundle.Sign("corpus-git bundle manifest\x00", line, signer(t))
			require.NoError(t, err)
			_, err = bundle.Open(strings.NewReader("corpus-git bundle 1\n"+string(line)+"\n"+sig+"\n"), bundle.Anybody)
			if c.bad == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.bad)
			require.Equal(t, fault.Refused, fault.KindOf(err))
		})
	}
}
