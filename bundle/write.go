package bundle

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"

	"corpus-git/project"
)

const (
	magic = "corpus-git bundle 1\n"
	// extended begins a bundle whose release names recipes: a program that does not know them refuses it.
	extended = "corpus-git bundle 2\n"
	// signed is the domain prefix of what is signed: a signature of ours is not valid elsewhere.
	signed = "corpus-git bundle manifest\x00"
)

// Repository is the part of a repository of a project that this package needs; receive's implements it except for the limits.
type Repository interface {
	// Tips returns the commits that its refs lead to.
	Tips(ctx context.Context) ([]project.Commit, error)
	// WritePack writes a pack that brings the commit want to a repository with the commits have, and counts its objects: none, and nothing
	// written, if nothing is missing.
	WritePack(ctx context.Context, w io.Writer, want project.Commit, have []project.Commit) (objects int, err error)
	// TakePack stores a pack, nil for none, and points ref to commit. Nothing is published before complete returns nil.
	TakePack(ctx context.Context, in io.Reader, commit project.Commit, ref string, complete func() error) error
	// SubmoduleCommits lists the commits of a commit's submodules that are stored here, including nested ones, each once.
	SubmoduleCommits(ctx context.Context, of project.Commit) ([]project.Commit, error)
	// WriteSubmodules writes a pack of some of them, without history, to a machine that received the commits have in bundles, and counts its objects.
	WriteSubmodules(ctx context.Context, w io.Writer, of project.Commit, want, have []project.Commit) (objects int, err error)
	// TakeSubmodules stores such a pack. Nothing is published before complete returns nil.
	TakeSubmodules(ctx context.Context, in io.Reader, commits []project.Commit, complete func() error) error
	// Recipes returns the recipes that the release of a commit extends, none if it extends none. A release that was never deployed here, and extends some, is fault.Refused.
	Recipes(ctx context.Context, of project.Commit) ([]Recipe, error)
	// WriteRecipes writes a pack of the parts of recipes of the release of a commit, without history, to a machine that received the parts have in bundles, and counts its objects.
	WriteRecipes(ctx context.Context, w io.Writer, of project.Commit, recipes []Recipe, have []project.Commit) (objects int, err error)
	// TakeRecipes stores such a pack of the parts brought, nil for none, and records the recipes of the release of a commit. It refuses recipes whose parts are neither
	// brought nor stored, and other commits than those that are recorded for the same release. Nothing is published before complete returns nil.
	TakeRecipes(ctx context.Context, in io.Reader, of project.Commit, recipes []Recipe, brought []project.Commit, complete func() error) error
}

// Repositories open the two repositories of a project.
type Repositories func(project.Repo) Repository

// Tips are what a machine has of a project, which a bundle for it can omit: commits, and the keys of the last bundle.
type Tips struct {
	Code   []project.Commit `json:"code,omitempty"`
	Pillar []project.Commit `json:"pillar,omitempty"`
	// KV is the KeysDigest of the keys, "" for none.
	KV string `json:"kv,omitempty"`
	// Submodules are what the machine has of the submodules of the code, PillarSubmodules of those of the pillar; nil if it takes none in a bundle, as those of older releases do.
	Submodules       *Submodules `json:"submodules,omitempty"`
	PillarSubmodules *Submodules `json:"pillar_submodules,omitempty"`
	// Recipes are what the machine has of recipes; nil if it takes none in a bundle, as those of older releases do: it resolves them itself.
	Recipes *Parts `json:"recipes,omitempty"`
}

// Parts are the parts of recipes that a machine has: those that came in bundles.
type Parts struct {
	Commits []project.Commit `json:"commits,omitempty"`
	// All: it is taken to have all of them.
	All bool `json:"all,omitempty"`
}

// Submodules are the commits of submodules that a machine has.
type Submodules struct {
	Commits []project.Commit `json:"commits,omitempty"`
	// Bundled are those of them that came in bundles: a pack may omit what is in their trees.
	Bundled []project.Commit `json:"bundled,omitempty"`
}

// Unknown are the Tips of a machine of which nothing is known: it gets everything.
func Unknown() Tips {
	return Tips{Submodules: &Submodules{}, PillarSubmodules: &Submodules{}, Recipes: &Parts{}}
}

// pinned is one of the two commits of a release, and what the other machine has of it.
type pinned struct {
	repo, submodules project.Repo
	commit           project.Commit
	have             []project.Commit
	links            *Submodules
}

// pinned returns the commits of a release in the order in which their packs are in the file.
func (r Release) pinned(have Tips) []pinned {
	out := []pinned{{project.Code, CodeSubmodules, r.Code, have.Code, have.Submodules}}
	if r.Pillar != "" {
		out = append(out, pinned{project.PillarRepo, PillarSubmodules, r.Pillar, have.Pillar, have.PillarSubmodules})
	}
	return out
}

