package store

import (
	"fmt"
	"path/filepath"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// putAll makes loose objects of all that the packs of from hold and s does not, as git unpack-objects does. They are durable when it
// returns; cut short, it has left whole objects only, and is finished by moving the packs instead or by calling it again.
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

// unpackOne writes one object of a pack as a file whose content is durable; the names are the caller's to sync.
func (s *source) unpackOne(p *pack.Pack, h plumbing.Hash, off int64) error {
	t, size, r, err := p.Stream(off)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = s.writeLoose(h, t, size, r)
	return err
}
