package frames

import "bytes"

// Known are large files that streams held, in the parts in which they were compressed. nil knows none. It is not safe for concurrent changes.
type Known struct {
	files map[string][]piece
	bytes int64
	limit int64
}

// piece is a part of a file, and the frame that contains it, which was compared with it; nil if there is none yet.
type piece struct{ raw, zst []byte }

// NewKnown returns a Known that takes at most limit bytes.
func NewKnown(limit int64) *Known { return &Known{files: map[string][]piece{}, limit: limit} }

// Bytes returns how much memory it takes.
func (k *Known) Bytes() int64 {
	if k == nil {
		return 0
	}
	return k.bytes
}

func (k *Known) add(name string, all []piece) {
	var n int64
	for _, p := range all {
		n += int64(len(p.raw) + len(p.zst))
	}
	if k.bytes+n <= k.limit {
		k.files[name] = all
		k.bytes += n
	}
}

// near is how far from where it is expected a known part is looked for: a file into which something was inserted.
const near = part

// split divides a content into parts; those that are known have a frame.
func (k *Known) split(name string, p []byte) (out []piece) {
	at, off, shift := 0, 0, 0 // the end of what was divided; where the next known part was, and how far it has moved
	fresh := func(to int) {
		for at < to {
			n := min(part, to-at)
			out = append(out, piece{raw: p[at : at+n]})
			at += n
		}
	}
	if k != nil {
		for _, was := range k.files[name] {
			if i := find(p, was.raw, at, off+shift); i >= 0 {
				fresh(i)
				out = append(out, piece{p[i : i+len(was.raw)], was.zst})
				at, shift = i+len(was.raw), i-off
			}
			off += len(was.raw)
		}
	}
	fresh(len(p))
	return out
}

// find returns where from a place on a content has a part, about where it is expected; -1 if it has not. Short parts are not worth it.
func find(p, was []byte, from, expected int) int {
	const start = 64
	if len(was) < start {
		return -1
	}
	if expected >= from && expected <= len(p) && bytes.HasPrefix(p[expected:], was) {
		return expected
	}
	lo, hi := max(from, expected-near), min(len(p), expected+near+start)
	if lo >= hi {
		return -1
	}
	if i := bytes.Index(p[lo:hi], was[:start]); i >= 0 && bytes.HasPrefix(p[lo+i:], was) {
		return lo + i
	}
	return -1
}
