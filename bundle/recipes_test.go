package bundle_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

var (
	base  = bundle.Recipe{Project: "base", Ref: "main", Commit: project.Commit(strings.Repeat("f6", 20)), Part: project.Commit(strings.Repeat("07", 20))}
	again = bundle.Recipe{Project: "base", Ref: "v1", Commit: base.Commit, Part: base.Part}
	nginx = bundle.Recipe{URL: "https://git.example.org/nginx.git", Ref: "v3", Commit: project.Commit(strings.Repeat("18", 20)), Part: project.Commit(strings.Repeat("29", 20))}
)

// A bundle names the recipes of its release, and brings those that a machine lacks; a machine that does not say that it takes them gets a release without.
func TestRecipes(t *testing.T) {
	from, open := pair()
	from[project.Code].has[code], from[project.PillarRepo].has[pillar] = "the code", "the pillar"
	from[project.Code].recipes = map[project.Commit]string{base.Part: "the base", nginx.Part: "the nginx"}
	all := []bundle.Recipe{base, again, nginx}
	from[project.Code].released = map[project.Commit][]bundle.Recipe{code: all}
	whole := bundle.Tips{Code: []project.Commit{code}, Pillar: []project.Commit{pillar}}
	having := func(p bundle.Parts) bundle.Tips {
		t := whole
		t.Recipes = &p
		return t
	}
	for name, c := range map[string]struct {
		have    bundle.Tips
		task    string
		had     []project.Commit
		brought map[project.Commit]string
		none    bool
		refused string
	}{
		"nothing is known":      {have: bundle.Unknown(), brought: map[project.Commit]string{base.Part: "the base of 0", nginx.Part: "the nginx of 0"}},
		"it has the commits":    {have: having(bundle.Parts{}), brought: map[project.Commit]string{base.Part: "the base of 0", nginx.Part: "the nginx of 0"}},
		"an older release":      {have: whole, none: true},
		"a task":                {have: bundle.Unknown(), task: "x", none: true},
		"it has one":            {have: having(bundle.Parts{Commits: []project.Commit{base.Part}}), had: []project.Commit{base.Part}, brought: map[project.Commit]string{nginx.Part: "the nginx of 1"}},
		"it has all":            {have: having(bundle.Parts{Commits: []project.Commit{nginx.Part, base.Part}}), had: []project.Commit{nginx.Part, base.Part}},
		"it is taken to":        {have: having(bundle.Parts{All: true}), had: []project.Commit{nginx.Part, base.Part}},
		"it has not after all":  {have: having(bundle.Parts{Commits: []project.Commit{nginx.Part, base.Part}}), refused: "no recipe base@main"},
		"it has one, it is not": {have: having(bundle.Parts{Commits: []project.Commit{nginx.Part}}), refused: "no recipe https://git.example.org/nginx.git@v3"},
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
				require.Equal(t, c.none, len(m.Release.Recipes) == 0)
				require.Equal(t, c.none, strings.HasPrefix(b.String(), "corpus-git bundle 1\n"), "an older program refuses what names recipes")
				to, into := pair()
				to[project.Code].has[code], to[project.PillarRepo].has[pillar] = "here", "here"
				for _, p := range c.had {
					to[project.Code].recipes[p] = "there"
				}
				r, err := bundle.Open(bytes.NewReader(b.Bytes()), bundle.Anybody)
				require.NoError(t, err)
				require.Equal(t, m.Release.Recipes, r.Manifest.Release.Recipes)
				if c.task == "" {
					err := r.Take(t.Context(), into, "refs/x")
					if c.refused != "" {
						require.ErrorContains(t, err, c.refused)
						require.Empty(t, to[project.Code].released)
						continue
					}
					require.NoError(t, err)
				}
				for _, p := range c.had {
					require.Equal(t, "there", to[project.Code].recipes[p])
					delete(to[project.Code].recipes, p)
				}
				if c.brought == nil {
					c.brought = map[project.Commit]string{}
				}
				require.Equal(t, c.brought, to[project.Code].recipes)
				if c.none {
					require.Empty(t, to[project.Code].released)
				} else {
					require.Equal(t, map[project.Commit][]bundle.Recipe{code: all}, to[project.Code].released)
				}
				r, err = bundle.Open(bytes.NewReader(b.Bytes()), bundle.Anybody)
				require.NoError(t, err)
				require.NoError(t, r.Verify(), "nothing is behind the last pack")
			}
		})
	}
}

