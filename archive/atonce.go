package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"corpus-git/archive/frames"
	"corpus-git/archive/tree"
	"corpus-git/internal/vfs"
)

const (
	// atOnceBytes, atOnceMean and atOnceFew limit the trees that Make packs at once: copying one with more content, or with larger files,
	// takes about as long as packing it.
	atOnceBytes = 64 << 20
	atOnceMean  = 32 << 10
	atOnceFew   = 16 << 20

	// reserveFile, in the folder of an archive that was packed at once, takes the space that its trees take when a rollback unpacks them,
	// so that the deployment can't use it up. It is removed with the verdict, and before they are unpacked.
	reserveFile = tmpPrefix + "reserve"
)

// manySmall reports whether packing a tree takes less time than copying it.
func (s *Store) manySmall(z Sizes) bool {
	return z.Files >= s.cfg.AtOnce && z.Bytes <= atOnceBytes && z.Bytes <= max(atOnceMean*z.Files, atOnceFew)
}

// errNotAtOnce reports that an archive can't be packed at once, and must be a folder.
var errNotAtOnce = errors.New("it can't be packed at once")

// packsAtOnce reports whether Make writes the archive as files at once: there is no spare tree that has most of it, and packing takes less
// time than copying. dev is the file system of the archives.
func (m *making) packsAtOnce(entries []tree.Entry, p *tree.Plan, dev uint64) bool {
	if !m.s.cfg.Files && (m.s.cfg.NoSpare || p.Copies <= p.Kept || !m.s.manySmall(count(entries))) {
		return false
	}
	if !m.s.restorable(entries, dev) {
		return false
	}
	m.s.ahead.asFolder = !m.s.cfg.Files && m.req.Folder != nil && m.req.Folder()
	return !m.s.ahead.asFolder
}

// packed is what packAtOnce made.
type packed struct {
	Packed
	entries []tree.Entry
	notes   tree.Notes
	// newer are the paths that are not in what it shares; nil if it shares nothing.
	newer map[string]bool
	// written files are in the archive's own files, held ones in those that it shares; bytes is the content of the written ones.
	written, held, bytes int64
	// large are the large files that were written.
	large *frames.Known
}

// pending is the archive of these entries before it is packed.
func (m *making) pending(entries []tree.Entry) Archive {
	a := Archive{Record: Record{Facts: m.req.Facts, Packed: &Packed{At: m.s.cfg.Now(), Trees: map[string]PackedTree{}}}, Path: m.tmp}
	for _, n := range trees() {
		if slices.ContainsFunc(entries, func(e tree.Entry) bool { return e.Path == n }) {
			a.Trees = append(a.Trees, n)
		}
	}
	return a
}

// shared returns what of these entries need not be written: it is in what was written ahead, or in an earlier archive. nil is nothing.
func (m *making) shared(ctx context.Context, entries []tree.Entry) (*increment, error) {
	w := &compaction{s: m.s, ctx: ctx, front: true}
	a, man := m.pending(entries), &tree.Manifest{Entries: entries}
	inc := m.ahead.increment(m.s, a, man)
	var err error
	if inc == nil {
		inc, err = w.increment(m.all, a, man)
	}
	if err == nil && inc != nil {
		err = w.checkBase(inc.from)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, nil // the earlier archive is damaged: Verify reports it
	}
	return inc, nil
}

// packAtOnce writes the live trees to files in the archive's temporary folder, beside what an earlier archive already holds, and reads the
// files back while it does so. Nothing is synced without making.syncs. The entries are changed. The error wraps errNotAtOnce if the archive must be a folder.
func (m *making) packAtOnce(ctx context.Context, src vfs.Dir, entries []tree.Entry, p *tree.Plan, inc *increment) (*packed, error) {
	s, a := m.s, m.pending(entries)
	coders, err := s.coders()
	if err != nil {
		return nil, err
	}
	r := &packer{s: s, ctx: ctx, src: src, entries: entries, reader: tree.NewReader(src, entries, p), known: s.recent.large(), made: s.newLarge(), coders: coders, syncs: m.syncs}
	for _, t := range a.Trees {
		base, err := inc.link(t, a.basePath(t))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNotAtOnce, err)
		}
		a.Packed.Trees[t] = PackedTree{Base: base}
		done, err := r.tree(t, a.packedPath(t), inc)
		if errors.Is(err, tree.ErrTooLarge) || errors.Is(err, tree.ErrNotForTar) {
			err = fmt.Errorf("%w: %w", errNotAtOnce, err)
		}
		if err != nil {
			return nil, err
		}
		done.Base = base
		a.Packed.Trees[t] = done
	}
	out := &packed{Packed: *a.Packed, written: r.files, bytes: r.bytes, large: r.made}
	if inc != nil {
		out.newer = map[string]bool{}
		for i := range entries { // also those that vanished, which are in no archive
			switch e := &entries[i]; {
			case !inc.has(i):
				out.newer[e.Path] = true
			case !e.IsDir():
				out.held++
			}
		}
	}
	out.entries, out.notes = r.reader.Entries(), r.reader.Notes()
	shareSums(&tree.Manifest{Entries: out.entries})
	return out, nil
}

