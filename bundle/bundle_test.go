package bundle_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// repository has texts for commits: a pack is the missing texts.
type repository struct {
	has  map[project.Commit]string
	refs map[string]project.Commit
	// links are the commits of submodules of each commit, modules their texts.
	links   map[project.Commit][]project.Commit
	modules map[project.Commit]string
	// recipes are the texts of parts, released the recipes recorded for releases.
	recipes  map[project.Commit]string
	released map[project.Commit][]bundle.Recipe
}

func (r *repository) Recipes(_ context.Context, of project.Commit) ([]bundle.Recipe, error) {
	return r.released[of], nil
}

func (r *repository) WriteRecipes(_ context.Context, w io.Writer, _ project.Commit, recipes []bundle.Recipe, have []project.Commit) (n int, err error) {
	parts := bundle.Parted(recipes)
	for _, p := range parts {
		if _, err := fmt.Fprintf(w, "%s of %d;", r.recipes[p], len(have)); err != nil {
			return 0, err
		}
	}
	return len(parts), nil
}

func (r *repository) TakeRecipes(_ context.Context, in io.Reader, of project.Commit, recipes []bundle.Recipe, brought []project.Commit, complete func() error) error {
	if in != nil {
		text, err := io.ReadAll(in)
		if err == nil {
			err = complete()
		}
		if err != nil {
			return err
		}
		for i, t := range strings.Split(strings.TrimSuffix(string(text), ";"), ";") {
			r.recipes[brought[i]] = t
		}
	}
	for _, x := range recipes {
		if _, ok := r.recipes[x.Part]; !ok {
			return fault.New(fault.Refused, "", "no recipe %s", x)
		}
	}
	r.released[of] = recipes
	return nil
}

func (r *repository) SubmoduleCommits(_ context.Context, of project.Commit) ([]project.Commit, error) {
	return r.links[of], nil
}

func (r *repository) WriteSubmodules(_ context.Context, w io.Writer, _ project.Commit, want, have []project.Commit) (int, error) {
	for _, c := range want {
		if _, err := fmt.Fprintf(w, "%s of %d;", r.modules[c], len(have)); err != nil {
			return 0, err
		}
	}
	return len(want), nil
}

func (r *repository) TakeSubmodules(_ context.Context, in io.Reader, commits []project.Commit, complete func() error) error {
	text, err := io.ReadAll(in)
	if err == nil {
		err = complete()
	}
	for i, t := range strings.Split(strings.TrimSuffix(string(text), ";"), ";") {
		if err == nil {
			r.modules[commits[i]] = t
		}
	}
	return err
}

func (r *repository) Tips(context.Context) (out []project.Commit, err error) {
	for c := range r.has {
		out = append(out, c)
	}
	return out, nil
}

func (r *repository) WritePack(_ context.Context, w io.Writer, want project.Commit, have []project.Commit) (int, error) {
	for _, c := range have {
		if c == want {
			return 0, nil
		}
	}
	_, err := io.WriteString(w, r.has[want])
	return 1, err
}

func (r *repository) TakePack(_ context.Context, in io.Reader, commit project.Commit, ref string, complete func() error) error {
	if in == nil {
		if _, ok := r.has[commit]; !ok {
			return fault.New(fault.Refused, "", "no %s", commit.Short())
		}
	} else {
		text, err := io.ReadAll(in)
		if err == nil {
			err = complete()
		}
		if err != nil {
			return err
		}
		r.has[commit] = string(text)
	}
	r.refs[ref] = commit
	return nil
}

func pair() (map[project.Repo]*repository, bundle.Repositories) {
	m := map[project.Repo]*repository{}
	for _, r := range []project.Repo{project.Code, project.PillarRepo} {
		m[r] = &repository{has: map[project.Commit]string{}, refs: map[string]project.Commit{}, modules: map[project.Commit]string{}, recipes: map[project.Commit]string{}, released: map[project.Commit][]bundle.Recipe{}}
	}
	return m, func(r project.Repo) bundle.Repository { return m[r] }
}

var (
	code   = project.Commit(strings.Repeat("a1", 20))
	pillar = project.Commit(strings.Repeat("b2", 20))
)

func signer(t testing.TB) ssh.Signer {
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	return s
}

func manifest() bundle.Manifest {
	return bundle.Manifest{
		Release:    bundle.Release{Project: "app", Code: code, Pillar: pillar, CodeBranch: "refs/heads/main", PillarBranch: "refs/heads/master", Set: []project.Setting{}},
		Deployment: "36c50590-0732-43c6-9abf-ac904b98f8ee", By: project.Pusher{Key: "marie"}, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), From: "hub",
	}
}

func made(t testing.TB, have bundle.Tips) (bundle.Manifest, []byte) {
	from, open := pair()
	from[project.Code].has[code], from[project.PillarRepo].has[pillar] = "the code", "the pillar"
	var b bytes.Buffer
	m, err := bundle.Make(context.Background(), &b, manifest(), open, have, nil, signer(t), t.TempDir())
	require.NoError(t, err)
	return m, b.Bytes()
}

func take(data []byte) (map[project.Repo]*repository, bundle.Manifest, error) {
	to, open := pair()
	r, err := bundle.Open(bytes.NewReader(data), bundle.Anybody)
	if err != nil {
		return to, bundle.Manifest{}, err
	}
	return to, r.Manifest, r.Take(context.Background(), open, "refs/x")
}

