package schema

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/pyre"
	"corpus-git/internal/saltyaml"
)

// Constraint is a rule for the values of a field.
type Constraint struct {
	// Kind is length, range, modulo, allowed_values or allowed_pattern.
	Kind string
	// Description is what the reader is told instead of the rule.
	Description string

	min, max     *big.Rat // for length and range
	step, offset *big.Rat
	values       []any
	pattern      *pyre.Regexp
	expr         string
}

// leadingFlags are the flags of an expression of Python: (?i).
var leadingFlags = regexp.MustCompile(`^(\(\?[aiLmsux]+\))+`)

// The kinds.
const (
	kindLength  = "length"
	kindRange   = "range"
	kindModulo  = "modulo"
	kindValues  = "allowed_values"
	kindPattern = "allowed_pattern"
)

func kinds() []string { return []string{kindLength, kindRange, kindModulo, kindValues, kindPattern} }

// check returns what is wrong with a value of the right type.
func (c Constraint) check(v any) string {
	ok := true
	switch c.Kind {
	case kindLength:
		n, _, has := length(v)
		ok = has && c.within(new(big.Rat).SetInt64(int64(n)))
	case kindRange:
		n := rat(v)
		ok = n != nil && c.within(n)
	case kindModulo:
		n := rat(v)
		if ok = n != nil; ok {
			rest := new(big.Rat).Quo(n.Sub(n, c.offset), c.step)
			ok = rest.IsInt()
		}
	case kindValues:
		in := func(v any) bool { return slices.ContainsFunc(c.values, func(x any) bool { return py.Equal(x, v) }) }
		if l, isList := v.(*py.List); isList {
			ok = !slices.ContainsFunc(l.Items(), func(x any) bool { return !in(x) })
		} else {
			ok = in(v)
		}
	case kindPattern:
		match := func(v any) bool {
			s, isText := v.(string)
			if !isText {
				return false
			}
			m, err := c.pattern.Find(s, true)
			return err == nil && m != nil
		}
		if l, isList := v.(*py.List); isList {
			ok = !slices.ContainsFunc(l.Items(), func(x any) bool { return !match(x) })
		} else {
			ok = match(v)
		}
	}
	switch {
	case ok:
		return ""
	case c.Description != "":
		return "is not allowed: " + c.Description
	}
	_, of, _ := length(v)
	return c.text(of)
}

func (c Constraint) within(n *big.Rat) bool {
	return (c.min == nil || n.Cmp(c.min) >= 0) && (c.max == nil || n.Cmp(c.max) <= 0)
}

// text returns the rule in words.
func (c Constraint) text(of string) string {
	bounds := func() string {
		switch {
		case c.max == nil:
			return "at least " + decimal(c.min)
		case c.min == nil:
			return "at most " + decimal(c.max)
		}
		return decimal(c.min) + " to " + decimal(c.max)
	}
	switch c.Kind {
	case kindLength:
		return "must have " + bounds() + " " + of
	case kindRange:
		return "must be " + bounds()
	case kindModulo:
		if c.offset.Sign() == 0 {
			return "must be a multiple of " + decimal(c.step)
		}
		return fmt.Sprintf("must be %s more than a multiple of %s", decimal(c.offset), decimal(c.step))
	case kindValues:
		var names []string
		for _, v := range c.values {
			names = append(names, py.Str(v))
		}
		return "must be one of: " + strings.Join(names, ", ")
	}
	return "must match " + c.expr
}

func decimal(n *big.Rat) string {
	if n.IsInt() {
		return n.Num().String()
	}
	return strings.TrimRight(n.FloatString(6), "0")
}

// rat returns a number, nil if the value is not a number.
func rat(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case *big.Int:
		return new(big.Rat).SetInt(v)
	case float64:
		return new(big.Rat).SetFloat64(v) // nil if it is not finite
	}
	return nil
}

// constraints reads a list of rules.
func (r *reader) constraints(f *Field, n *saltyaml.Node) error {
	if n.Kind != saltyaml.Sequence {
		return r.bad(n, "constraints must be a list").WithHint("as in  constraints: [{range: {min: 1024, max: 65535}}]")
	}
	for _, item := range n.Items {
		c, err := r.constraint(f, item)
		if err != nil {
			return err
		}
		f.Constraints = append(f.Constraints, c)
	}
	return nil
}

