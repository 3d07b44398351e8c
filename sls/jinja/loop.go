package jinja

import (
	"context"
	"strconv"

	"corpus-git/internal/py"
)

// loopContext is the variable loop inside {% for %}.
type loopContext struct {
	rt       *render
	iterable any
	it       py.Iterator
	index0   int
	depth0   int
	length   int // -1: not known yet
	after    any
	current  any
	before   any
	changed  any
	recurse  func(iterable any, depth int) (any, error)
}

func newLoop(rt *render, iterable any, it py.Iterator) *loopContext {
	return &loopContext{rt: rt, iterable: iterable, it: it, index0: -1, length: -1,
		after: missing, current: missing, before: missing, changed: missing}
}

// next goes on to the next item.
func (l *loopContext) next() (any, bool, error) {
	v := l.after
	if v != missing {
		l.after = missing
	} else {
		var ok bool
		var err error
		if v, ok, err = l.it.Next(); err != nil || !ok {
			return nil, false, err
		}
	}
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

func (l *loopContext) peek() (any, error) {
	if l.after == missing {
		v, ok, err := l.it.Next()
		if err != nil {
			return nil, err
		}
		if ok {
			l.after = v
		}
	}
	return l.after, nil
}

// Len implements py.Sizer.
func (l *loopContext) Len() (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	if n, err := l.rt.ops.Len(l.iterable); err == nil {
		l.length = n
		return n, nil
	} else if !py.IsErr(err, py.TypeError) {
		return 0, err
	}
	rest, err := l.rt.ops.Slice(l.it)
	if err != nil {
		return 0, err
	}
	l.it = py.NewIter(rest)
	l.length = len(rest) + l.index0 + 1
	if l.after != missing {
		l.length++
	}
	return l.length, nil
}

// TypeName implements py.Typed.
func (l *loopContext) TypeName() string { return "LoopContext" }

// Truth implements py.Truther: by length, as Python does for an object with __len__.
func (l *loopContext) Truth() (bool, error) {
	n, err := l.Len()
	return n > 0, err
}

// Repr implements py.Reprer.
func (l *loopContext) Repr() (string, error) {
	n, err := l.Len()
	return "<LoopContext " + strconv.Itoa(l.index0+1) + "/" + strconv.Itoa(n) + ">", err
}

// Iter implements py.Iterable: what is left of the loop.
func (l *loopContext) Iter() (py.Iterator, error) {
	return py.IterFunc(func() (any, bool, error) {
		v, ok, err := l.next()
		return py.Tuple{v, l}, ok, err
	}), nil
}

// Attr implements py.Attributer.
func (l *loopContext) Attr(name string) (any, bool, error) {
	num := func(n int) (any, bool, error) { return int64(n), true, nil }
	switch name {
	case "index":
		return num(l.index0 + 1)
	case "index0":
		return num(l.index0)
	case "first":
		return l.index0 == 0, true, nil
	case "last":
		v, err := l.peek()
		return v == missing, true, err
	case "length":
		n, err := l.Len()
		return int64(n), true, err
	case "revindex":
		n, err := l.Len()
		return int64(n - l.index0), true, err
	case "revindex0":
		n, err := l.Len()
		return int64(n - l.index0 - 1), true, err
	case "depth":
		return num(l.depth0 + 1)
	case "depth0":
		return num(l.depth0)
	case "previtem":
		if l.index0 == 0 {
			return l.rt.env.undefinedHint("there is no previous item"), true, nil
		}
		return l.before, true, nil
	case "nextitem":
		v, err := l.peek()
		if v == missing {
			v = l.rt.env.undefinedHint("there is no next item")
		}
		return v, true, err
	case "cycle":
		return py.NewFunc("cycle", l.cycle), true, nil
	case "changed":
		return py.NewFunc("changed", l.hasChanged), true, nil
	}
	return nil, false, nil
}

func (l *loopContext) cycle(_ context.Context, args []any, _ *py.Dict) (any, error) {
	if len(args) == 0 {
		return nil, py.Errorf(py.TypeError, "no items for cycling given")
	}
	return args[l.index0%len(args)], nil
}

func (l *loopContext) hasChanged(_ context.Context, args []any, _ *py.Dict) (any, error) {
	now := py.Tuple(args)
	if l.changed != missing {
		eq, err := l.rt.ops.Equal(l.changed, now)
		if err != nil || eq {
			return false, err
		}
	}
	l.changed = now
	return true, nil
}

// Call implements py.Callable: it renders the loop again, one level deeper.
func (l *loopContext) Call(_ context.Context, args []any, kw *py.Dict) (any, error) {
	if l.recurse == nil {
		return nil, py.Errorf(py.TypeError, "The loop must have the 'recursive' marker to be called recursively.")
	}
	if len(args) != 1 || kw.Len() > 0 {
		return nil, py.Errorf(py.TypeError, "loop() takes exactly one argument")
	}
	return l.recurse(args[0], l.depth0+1)
}