// Recipes are what a release is made of: other ones give another digest.
func TestRecipesAreInTheDigest(t *testing.T) {
	digest := func(list ...bundle.Recipe) string {
		r := manifest().Release
		r.Recipes = list
		d, err := r.Digest()
		require.NoError(t, err)
		return d
	}
	moved := base
	moved.Commit = nginx.Commit
	require.NotEqual(t, digest(), digest(base))
	require.NotEqual(t, digest(base), digest(moved))
}

// Whatever a manifest says of its recipes is refused before anything is read.
func TestManifestsOfRecipes(t *testing.T) {
	sum := strings.Repeat("0", 64)
	pack := func(commits ...project.Commit) []bundle.Pack {
		return []bundle.Pack{{Repo: bundle.Recipes, Objects: 1, Bytes: 1, SHA256: sum, Commits: commits}}
	}
	with := func(change func(*bundle.Recipe)) []bundle.Recipe {
		r := base
		change(&r)
		return []bundle.Recipe{r}
	}
	for name, c := range map[string]struct {
		recipes []bundle.Recipe
		packs   []bundle.Pack
		first   string
		bad     string
	}{
		"good":                     {recipes: []bundle.Recipe{base, again, nginx}, packs: pack(nginx.Part)},
		"no pack":                  {recipes: []bundle.Recipe{base}},
		"as an older one":          {recipes: []bundle.Recipe{base}, first: "1", bad: "first line"},
		"an older one as this":     {first: "2", bad: "first line"},
		"a later one":              {recipes: []bundle.Recipe{base}, first: "3", bad: "not a bundle of a version"},
		"neither of both":          {recipes: with(func(r *bundle.Recipe) { r.Project = "" }), bad: "is not a recipe"},
		"both":                     {recipes: with(func(r *bundle.Recipe) { r.URL = nginx.URL }), bad: "is not a recipe"},
		"no name of a project":     {recipes: with(func(r *bundle.Recipe) { r.Project = "../base" }), bad: "is not a recipe"},
		"a long URL":               {recipes: with(func(r *bundle.Recipe) { r.Project, r.URL = "", strings.Repeat("x", 5000) }), bad: "is not a recipe"},
		"no commit":                {recipes: with(func(r *bundle.Recipe) { r.Commit = "main" }), bad: "is not a commit of the recipe base@main"},
		"no part":                  {recipes: with(func(r *bundle.Recipe) { r.Part = "" }), bad: "is not a commit of the recipe base@main"},
		"twice":                    {recipes: append(with(func(r *bundle.Recipe) { r.Commit = nginx.Commit }), base), bad: "base@main is named twice"},
		"too many":                 {recipes: make([]bundle.Recipe, 4097), bad: "more than 4096 recipes"},
		"a pack without them":      {packs: pack(base.Part), bad: "which is of none that it names"},
		"a pack of others":         {recipes: []bundle.Recipe{base}, packs: pack(base.Part, nginx.Part), bad: "which is of none that it names"},
		"a pack without commits":   {recipes: []bundle.Recipe{base}, packs: pack(), bad: "a pack of"},
		"a pack of no commit":      {recipes: []bundle.Recipe{base}, packs: pack("../x"), bad: "is not a commit of the pack recipes"},
		"two packs":                {recipes: []bundle.Recipe{base}, packs: slices.Concat(pack(base.Part), pack(base.Part)), bad: "too many"},
		"a commit of another kind": {recipes: []bundle.Recipe{base}, packs: pack(base.Commit), bad: "which is of none that it names"},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest()
			m.Release.Recipes, m.Packs = c.recipes, c.packs
			var err error
			m.Digest, err = m.Release.Digest()
			require.NoError(t, err)
			line, err := json.Marshal(m)
			require.NoError(t, err)
			sig, err := bundle.Sign("corpus-git bundle manifest\x00", line, signer(t))
			require.NoError(t, err)
			first := c.first
			if first == "" {
				first = map[bool]string{true: "2", false: "1"}[len(c.recipes) > 0]
			}
			_, err = bundle.Open(strings.NewReader("corpus-git bundle "+first+"\n"+string(line)+"\n"+sig+"\n"), bundle.Anybody)
			if c.bad == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.bad)
			require.Equal(t, fault.Refused, fault.KindOf(err))
		})
	}
}
