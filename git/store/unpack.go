package store

import (
	"fmt"
	"path/filepath"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// putAll writes as loose objects everything in the packs of from that s does not have, as git unpack-objects does. They are durable when it
// returns; after an interruption only whole objects exist, and moving the packs instead or calling it again completes it.
func (s *source) putAll(from *source) error {
	folders := map[string]bool{}
	for _, p := range *from.packs.Load() {
		err := p.Each(func(h plumbing.Hash, off int64) error {
			if _, _, ok, err := s.locate(h); ok || err != nil {
				return err
			}
			if ok, err := s.hasLoose(h); ok || err != nil {
				return err
			}
			folders[filepath.Dir(s.loosePath(h))] = true
			return s.unpackOne(p, h, off)
		})
		if err != nil {
			return fmt.Errorf("unpack %s: %w", p.Path(), err)
		}
	}
	if len(folders) == 0 {
		return nil
	}
	for dir := range folders {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return syncDir(s.dir)
}

// unpackOne writes one object of a pack as a file with durable content; syncing the names is left to the caller.
func (s *source) unpackOne(p *pack.Pack, h plumbing.Hash, off int64) error {
	t, size, r, err := p.Stream(off)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = s.writeLoose(h, t, size, r)
	return err
}
