package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"corpus-git/project"
)

// Packs keeps packs that were made, for further machines that lack the same objects. The zero value is ready for use; a nil one keeps none. Its methods are safe for
// concurrent use.
type Packs struct {
	mu sync.Mutex
	by map[string]*madePack
	// links are the commits of the submodules of commits.
	links map[link][]project.Commit
	// extends are the recipes of releases.
	extends map[project.Commit][]Recipe
}

type link struct {
	repo project.Repo
	of   project.Commit
}

// submodules returns Repository.SubmoduleCommits of a commit, read once.
func (p *Packs) submodules(ctx context.Context, r Repository, at link) ([]project.Commit, error) {
	if p == nil {
		return r.SubmoduleCommits(ctx, at.of)
	}
	return once(&p.mu, &p.links, at, func() ([]project.Commit, error) { return r.SubmoduleCommits(ctx, at.of) })
}

// recipes returns Repository.Recipes of a commit, read once.
func (p *Packs) recipes(ctx context.Context, r Repository, of project.Commit) ([]Recipe, error) {
	if p == nil {
		return r.Recipes(ctx, of)
	}
	return once(&p.mu, &p.extends, of, func() ([]Recipe, error) { return r.Recipes(ctx, of) })
}

// once returns what a table has for a key, or what read returns, which it keeps.
func once[K comparable, V any](mu *sync.Mutex, table *map[K]V, key K, read func() (V, error)) (V, error) {
	mu.Lock()
	v, ok := (*table)[key]
	mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := read()
	if err != nil {
		return v, err
	}
	mu.Lock()
	defer mu.Unlock()
	if *table == nil {
		*table = map[K]V{}
	}
	(*table)[key] = v
	return v, nil
}

// madePack is a pack in an unlinked temporary file. Its mutex is held while it is made.
type madePack struct {
	mu   sync.Mutex
	file *os.File
	Pack
}

// write writes the pack.
func (p *madePack) write(w io.Writer) error {
	const most = 32 << 10 // as io.Copy; most packs are small, and go to many
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(p.file, 0, p.Bytes), make([]byte, min(p.Bytes, most)))
	if err == nil && n != p.Bytes {
		err = fmt.Errorf("a pack of %d bytes is %d bytes long now", p.Bytes, n)
	}
	return err
}

// packing is a pack to make: it brings the commits want of a repository to a machine with the commits have.
type packing struct {
	repo       project.Repo
	want, have []project.Commit
	write      func(io.Writer) (objects int, err error)
}

// get returns a pack; nil if nothing is missing. The caller ends its use with done.
func (p *Packs) get(q packing, dir string) (made *madePack, done func(), err error) {
	done = func() {}
	made = &madePack{}
	if p != nil {
		made = p.of(q)
	}
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.file == nil {
		f, pack, err := makePack(q, dir)
		if err != nil {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
			return nil, done, err
		}
		made.file, made.Pack = f, pack
	}
	if p == nil {
		done = func() { _ = made.file.Close() } // it was only read
	}
	if made.Objects == 0 {
		done()
		return nil, func() {}, nil
	}
	return made, done, nil
}

// of returns the entry of a pack, whether the pack is made or not.
func (p *Packs) of(q packing) *madePack {
	have := slices.Clone(q.have)
	slices.Sort(have)
	sum := sha256.Sum256(fmt.Append(nil, q.repo, q.want, slices.Compact(have)))
	key := hex.EncodeToString(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]*madePack{}
	}
	if p.by[key] == nil {
		p.by[key] = &madePack{}
	}
	return p.by[key]
}

// Close removes the packs: writing one then fails. Packs can be made again after it.
func (p *Packs) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, made := range p.by {
		made.mu.Lock()
		if made.file != nil {
			errs = append(errs, made.file.Close())
		}
		made.mu.Unlock()
	}
	p.by, p.links, p.extends = nil, nil, nil
	return errors.Join(errs...)
}
