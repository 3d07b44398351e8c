package pack

import "github.com/go-git/go-git/v5/plumbing"

// DeltaSizes reads the two numbers that a delta begins with: the sizes of its base and of its result. n is their length in bytes.
func DeltaSizes(delta []byte) (base, result int64, n int, err error) {
	base, n, err = deltaSize(delta)
	if err != nil {
		return 0, 0, 0, err
	}
	result, m, err := deltaSize(delta[n:])
	return base, result, n + m, err
}

func deltaSize(b []byte) (int64, int, error) {
	var v uint64
	for i, c := range b {
		if i > 8 {
			return 0, 0, corrupt("delta: a size does not fit 63 bits")
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return int64(v), i + 1, nil
		}
	}
	return 0, 0, corrupt("delta: cut within its sizes")
}

// ApplyDelta applies delta to base, in dst's memory if that suffices. The caller has compared the result's size with its limits:
// DeltaSizes. The result is exactly as long as the delta states, or there is an error.
func ApplyDelta(dst, base, delta []byte) ([]byte, error) {
	bs, rs, n, err := DeltaSizes(delta)
	if err != nil {
		return nil, err
	}
	if bs != int64(len(base)) {
		return nil, corrupt("delta: made for a base of %d bytes, this one has %d", bs, len(base))
	}
	// A copy yields at most 16 MiB for one byte of delta; refuse a greater ratio before allocating.
	if rs/maxCopy > int64(len(delta)) {
		return nil, corrupt("delta: %d bytes cannot give %d", len(delta), rs)
	}
	if int64(cap(dst)) < rs {
		dst = make([]byte, rs)
	}
	dst = dst[:rs]
	at := 0
	for d := delta[n:]; len(d) > 0; {
		op := d[0]
		d = d[1:]
		if op&0x80 == 0 {
			k := int(op)
			if k == 0 {
				return nil, corrupt("delta: reserved instruction 0")
			}
			if k > len(d) || k > len(dst)-at {
				return nil, corrupt("delta: insert of %d bytes runs over", k)
			}
			if k <= 16 && len(d) >= 16 && len(dst)-at >= 16 {
				copy(dst[at:at+16], d[:16])
			} else {
				copy(dst[at:], d[:k])
			}
			at += k
			d = d[k:]
			continue
		}
		var off, k uint
		i := 0
		if len(d) < 7 {
			var tmp [7]byte
			copy(tmp[:], d)
			off, k, i = copyArgs(op, &tmp)
			if i > len(d) {
				return nil, corrupt("delta: cut within a copy")
			}
		} else {
			off, k, i = copyArgs(op, (*[7]byte)(d))
		}
		d = d[i:]
		if k == 0 {
			k = 0x10000
		}
		if off > uint(len(base)) || k > uint(len(base))-off || k > uint(len(dst)-at) {
			return nil, corrupt("delta: copy of %d bytes at %d runs over", k, off)
		}
		copy(dst[at:], base[off:off+k])
		at += int(k)
	}
	if at != len(dst) {
		return nil, corrupt("delta: gives %d bytes and promised %d", at, len(dst))
	}
	return dst, nil
}

// maxCopy is the longest run that one copy instruction copies.
const maxCopy = 1<<24 - 1

func copyArgs(op byte, d *[7]byte) (off, k uint, n int) {
	if op&1 != 0 {
		off = uint(d[n])
		n++
	}
	if op&2 != 0 {
		off |= uint(d[n]) << 8
		n++
	}
	if op&4 != 0 {
		off |= uint(d[n]) << 16
		n++
	}
	if op&8 != 0 {
		off |= uint(d[n]) << 24
		n++
	}
	if op&16 != 0 {
		k = uint(d[n])
		n++
	}
	if op&32 != 0 {
		k |= uint(d[n]) << 8
		n++
	}
	if op&64 != 0 {
		k |= uint(d[n]) << 16
		n++
	}
	return off, k, n
}

// Getter returns whole objects by name. A missing object is plumbing.ErrObjectNotFound.
type Getter interface {
	Get(plumbing.Hash) (plumbing.ObjectType, []byte, error)
}
