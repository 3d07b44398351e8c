package pack

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// complement completes a thin pack: it appends the missing bases and resolves what builds on them.
func (g *run) complement(r *resolver) error {
	var missing *MissingBaseError
	for {
		// Sorted by offset, so that the result for one push does not depend on timing.
		open := slices.DeleteFunc(slices.Clone(g.refs), func(d refDelta) bool { return g.recs.at(d.rec).real != 0 })
		if len(open) == 0 {
			break
		}
		slices.SortFunc(open, func(a, b refDelta) int { return cmp.Compare(a.rec, b.rec) })
		seen := map[plumbing.Hash]bool{}
		for _, d := range open {
			if seen[d.base] {
				continue
			}
			seen[d.base] = true
			if g.x.Bases == nil {
				return &MissingBaseError{Base: d.base, Offset: g.recs.at(d.rec).off, Deltas: len(open)}
			}
			t, data, err := g.x.Bases.Get(d.base)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				if missing == nil {
					missing = &MissingBaseError{Base: d.base, Offset: g.recs.at(d.rec).off, Deltas: len(open)}
				}
				continue
			}
			if err != nil {
				return err
			}
			n, err := g.append(t, d.base, data)
			if err != nil {
				return err
			}
			r.roots = append(r.roots, n)
		}
		if len(r.roots) == 0 {
			return missing
		}
		missing = nil
		if err := r.run(); err != nil {
			return err
		}
	}
	for i := range int32(g.recs.n) {
		if rec := g.recs.at(i); rec.real == 0 {
			return corrupt("object at %d: its base is never made", rec.off)
		}
	}
	if g.added > 0 {
		return g.seal()
	}
	return nil
}

// append appends a base to the pack.
func (g *run) append(t plumbing.ObjectType, h plumbing.Hash, data []byte) (*node, error) {
	var buf bytes.Buffer
	buf.Write(appendEntry(nil, t, int64(len(data)), 0, plumbing.ZeroHash))
	head := buf.Len()
	zw := zlib.NewWriter(&buf)
	if _, err := zw.Write(data); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	if _, err := g.file.WriteAt(buf.Bytes(), g.end); err != nil {
		return nil, err
	}
	rec := g.recs.add()
	*rec = record{off: g.end, hash: h, crc: crc32.ChecksumIEEE(buf.Bytes()), base: -1, typ: uint8(t), real: uint8(t), head: uint8(head)}
	g.end += int64(buf.Len())
	g.added++
	if err := g.complete(&Object{Type: t, Hash: h, Size: int64(len(data)), Data: data, Added: true}); err != nil {
		return nil, err
	}
	n := g.newNode(int32(g.recs.n-1), rec, nil)
	if n == nil {
		return nil, fmt.Errorf("base %s of no delta", h)
	}
	n.added = true
	return n, nil
}
