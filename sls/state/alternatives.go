package state

import (
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// addAlternatives adds Salt's alternatives module, through update-alternatives.
// Source: Salt documentation, alternatives state; update-alternatives(1), "Query format".
func addAlternatives(t *Table) {
	t.add("alternatives.install", "link! path! priority!", withAlternatives(alternativesInstall))
	t.add("alternatives.remove", "path!", withAlternatives(alternativesRemove))
	t.add("alternatives.set", "path!", withAlternatives(alternativesSet))
	t.add("alternatives.auto", "", withAlternatives(alternativesAuto))
}

// alternatives is what is known of one name: the paths to choose from, the chosen one, and who chose it.
type alternatives struct {
	paths map[string]bool
	value string
	auto  bool
}

func withAlternatives(run func(c *Call, a alternatives) Return) func(c *Call) Return {
	return func(c *Call) Return {
		if !c.installed("update-alternatives") {
			return Failf("update-alternatives is not installed on this machine")
		}
		return run(c, c.alternatives())
	}
}

func (c *Call) alternatives() alternatives {
	a := alternatives{paths: map[string]bool{}}
	out, err := c.quiet("update-alternatives", "--query", c.Name)
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

func alternativesInstall(c *Call, a alternatives) Return {
	link, path, priority := c.str("link", ""), c.str("path", ""), c.integer("priority", 0)
	if a.paths[path] {
		return OKf("Alternative %s for %s is already registered", path, c.Name)
	}
	if c.Test {
		return Would(nil, "Alternative will be set for %s to %s with priority %d", c.Name, path, priority)
	}
	if _, err := c.tool("update-alternatives", "--install", link, c.Name, path, strconv.FormatInt(priority, 10)); err != nil {
		return Failf("Alternative for %s not installed: %s", c.Name, err)
	}
	a = c.alternatives()
	if !a.paths[path] {
		return Failf("Alternative for %s not installed: %s", c.Name, path)
	}
	ret := Return{Result: True, Changes: py.NewDict("name", c.Name, "link", link, "path", path, "priority", priority)}
	ret.Comment = "Alternative for " + c.Name + " set to path " + path + " with priority " + strconv.FormatInt(priority, 10)
	if a.value != path {
		ret.Comment = "Alternative " + path + " for " + c.Name + " registered with priority " + strconv.FormatInt(priority, 10) +
			" and not set to default"
	}
	return ret
}

func alternativesRemove(c *Call, a alternatives) Return {
	path := c.str("path", "")
	if !a.paths[path] {
		if a.value != "" {
			return OKf("Alternative for %s is set to it's default path %s", c.Name, a.value)
		}
		return Failf("Alternative for %s doesn't exist", c.Name)
	}
	if c.Test {
		return Would(nil, "Alternative for %s will be removed", c.Name)
	}
	if _, err := c.tool("update-alternatives", "--remove", c.Name, path); err != nil {
		return Failf("Alternative for %s not removed: %s", c.Name, err)
	}
	if now := c.alternatives().value; now != "" {
		return Return{Result: True, Changes: py.NewDict("path", now),
			Comment: "Alternative for " + c.Name + " removed. Falling back to path " + now}
	}
	return Return{Result: True, Changes: py.NewDict("path", nil), Comment: "Alternative for " + c.Name + " removed"}
}

func alternativesSet(c *Call, a alternatives) Return {
	path := c.str("path", "")
	switch {
	case a.value == path:
		return OKf("Alternative for %s already set to %s", c.Name, path)
	case !a.paths[path]:
		return Failf("Alternative %s for %s doesn't exist", path, c.Name)
	case c.Test:
		return Would(nil, "Alternative for %s will be set to path %s", c.Name, path)
	}
	if _, err := c.tool("update-alternatives", "--set", c.Name, path); err != nil {
		return Failf("Alternative for %s not updated: %s", c.Name, err)
	}
	return Return{Result: True, Changes: py.NewDict("path", path), Comment: "Alternative for " + c.Name + " set to path " + path}
}

func alternativesAuto(c *Call, a alternatives) Return {
	switch {
	case len(a.paths) == 0:
		return Failf("Alternative for %s doesn't exist", c.Name)
	case a.auto:
		return OKf("%s already in auto mode", c.Name)
	case c.Test:
		return Would(nil, "%s will be put in auto mode", c.Name)
	}
	if _, err := c.tool("update-alternatives", "--auto", c.Name); err != nil {
		return Failf("%s is not in auto mode: %s", c.Name, err)
	}
	return Return{Result: True, Changes: py.NewDict("result", true), Comment: c.Name + " put in auto mode"}
}