// checkBase returns an error if a file that is to be shared is not as it was written.
func (w *compaction) checkBase(from Archive) error {
	for _, t := range from.Trees {
		of := from.Packed.Trees[t]
		name, want := from.packedPath(t), of.SHA256
		if of.Base != nil {
			name, want = from.basePath(t), of.Base.SHA256
		}
		f, err := w.s.fs.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, &pausingReader{r: f, pause: w.pause})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != want {
			return fmt.Errorf("%w: %s", ErrNotWhole, filepath.Base(name))
		}
	}
	return nil
}

// packer reads live trees with several goroutines, and writes each to a file with one.
type packer struct {
	s       *Store
	ctx     context.Context //nolint:containedctx // of one Make
	src     vfs.Dir
	entries []tree.Entry
	reader  *tree.Reader
	// known are large files of the archive before, made those of this one.
	known, made *frames.Known
	coders      *frames.Coders
	syncs       bool // see making
	// What was written.
	files, bytes int64
	head         []byte              // of the last usual entry
	fill         [tree.TarBlock]byte // zeros
}

// batch is a part of a tree in the order of its file.
type batch struct {
	entries []int
	follows []bool // another name of a file that comes before
	content []tree.Content
	ok      []bool
	err     error
	done    chan struct{}
}

// batches divides what is to be written of a tree.
func (r *packer) batches(name string, inc *increment) (out []*batch, size int64) {
	var mine []int
	for i := range r.entries {
		if e := &r.entries[i]; within(name, e.Path) && !inc.has(i) {
			mine = append(mine, i)
		}
	}
	slices.SortFunc(mine, func(a, b int) int { return compareTree(r.entries[a].Path, r.entries[b].Path) })
	seen := map[uint32]bool{}
	var b *batch
	var bytes int64
	for _, i := range mine {
		e := &r.entries[i]
		if b == nil || len(b.entries) >= tree.BatchFiles || bytes >= tree.BatchBytes {
			b, bytes = &batch{done: make(chan struct{})}, 0
			out = append(out, b)
		}
		b.entries, b.follows = append(b.entries, i), append(b.follows, e.Link != 0 && seen[e.Link])
		seen[e.Link] = true
		bytes += e.Size
		size += e.Size + headerSize
	}
	return out, size
}

// tree writes one tree to a new file. What is written is read again at the same time, and compared with the entries.
func (r *packer) tree(name, to string, inc *increment) (out PackedTree, err error) {
	all, size := r.batches(name, inc)
	f, err := r.s.fs.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return out, err
	}
	idx := map[string]int{}
	for _, b := range all {
		for _, i := range b.entries {
			idx[r.entries[i].Path] = i
		}
	}
	again, copied := io.Pipe()
	var proof tree.Proof
	var reading sync.WaitGroup
	reading.Go(func() {
		var err error
		proof, err = r.prove(again, idx)
		_ = again.CloseWithError(err) // never fails: io.Pipe
	})
	sum := sha256.New()
	file := &stickyWriter{w: io.MultiWriter(f, sum)}
	z := frames.New(file, copied, r.known, r.coders, size)
	out.Entries, err = r.write(all, z)
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	if file.err != nil {
		err = file.err // the cause, without the text that the layers added
	}
	_ = copied.CloseWithError(err) // never fails: io.Pipe
	reading.Wait()
	if err == nil {
		z.Made(r.made)
	}
	if err == nil && r.syncs {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && (!proof.Exact() || proof.Entries != out.Entries) {
		err = fmt.Errorf("%w: read back, %d of %d entries, of which %d differ: %v", errNotAtOnce, proof.Entries, out.Entries, proof.Different, proof.Differences)
	}
	out.Bytes, out.SHA256 = file.n, hex.EncodeToString(sum.Sum(nil))
	return out, err
}

// prove compares what was written, before it was compressed, with the entries, each of which is complete when it is written; idx holds them by their paths.
func (r *packer) prove(in io.Reader, idx map[string]int) (tree.Proof, error) {
	v := &prover{m: &tree.Manifest{Entries: r.entries}}
	seen := make([]bool, len(r.entries))
	err := eachHeader(in, func(h *tar.Header, body io.Reader) error {
		i, ok := idx[strings.TrimSuffix(h.Name, "/")]
		if !ok || seen[i] {
			return v.entry(-1, h, body)
		}
		seen[i] = true
		if h.Typeflag != tar.TypeLink {
			return v.entry(i, h, body)
		}
		v.p.Entries++
		if of, ok := idx[h.Linkname]; !ok || r.entries[i].Link == 0 || r.entries[of].Link != r.entries[i].Link {
			v.p.Differ(h.Name, "links")
		}
		return nil
	})
	return v.p, err
}

