package state

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// Accumulator is what file.accumulated collected for one file.
type Accumulator struct {
	// Texts are the lists of pieces by the name of the accumulator, as templates see them.
	Texts *py.Dict
	// feeds are, by the name of the accumulator, the IDs that its require_in and watch_in name.
	feeds map[string][]string
}

// fileAccumulated collects text for file.managed and file.blockreplace of the same run.
// Source: Salt documentation, file state, accumulated.
func fileAccumulated(c *Call) Return {
	file := c.expand(c.str("filename", ""))
	var targets []string
	fed := false
	for _, dep := range c.RequiredIn {
		switch x := dep.(type) {
		case *py.Dict:
			fed = fed || x.Has("file")
			for _, v := range x.Values() {
				targets = append(targets, py.Str(v))
			}
		case string:
			fed = fed || strings.Contains(x, "file") // as Salt asks
		}
	}
	if !fed {
		return Failf("Orphaned accumulator %s in %s:%s", c.Name, c.SLS, c.ID)
	}
	pieces := c.list("text")
	if pieces == nil {
		return Failf("No text supplied for accumulator")
	}
	a := c.Accumulated[file]
	if a == nil {
		a = &Accumulator{py.NewDict(), map[string][]string{}}
		c.Accumulated[file] = a
	}
	a.feeds[c.Name] = append(a.feeds[c.Name], targets...)
	v, _ := a.Texts.GetStr(c.Name)
	l, isList := v.(*py.List)
	if !isList {
		l = py.NewList()
		a.Texts.SetStr(c.Name, l)
	}
	ret := Return{Result: True}
	for _, p := range pieces {
		if !slices.ContainsFunc(l.Items(), func(old any) bool { return py.Equal(old, p) }) {
			l.Append(p)
			ret.Comment = "Accumulator " + c.Name + " for file " + file + " was charged by text"
		}
	}
	return ret
}

// accumulated are the pieces for a block of a file: those of the accumulators that name its state, or of all where none
// does.
func (c *Call) accumulated(path string) (out []string) {
	a := c.Accumulated[path]
	if a == nil {
		return nil
	}
	named := func(e py.Item) bool { return slices.Contains(a.feeds[py.Str(e.Key)], c.ID) }
	all := !slices.ContainsFunc(a.Texts.Items(), named)
	for _, e := range a.Texts.Items() {
		if !all && !named(e) {
			continue
		}
		for _, p := range e.Value.(*py.List).Items() {
			s, ok := p.(string)
			if !ok {
				badArg("An accumulator for the block in %s must hold strings, not a %s", path, py.TypeName(p))
			}
			out = append(out, s)
		}
	}
	return out
}
