package render

import (
	"slices"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// iterFilters returns the filters that accept any number of arguments.
func iterFilters() map[string]jinja.FilterFunc {
	iter := func(fn func(c *jinja.Context, args []any, kw *py.Dict) (any, error)) jinja.FilterFunc {
		return func(c *jinja.Context, v any, args []any, kw *py.Dict) (any, error) {
			if u, ok, err := jinja.JoinUndefined(c, v); ok || err != nil {
				return u, err
			}
			return fn(c, append([]any{v}, args...), kw)
		}
	}
	chosen := func(name string, required int, next func(n, r int) func([]int) bool) jinja.FilterFunc {
		return iter(func(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
			a, err := py.Bind(name, args, kw, required, "iterable", "r")
			if err != nil {
				return nil, err
			}
			return choose(c, a, required == 1, next)
		})
	}
	return map[string]jinja.FilterFunc{
		"zip": iter(func(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
			strict, _ := kw.GetStr("strict")
			if kw.Len() > 0 && (kw.Len() > 1 || strict != false) {
				return nil, notSupported("a keyword argument of zip")
			}
			return zip(c, args, nil, false)
		}),
		"zip_longest": iter(func(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
			fill, given := kw.GetStr("fillvalue")
			if kw.Len() > 1 || kw.Len() == 1 && !given {
				return nil, py.Errorf(py.TypeError, "zip_longest() got an unexpected keyword argument")
			}
			return zip(c, args, fill, true)
		}),
		"compress":                      iter(compress),
		"product":                       iter(product),
		"combinations":                  chosen("combinations", 2, combinations),
		"combinations_with_replacement": chosen("combinations_with_replacement", 2, replacements),
		"permutations":                  chosen("permutations", 1, permutations),
		"method_call":                   methodCall,
	}
}

func zip(c *jinja.Context, args []any, fill any, longest bool) (any, error) {
	its := make([]py.Iterator, len(args))
	for i, a := range args {
		var err error
		if its[i], err = c.Ops().Iter(a); err != nil {
			return nil, err
		}
	}
	return jinja.Generator(func() (any, bool, error) {
		if err := c.Ops().Alloc(32 + 32*len(its)); err != nil {
			return nil, false, err
		}
		out := make(py.Tuple, len(its))
		some := false
		for i, it := range its {
			v, ok, err := it.Next()
			if err != nil {
				return nil, false, err
			}
			if !ok && !longest {
				return nil, false, nil
			}
			out[i] = fill
			if ok {
				out[i], some = v, true
			}
		}
		return out, some, nil
	}, args...), nil
}

func compress(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
	a, err := py.Bind("compress", args, kw, 2, "data", "selectors")
	if err != nil {
		return nil, err
	}
	both, err := zip(c, a, nil, false)
	if err != nil {
		return nil, err
	}
	return jinja.Generator(func() (any, bool, error) {
		for {
			v, ok, err := both.(py.Iterator).Next()
			if err != nil || !ok {
				return nil, false, err
			}
			yes, err := py.TruthOf(v.(py.Tuple)[1])
			if yes || err != nil {
				return v.(py.Tuple)[0], err == nil, err
			}
		}
	}, a...), nil
}

// picks returns a tuple of the pool for each choice of indices produced by next, beginning with the given one.
func picks(c *jinja.Context, pools [][]any, at []int, next func(at []int) bool) any {
	done := false
	return jinja.Generator(func() (any, bool, error) {
		if done {
			return nil, false, nil
		}
		if err := c.Ops().Alloc(64 + 32*len(at)); err != nil {
			return nil, false, err
		}
		out := make(py.Tuple, len(at))
		for i, n := range at {
			out[i] = pools[i][n]
		}
		done = !next(at)
		return out, true, c.Ops().Step(1 + len(at))
	}, heldPools(pools)...)
}

func heldPools(pools [][]any) []any {
	var out []any
	for _, p := range pools {
		out = append(out, py.Tuple(p))
	}
	return out
}

func product(c *jinja.Context, args []any, kw *py.Dict) (any, error) {
	repeat := int64(1)
	if r, ok := kw.GetStr("repeat"); ok {
		var err error
		if repeat, err = py.Index(r); err != nil {
			return nil, err
		}
	}
	if kw.Len() > 1 || kw.Len() == 1 && !kw.Has("repeat") {
		return nil, py.Errorf(py.TypeError, "product() got an unexpected keyword argument")
	}
	if repeat < 0 {
		return nil, py.Errorf(py.ValueError, "repeat argument cannot be negative")
	}
	if err := c.Ops().Alloc(64 * len(args) * int(min(repeat, 1<<30))); err != nil {
		return nil, err
	}
	var pools [][]any
	none := false
	for _, a := range args {
		items, err := c.Ops().Slice(a)
		if err != nil {
			return nil, err
		}
		pools = append(pools, slices.Clone(items))
		none = none || len(items) == 0
	}
	pools = slices.Repeat(pools, int(repeat))
	if none && repeat > 0 {
		return py.NewIter(nil), nil
	}
	return picks(c, pools, make([]int, len(pools)), func(at []int) bool {
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < len(pools[i]) {
				return true
			}
			at[i] = 0
		}
		return false
	}), nil
}

