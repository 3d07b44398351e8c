package file

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// fileAccumulated collects text for file.managed and file.blockreplace of the same run.
// Source: Salt documentation, file state, accumulated.
func fileAccumulated(c *core.Call) core.Return {
	file := c.ExpandUser(c.Str("filename", ""))
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
		return core.Failf("Orphaned accumulator %s in %s:%s", c.Name, c.SLS, c.ID)
	}
	pieces := c.List("text")
	if pieces == nil {
		return core.Failf("No text supplied for accumulator")
	}
	a := c.Accumulated[file]
	if a == nil {
		a = &core.Accumulator{Texts: py.NewDict(), Feeds: map[string][]string{}}
		c.Accumulated[file] = a
	}
	a.Feeds[c.Name] = append(a.Feeds[c.Name], targets...)
	v, _ := a.Texts.GetStr(c.Name)
	l, isList := v.(*py.List)
	if !isList {
		l = py.NewList()
		a.Texts.SetStr(c.Name, l)
	}
	ret := core.Return{Result: core.True}
	for _, p := range pieces {
		if !slices.ContainsFunc(l.Items(), func(old any) bool { return py.Equal(old, p) }) {
			l.Append(p)
			ret.Comment = "Accumulator " + c.Name + " for file " + file + " was charged by text"
		}
	}
	return ret
}

// accumulated returns the pieces for a block of a file: those of the accumulators that name its state, or of all if none
// does.
func accumulated(c *core.Call, path string) (out []string) {
	a := c.Accumulated[path]
	if a == nil {
		return nil
	}
	named := func(e py.Item) bool { return slices.Contains(a.Feeds[py.Str(e.Key)], c.ID) }
	all := !slices.ContainsFunc(a.Texts.Items(), named)
	for _, e := range a.Texts.Items() {
		if !all && !named(e) {
			continue
		}
		for _, p := range e.Value.(*py.List).Items() {
			s, ok := p.(string)
			if !ok {
				core.BadArg("An accumulator for the block in %s must hold strings, not a %s", path, py.TypeName(p))
			}
			out = append(out, s)
		}
	}
	return out
}
