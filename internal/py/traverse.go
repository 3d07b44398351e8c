package py

import (
	"strconv"
	"strings"
)

// Traverse finds a value by a path of keys separated by a delimiter; a whole number steps into a
// list, and a list of one-key mappings is searched for the key. An empty delimiter means a colon.
// Source: Salt documentation, pillar.get and grains.get.
func Traverse(v any, path, delimiter string) (any, bool) {
	if delimiter == "" {
		delimiter = ":"
	}
	cur := v
	if d, ok := v.(*Dict); ok && d == nil {
		return nil, false
	}
	for _, key := range strings.Split(path, delimiter) {
		switch x := cur.(type) {
		case *Dict:
			next, ok := x.GetStr(key)
			if !ok {
				n, err := strconv.ParseInt(key, 10, 64)
				if err != nil {
					return nil, false
				}
				if next, ok = x.Get(n); !ok {
					return nil, false
				}
			}
			cur = next
		case *List:
			if n, err := strconv.Atoi(key); err == nil {
				if n < 0 {
					n += x.Len()
				}
				if n < 0 || n >= x.Len() {
					return nil, false
				}
				cur = x.At(n)
				continue
			}
			found := false
			for _, it := range x.Items() {
				if d, ok := it.(*Dict); ok {
					if next, ok := d.GetStr(key); ok {
						cur, found = next, true
						break
					}
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return cur, true
}
