package pack

import (
	"io"
	"strconv"

	"corpus-git/git/pack/sha1dc"

	"github.com/go-git/go-git/v5/plumbing"
)

// objectHash computes names of objects, and detects collisions (https://shattered.io).
type objectHash struct {
	h   *sha1dc.Hash
	buf []byte
}

func newObjectHash() *objectHash {
	return &objectHash{h: sha1dc.New()}
}

func (o *objectHash) start(t plumbing.ObjectType, size int64) {
	o.h.Reset()
	o.buf = append(o.buf[:0], t.String()...)
	o.buf = append(o.buf, ' ')
	o.buf = strconv.AppendInt(o.buf, size, 10)
	o.buf = append(o.buf, 0)
	o.write(o.buf)
}

func (o *objectHash) write(b []byte) { _, _ = o.h.Write(b) }

func (o *objectHash) finish() (plumbing.Hash, error) {
	sum, attacked := o.h.Finish()
	h := plumbing.Hash(sum)
	if attacked {
		return h, corrupt("object %s is part of a SHA-1 collision attack", h)
	}
	return h, nil
}

func (o *objectHash) sum(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	o.start(t, int64(len(data)))
	o.write(data)
	return o.finish()
}

// HashObject returns the name of an object, and refuses an object that is part of a SHA-1 collision attack.
func HashObject(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	return newObjectHash().sum(t, data)
}

// HashStream is HashObject for content that is read from r, which has size bytes.
func HashStream(t plumbing.ObjectType, size int64, r io.Reader) (plumbing.Hash, error) {
	o := newObjectHash()
	o.start(t, size)
	n, err := io.Copy(o.h, r)
	if err == nil && n != size {
		err = corrupt("an object of %d bytes has %d", size, n)
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return o.finish()
}