func (r *reader) constraint(f *Field, n *saltyaml.Node) (c Constraint, err error) {
	if n.Kind != saltyaml.Mapping {
		return c, r.bad(n, "a constraint must be a mapping of one of: %s", strings.Join(kinds(), ", "))
	}
	for i, k := range n.Keys {
		key, v := py.Str(k.Value), n.Items[i]
		switch {
		case key == "description":
			c.Description, err = r.text(v, key)
		case !slices.Contains(kinds(), key):
			err = r.unknown(k, key, append(kinds(), "description"))
		case c.Kind != "":
			err = r.bad(k, "a constraint contains one rule, but this one contains %s and %s", c.Kind, key).WithHint("write a separate list item for each")
		default:
			c.Kind = key
			err = r.rule(f, &c, k, v)
		}
		if err != nil {
			return c, err
		}
	}
	if c.Kind == "" {
		return c, r.bad(n, "a constraint must have one of: %s", strings.Join(kinds(), ", "))
	}
	return c, nil
}

// appliesTo returns the types that a kind of constraint is for.
func appliesTo(kind string) []Type {
	switch kind {
	case kindLength:
		return []Type{String, List, Mapping, JSON}
	case kindRange, kindModulo:
		return []Type{Integer, Number}
	case kindPattern:
		return []Type{String, List}
	}
	return []Type{String, Integer, Number, List}
}

func (r *reader) rule(f *Field, c *Constraint, at, n *saltyaml.Node) (err error) {
	if !slices.Contains(appliesTo(c.Kind), f.Type) {
		return r.bad(at, "%s does not apply to %s", c.Kind, f.Type.article())
	}
	switch c.Kind {
	case kindLength, kindRange:
		if c.min, c.max, err = r.pair(n, "min", "max"); err == nil && c.min == nil && c.max == nil {
			err = r.bad(n, "%s needs min, max or both", c.Kind)
		} else if err == nil && c.min != nil && c.max != nil && c.min.Cmp(c.max) > 0 {
			err = r.bad(n, "min is more than max")
		}
	case kindModulo:
		if c.step, c.offset, err = r.pair(n, "step", "offset"); err == nil && (c.step == nil || c.step.Sign() == 0) {
			err = r.bad(n, "modulo needs a step, and it is not 0")
		}
		if c.offset == nil {
			c.offset = new(big.Rat)
		}
	case kindValues:
		if n.Kind != saltyaml.Sequence || len(n.Items) == 0 {
			return r.bad(n, "allowed_values must be a list of values")
		}
		for _, item := range n.Items {
			if item.Kind != saltyaml.Scalar {
				return r.bad(item, "each of allowed_values must be one value")
			}
			c.values = append(c.values, item.Value)
		}
	case kindPattern:
		if c.expr, err = r.text(n, c.Kind); err != nil {
			return err
		}
		_, syntax := pyre.Compile(c.expr, 0) // by itself: a)|(b is none, although it would be one in a group
		if syntax == nil {
			flags := leadingFlags.FindString(c.expr) // they apply to all of it, and stay in front of the group
			c.pattern, syntax = pyre.Compile(flags+"(?:"+c.expr[len(flags):]+`)\Z`, 0)
		}
		if syntax != nil {
			return r.bad(n, "it is not a regular expression: %s", syntax)
		}
	}
	return err
}

// pair reads a mapping of two numbers, either of which may be missing.
func (r *reader) pair(n *saltyaml.Node, one, two string) (first, second *big.Rat, err error) {
	if n.Kind != saltyaml.Mapping {
		return nil, nil, r.bad(n, "must be a mapping of %s and %s", one, two)
	}
	for i, k := range n.Keys {
		to := map[string]**big.Rat{one: &first, two: &second}[py.Str(k.Value)]
		if to == nil {
			return nil, nil, r.unknown(k, py.Str(k.Value), []string{one, two})
		}
		if *to = rat(n.Items[i].Value); *to == nil {
			return nil, nil, r.bad(n.Items[i], "%s must be a number", py.Str(k.Value))
		}
	}
	return first, second, nil
}
