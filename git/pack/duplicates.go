package pack

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"corpus-git/internal/offheap"

	"github.com/go-git/go-git/v5/plumbing"
)

// unique rewrites a pack that holds objects more than once, which git accepts (index-pack without --strict), so that it holds each once. A
// completed thin pack may be such a pack, if a base that was appended is also the result of another delta. It is called when all objects
// have their names and are sorted.
//
// Of several entries for an object the one with the shortest chain of deltas is kept, and deltas name their bases, so that no cycle arises.
func (g *run) unique() error {
	kept, err := g.nearest()
	if err != nil {
		return err
	}
	defer kept.Free()
	tmp, err := os.CreateTemp(g.x.Dir, "tmp_pack_")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) }()
	if err := g.rewrite(tmp, kept.Slice()); err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(io.NewOffsetWriter(g.file, 0), tmp); err != nil {
		return err
	}
	if err := g.file.Truncate(g.end); err != nil {
		return err
	}
	if err := g.seal(); err != nil {
		return err
	}
	g.fan = [256]uint32{}
	g.sort()
	return nil
}

// nearest returns the record to keep for each name in g.order. Records are visited by the length of their chain.
func (g *run) nearest() (*offheap.Block[int32], error) {
	n := g.recs.n
	first, next, queue, kept := offheap.Make[int32](n), offheap.Make[int32](n), offheap.Make[int32](n), offheap.Make[int32](n)
	defer queue.Free()
	defer next.Free()
	defer first.Free()
	below, sibling, todo, keep := first.Slice(), next.Slice(), queue.Slice()[:0], kept.Slice()
	for i := range below {
		below[i], sibling[i], keep[i] = -1, -1, -1
	}
	for i := int32(n) - 1; i >= 0; i-- {
		rec := g.recs.at(i)
		if rec.base >= 0 {
			sibling[i], below[rec.base] = below[rec.base], i
		}
	}
	for i := range int32(n) {
		if !g.recs.at(i).delta() {
			todo = append(todo, i)
		}
	}
	for i := range g.taken {
		g.taken[i].Store(false)
	}
	for at := 0; at < len(todo); at++ {
		h := g.recs.at(todo[at]).hash
		if k, ok := g.findSorted(h); ok && keep[k] < 0 {
			keep[k] = todo[at]
		}
		for c := below[todo[at]]; c >= 0; c = sibling[c] {
			todo = append(todo, c)
		}
		for k := int(g.takeRefs(h)); k >= 0 && k < len(g.refs) && g.refs[k].base == h; k++ {
			todo = append(todo, g.refs[k].rec)
		}
	}
	if len(todo) < n {
		kept.Free()
		return nil, corrupt("%d objects are never made", n-len(todo))
	}
	return kept, nil
}

// rewrite writes the entries to keep, those that were received before those that were added, and updates their records.
func (g *run) rewrite(f *os.File, keep []int32) error {
	came := int32(g.recs.n - g.added)
	w := bufio.NewWriterSize(f, 256<<10)
	if _, err := w.Write(appendHeader(nil, 0)); err != nil {
		return err
	}
	next := records{}
	off, added, deltas := int64(headerLen), 0, 0
	for _, late := range []bool{false, true} {
		for i := range int32(g.recs.n) {
			first, ok := g.findSorted(g.recs.at(i).hash)
			if !ok || keep[first] != i || late != (first >= came) {
				continue
			}
			rec := next.add()
			n, err := g.rewriteEntry(w, i, rec)
			if err != nil {
				return err
			}
			rec.off = off
			off += n
			if late {
				added++
			}
			if rec.delta() {
				deltas++
			}
		}
	}
	g.recs, g.end, g.added, g.deltas, g.refs = next, off, added, deltas, nil
	return w.Flush()
}

// rewriteEntry writes entry i, a delta with its base by name, and fills in its new record except the offset. n is its length.
func (g *run) rewriteEntry(w io.Writer, i int32, rec *record) (n int64, err error) {
	old := g.recs.at(i)
	end := g.end
	if int(i)+1 < g.recs.n {
		end = g.recs.at(i + 1).off
	}
	head := make([]byte, old.head)
	if _, err := g.file.ReadAt(head, old.off); err != nil {
		return 0, err
	}
	if old.delta() {
		e, err := parseEntry(head, old.off)
		if err != nil {
			return 0, err
		}
		if old.base >= 0 {
			e.BaseHash = g.recs.at(old.base).hash
		}
		head = appendEntry(nil, plumbing.REFDeltaObject, e.Size, 0, e.BaseHash)
	}
	*rec = record{hash: old.hash, base: -1, typ: old.typ, real: old.real, head: uint8(len(head))}
	if old.delta() {
		rec.typ = uint8(plumbing.REFDeltaObject)
	}
	sum := crc32.NewIEEE()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(head); err != nil {
		return 0, err
	}
	body, err := io.Copy(out, io.NewSectionReader(g.file, old.off+int64(old.head), end-old.off-int64(old.head)))
	rec.crc = sum.Sum32()
	return int64(len(head)) + body, err
}
