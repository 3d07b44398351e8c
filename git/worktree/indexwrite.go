package worktree

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// size is the length of an entry in version 2, and of all that a folded folder stands for.
func (e *entry) size() uint32 {
	if e.span > 0 {
		return e.span
	}
	return uint32((entryFixed + len(e.path) + 8) &^ 7)
}

// entryParts gives the bytes of a file of version 2 up to its extensions. What the entries share with raw are parts of raw, neighbours in one.
func (x *gitIndex) entryParts() [][]byte {
	size := 12
	for i := range x.entries {
		if e := &x.entries[i]; e.at == 0 {
			size += int(e.size())
		}
	}
	b := make([]byte, 0, size)
	be := binary.BigEndian
	b = append(b, "DIRC"...)
	b = be.AppendUint32(b, 2)
	b = be.AppendUint32(b, uint32(files(x.entries)))
	var parts [][]byte
	done, from, to := 0, uint32(0), uint32(0) // of b, and the run of raw that is not in parts yet
	flush := func() {
		if len(b) > done {
			parts = append(parts, b[done:])
			done = len(b)
		}
		if to > from {
			parts = append(parts, x.raw[from:to])
		}
		from, to = 0, 0
	}
	for i := range x.entries {
		e := &x.entries[i]
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
		for _, v := range [...]uint32{e.st.ctimeSec, e.st.ctimeNsec, e.st.mtimeSec, e.st.mtimeNsec, e.st.dev, e.st.ino, e.mode, e.st.uid, e.st.gid, e.st.size} {
			b = be.AppendUint32(b, v)
		}
		b = append(b, e.oid[:]...)
		b = be.AppendUint16(b, uint16(min(len(e.path), flagName)))
		b = append(b, e.path...)
		pad := 8 - (len(b)-start)%8
		b = append(b, "\x00\x00\x00\x00\x00\x00\x00\x00"[:pad]...)
	}
	flush()
	return parts
}

// write gives a file of version 2 with a TREE extension to put, part by part, and sets id. The checksums are made beside.
func (x *gitIndex) write(put func(parts [][]byte) error) error {
	parts := x.entryParts()
	tree := make(chan []byte, 1)
	id := make(chan indexID, 1)
	go func() {
		m := indexMaker{sha: sha1.New()}
		for _, p := range parts {
			m.add(p)
		}
		m.add(<-tree)
		id <- m.end()
	}()
	b := x.treePart()
	tree <- b
	err := put(append(parts[:len(parts):len(parts)], b))
	x.id = <-id
	if err != nil {
		return err
	}
	return put([][]byte{x.id.sum[:]})
}

// encode is write to memory.
func (x *gitIndex) encode() []byte {
	var b bytes.Buffer
	_ = x.write(func(parts [][]byte) error {
		for _, p := range parts {
			b.Write(p)
		}
		return nil
	})
	return b.Bytes()
}

// maxParts is how many parts writev(2) takes, IOV_MAX.
const maxParts = 1024

// writeParts writes all parts to a descriptor.
func writeParts(fd int, parts [][]byte) error {
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
