package py

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"sort"
	"strings"
)

// FromGo turns Go data into Python values: maps become dicts with sorted keys, slices become lists, every kind of
// integer an int64 (or *big.Int), json.Number an int or float. Python values and objects come back unchanged.
func FromGo(v any) any {
	switch x := v.(type) {
	case nil, bool, int64, float64, string, *Dict, *List, Tuple:
		return v
	case *big.Int:
		return Norm(x)
	case int:
		return int64(x)
	case float32:
		return float64(x)
	case uint64:
		return Norm(new(big.Int).SetUint64(x))
	case []byte:
		return string(x)
	case json.Number:
		return fromNumber(string(x))
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		d := &Dict{}
		for _, k := range keys {
			d.SetStr(k, FromGo(x[k]))
		}
		return d
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = FromGo(x[i])
		}
		return ListOf(out)
	}
	return fromReflect(v)
}

func fromReflect(v any) any {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.String:
		return rv.String()
	case reflect.Bool:
		return rv.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return rv.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return FromGo(rv.Uint())
	case reflect.Float32, reflect.Float64:
		return rv.Float()
	case reflect.Slice, reflect.Array:
		out := make([]any, rv.Len())
		for i := range out {
			out[i] = FromGo(rv.Index(i).Interface())
		}
		return ListOf(out)
	case reflect.Map:
		keys := rv.MapKeys()
		sort.Slice(keys, func(i, j int) bool {
			return fmt.Sprint(keys[i].Interface()) < fmt.Sprint(keys[j].Interface())
		})
		d := &Dict{}
		for _, k := range keys {
			pk := FromGo(k.Interface())
			if Hashable(pk) != nil {
				pk = Str(pk)
			}
			_ = d.Set(pk, FromGo(rv.MapIndex(k).Interface())) // hashable: just checked
		}
		return d
	}
	return v
}

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

// ToGo turns Python values into plain Go data for encoders: dicts become map[string]any (keys by str(), the order
// is lost), lists and tuples []any. Objects come back unchanged.
func ToGo(v any) any {
	switch x := v.(type) {
	case *Dict:
		out := make(map[string]any, x.Len())
		x.Range(func(k, val any) bool {
			out[Str(k)] = ToGo(val)
			return true
		})
		return out
	case *List:
		return toGoSlice(x.items)
	case Tuple:
		return toGoSlice(x)
	}
	return v
}

func toGoSlice(items []any) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = ToGo(items[i])
	}
	return out
}

// DeepCopy is copy.deepcopy(v): containers are copied, shared and cyclic ones stay so; objects are shared.
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
