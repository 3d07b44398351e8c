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
)

// Carry returns a configuration as later steps receive it, after a step's templates changed it: a copy of its plain values. What is not a
// value, such as a macro, is omitted, and its path is in left. A configuration that contains itself, or is too large, is an
// error of kind Failed.
func Carry(cfg *py.Dict) (out *py.Dict, left []string, err error) {
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
