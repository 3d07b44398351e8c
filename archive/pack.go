package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archiver/v4"

	"corpus-git/archive/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// pack turns the trees of one archive into files. Their folders are touched only when the files are durable, read back and compared; then
// they become the spare tree if they are newer than it, otherwise they are deleted.
func (w *compaction) pack(a Archive) (Archive, error) {
	s := w.s
	known, err := s.recentManifest(a.Path)
	if err != nil {
		return a, err
	}
	m := &tree.Manifest{ID: known.ID, Scanned: known.Scanned, Entries: slices.Clone(known.Entries)} // to which sums are added
	if err := s.roomToPack(a); err != nil {
		return a, err
	}
	// Until they are compared the files are in a temporary folder, under their final names.
	tmp := filepath.Join(a.Path, tmpPrefix+"packed")
	defer s.use(tmp)()
	if err := s.reaper.Remove(tmp); err != nil {
		return a, err
	}
	defer func() { _ = s.reaper.Remove(tmp) }() // what can't be removed now is left to Sweep
	if err := s.fs.Mkdir(tmp, 0o700); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errMoved
		}
		return a, err
	}
	packed := &Packed{At: s.cfg.Now(), Trees: map[string]PackedTree{}}
	half := a
	half.Path, half.Packed = tmp, packed
	for _, t := range a.Trees {
		done, err := w.packTree(a, m, t, half.packedPath(t))
		if err != nil {
			return a, s.moved(a, err)
		}
		packed.Trees[t] = done
	}
	if err := vfs.SyncDir(s.fs, tmp); err != nil {
		return a, err
	}
	proof, err := s.provePacked(half, m, w.pause)
	if err != nil {
		return a, s.moved(a, err)
	}
	if !proof.Exact() {
		return a, fault.New(fault.Internal, "pack archive", "%w: read back, %d entries differ, the first: %s", ErrNotWhole, proof.Different, proof.Differences[0])
	}
	return w.publishPacked(a, m, half, packed)
}

// moved distinguishes an error from the loss of an archive that was removed meanwhile.
func (s *Store) moved(a Archive, err error) error {
	if now, rerr := s.read(a.Path); errors.Is(rerr, fs.ErrNotExist) || (rerr == nil && (!now.Whole || now.Packed != nil)) {
		return errMoved
	}
	return err
}

// publishPacked moves the compared files into place and then names them in the record; from then on they are the archive.
func (w *compaction) publishPacked(a Archive, m *tree.Manifest, half Archive, packed *Packed) (Archive, error) {
	s := w.s
	unlock, err := w.lock()
	if err != nil {
		return a, err
	}
	defer unlock()
	now, err := s.read(a.Path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && (!now.Whole || now.Packed != nil)) {
		return a, errMoved
	}
	if err != nil {
		return a, err
	}
	for _, f := range half.packedPaths() {
		if err := s.fs.Rename(f, filepath.Join(a.Path, filepath.Base(f))); err != nil {
			return a, err
		}
	}
	text := m.Encode()                                                                                  // with the sums of all content
	if err := vfs.WriteFileAtomic(s.fs, filepath.Join(a.Path, manifestFile), text, 0o600); err != nil { // and syncs the names of the files
		return a, err
	}
	s.remember(a.Path, m, nil)
	if _, err := s.update(a.ID, "pack archive", func(r *Record) error { r.Packed = packed; return nil }); err != nil {
		return a, err
	}
	newest := a.Sizes
	if n, err := s.newest(); err == nil && n != nil {
		newest = n.Sizes
	}
	if !s.recyclable(a.Sizes, m.Scanned, newest) || s.makeSpare(a.Trees, a.Path, m, text) != nil {
		// Recycling only saves work: if it fails, the trees are deleted.
		for _, p := range a.treePaths() {
			if err := s.reaper.Remove(p); err != nil {
				return a, err
			}
		}
	}
	return s.read(a.Path)
}

// roomToPack returns an error if the result might not fit, assuming that content does not compress.
func (s *Store) roomToPack(a Archive) error {
	sp, err := s.fs.StatFS(s.dir())
	if err != nil {
		return err
	}
	e := &SpaceError{Path: s.dir(), Need: uint64(a.Sizes.tar()), Free: sp.Free, Reserve: s.cfg.Reserve.of(sp.Total)}
	if e.short() {
		return fault.New(fault.Failed, "pack archive", "%w", e).WithHint("it stays a folder until there is room")
	}
	return nil
}

// packTree writes one tree to a file, durably.
func (w *compaction) packTree(a Archive, m *tree.Manifest, name, to string) (out PackedTree, err error) {
	s := w.s
	src, err := s.fs.OpenDir(a.Path)
	if err != nil {
		return out, err
	}
	defer func() { _ = src.Close() }()
	var mine []*tree.Entry
	var size int64
	for i := range m.Entries {
		if e := &m.Entries[i]; within(name, e.Path) {
			mine = append(mine, e)
			size += e.Size + headerSize
		}
	}
	treeOrder(mine)
	x := &exporter{pause: w.pause, src: src, leaders: map[uint32]string{}}
	files, err := x.files(mine)
	if err != nil {
		return out, err
	}
	f, err := s.fs.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return out, err
	}
	sum := sha256.New()
	file := &stickyWriter{w: f}
	// One worker: other projects' deployments and services need the cores more.
	err = compressed(&stickyWriter{w: io.MultiWriter(file, sum)}, zstd.SpeedDefault, 1, size, func(enc io.Writer) error {
		return archiver.CompressedArchive{Archival: exactTar{}}.Archive(w.ctx, enc, files)
	})
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = vfs.DropCache(f) // bypass the page cache when reading back
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return out, err
	}
	shareSums(m)
	return PackedTree{Entries: int64(len(files)), Bytes: file.n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// shareSums gives all names of a file the checksum found for one.
func shareSums(m *tree.Manifest) {
	sums := map[uint32]tree.Sum{}
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Link != 0 && e.Sum.Known() {
			sums[e.Link] = e.Sum
		}
	}
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Link != 0 && !e.Sum.Known() {
			e.Sum = sums[e.Link]
		}
	}
}
