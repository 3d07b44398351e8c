package render

import (
	"crypto/md5"
	crand "crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"

	"corpus-git/internal/py"
)

func randomFilters() map[string]filter {
	size := func(c call, i int, dflt int64) (int64, error) {
		n, err := py.Index(c.given(i, dflt))
		if err == nil && n < 0 {
			err = py.Errorf(py.ValueError, "negative argument not allowed")
		}
		return n, err
	}
	digest := filter{required: 0, params: []string{"size", "hash_type"}, fn: func(c call) (any, error) {
		n, err := size(c, 0, 9999999999)
		if err != nil {
			return nil, err
		}
		kind := c.given(1, nil)
		if on, err := py.TruthOf(kind); err != nil {
			return nil, err
		} else if !on {
			kind = "md5"
		}
		algo, ok := map[any]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}[kind]
		if !ok {
			return nil, py.Errorf(py.AttributeError, "there is no such hash type")
		}
		h := algo()
		_, err = fmt.Fprint(h, rand.Uint64N(uint64(n)+1))
		return hex.EncodeToString(h.Sum(nil)), err
	}}
	return map[string]filter{
		"random_str": {params: []string{"size"}, fn: func(c call) (any, error) {
			n, err := size(c, 0, 32)
			if err != nil {
				return nil, err
			}
			if n > 1<<30 {
				return nil, py.Errorf(py.LimitError, "too much memory for values")
			}
			if err := c.Ops().Alloc(3 * int(n)); err != nil {
				return nil, err
			}
			b := make([]byte, n)
			if _, err := crand.Read(b); err != nil {
				return nil, err
			}
			return base64.StdEncoding.EncodeToString(b)[:n], nil
		}},
		"rand_str": digest, "random_hash": digest,
		"random_sample": {required: 2, params: []string{"value", "size", "seed"}, fn: func(c call) (any, error) {
			n, err := size(c, 1, 0)
			if err != nil {
				return nil, err
			}
			return sample(c, n, c.given(2, nil))
		}},
		"random_shuffle": {required: 1, params: []string{"value", "seed"}, fn: func(c call) (any, error) {
			n, err := c.Ops().Len(c.a[0])
			if err != nil {
				return nil, err
			}
			return sample(c, int64(n), c.given(1, nil))
		}},
		"gen_mac": {params: []string{"prefix"}, fn: func(c call) (any, error) {
			prefix, err := c.Ops().Str(c.given(0, "AC:DE:48"))
			n := rand.Uint32()
			return fmt.Sprintf("%s:%02X:%02X:%02X", prefix, n&0xff, n>>8&0xff, n>>16&0xff), err
		}},
	}
}

// sample picks n items at random. With a seed Salt picks the same each time, by a generator of Python's.
func sample(c call, n int64, seed any) (any, error) {
	if seed != nil {
		return nil, notSupported("the argument seed of random_sample and random_shuffle")
	}
	switch c.a[0].(type) {
	case *py.Dict, *py.Set:
		return nil, py.Errorf(py.TypeError, "Population must be a sequence. For dicts or sets, use sorted(d).")
	}
	items, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	if n > int64(len(items)) {
		return nil, py.Errorf(py.ValueError, "Sample larger than population or is negative")
	}
	if err := c.Ops().Alloc(32 * len(items)); err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return py.ListOf(items[:n]), nil
}