// choose returns the ways to pick r of the items; optional: None means all of them.
func choose(c *jinja.Context, a []any, optional bool, next func(n, r int) func([]int) bool) (any, error) {
	items, err := c.Ops().Slice(a[0])
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	r := int64(len(items))
	if py.Given(a[1]) && (a[1] != nil || !optional) {
		if r, err = py.Index(a[1]); err != nil {
			return nil, err
		}
	}
	if r < 0 {
		return nil, py.Errorf(py.ValueError, "r must be non-negative")
	}
	if err := c.Ops().Alloc(64 * int(min(r, 1<<40))); err != nil {
		return nil, err
	}
	step := next(len(items), int(r))
	at := make([]int, r)
	pools := make([][]any, r)
	for i := range pools {
		pools[i] = items
	}
	if !step(at) {
		return py.NewIter(nil), nil
	}
	return picks(c, pools, at, step), nil
}

// combinations, replacements and permutations return a function that sets the first choice on its first call, and then the
// next one; it returns false if there is none.
func combinations(n, r int) func([]int) bool {
	began := false
	return func(at []int) bool {
		if !began {
			began = true
			for i := range at {
				at[i] = i
			}
			return r <= n
		}
		for i := r - 1; i >= 0; i-- {
			if at[i] < n-r+i {
				at[i]++
				for j := i + 1; j < r; j++ {
					at[j] = at[j-1] + 1
				}
				return true
			}
		}
		return false
	}
}

func replacements(n, r int) func([]int) bool {
	began := false
	return func(at []int) bool {
		if !began {
			began = true
			return n > 0 || r == 0
		}
		for i := r - 1; i >= 0; i-- {
			if at[i] < n-1 {
				v := at[i] + 1
				for j := i; j < r; j++ {
					at[j] = v
				}
				return true
			}
		}
		return false
	}
}

func permutations(n, r int) func([]int) bool {
	began := false
	var used []bool
	return func(at []int) bool {
		if !began {
			began = true
			used = make([]bool, n)
			for i := range at {
				at[i] = i
				if i < n {
					used[i] = true
				}
			}
			return r <= n
		}
		for i := r - 1; i >= 0; i-- {
			used[at[i]] = false
			for v := at[i] + 1; v < n; v++ {
				if used[v] {
					continue
				}
				at[i], used[v] = v, true
				low := 0
				for j := i + 1; j < r; j++ {
					for used[low] {
						low++
					}
					at[j], used[low] = low, true
				}
				return true
			}
		}
		return false
	}
}
