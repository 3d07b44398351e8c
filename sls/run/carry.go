package run

import (
	"math/big"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

const (
	// maxCarriedDepth, maxCarriedValues and maxCarriedBytes limit a configuration that a step's templates changed, since later steps receive
	// all of it.
	maxCarriedDepth  = 400
	maxCarriedValues = 1_000_000
	maxCarriedBytes  = 16 << 20
	// maxCarriedAsIs limits the values of each container of one that is not copied.
	maxCarriedAsIs = 10_000
)

// Carry returns a configuration as later steps receive it, after a step's templates changed it: its plain values. What is not a
// value, such as a macro, is omitted, and its path is in left. A configuration that contains itself, or is too large, is an
// error of kind Failed. The result may be cfg itself, which the caller must not use any more.
func Carry(cfg *py.Dict) (out *py.Dict, left []string, err error) {
	if (&asIs{}).value(cfg, 0) {
		return cfg, nil, nil
	}
	c := carrier{open: map[any]bool{}}
	v, _ := c.value(cfg, nil)
	if c.problem != "" {
		return nil, nil, fault.New(fault.Failed, "configuration", "what the templates made of cfg %s", c.problem).
			WithHint("cfg goes on to the steps that follow: keep large or recursive values in variables of the template")
	}
	return v.(*py.Dict), c.left, nil
}

type carrier struct {
	open    map[any]bool // the containers around the current value
	values  int
	bytes   int
	left    []string
	problem string
}

// maxLeft is the maximum number of paths that are named.
const maxLeft = 20

func (c *carrier) value(v any, path []string) (out any, ok bool) {
	if c.values++; c.values > maxCarriedValues || c.bytes > maxCarriedBytes {
		c.problem = "is too large"
	}
	if len(path) > maxCarriedDepth {
		c.problem = "is nested too deep"
	}
	if c.problem != "" {
		return nil, false
	}
	switch x := v.(type) {
	case nil, bool, int64, float64, *big.Int, []byte:
		return v, true
	case string:
		c.bytes += len(x)
		return x, true
	case jinja.Markup:
		c.bytes += len(x)
		return string(x), true
	case py.Tuple:
		items := make(py.Tuple, 0, len(x))
		for _, i := range x {
			if y, ok := c.value(i, path); ok {
				items = append(items, y)
			}
		}
		return items, true
	case *py.List:
		if !c.enter(x) {
			return nil, false
		}
		defer delete(c.open, x)
		items := make([]any, 0, x.Len())
		for _, i := range x.Items() {
			if y, ok := c.value(i, path); ok {
				items = append(items, y)
			}
		}
		return py.ListOf(items), true
	case *py.Dict:
		if !c.enter(x) {
			return nil, false
		}
		defer delete(c.open, x)
		d := py.NewDict()
		for _, e := range x.Items() {
			c.bytes += len(py.Str(e.Key))
			if y, ok := c.value(e.Value, append(path, py.Str(e.Key))); ok {
				_ = d.Set(e.Key, y) // it was a key before
			}
		}
		return d, true
	}
	if len(c.left) < maxLeft {
		c.left = append(c.left, strings.Join(path, ":"))
	}
	return nil, false
}

func (c *carrier) enter(x any) bool {
	if c.open[x] {
		c.problem = "holds itself"
		return false
	}
	c.open[x] = true
	return true
}

// asIs finds out whether a configuration is carried as it is, as nearly always: only plain values, each container once, and few of them. That takes a
// tenth of the time of a copy.
type asIs struct {
	seen  [64]any // the containers
	n     int
	bytes int
}

func (a *asIs) value(v any, depth int) bool {
	switch x := v.(type) {
	case nil, bool, int64, float64, *big.Int, []byte:
		return true
	case string:
		a.bytes += len(x)
		return a.bytes <= maxCarriedBytes
	case *py.List:
		if x == nil || x.Len() > maxCarriedAsIs || !a.first(x, depth) {
			return false
		}
		for i := range x.Len() {
			if !a.value(x.At(i), depth+1) {
				return false
			}
		}
		return true
	case *py.Dict:
		if x == nil || x.KeepsOrder() || x.Len() > maxCarriedAsIs || !a.first(x, depth) {
			return false
		}
		ok := true
		x.Range(func(key, val any) bool {
			a.bytes += len(py.Str(key))
			ok = a.bytes <= maxCarriedBytes && a.value(val, depth+1)
			return ok
		})
		return ok
	}
	return false
}

// first notes a container; it returns false if it was met before, or there are too many.
func (a *asIs) first(x any, depth int) bool {
	if a.n == len(a.seen) || depth > maxCarriedDepth {
		return false
	}
	for _, y := range a.seen[:a.n] {
		if x == y {
			return false
		}
	}
	a.seen[a.n] = x
	a.n++
	return true
}
