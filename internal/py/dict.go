package py

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
)

// Dict is a Python dict: insertion-ordered, with any hashable value as key.
// Keys that are equal in Python (1, 1.0, True) are one key; the first one set is kept.
type Dict struct {
	entries []entry
	index   map[any]int // position by normalised key; nil while the dict is small
	live    int
	ordered bool // an OrderedDict
}

// KeepOrder makes d an OrderedDict for code that checks for that: YAML is written in its order, not in that of the keys.
func (d *Dict) KeepOrder() { d.ordered = true }

// KeepsOrder reports whether KeepOrder was called for d, or for the dict that d is a copy of.
func (d *Dict) KeepsOrder() bool { return d != nil && d.ordered }

type entry struct {
	norm any // see hashKey; nil marks a deleted entry
	key  any
	val  any
}

// smallDict is the size up to which a scan is faster than a map.
const smallDict = 8

// Normalised forms of keys that are not themselves comparable Go values with Python's equality.
type (
	noneKey  struct{}
	bigKey   string
	tupleKey string
)

// Item is one entry of a Dict.
type Item struct{ Key, Value any }

// NewDict returns an empty dict, or one of alternating keys and values; an unhashable key or a missing value panics,
// because it is an error in the calling program.
func NewDict(kv ...any) *Dict {
	d := &Dict{}
	if len(kv)%2 != 0 {
		panic("py.NewDict: a key without a value")
	}
	for i := 0; i < len(kv); i += 2 {
		if err := d.Set(kv[i], kv[i+1]); err != nil {
			panic("py.NewDict: " + err.Error())
		}
	}
	return d
}

// maxTupleKey limits the encoded form of a tuple used as a key: nested tuples can grow exponentially.
const maxTupleKey = 1 << 16

// hashKey returns the comparable form of a key.
func hashKey(k any) (any, error) {
	switch x := k.(type) {
	case string:
		return x, nil
	case int64:
		return x, nil
	case int:
		return int64(x), nil
	case nil:
		return noneKey{}, nil
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if x == math.Trunc(x) && !math.IsInf(x, 0) {
			if x >= -(1<<63) && x < 1<<63 {
				return int64(x), nil
			}
			b, _ := big.NewFloat(x).Int(nil)
			return bigKey(b.Text(62)), nil
		}
		return x, nil
	case *big.Int:
		if x.IsInt64() {
			return x.Int64(), nil
		}
		return bigKey(x.Text(62)), nil
	case Tuple:
		b, err := encodeKey(nil, x, 0)
		if err != nil {
			return nil, err
		}
		return tupleKey(b), nil
	case *Dict, *List:
		return nil, Errorf(TypeError, "unhashable type: '%s'", TypeName(k))
	case StrLike:
		return x.PyStr(), nil
	case Unhashable:
		if err := x.HashError(); err != nil {
			return nil, err
		}
	}
	if !reflect.TypeOf(k).Comparable() {
		return nil, Errorf(TypeError, "unhashable type: '%s'", TypeName(k))
	}
	return k, nil
}

// Unhashable is an object that decides whether it can be a key; the error is the reason why not.
type Unhashable interface{ HashError() error }

