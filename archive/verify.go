package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"sync"

	"corpus-git/archive/tree"
)

// Verify compares the tree in an archive with its manifest: every entry's type, mode, owner, size, times, target and links, whether it was
// touched since it was made, and all content whose checksum is known. It is the way to find out what a failing disk has changed. It reads
// the whole archive, packed or not. Compact records checksums, and unchanged files keep them from one archive to the next.
func (s *Store) Verify(ctx context.Context, id string) (tree.Proof, error) {
	const op = "verify archive"
	a, m, err := s.whole(id)
	if err != nil {
		return tree.Proof{}, err
	}
	if a.Packed != nil {
		p, err := s.provePacked(a, m, ctx.Err)
		if err != nil && !errors.Is(err, ErrNotWhole) {
			err = explain(op, err)
		}
		return p, err
	}
	got, err := tree.Describe(ctx, s.fs, a.Path, false, a.Trees...)
	if err != nil {
		return tree.Proof{}, explain(op, err)
	}
	p := tree.Compare(m, got)
	if err := s.proveContent(ctx, a, m, &p); err != nil {
		return tree.Proof{}, explain(op, err)
	}
	return p, nil
}

// proveContent reads every file of a plain archive whose checksum is known.
func (s *Store) proveContent(ctx context.Context, a Archive, m *tree.Manifest, p *tree.Proof) error {
	src, err := s.fs.OpenDir(a.Path)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	var mu sync.Mutex
	work := tree.NewPool(ctx)
	groups := map[uint32]bool{}
	var batch []*tree.Entry
	var bytes int64
	flush := func() {
		mine := batch
		work.Add(func() error {
			c := tree.NewCursor(src)
			defer c.Close()
			for _, e := range mine {
				got, err := sumFile(c, e.Path, ctx.Err)
				if tree.Vanished(err) {
					continue // missing, already reported
				}
				if err != nil {
					return err
				}
				mu.Lock()
				p.Hashed++
				if got != e.Sum {
					p.Differ(e.Path, "content")
				}
				mu.Unlock()
			}
			return nil
		})
		batch, bytes = nil, 0
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if !e.Sum.Known() || !e.IsRegular() || e.Flags&tree.FlagSkipped != 0 || (e.Link != 0 && groups[e.Link]) {
			continue
		}
		groups[e.Link] = true
		batch = append(batch, e)
		if bytes += e.Size; len(batch) >= tree.BatchFiles || bytes >= tree.BatchBytes {
			flush()
		}
	}
	flush()
	return work.Run(s.cfg.Workers)
}

// sumFile computes the checksum of one file.
func sumFile(c *tree.Cursor, path string, pause func() error) (tree.Sum, error) {
	d, name, err := c.At(path)
	if err != nil {
		return tree.Sum{}, err
	}
	f, err := d.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return tree.Sum{}, tree.Named(c.Path(), err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	h := sha256.New()
	_, err = io.CopyBuffer(h, &pausingReader{r: struct{ io.Reader }{f}, pause: pause}, make([]byte, 64<<10))
	return tree.SumOf(h), tree.Named(c.Path(), err)
}

// Seal records, durably, the checksums of all content of plain archives, so that a copy of them elsewhere, whose files have other inodes,
// can be verified. The caller prevents deployments of the project from running, and pauses the store.
func (s *Store) Seal(ctx context.Context) error {
	all, err := s.plainOnes()
	if err != nil {
		return err
	}
	for _, a := range all {
		if _, err := s.seal(a, ctx.Err); err != nil {
			return explain("verify archive", err)
		}
	}
	return nil
}

// seal records the checksums of a plain archive's files that are unknown, for Verify to compare with. It returns how many files it
// read.
func (s *Store) seal(a Archive, pause func() error) (int, error) {
	m, err := s.manifest(a.Path)
	if err != nil {
		return 0, err
	}
	src, err := s.fs.OpenDir(a.Path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }()
	c := tree.NewCursor(src)
	defer c.Close()
	groups := map[uint32]tree.Sum{}
	read := 0
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Sum.Known() || !e.IsRegular() || e.Flags&tree.FlagSkipped != 0 {
			continue
		}
		if d, name, err := c.At(e.Path); err != nil {
			return 0, err
		} else if st, err := d.Lstat(name); err != nil || tree.IdentOf(st) != e.Copy {
			continue // differs from the copy: Verify reports it, so its sum must not be recorded
		}
		sum, ok := groups[e.Link]
		if !ok || e.Link == 0 {
			if sum, err = sumFile(c, e.Path, pause); err != nil {
				return 0, err
			}
			groups[e.Link] = sum
			read++
		}
		e.Sum = sum
	}
	if read == 0 {
		return 0, nil
	}
	s.work.Lock()
	defer s.work.Unlock()
	now, err := s.read(a.Path)
	if err != nil || !now.Whole || now.Packed != nil {
		return 0, err // it changed meanwhile
	}
	return read, s.writeManifest(a.Path, m)
}
