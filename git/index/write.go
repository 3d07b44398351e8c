package index

import (
	"crypto/sha1"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Content is what is to be written: n entries, and what they share with a file that was read.
type Content struct {
	Count int
	Entry func(i int) *Entry
	Tree  *Tree
	// Raw is the file that the entries were read from, whose bytes are copied if nothing changed, or nil.
	Raw []byte
}

// size returns the length of an entry in version 2, or of all entries of a collapsed folder.
func (e *Entry) size() uint32 {
	if e.span > 0 {
		return e.span
	}
	return uint32((entryFixed + len(e.Path) + 8) &^ 7)
}

// entryParts returns the bytes of a file of version 2 up to its extensions. Unchanged entries are slices of raw, adjacent ones joined.
func (x *Content) entryParts() [][]byte {
	size, count := 12, 0
	for i := range x.Count {
		e := x.Entry(i)
		count += e.Count()
		if e.at == 0 {
			size += int(e.size())
		}
	}
	b := make([]byte, 0, size)
	be := binary.BigEndian
	b = append(b, "DIRC"...)
	b = be.AppendUint32(b, 2)
	b = be.AppendUint32(b, uint32(count))
	var parts [][]byte
	done, from, to := 0, uint32(0), uint32(0) // of b, and the run of raw that is not in parts yet
	flush := func() {
		if len(b) > done {
			parts = append(parts, b[done:])
			done = len(b)
		}
		if to > from {
			parts = append(parts, x.Raw[from:to])
		}
		from, to = 0, 0
	}
	for i := range x.Count {
		e := x.Entry(i)
		if e.at != 0 {
			if e.at != to {
				flush()
				from = e.at
			}
			to = e.at + e.size()
			continue
		}
		if to > 0 {
			flush()
		}
		start := len(b)
		for _, v := range [...]uint32{e.Stat.ctimeSec, e.Stat.ctimeNsec, e.Stat.mtimeSec, e.Stat.mtimeNsec, e.Stat.dev, e.Stat.ino, e.Mode, e.Stat.uid, e.Stat.gid, e.Stat.Size} {
			b = be.AppendUint32(b, v)
		}
		b = append(b, e.Hash[:]...)
		b = be.AppendUint16(b, uint16(min(len(e.Path), flagName)))
		b = append(b, e.Path...)
		pad := 8 - (len(b)-start)%8
		b = append(b, "\x00\x00\x00\x00\x00\x00\x00\x00"[:pad]...)
	}
	flush()
	return parts
}

// Write returns an index file of version 2 with a TREE extension, as a list of parts, and its ID. Checksums are computed in parallel.
func (x *Content) Write(put func(parts [][]byte) error) (ID, error) {
	parts := x.entryParts()
	tree := make(chan []byte, 1)
	made := make(chan ID, 1)
	go func() {
		m := indexMaker{sha: sha1.New()}
		for _, p := range parts {
			m.add(p)
		}
		m.add(<-tree)
		made <- m.end()
	}()
	b := x.Tree.extension()
	tree <- b
	err := put(append(parts[:len(parts):len(parts)], b))
	id := <-made
	if err != nil {
		return id, err
	}
	return id, put([][]byte{id.Sum[:]})
}

// maxParts is how many parts writev(2) takes, IOV_MAX.
const maxParts = 1024

// WriteParts writes all parts to a descriptor.
func WriteParts(fd int, parts [][]byte) error {
	for len(parts) > 0 {
		n, err := unix.Writev(fd, parts[:min(len(parts), maxParts)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for len(parts) > 0 && n >= len(parts[0]) {
			n -= len(parts[0])
			parts = parts[1:]
		}
		if n > 0 {
			parts[0] = parts[0][n:]
		}
	}
	return nil
}
