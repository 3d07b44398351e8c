package pack

import (
	"bytes"
	"encoding/binary"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"corpus-git/git/object"
)

const (
	idxMagic   = "\xfftOc\x00\x00\x00\x02"
	idxFixed   = 8 + 256*4 // magic, version and fan-out
	idxTrailer = 2 * hashLen
)

// Index is a pack's .idx of version 2 (gitformat-pack(5)), in memory or mapped.
type Index struct {
	data   []byte
	fanout [256]uint32
	count  int
	names  []byte // count * 20
	crcs   []byte // count * 4
	offs   []byte // count * 4
	large  []byte // n * 8
	unmap  bool
}

// ParseIndex parses an index in memory; data stays in use. Sizes, fan-out and large-offset table are checked; the index's own checksum is
// not (Verify).
func ParseIndex(data []byte) (*Index, error) {
	if len(data) < idxFixed+idxTrailer {
		return nil, corrupt("index of %d bytes", len(data))
	}
	if string(data[:8]) != idxMagic {
		return nil, corrupt("index is not of version 2: it begins with %q", data[:8])
	}
	x := &Index{data: data}
	prev := uint32(0)
	for i := range x.fanout {
		v := binary.BigEndian.Uint32(data[8+4*i:])
		if v < prev {
			return nil, corrupt("index: fan-out falls at %02x", i)
		}
		x.fanout[i], prev = v, v
	}
	n := int64(prev)
	rest := int64(len(data)) - idxFixed - idxTrailer - n*(hashLen+8)
	if rest < 0 || rest%8 != 0 || rest/8 > n {
		return nil, corrupt("index of %d bytes cannot hold %d objects", len(data), n)
	}
	x.count = int(n)
	at := idxFixed
	take := func(k int) []byte { at += k; return data[at-k : at : at] }
	x.names, x.crcs, x.offs, x.large = take(x.count*hashLen), take(x.count*4), take(x.count*4), take(int(rest))
	return x, nil
}

// openIndex maps the file at path.
func openIndex(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() < idxFixed+idxTrailer || st.Size() > 1<<40 {
		return nil, corrupt("index of %d bytes", st.Size())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	x, err := ParseIndex(data)
	if err != nil {
		_ = unix.Munmap(data)
		return nil, err
	}
	x.unmap = true
	return x, nil
}

func (x *Index) close() error {
	if !x.unmap {
		return nil
	}
	x.unmap = false
	return unix.Munmap(x.data)
}

// Count returns the number of objects.
func (x *Index) Count() int { return x.count }

// PackHash returns the trailer of the pack that the index belongs to.
func (x *Index) PackHash() (h plumbing.Hash) {
	copy(h[:], x.data[len(x.data)-idxTrailer:])
	return h
}

// Hash returns the name of the i-th object in the order of names.
func (x *Index) Hash(i int) (h plumbing.Hash) {
	copy(h[:], x.names[i*hashLen:])
	return h
}

// CRC returns the CRC-32 of the i-th object's bytes in the pack.
func (x *Index) CRC(i int) uint32 { return binary.BigEndian.Uint32(x.crcs[i*4:]) }

// Offset returns the offset of the i-th object in the pack. It returns an error if the index is inconsistent.
func (x *Index) Offset(i int) (int64, error) {
	o := binary.BigEndian.Uint32(x.offs[i*4:])
	if o&0x80000000 == 0 {
		return int64(o), nil
	}
	k := int64(o&0x7fffffff) * 8
	if k+8 > int64(len(x.large)) {
		return 0, corrupt("index: large offset %d is not there", k/8)
	}
	v := binary.BigEndian.Uint64(x.large[k:])
	if v >= 1<<63 {
		return 0, corrupt("index: offset does not fit 63 bits")
	}
	return int64(v), nil
}

// Find returns the position of h in the order of names.
func (x *Index) Find(h plumbing.Hash) (int, bool) {
	i := x.search(h)
	return i, i < x.count && bytes.Equal(x.names[i*hashLen:(i+1)*hashLen], h[:])
}

// search returns the least i whose name is not less than h.
func (x *Index) search(h plumbing.Hash) int {
	lo, hi := 0, int(x.fanout[h[0]])
	if h[0] > 0 {
		lo = int(x.fanout[h[0]-1])
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(x.names[mid*hashLen:(mid+1)*hashLen], h[:]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Prefix calls fn for each name that begins with the hexadecimal digits, in order, until fn returns false. Invalid digits match nothing.
func (x *Index) Prefix(digits string, fn func(plumbing.Hash) bool) {
	lo, ok := object.PrefixFloor(digits)
	if !ok {
		return
	}
	for i := x.search(lo); i < x.count; i++ {
		h := x.Hash(i)
		if !HasPrefix(h, digits) || !fn(h) {
			return
		}
	}
}

// HasPrefix reports whether h in hexadecimal begins with the digits.
func HasPrefix(h plumbing.Hash, digits string) bool {
	p, ok := object.PrefixFloor(digits)
	if !ok {
		return false
	}
	n := len(digits) / 2
	return bytes.Equal(p[:n], h[:n]) && (len(digits)%2 == 0 || h[n]>>4 == p[n]>>4)
}
