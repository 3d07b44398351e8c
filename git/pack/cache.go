package pack

import (
	"container/list"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// Cache keeps the most recently used bases of deltas, up to a number of bytes. Packs may share a Cache. The objects that it returns must
// not be changed.
type Cache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	items map[cacheKey]*list.Element
	// readers are what its packs inflate with: a pushed pack needs one, and is read a few times.
	readers *sync.Pool
}

type cacheKey struct {
	p   *Pack
	off int64
}

type cacheItem struct {
	key  cacheKey
	typ  plumbing.ObjectType
	data []byte
}

// NewCache returns a cache that keeps at most limit bytes of objects, and none larger than half of that.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, order: list.New(), items: map[cacheKey]*list.Element{}, readers: newReaders()}
}

func (c *Cache) get(p *Pack, off int64) (plumbing.ObjectType, []byte, bool) {
	if c == nil {
		return 0, nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[cacheKey{p, off}]
	if !ok {
		return 0, nil, false
	}
	c.order.MoveToFront(e)
	it := e.Value.(*cacheItem)
	return it.typ, it.data, true
}

func (c *Cache) put(p *Pack, off int64, t plumbing.ObjectType, data []byte) {
	if c == nil || int64(len(data)) > c.limit/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{p, off}
	if _, ok := c.items[k]; ok {
		return
	}
	c.items[k] = c.order.PushFront(&cacheItem{k, t, data})
	for c.used += int64(len(data)); c.used > c.limit; {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(e *list.Element) {
	it := e.Value.(*cacheItem)
	c.order.Remove(e)
	delete(c.items, it.key)
	c.used -= int64(len(it.data))
}

// forget removes the objects of p.
func (c *Cache) forget(p *Pack) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*cacheItem).key.p == p {
			c.remove(e)
		}
		e = next
	}
}
