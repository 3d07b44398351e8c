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

	"golang.org/x/crypto/ssh"

	"corpus-git/project"
)

const (
	magic = "corpus-git bundle 1\n"
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
}

// Repositories open the two repositories of a project.
type Repositories func(project.Repo) Repository

// Tips are what a machine has of a project, which a bundle for it can omit: commits, and the keys of the last bundle.
type Tips struct {
	Code   []project.Commit `json:"code,omitempty"`
	Pillar []project.Commit `json:"pillar,omitempty"`
	// KV is the KeysDigest of the keys, "" for none.
	KV string `json:"kv,omitempty"`
}

// of returns the commits of one repository.
func (t Tips) of(r project.Repo) []project.Commit {
	if r == project.PillarRepo {
		return t.Pillar
	}
	return t.Code
}

// Make writes a bundle of m.Release for a machine that has the commits in have. It fills in the digest and the packs of m, which it
// returns. The packs are made in temporary files in dir, one at a time, and kept in packs.
func Make(ctx context.Context, w io.Writer, m Manifest, repos Repositories, have Tips, packs *Packs, signer ssh.Signer, dir string) (Manifest, error) {
	var err error
	if m.Digest, err = m.Release.Digest(); err != nil {
		return m, err
	}
	m.Packs = nil
	var made []*madePack
	for _, x := range []struct {
		repo project.Repo
		want project.Commit
	}{{project.Code, m.Release.Code}, {project.PillarRepo, m.Release.Pillar}} {
		if x.want == "" || m.Task != "" || m.Restore != "" {
			continue
		}
		p, done, err := packs.get(ctx, repos(x.repo), x.repo, x.want, have.of(x.repo), dir)
		if err != nil {
			return m, fmt.Errorf("pack %s of %s.git: %w", x.want.Short(), x.repo, err)
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
	if _, err := fmt.Fprintf(w, "%s%s\n%s\n", magic, line, sig); err != nil {
		return m, err
	}
	for _, p := range made {
		if err := p.write(w); err != nil {
			return m, err
		}
	}
	return m, nil
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
func makePack(ctx context.Context, r Repository, want project.Commit, have []project.Commit, dir string) (*os.File, Pack, error) {
	f, err := os.CreateTemp(dir, ".bundle-*")
	if err != nil {
		return nil, Pack{}, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return f, Pack{}, err
	}
	sum := sha256.New()
	n, err := r.WritePack(ctx, io.MultiWriter(f, sum), want, have)
	if err != nil {
		return f, Pack{}, err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	return f, Pack{Objects: n, Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
