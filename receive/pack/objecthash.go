package pack

import (
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/pjbgf/sha1cd"
)

// objectHash names objects, and detects collisions (https://shattered.io).
type objectHash struct {
	h   sha1cd.CollisionResistantHash
	buf []byte
}

func newObjectHash() *objectHash {
	return &objectHash{h: sha1cd.New().(sha1cd.CollisionResistantHash)}
}

func (o *objectHash) start(t plumbing.ObjectType, size int64) {
	o.h.Reset()
	o.buf = append(o.buf[:0], t.String()...)
	o.buf = append(o.buf, ' ')
	o.buf = strconv.AppendInt(o.buf, size, 10)
	o.buf = append(o.buf, 0)
	o.h.Write(o.buf)
}

func (o *objectHash) write(b []byte) { o.h.Write(b) }

func (o *objectHash) finish() (h plumbing.Hash, err error) {
	sum, collision := o.h.CollisionResistantSum(o.buf[:0])
	o.buf = sum
	if copy(h[:], sum); collision {
		return h, corrupt("object %s is part of a SHA-1 collision attack", h)
	}
	return h, nil
}

func (o *objectHash) sum(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	o.start(t, int64(len(data)))
	o.h.Write(data)
	return o.finish()
}

// HashObject names an object, and refuses one that is made for a collision.
func HashObject(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	return newObjectHash().sum(t, data)
}