// write reads batches with several goroutines, and writes them in their order. It returns how many entries it wrote.
func (r *packer) write(all []*batch, to *frames.Writer) (n int64, err error) {
	ctx, stop := context.WithCancel(r.ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	workers := min(r.s.cfg.Workers, len(all))
	work, room := make(chan *batch), make(chan struct{}, 2*workers)
	for range workers {
		readers.Go(func() {
			for b := range work {
				b.err = r.read(ctx, b)
				close(b.done)
			}
		})
	}
	readers.Go(func() {
		defer close(work)
		for _, b := range all {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			work <- b
		}
	})
	tw := tar.NewWriter(to)
	leaders, first := map[uint32]string{}, map[uint32]int{}
	for _, b := range all {
		select {
		case <-b.done:
		case <-ctx.Done():
			return n, ctx.Err()
		}
		if b.err != nil {
			return n, b.err
		}
		wrote, err := r.add(tw, to, b, leaders, first)
		if err != nil {
			return n, err
		}
		n += wrote
		b.content = nil
		<-room
	}
	return n, tw.Close()
}

// read reads a batch.
func (r *packer) read(ctx context.Context, b *batch) error {
	c := tree.NewCursor(r.src)
	defer c.Close()
	b.content, b.ok = make([]tree.Content, len(b.entries)), make([]bool, len(b.entries))
	for k, i := range b.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.follows[k] {
			continue
		}
		var err error
		if b.content[k], b.ok[k], err = r.reader.Read(ctx, i, c); err != nil {
			return tree.ReadError(err)
		}
	}
	return nil
}

// add writes a batch to the tar; leaders and first know the files with several names that it has already.
func (r *packer) add(tw *tar.Writer, to *frames.Writer, b *batch, leaders map[uint32]string, first map[uint32]int) (n int64, err error) {
	for k, i := range b.entries {
		e := &r.entries[i]
		if b.follows[k] {
			if leader, ok := first[e.Link]; ok {
				r.reader.Follow(i, leader)
			} else { // the name before it vanished
				c := tree.NewCursor(r.src)
				b.content[k], b.ok[k], err = r.reader.Read(r.ctx, i, c)
				c.Close()
				if err != nil {
					return n, tree.ReadError(err)
				}
			}
		}
		if _, follows := first[e.Link]; !b.ok[k] && (e.Link == 0 || !follows) {
			continue
		}
		if e.Link != 0 {
			if _, ok := first[e.Link]; !ok {
				first[e.Link] = i
			}
		}
		if err := r.entry(tw, to, e, b.content[k], leaders); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// entry writes one entry.
func (r *packer) entry(tw *tar.Writer, to *frames.Writer, e *tree.Entry, c tree.Content, leaders map[uint32]string) error {
	if uid, _ := r.s.cfg.User(); uid != 0 && slices.ContainsFunc(c.Xattrs, func(x vfs.Xattr) bool { return !strings.HasPrefix(x.Name, "user.") }) {
		return fmt.Errorf("%w: %q has attributes that only root may set", errNotAtOnce, e.Path)
	}
	done, err := r.usual(tw, to, e, c)
	if err == nil && !done {
		err = r.unusual(tw, to, e, c, leaders)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", e.Path, err)
	}
	if !e.IsDir() {
		r.files++
	}
	return nil
}

// usual writes an entry as most are, in a fraction of the time; it reports whether it did.
func (r *packer) usual(tw *tar.Writer, to *frames.Writer, e *tree.Entry, c tree.Content) (done bool, err error) {
	head, ok := tree.AppendHeader(r.head[:0], e)
	if r.head = head; !ok {
		return false, nil
	}
	if e.IsRegular() && int64(len(c.Data)) != e.Size {
		return false, fmt.Errorf("%d bytes were read of %d", len(c.Data), e.Size)
	}
	if err := tw.Flush(); err != nil {
		return false, err
	}
	if _, err := to.Write(head); err != nil || !e.IsRegular() || e.Size == 0 {
		return true, err
	}
	to.Content(e.Path)
	if _, err := to.Write(c.Data); err != nil {
		return true, err
	}
	r.bytes += e.Size
	_, err = to.Write(r.fill[:-e.Size&(tree.TarBlock-1)])
	return true, err
}

// unusual writes any entry.
func (r *packer) unusual(tw *tar.Writer, to *frames.Writer, e *tree.Entry, c tree.Content, leaders map[uint32]string) error {
	h, err := tree.TarHeader(e, leaders, func() ([]vfs.Xattr, error) { return c.Xattrs, nil })
	if err == nil {
		err = tw.WriteHeader(h)
	}
	if err == nil && h.Typeflag == tar.TypeReg {
		to.Content(e.Path)
		_, err = tw.Write(c.Data)
		r.bytes += int64(len(c.Data))
	}
	return err
}

// holdSpace writes the reserve file. A file system that can't reserve space holds archives of running deployments as folders.
func (m *making) holdSpace(size int64) error {
	f, err := m.s.fs.OpenFile(filepath.Join(m.tmp, reserveFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Allocate(max(size, 1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("%w: %w", errNotAtOnce, err)
	}
	return err
}

// releaseSpace removes the reserve file of an archive; it reports whether there was one. One that can't be removed is left to Sweep.
func (s *Store) releaseSpace(a Archive) bool {
	return a.Packed != nil && s.fs.Remove(filepath.Join(a.Path, reserveFile)) == nil
}
