package py

import (
	"encoding/json"
	"math/big"
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
func DeepCopy(v any) any { return deepCopy(v, map[any]any{}) }

func deepCopy(v any, memo map[any]any) any {
	switch x := v.(type) {
	case *Dict:
		if c, ok := memo[x]; ok {
			return c
		}
		out := &Dict{ordered: x.ordered}
		memo[x] = out
		for _, e := range x.all() {
			if e.norm != nil {
				out.insert(e.norm, e.key, deepCopy(e.val, memo))
			}
		}
		return out
	case *List:
		if c, ok := memo[x]; ok {
			return c
		}
		out := &List{items: make([]any, len(x.items))}
		memo[x] = out
		for i, e := range x.items {
			out.items[i] = deepCopy(e, memo)
		}
		return out
	case Tuple:
		out := make(Tuple, len(x))
		for i, e := range x {
			out[i] = deepCopy(e, memo)
		}
		return out
	}
	return v
}
