package py

import (
	"context"
	"math/big"
)

// Callable is a value that can be called. kw is nil if no keyword argument was given; its keys are strings.
type Callable interface {
	Call(ctx context.Context, args []any, kw *Dict) (any, error)
}

// Func is a named Go function as a Python value. Its identity is the pointer.
type Func struct {
	Name string
	Fn   func(ctx context.Context, args []any, kw *Dict) (any, error)
}

// NewFunc returns a Func.
func NewFunc(name string, fn func(ctx context.Context, args []any, kw *Dict) (any, error)) *Func {
	return &Func{Name: name, Fn: fn}
}

// Call implements Callable.
func (f *Func) Call(ctx context.Context, args []any, kw *Dict) (any, error) {
	return f.Fn(ctx, args, kw)
}

// TypeName implements Typed.
func (f *Func) TypeName() string { return "function" }

// Repr implements Reprer.
func (f *Func) Repr() (string, error) { return "<function " + f.Name + ">", nil }

// Typed names the Python type of an object; without it the type is "object".
type Typed interface{ TypeName() string }

// Attributer is an object with attributes (obj.name). ok is false if there is no such attribute.
type Attributer interface {
	Attr(name string) (v any, ok bool, err error)
}

// AttrSetter is an object whose attributes can be assigned, such as a namespace.
type AttrSetter interface {
	SetAttr(name string, v any) error
}

// Indexer is an object that can be subscripted (obj[key]). ok is false if there is no such item.
type Indexer interface {
	Item(key any) (v any, ok bool, err error)
}

// Iterable is an object that can be iterated over.
type Iterable interface{ Iter() (Iterator, error) }

// Iterator returns one value after the other; ok is false at the end.
type Iterator interface {
	Next() (v any, ok bool, err error)
}

// Sizer is an object with a length.
type Sizer interface{ Len() (int, error) }

// Truther is an object that decides its own truth; without it, an object with a length is true if that is
// not 0, and any other object is true.
type Truther interface{ Truth() (bool, error) }

// Stringer is an object with its own str(); without it str() is repr().
type Stringer interface{ Str() (string, error) }

// Reprer is an object with its own repr().
type Reprer interface{ Repr() (string, error) }

// Wrapper is an object whose repr() is that of another value between two texts. Unlike a Reprer it may hold itself.
type Wrapper interface {
	Wrapped() (prefix string, inner any, suffix string)
}

// Equaler is an object with its own ==; without it, objects are equal when they are the same.
type Equaler interface{ Equal(other any) (bool, error) }

// Container is an object with its own `in`; without it, `in` iterates.
type Container interface{ Contains(v any) (bool, error) }

// Failer is an object that turns every operation on it into its own error, such as an undefined variable.
type Failer interface{ Fail() error }

// Mapping is a dict-like object: it can be turned into a Dict (dict(x), **x, x.items()).
type Mapping interface{ AsDict() (*Dict, error) }

// TypeName returns the name of the Python type of v, as type(v).__name__.
func TypeName(v any) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *Dict:
		return "dict"
	case *List:
		return "list"
	case Tuple:
		return "tuple"
	case Typed:
		return x.TypeName()
	case Iterator:
		return "generator"
	}
	return "object"
}

// Norm returns the smallest form of an integer: int64 if it fits, otherwise the *big.Int itself.
func Norm(b *big.Int) any {
	if b.IsInt64() {
		return b.Int64()
	}
	return b
}

// Truth is bool(v) for values that cannot fail; an object whose truth is an error counts as false.
func Truth(v any) bool {
	t, err := TruthOf(v)
	return err == nil && t
}

// TruthOf is bool(v).
func TruthOf(v any) (bool, error) {
	switch x := v.(type) {
	case nil:
		return false, nil
	case bool:
		return x, nil
	case int64:
		return x != 0, nil
	case *big.Int:
		return x.Sign() != 0, nil
	case float64:
		return x != 0, nil
	case string:
		return x != "", nil
	case *Dict:
		return x.Len() > 0, nil
	case *List:
		return len(x.items) > 0, nil
	case Tuple:
		return len(x) > 0, nil
	case Truther:
		return x.Truth()
	case Sizer:
		n, err := x.Len()
		return n != 0, err
	}
	return true, nil
}
