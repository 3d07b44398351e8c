package jinja

import (
	"strings"

	"corpus-git/internal/py"
)

// undefined is the value of what is not there. Strict, it refuses everything but being tested for.
type undefined struct {
	hint   string
	obj    string // type of the object that lacks the attribute, "" for a variable
	name   string // what is missing, as shown; "" where it must not be shown
	attr   bool   // name is an attribute, not an element
	strict bool
	class  string
}

func (u *undefined) message() string {
	switch {
	case u.hint != "":
		return u.hint
	case u.obj == "" && u.name != "":
		return quote(u.name) + " is undefined"
	case u.obj == "":
		return "value is undefined"
	case u.name == "":
		return u.obj + " has no such element"
	case u.attr:
		return quote(u.obj) + " has no attribute " + quote(u.name)
	}
	return u.obj + " has no element " + u.name
}

// Fail implements py.Failer: the error of using the value.
func (u *undefined) Fail() error {
	class := u.class
	if class == "" {
		class = ClassUndefined
	}
	return raise(class, "%s", u.message())
}

// TypeName implements py.Typed.
func (u *undefined) TypeName() string {
	if u.strict {
		return "StrictUndefined"
	}
	return "Undefined"
}

func (u *undefined) refuse() error {
	if u.strict {
		return u.Fail()
	}
	return nil
}

// Str implements py.Stringer.
func (u *undefined) Str() (string, error) { return "", u.refuse() }

// Repr implements py.Reprer.
func (u *undefined) Repr() (string, error) { return "Undefined", nil }

// Len implements py.Sizer.
func (u *undefined) Len() (int, error) { return 0, u.refuse() }

// Truth implements py.Truther.
func (u *undefined) Truth() (bool, error) { return false, u.refuse() }

// Iter implements py.Iterable.
func (u *undefined) Iter() (py.Iterator, error) { return py.NewIter(nil), u.refuse() }

// Contains implements py.Container.
func (u *undefined) Contains(any) (bool, error) { return false, u.refuse() }

// Equal implements py.Equaler.
func (u *undefined) Equal(other any) (bool, error) {
	o, ok := other.(*undefined)
	return ok && o.strict == u.strict, u.refuse()
}

// HashError implements py.Unhashable: the strict kind cannot be a key.
func (u *undefined) HashError() error { return u.refuse() }

// Attr implements py.Attributer: every attribute of nothing is an error.
func (u *undefined) Attr(string) (any, bool, error) { return nil, false, u.Fail() }

// Item implements py.Indexer.
func (u *undefined) Item(any) (any, bool, error) { return nil, false, u.Fail() }

func (e *Environment) undefinedName(name string) any {
	return &undefined{name: name, strict: e.strict}
}

func (e *Environment) undefinedHint(hint string) any {
	return &undefined{hint: hint, strict: e.strict}
}

// undefinedItem returns the undefined value of a missing attribute or element; literal reports that the name is in the
// template, and so may be shown.
func (e *Environment) undefinedItem(obj, name any, literal bool) any {
	u := &undefined{obj: objectType(obj), strict: e.strict}
	s, isStr := name.(string)
	if literal {
		u.attr = isStr
		u.name = s
		if !isStr {
			u.name = py.Repr(name)
		}
	}
	return u
}

// objectType names an object's type as Jinja2's messages do.
func objectType(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case *macro, *loopContext, *templateRef, *blockRef, *undefined:
		return "jinja2.runtime." + py.TypeName(x) + " object"
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + py.TypeName(x) + " object"
	case *module:
		return "jinja2.environment.TemplateModule object"
	case *groupTuple:
		return "jinja2.filters._GroupTuple object"
	case Markup:
		return "markupsafe.Markup object"
	default:
		return py.TypeName(x) + " object"
	}
}

// JoinUndefined returns one undefined value for all those in v, itself included, and in the lists, tuples and dicts that it
// holds; ok is false if there is none.
func JoinUndefined(c *Context, v any) (u any, ok bool, err error) {
	var found []*undefined
	seen := map[any]bool{}
	var walk func(v any, depth int) error
	walk = func(v any, depth int) error {
		if err := c.rt.ops.Step(1); err != nil || depth > c.rt.env.limits.Depth {
			return err
		}
		switch x := v.(type) {
		case *undefined:
			if x.strict {
				found = append(found, x)
			}
		case *py.Dict:
			if seen[x] {
				return nil
			}
			seen[x] = true
			for _, e := range x.Items() {
				if err := walk(e.Value, depth+1); err != nil {
					return err
				}
			}
		case *py.List:
			if seen[x] {
				return nil
			}
			seen[x] = true
			for _, e := range x.Items() {
				if err := walk(e, depth+1); err != nil {
					return err
				}
			}
		case py.Tuple:
			for _, e := range x {
				if err := walk(e, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(v, 0); err != nil || len(found) == 0 {
		return nil, false, err
	}
	hints := make([]string, len(found))
	for i, f := range found {
		hints[i] = f.message()
	}
	return &undefined{hint: strings.Join(hints, "\n"), strict: true}, true, nil
}

func isUndefined(v any) bool {
	_, ok := v.(*undefined)
	return ok
}
