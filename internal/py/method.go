package py

import (
	"context"
	"math/big"
	"strings"
)

// method is a method of one of Python's own types. self has that type.
type method func(o *Ops, self any, a args) (any, error)

// methodOf finds a method by name, nil if the type has none such or v is an object.
func methodOf(v any, name string) method {
	switch v.(type) {
	case string:
		return strMethod(name)
	case *Dict:
		return dictMethod(name)
	case *List:
		return listMethod(name)
	case Tuple:
		return tupleMethod(name)
	case int64, *big.Int, bool:
		return intMethod(name)
	case float64:
		return floatMethod(name)
	}
	return nil
}

// HasMethod reports whether v is a value of one of Python's own types with that method.
func HasMethod(v any, name string) bool { return methodOf(v, name) != nil }

// CallMethod calls a method for which HasMethod holds.
func (o *Ops) CallMethod(v any, name string, argv []any, kw *Dict) (any, error) {
	m := methodOf(v, name)
	if m == nil {
		return nil, Errorf(AttributeError, "'%s' object has no attribute", TypeName(v))
	}
	if err := o.Called(v, argv); err != nil {
		return nil, err
	}
	return m(o, v, args{name, argv, kw})
}

// Attr is getattr(v, name); ok is false if there is no such attribute.
func (o *Ops) Attr(v any, name string) (attr any, ok bool, err error) {
	if a, is := v.(Attributer); is {
		return a.Attr(name)
	}
	if m := methodOf(v, name); m != nil {
		return &boundMethod{o, v, name, m}, true, nil
	}
	switch x := v.(type) {
	case *Range:
		switch name {
		case "start":
			return x.Start, true, nil
		case "stop":
			return x.Stop, true, nil
		case "step":
			return x.Step, true, nil
		}
	case int64, bool, *big.Int:
		switch name {
		case "real", "numerator":
			return Norm(toBig(x)), true, nil
		case "imag":
			return int64(0), true, nil
		case "denominator":
			return int64(1), true, nil
		}
	case float64:
		switch name {
		case "real":
			return x, true, nil
		case "imag":
			return 0.0, true, nil
		}
	}
	return nil, false, nil
}

// boundMethod is a method that was read from its object without a call.
type boundMethod struct {
	ops  *Ops
	self any
	name string
	fn   method
}

// Method is a method of one of Python's own types as a value.
type Method interface {
	Callable
	method()
}

func (b *boundMethod) method() {}

// TypeName implements Typed.
func (b *boundMethod) TypeName() string { return "builtin_function_or_method" }

// Repr implements Reprer.
func (b *boundMethod) Repr() (string, error) {
	return "<built-in method " + b.name + " of " + TypeName(b.self) + " object>", nil
}

// Call implements Callable.
func (b *boundMethod) Call(_ context.Context, argv []any, kw *Dict) (any, error) {
	if err := b.ops.Called(b.self, argv); err != nil {
		return nil, err
	}
	return b.fn(b.ops, b.self, args{b.name, argv, kw})
}

// args are the arguments of a call to a builtin.
type args struct {
	fn  string
	pos []any
	kw  *Dict
}

// bind matches the arguments with parameter names: the first required ones must be given; missing ones are unset.
func (a args) bind(required int, names ...string) ([]any, error) {
	return Bind(a.fn, a.pos, a.kw, required, names...)
}

// positional is bind for functions that take no keywords.
func (a args) positional(required, most int) ([]any, error) {
	if a.kw.Len() > 0 {
		return nil, Errorf(TypeError, "%s() takes no keyword arguments", a.fn)
	}
	if len(a.pos) < required || len(a.pos) > most {
		if required == most {
			return nil, Errorf(TypeError, "%s() takes exactly %d argument(s) (%d given)", a.fn, most, len(a.pos))
		}
		return nil, Errorf(TypeError, "%s() takes from %d to %d arguments (%d given)", a.fn, required, most, len(a.pos))
	}
	out := make([]any, most)
	n := copy(out, a.pos)
	for ; n < most; n++ {
		out[n] = Unset
	}
	return out, nil
}

// Unset is in the result of Bind for an argument that was not given.
var Unset any = unset{}

type unset struct{}

// Bind matches the arguments of a call with parameter names, as Python does: too many, unknown and repeated ones, and
// missing ones among the first required, are a TypeError. An argument not given is Unset.
func Bind(fn string, pos []any, kw *Dict, required int, names ...string) ([]any, error) {
	if len(pos) > len(names) {
		return nil, Errorf(TypeError, "%s() takes at most %d arguments (%d given)", fn, len(names), len(pos))
	}
	out := make([]any, len(names))
	n := copy(out, pos)
	for i := n; i < len(names); i++ {
		out[i] = Unset
	}
	var err error
	kw.Range(func(k, v any) bool {
		for i, name := range names {
			if k == any(name) {
				if i < n {
					err = Errorf(TypeError, "%s() got multiple values for argument '%s'", fn, name)
				}
				out[i] = v
				return err == nil
			}
		}
		err = Errorf(TypeError, "%s() got an unexpected keyword argument; it takes %s", fn, strings.Join(names, ", "))
		return false
	})
	if err != nil {
		return nil, err
	}
	for i := range required {
		if out[i] == Unset {
			return nil, Errorf(TypeError, "%s() missing 1 required positional argument: '%s'", fn, names[i])
		}
	}
	return out, nil
}

// Given reports whether an argument of Bind was given.
func Given(v any) bool { return v != Unset }