func encodeKey(b []byte, v any, depth int) ([]byte, error) {
	if depth > 100 || len(b) > maxTupleKey {
		return nil, Errorf(LimitError, "tuple is too large to be a key")
	}
	if t, ok := v.(Tuple); ok {
		b = append(b, 't')
		b = binary.AppendUvarint(b, uint64(len(t)))
		var err error
		for _, e := range t {
			if b, err = encodeKey(b, e, depth+1); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	n, err := hashKey(v)
	if err != nil {
		return nil, err
	}
	switch x := n.(type) {
	case string:
		b = append(b, 's')
		b = binary.AppendUvarint(b, uint64(len(x)))
		b = append(b, x...)
	case int64:
		b = append(b, 'i')
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	case float64:
		b = append(b, 'f')
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	case noneKey:
		b = append(b, 'n')
	case bigKey:
		b = append(b, 'b')
		b = binary.AppendUvarint(b, uint64(len(x)))
		b = append(b, x...)
	default:
		b = append(b, fmt.Sprintf("o%p;", x)...)
	}
	return b, nil
}

// Hashable returns nil if v can be a key, otherwise the TypeError that Python raises.
func Hashable(v any) error {
	_, err := hashKey(v)
	return err
}

func (d *Dict) find(norm any) int {
	if d.index != nil {
		if i, ok := d.index[norm]; ok {
			return i
		}
		return -1
	}
	if s, ok := norm.(string); ok {
		return d.findStr(s)
	}
	for i := range d.entries {
		if d.entries[i].norm == norm {
			return i
		}
	}
	return -1
}

func (d *Dict) findStr(s string) int {
	if d.index != nil {
		if i, ok := d.index[s]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if e, ok := d.entries[i].norm.(string); ok && e == s {
			return i
		}
	}
	return -1
}

// Len returns the number of keys. A nil Dict is empty.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return d.live
}

// Get returns the value of a key; ok is false if there is none, or if the key cannot be one.
func (d *Dict) Get(key any) (v any, ok bool) {
	v, ok, _ = d.Lookup(key)
	return v, ok
}

// Lookup is Get that distinguishes an unhashable key (a TypeError) from a missing one.
func (d *Dict) Lookup(key any) (v any, ok bool, err error) {
	if d == nil {
		return nil, false, nil
	}
	if s, isStr := key.(string); isStr {
		v, ok = d.GetStr(s)
		return v, ok, nil
	}
	n, err := hashKey(key)
	if err != nil {
		return nil, false, err
	}
	if i := d.find(n); i >= 0 {
		return d.entries[i].val, true, nil
	}
	return nil, false, nil
}

// GetStr is Get of a string key.
func (d *Dict) GetStr(key string) (v any, ok bool) {
	if d == nil {
		return nil, false
	}
	if i := d.findStr(key); i >= 0 {
		return d.entries[i].val, true
	}
	return nil, false
}

// Has reports whether the key exists.
func (d *Dict) Has(key any) bool {
	_, ok := d.Get(key)
	return ok
}

// Set gives a key a value, at the end of the order if the key is new. The error is Python's TypeError for an
// unhashable key.
func (d *Dict) Set(key, val any) error {
	if i, ok := key.(int); ok {
		key = int64(i)
	}
	n, err := hashKey(key)
	if err != nil {
		return err
	}
	d.set(n, key, val)
	return nil
}

// SetStr is Set of a string key, which cannot fail.
func (d *Dict) SetStr(key string, val any) {
	if i := d.findStr(key); i >= 0 {
		d.entries[i].val = val
		return
	}
	var k any = key
	d.insert(k, k, val)
}

func (d *Dict) set(norm, key, val any) {
	if i := d.find(norm); i >= 0 {
		d.entries[i].val = val
		return
	}
	d.insert(norm, key, val)
}

func (d *Dict) insert(norm, key, val any) {
	d.entries = append(d.entries, entry{norm, key, val})
	d.live++
	if d.index != nil {
		d.index[norm] = len(d.entries) - 1
	} else if len(d.entries) > smallDict {
		d.reindex()
	}
}

// reindex drops deleted entries and rebuilds the index.
func (d *Dict) reindex() {
	out := d.entries[:0]
	for _, e := range d.entries {
		if e.norm != nil {
			out = append(out, e)
		}
	}
	clear(d.entries[len(out):])
	d.entries = out
	if len(out) <= smallDict {
		d.index = nil
		return
	}
	d.index = make(map[any]int, len(out)*2)
	for i := range out {
		d.index[out[i].norm] = i
	}
}

// Delete removes a key; it returns false if there was none.
func (d *Dict) Delete(key any) bool {
	_, ok := d.Pop(key)
	return ok
}

// Pop removes a key and returns its value; ok is false if there was none.
func (d *Dict) Pop(key any) (v any, ok bool) {
	if d == nil {
		return nil, false
	}
	n, err := hashKey(key)
	if err != nil {
		return nil, false
	}
	i := d.find(n)
	if i < 0 {
		return nil, false
	}
	v = d.entries[i].val
	d.entries[i] = entry{}
	d.live--
	if d.index != nil {
		delete(d.index, n)
	}
	if i == len(d.entries)-1 {
		d.entries = d.entries[:i]
	} else if d.live < len(d.entries)/2 || d.index == nil {
		d.reindex()
	}
	return v, true
}

// Clear removes every key.
func (d *Dict) Clear() { *d = Dict{} }

// Keys returns the keys in order, in a new slice.
func (d *Dict) Keys() []any {
	out := make([]any, 0, d.Len())
	for _, e := range d.all() {
		if e.norm != nil {
			out = append(out, e.key)
		}
	}
	return out
}

// Values returns the values in the order of the keys, in a new slice.
func (d *Dict) Values() []any {
	out := make([]any, 0, d.Len())
	for _, e := range d.all() {
		if e.norm != nil {
			out = append(out, e.val)
		}
	}
	return out
}

// Items returns the entries in order, in a new slice.
func (d *Dict) Items() []Item {
	out := make([]Item, 0, d.Len())
	for _, e := range d.all() {
		if e.norm != nil {
			out = append(out, Item{e.key, e.val})
		}
	}
	return out
}

func (d *Dict) all() []entry {
	if d == nil {
		return nil
	}
	return d.entries
}

// Range calls fn for each entry in order until it returns false. fn must not add or remove keys.
func (d *Dict) Range(fn func(key, val any) bool) {
	for _, e := range d.all() {
		if e.norm != nil && !fn(e.key, e.val) {
			return
		}
	}
}

// Copy returns a shallow copy. A nil Dict yields an empty one.
func (d *Dict) Copy() *Dict {
	out := &Dict{ordered: d.KeepsOrder()}
	out.Update(d)
	return out
}

// Update sets every entry of other, in its order.
func (d *Dict) Update(other *Dict) {
	if other == d {
		return
	}
	for _, e := range other.all() {
		if e.norm != nil {
			d.set(e.norm, e.key, e.val)
		}
	}
}
