package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
)

const (
	hashLen   = 20
	headerLen = 12 // "PACK", version, count
	// minEntry is the least size of an object in a pack: a header of one byte, a zlib stream of eight.
	minEntry = 9
)

// ErrCorrupt is wrapped by every error about an invalid pack, index or delta. It is also an object.ErrCorrupt.
var ErrCorrupt error = corruptPack{}

type corruptPack struct{}

func (corruptPack) Error() string { return "corrupt pack" }

// Is makes errors.Is(err, object.ErrCorrupt) true.
func (corruptPack) Is(target error) bool { return target == object.ErrCorrupt }

// ErrClosed is returned by calls on a closed Pack.
var ErrClosed = errors.New("pack is closed")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
}

// Entry is the head of one object in a pack, as stored: a delta is not resolved.
type Entry struct {
	// Offset is where the entry begins, Data where its zlib stream begins.
	Offset, Data int64
	// Type is Commit, Tree, Blob, Tag, or OFSDelta or REFDelta.
	Type plumbing.ObjectType
	// Size is the inflated size: of the delta itself for a delta.
	Size int64
	// BaseOffset is the offset of an OFSDelta's base, BaseHash the name of a REFDelta's.
	BaseOffset int64
	BaseHash   plumbing.Hash
}

// Delta reports whether the entry holds a delta.
func (e Entry) Delta() bool {
	return e.Type == plumbing.OFSDeltaObject || e.Type == plumbing.REFDeltaObject
}

// errShort requests more input.
var errShort = errors.New("short input")

// parseEntry reads an entry's head from b, which is at offset off. It needs at most maxEntryHead bytes.
func parseEntry(b []byte, off int64) (Entry, error) {
	e := Entry{Offset: off}
	if len(b) == 0 {
		return e, errShort
	}
	c := b[0]
	e.Type = plumbing.ObjectType(c >> 4 & 7)
	size, shift, n := uint64(c&15), uint(4), 1
	for c&0x80 != 0 {
		if n >= len(b) {
			return e, errShort
		}
		c = b[n]
		n++
		if shift > 57 {
			return e, corrupt("object at %d: size does not fit 63 bits", off)
		}
		size |= uint64(c&0x7f) << shift
		shift += 7
	}
	if size > math.MaxInt64 {
		return e, corrupt("object at %d: size does not fit 63 bits", off)
	}
	e.Size = int64(size)
	switch e.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.REFDeltaObject:
		if len(b) < n+hashLen {
			return e, errShort
		}
		copy(e.BaseHash[:], b[n:])
		n += hashLen
	case plumbing.OFSDeltaObject:
		if n >= len(b) {
			return e, errShort
		}
		c = b[n]
		n++
		back := uint64(c & 0x7f)
		for c&0x80 != 0 {
			if n >= len(b) {
				return e, errShort
			}
			if back >= 1<<55 {
				return e, corrupt("object at %d: offset of its base does not fit", off)
			}
			c = b[n]
			n++
			back = (back+1)<<7 | uint64(c&0x7f)
		}
		if back == 0 || back > uint64(off)-headerLen {
			return e, corrupt("object at %d: its base lies %d bytes before it, outside of the pack", off, back)
		}
		e.BaseOffset = off - int64(back)
	default:
		return e, corrupt("object at %d: unknown type %d", off, e.Type)
	}
	e.Data = off + int64(n)
	return e, nil
}

// maxEntryHead is the maximal length of an entry's head: ten bytes of size and a hash.
const maxEntryHead = 10 + hashLen

// appendEntry writes the head of an entry; back is the distance to an OFSDelta's base.
func appendEntry(dst []byte, t plumbing.ObjectType, size int64, back int64, base plumbing.Hash) []byte {
	c := byte(t)<<4 | byte(size&15)
	for size >>= 4; size != 0; size >>= 7 {
		dst = append(dst, c|0x80)
		c = byte(size & 0x7f)
	}
	dst = append(dst, c)
	switch t {
	case plumbing.REFDeltaObject:
		dst = append(dst, base[:]...)
	case plumbing.OFSDeltaObject:
		var tmp [10]byte
		i := len(tmp) - 1
		tmp[i] = byte(back & 0x7f)
		for back >>= 7; back != 0; back >>= 7 {
			back--
			i--
			tmp[i] = 0x80 | byte(back&0x7f)
		}
		dst = append(dst, tmp[i:]...)
	}
	return dst
}

// appendHeader writes a pack's first twelve bytes.
func appendHeader(dst []byte, count uint32) []byte {
	dst = append(dst, "PACK\x00\x00\x00\x02"...)
	return binary.BigEndian.AppendUint32(dst, count)
}

// parseHeader parses a pack's first twelve bytes. Version 3 has the same content as version 2, and git reads it too.
func parseHeader(b []byte) (count uint32, err error) {
	if len(b) < headerLen || string(b[:4]) != "PACK" {
		return 0, corrupt("no pack: it begins with %q", b[:min(len(b), 4)])
	}
	if v := binary.BigEndian.Uint32(b[4:]); v != 2 && v != 3 {
		return 0, corrupt("pack version %d (2 and 3 are known)", v)
	}
	return binary.BigEndian.Uint32(b[8:]), nil
}
