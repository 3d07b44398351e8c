package py

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

func fromNumber(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if b, ok := new(big.Int).SetString(s, 10); ok {
			return Norm(b)
		}
	}
	f, err := json.Number(s).Float64()
	if err != nil && f == 0 {
		return s
	}
	return f
}

// DeepCopy returns copy.deepcopy(v): containers are copied, and shared and cyclic ones stay so; objects are shared.
func DeepCopy(v any) any { return (&copier{}).copy(v) }

// copier copies a value, and knows the copies of what it has met.
type copier struct {
	dicts map[*Dict]*Dict
	lists map[*List]*List
}

func (c *copier) copy(v any) any {
	switch x := v.(type) {
	case *Dict:
		if out, ok := c.dicts[x]; ok {
			return out
		}
		if c.dicts == nil {
			c.dicts = map[*Dict]*Dict{}
		}
		out := &Dict{}
		c.dicts[x] = out
		c.fill(out, x)
		return out
	case *List:
		if out, ok := c.lists[x]; ok {
			return out
		}
		if c.lists == nil {
			c.lists = map[*List]*List{}
		}
		out := &List{items: make([]any, len(x.items))}
		c.lists[x] = out
		for i, e := range x.items {
			out.items[i] = c.copy(e)
		}
		return out
	case Tuple:
		out := make(Tuple, len(x))
		for i, e := range x {
			out[i] = c.copy(e)
		}
		return out
	}
	return v
}

// fill makes out, which is empty, a copy of x.
func (c *copier) fill(out, x *Dict) {
	if x == nil {
		return
	}
	out.ordered = x.ordered
	if x.live < len(x.entries) { // those that were deleted are left out, so that positions change
		for _, e := range x.entries {
			if e.norm != nil {
				out.insert(e.norm, e.key, c.copy(e.val))
			}
		}
		return
	}
	out.entries, out.live, out.index = slices.Clone(x.entries), x.live, maps.Clone(x.index)
	for i := range out.entries {
		out.entries[i].val = c.copy(out.entries[i].val)
	}
}
