package system

import (
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// addAlternatives adds Salt's alternatives module, through update-alternatives.
// Source: Salt documentation, alternatives state; update-alternatives(1), "Query format".
func addAlternatives(t *core.Table) {
	t.Add("alternatives.install", "link! path! priority!", withAlternatives(alternativesInstall))
	t.Add("alternatives.remove", "path!", withAlternatives(alternativesRemove))
	t.Add("alternatives.set", "path!", withAlternatives(alternativesSet))
	t.Add("alternatives.auto", "", withAlternatives(alternativesAuto))
}

// alternatives is what is known of one name: the paths to choose from, the chosen one, and who chose it.
type alternatives struct {
	paths map[string]bool
	value string
	auto  bool
}

func withAlternatives(run func(c *core.Call, a alternatives) core.Return) func(c *core.Call) core.Return {
	return func(c *core.Call) core.Return {
		if !c.Installed("update-alternatives") {
			return core.Failf("update-alternatives is not installed on this machine")
		}
		return run(c, queryAlternatives(c))
	}
}

func queryAlternatives(c *core.Call) alternatives {
	a := alternatives{paths: map[string]bool{}}
	out, err := c.Query("update-alternatives", "--query", c.Name)
	if err != nil {
		return a // there is no such name
	}
	for _, l := range strings.Split(out, "\n") {
		k, v, _ := strings.Cut(l, ": ")
		switch k {
		case "Status":
			a.auto = v == "auto"
		case "Value":
			if v != "none" {
				a.value = v
			}
		case "Alternative":
			a.paths[v] = true
		}
	}
	return a
}

func alternativesInstall(c *core.Call, a alternatives) core.Return {
	link, path, priority := c.Str("link", ""), c.Str("path", ""), c.Int("priority", 0)
	if a.paths[path] {
		return core.OKf("Alternative %s for %s is already registered", path, c.Name)
	}
	if c.Test {
		return core.Would(nil, "Alternative will be set for %s to %s with priority %d", c.Name, path, priority)
	}
	if _, err := c.Tool("update-alternatives", "--install", link, c.Name, path, strconv.FormatInt(priority, 10)); err != nil {
		return core.Failf("Alternative for %s not installed: %s", c.Name, err)
	}
	a = queryAlternatives(c)
	if !a.paths[path] {
		return core.Failf("Alternative for %s not installed: %s", c.Name, path)
	}
	ret := core.Return{Result: core.True, Changes: py.NewDict("name", c.Name, "link", link, "path", path, "priority", priority)}
	ret.Comment = "Alternative for " + c.Name + " set to path " + path + " with priority " + strconv.FormatInt(priority, 10)
	if a.value != path {
		ret.Comment = "Alternative " + path + " for " + c.Name + " registered with priority " + strconv.FormatInt(priority, 10) +
			" and not set to default"
	}
	return ret
}

func alternativesRemove(c *core.Call, a alternatives) core.Return {
	path := c.Str("path", "")
	if !a.paths[path] {
		if a.value != "" {
			return core.OKf("Alternative for %s is set to it's default path %s", c.Name, a.value)
		}
		return core.Failf("Alternative for %s doesn't exist", c.Name)
	}
	if c.Test {
		return core.Would(nil, "Alternative for %s will be removed", c.Name)
	}
	if _, err := c.Tool("update-alternatives", "--remove", c.Name, path); err != nil {
		return core.Failf("Alternative for %s not removed: %s", c.Name, err)
	}
	if now := queryAlternatives(c).value; now != "" {
		return core.Return{Result: core.True, Changes: py.NewDict("path", now),
			Comment: "Alternative for " + c.Name + " removed. Falling back to path " + now}
	}
	return core.Return{Result: core.True, Changes: py.NewDict("path", nil), Comment: "Alternative for " + c.Name + " removed"}
}

func alternativesSet(c *core.Call, a alternatives) core.Return {
	path := c.Str("path", "")
	switch {
	case a.value == path:
		return core.OKf("Alternative for %s already set to %s", c.Name, path)
	case !a.paths[path]:
		return core.Failf("Alternative %s for %s doesn't exist", path, c.Name)
	case c.Test:
		return core.Would(nil, "Alternative for %s will be set to path %s", c.Name, path)
	}
	if _, err := c.Tool("update-alternatives", "--set", c.Name, path); err != nil {
		return core.Failf("Alternative for %s not updated: %s", c.Name, err)
	}
	return core.Return{Result: core.True, Changes: py.NewDict("path", path), Comment: "Alternative for " + c.Name + " set to path " + path}
}

func alternativesAuto(c *core.Call, a alternatives) core.Return {
	switch {
	case len(a.paths) == 0:
		return core.Failf("Alternative for %s doesn't exist", c.Name)
	case a.auto:
		return core.OKf("%s already in auto mode", c.Name)
	case c.Test:
		return core.Would(nil, "%s will be put in auto mode", c.Name)
	}
	if _, err := c.Tool("update-alternatives", "--auto", c.Name); err != nil {
		return core.Failf("%s is not in auto mode: %s", c.Name, err)
	}
	return core.Return{Result: core.True, Changes: py.NewDict("result", true), Comment: c.Name + " put in auto mode"}
}
