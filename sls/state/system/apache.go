package system

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addApache adds the states of makina-states that turn modules of Apache on and off, through Debian's a2enmod and a2dismod.
// Source: the documentation of makina-states, states mc_apache; a2enmod(8), a2query(1).
func addApache(t *core.Table) {
	t.Add("mc_apache.include_module", "modules!", func(c *core.Call) core.Return { return toggleModules(c, "a2enmod", "a2dismod", true) })
	t.Add("mc_apache.exclude_module", "modules!", func(c *core.Call) core.Return { return toggleModules(c, "a2dismod", "a2enmod", false) })
}

// toggleModules has each module as wanted. Where one cannot be, the others are all the same, and the state fails.
func toggleModules(c *core.Call, action, back string, wanted bool) core.Return {
	var modules []string
	for _, m := range c.Strings("modules") { // a list, or one text with commas
		for name := range strings.SplitSeq(m, ",") {
			if name = strings.TrimSpace(name); name != "" {
				modules = append(modules, name)
			}
		}
	}
	if c.Test && !c.Installed("a2query") { // a state before this one installs it
		return core.Would(changesOf(modules, action), "%s %s", action, strings.Join(modules, ", "))
	}
	if !c.Installed("a2query") {
		return core.Failf("a2query is not installed on this machine: it comes with Debian's package apache2")
	}
	var todo, failed []string
	for _, m := range modules {
		if _, err := c.Query("a2query", "-q", "-m", m); (err == nil) != wanted {
			todo = append(todo, m)
		}
	}
	switch {
	case len(todo) == 0:
		return core.OKf("%s %s: up to date", action, strings.Join(modules, ", "))
	case c.Test:
		return core.Would(changesOf(todo, action), "%s %s", action, strings.Join(todo, ", "))
	}
	var did []string
	for _, m := range todo {
		err := c.BeforeAction(undo.Action{Noun: "Apache module", Name: m, Probe: []string{"a2query", "-m", m}, Undo: []string{back, "-q", "-f", m}})
		if err == nil {
			_, err = c.Tool(action, "-q", m)
		}
		if err != nil {
			failed = append(failed, "FAILURE "+action+" "+m+": "+err.Error())
			continue
		}
		did = append(did, m)
	}
	ret := core.Return{Result: core.True, Changes: changesOf(did, action), Comment: action + " " + strings.Join(did, ", ")}
	if len(failed) > 0 {
		ret.Result, ret.Comment = core.False, strings.Join(failed, "\n")
	}
	return ret
}

func changesOf(modules []string, action string) *py.Dict {
	out := py.NewDict()
	for _, m := range modules {
		out.SetStr(m, action)
	}
	return out
}
