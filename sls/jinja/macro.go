package jinja

import (
	"context"
	"strings"

	"corpus-git/internal/py"
)

// macroCode is a compiled macro or call block.
type macroCode struct {
	name      string
	anonymous bool
	args      []string
	slots     int
	argSlots  []int
	caller    bool // the special variables that the body reads
	kwargs    bool
	varargs   bool
	explicit  bool // caller is one of args
	callerAt  int
	kwargsAt  int
	varargsAt int
	line      int
	body      stmt
}

// macro is a macro as a value; it remembers the frame it was defined in.
type macro struct {
	code *macroCode
	def  *frame
}

// TypeName implements py.Typed.
func (m *macro) TypeName() string { return "Macro" }

// Repr implements py.Reprer.
func (m *macro) Repr() (string, error) {
	if m.code.anonymous {
		return "<Macro anonymous>", nil
	}
	return "<Macro " + quote(m.code.name) + ">", nil
}

// Attr implements py.Attributer.
func (m *macro) Attr(name string) (any, bool, error) {
	c := m.code
	switch name {
	case "name":
		if c.anonymous {
			return nil, true, nil
		}
		return c.name, true, nil
	case "arguments":
		out := make(py.Tuple, len(c.args))
		for i, a := range c.args {
			out[i] = a
		}
		return out, true, nil
	case "catch_kwargs":
		return c.kwargs, true, nil
	case "catch_varargs":
		return c.varargs, true, nil
	case "caller":
		return c.caller, true, nil
	case "explicit_caller":
		return c.explicit, true, nil
	}
	return nil, false, nil
}

// Call implements py.Callable, with Jinja2's rules for arguments.
func (m *macro) Call(_ context.Context, args []any, kw *py.Dict) (any, error) {
	c, rt := m.code, m.def.rt
	if err := rt.enter(); err != nil {
		return nil, err
	}
	defer rt.leave()
	f := &frame{rt: rt, tmpl: m.def.tmpl, ctx: m.def.ctx, parent: m.def, vars: make([]any, c.slots), line: c.line}
	for i := range f.vars {
		f.vars[i] = missing
	}
	n := min(len(args), len(c.args))
	for i := range n {
		f.vars[c.argSlots[i]] = args[i]
	}
	var rest *py.Dict
	if kw.Len() > 0 {
		rest = kw.Copy()
	}
	foundCaller := n == len(c.args) && c.explicit
	for i := n; i < len(c.args); i++ {
		if v, ok := rest.Pop(c.args[i]); ok {
			f.vars[c.argSlots[i]] = v
		}
		foundCaller = foundCaller || c.args[i] == "caller"
	}
	if c.caller && !foundCaller {
		v, _ := rest.Pop("caller")
		if v == nil {
			v = &undefined{hint: "No caller defined", name: "caller", strict: rt.env.strict}
		}
		if !c.explicit {
			f.vars[c.callerAt] = v
		}
	}
	if c.kwargs {
		if rest == nil {
			rest = py.NewDict()
		}
		f.vars[c.kwargsAt] = rest
	} else if rest.Len() > 0 {
		if rest.Has("caller") {
			return nil, py.Errorf(py.TypeError, "macro %s was invoked with two values for the special caller argument."+
				" This is most likely a bug.", m.quoted())
		}
		msg := "macro " + m.quoted() + " takes no such keyword argument"
		if k := rest.Keys()[0]; strings.Contains(f.tmpl.src, py.Str(k)+"=") {
			msg = "macro " + m.quoted() + " takes no keyword argument " + py.Repr(k)
		}
		return nil, py.Errorf(py.TypeError, "%s", msg)
	}
	if c.varargs {
		f.vars[c.varargsAt] = py.Tuple(append([]any(nil), args[n:]...))
	} else if len(args) > len(c.args) {
		return nil, py.Errorf(py.TypeError, "macro %s takes not more than %d argument(s)", m.quoted(), len(c.args))
	}
	out := rt.newBuffer()
	f.out = out
	if err := c.body(f); err != nil {
		return nil, locate(err, f.tmpl.display, f.line)
	}
	return escapeAsks.safe(rt, rt.captured(out)), nil
}

func (m *macro) quoted() string {
	if m.code.anonymous {
		return "None"
	}
	return quote(m.code.name)
}