func TestRoundTrip(t *testing.T) {
	m, data := made(t, bundle.Tips{})
	require.Len(t, m.Packs, 2)
	to, got, err := take(data)
	require.NoError(t, err)
	require.Equal(t, m.Digest, got.Digest)
	require.Equal(t, m.Release.Code, got.Release.Code)
	require.Equal(t, map[project.Commit]string{code: "the code"}, to[project.Code].has)
	require.Equal(t, map[project.Commit]string{pillar: "the pillar"}, to[project.PillarRepo].has)
	require.Equal(t, code, to[project.Code].refs["refs/x"])
	require.Equal(t, pillar, to[project.PillarRepo].refs["refs/x"])
	r, err := bundle.Open(bytes.NewReader(data), bundle.Anybody)
	require.NoError(t, err)
	require.NoError(t, r.Verify())
}

// What the other machine has is omitted; a machine that does not have it after all gets an error.
func TestWhatIsThereIsLeftOut(t *testing.T) {
	m, data := made(t, bundle.Tips{Code: []project.Commit{code}})
	require.Len(t, m.Packs, 1)
	require.Equal(t, project.PillarRepo, m.Packs[0].Repo)
	_, _, err := take(data)
	require.Equal(t, fault.Refused, fault.KindOf(err))
	whole, _ := made(t, bundle.Tips{})
	require.Equal(t, whole.Digest, m.Digest, "the digest is that of the release, whatever is packed")
}

func TestDigestIsOfWhatIsDeployed(t *testing.T) {
	a := manifest().Release
	one, err := a.Digest()
	require.NoError(t, err)
	a.Environment = "qa"
	two, err := a.Digest()
	require.NoError(t, err)
	require.NotEqual(t, one, two)
}

// No byte can be changed, and no end be truncated: nothing of the affected pack is stored.
func TestEveryByteCounts(t *testing.T) {
	m, data := made(t, bundle.Tips{})
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		to, _, err := take(bad)
		require.Error(t, err, "byte %d of %d: %q", i, len(data), data[i])
		if i < len(data)-int(m.Packs[1].Bytes) {
			require.Empty(t, to[project.Code].has, "byte %d", i)
		}
		require.Empty(t, to[project.PillarRepo].has, "byte %d", i)
	}
	for n := range len(data) {
		to, _, err := take(data[:n])
		require.Equal(t, fault.Refused, fault.KindOf(err), "%d bytes: %v", n, err)
		require.Empty(t, to[project.PillarRepo].has)
	}
	r, err := bundle.Open(bytes.NewReader(append(bytes.Clone(data), 'x')), bundle.Anybody)
	require.NoError(t, err)
	require.ErrorContains(t, r.Verify(), "behind its last pack")
}

func TestTrustIsAskedFirst(t *testing.T) {
	_, data := made(t, bundle.Tips{})
	no := errors.New("not this one")
	_, err := bundle.Open(bytes.NewReader(data), func(k ssh.PublicKey) error {
		require.Equal(t, signer(t).PublicKey().Marshal(), k.Marshal())
		return no
	})
	require.ErrorIs(t, err, no)
}

func TestManifestsThatCannotBeDeployed(t *testing.T) {
	for name, change := range map[string]func(*bundle.Manifest){
		"project":    func(m *bundle.Manifest) { m.Release.Project = "../x" },
		"code":       func(m *bundle.Manifest) { m.Release.Code = "HEAD" },
		"branch":     func(m *bundle.Manifest) { m.Release.CodeBranch = "refs/corpus/x" },
		"deployment": func(m *bundle.Manifest) { m.Deployment = "../../x" },
		"task":       func(m *bundle.Manifest) { m.Task = "../x" },
	} {
		t.Run(name, func(t *testing.T) {
			from, open := pair()
			from[project.Code].has[code], from[project.PillarRepo].has[pillar] = "c", "p"
			m := manifest()
			change(&m)
			_, err := bundle.Make(t.Context(), io.Discard, m, open, bundle.Tips{}, nil, signer(t), t.TempDir())
			require.Error(t, err)
		})
	}
}

// FuzzOpen reads any bytes, with a valid signature: it must neither panic nor read more than the manifest states.
func FuzzOpen(f *testing.F) {
	_, data := made(f, bundle.Tips{})
	f.Add(data)
	f.Add([]byte("corpus-git bundle 1\n{}\nx y\n"))
	line := []byte(`{"packs":[{"repo":"project","bytes":9223372036854775807}]}`)
	s := signer(f)
	sig, err := s.Sign(bytes.NewReader(make([]byte, 1000)), append([]byte("corpus-git bundle manifest\x00"), line...))
	require.NoError(f, err)
	f.Add(fmt.Appendf(nil, "corpus-git bundle 1\n%s\n%s %x\n", line, bytes.TrimSpace(ssh.MarshalAuthorizedKey(s.PublicKey())), ssh.Marshal(sig)))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, m, err := take(data)
		if err == nil && m.Release.Code != code {
			t.Fatalf("a bundle that nobody signed was taken: %+v", m)
		}
	})
}