// Make writes a bundle of m.Release for a machine that has the commits in have. It fills in the recipes, the digest and the packs of m, which it
// returns. Commits of submodules that are not stored here are left out. The packs are made in temporary files in dir, one at a time, and kept in packs.
func Make(ctx context.Context, w io.Writer, m Manifest, repos Repositories, have Tips, packs *Packs, signer ssh.Signer, dir string) (Manifest, error) {
	var err error
	brings := m.Task == "" && m.Restore == ""
	m.Release.Recipes = nil
	if brings && have.Recipes != nil {
		if m.Release.Recipes, err = packs.recipes(ctx, repos(project.Code), m.Release.Code); err != nil {
			return m, err
		}
	}
	first := magic
	if len(m.Release.Recipes) > 0 {
		first = extended
	}
	if m.Digest, err = m.Release.Digest(); err != nil {
		return m, err
	}
	m.Packs = nil
	var made []*madePack
	list := m.Release.pinned(have)
	if !brings {
		list = nil
	}
	var lacks []packing
	for _, x := range list {
		if !slices.Contains(x.have, x.commit) {
			lacks = append(lacks, packing{x.repo, []project.Commit{x.commit}, x.have, func(w io.Writer) (int, error) { return repos(x.repo).WritePack(ctx, w, x.commit, x.have) }})
		}
	}
	for _, x := range list {
		if x.links == nil {
			continue
		}
		want, err := packs.submodules(ctx, repos(x.repo), link{x.repo, x.commit})
		if err != nil {
			return m, fmt.Errorf("submodules of %s of %s.git: %w", x.commit.Short(), x.repo, err)
		}
		want = slices.DeleteFunc(slices.Clone(want), func(c project.Commit) bool { return slices.Contains(x.links.Commits, c) })
		if len(want) > 0 {
			lacks = append(lacks, packing{x.submodules, want, x.links.Bundled, func(w io.Writer) (int, error) {
				return repos(x.repo).WriteSubmodules(ctx, w, x.commit, want, x.links.Bundled)
			}})
		}
	}
	if q := lackingRecipes(ctx, m.Release, repos, have.Recipes); q != nil {
		lacks = append(lacks, *q)
	}
	for _, q := range lacks {
		p, done, err := packs.get(q, dir)
		if err != nil {
			return m, fmt.Errorf("pack %s of %s: %w", q.want[0].Short(), q.repo, err)
		}
		defer done()
		if p != nil {
			made = append(made, p)
			m.Packs = append(m.Packs, p.Pack)
		}
	}
	if err := m.check(); err != nil {
		return m, err
	}
	line, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	sig, err := Sign(signed, line, signer)
	if err != nil {
		return m, err
	}
	if _, err := fmt.Fprintf(w, "%s%s\n%s\n", first, line, sig); err != nil {
		return m, err
	}
	for _, p := range made {
		if err := p.write(w); err != nil {
			return m, err
		}
	}
	return m, nil
}

// lackingRecipes returns the pack of the parts of recipes that a machine lacks; nil if it lacks none.
func lackingRecipes(ctx context.Context, rel Release, repos Repositories, have *Parts) *packing {
	if len(rel.Recipes) == 0 || have.All {
		return nil
	}
	list := Lacking(rel.Recipes, have.Commits)
	if len(list) == 0 {
		return nil
	}
	return &packing{Recipes, Parted(list), have.Commits, func(w io.Writer) (int, error) {
		return repos(project.Code).WriteRecipes(ctx, w, rel.Code, list, have.Commits)
	}}
}

// Sign returns the line with the signature of a text: the key as in authorized_keys, and the signature. domain is prefixed to what is
// signed, so that a signature is valid in one domain only.
func Sign(domain string, text []byte, signer ssh.Signer) (string, error) {
	sig, err := signer.Sign(rand.Reader, append([]byte(domain), text...))
	if err != nil {
		return "", fmt.Errorf("sign the manifest: %w", err)
	}
	return keyLine(signer.PublicKey()) + " " + base64.StdEncoding.EncodeToString(ssh.Marshal(sig)), nil
}

// makePack writes a pack to an unlinked temporary file.
func makePack(q packing, dir string) (*os.File, Pack, error) {
	f, err := os.CreateTemp(dir, ".bundle-*")
	if err != nil {
		return nil, Pack{}, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return f, Pack{}, err
	}
	sum := sha256.New()
	n, err := q.write(io.MultiWriter(f, sum))
	if err != nil {
		return f, Pack{}, err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	p := Pack{Repo: q.repo, Objects: n, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if q.repo == CodeSubmodules || q.repo == PillarSubmodules || q.repo == Recipes {
		p.Commits = q.want
	}
	return f, p, err
}
