package state

import (
	"math/rand/v2"
	"strings"

	"corpus-git/internal/py"
)

// addTest adds Salt's test module and makina-states' ordering anchor.
func addTest(t *Table) {
	t.add("test.nop", "comment *", func(*Call) Return { return OKf("Success!") })
	t.add("test.succeed_without_changes", "comment", func(c *Call) Return { return OKf("%s", c.str("comment", "Success!")) })
	t.add("test.fail_without_changes", "comment", func(c *Call) Return {
		if c.Test {
			return Failf("If we weren't testing, this would be a failure!")
		}
		return Failf("%s", c.str("comment", "Failure!"))
	})
	t.add("test.succeed_with_changes", "comment", func(c *Call) Return {
		if c.Test {
			return Would(testChanges(), "If we weren't testing, this would be successful with changes")
		}
		return Return{Result: True, Changes: testChanges(), Comment: c.str("comment", "Success!")}
	})
	t.add("test.fail_with_changes", "comment", func(c *Call) Return {
		if c.Test {
			return Would(testChanges(), "If we weren't testing, this would be failed with changes")
		}
		return Return{Result: False, Changes: testChanges(), Comment: c.str("comment", "Failure!")}
	})
	t.add("test.configurable_test_state", "changes result comment warnings allow_test_mode_failure", configurableTestState)
	t.add("test.show_notification", "text", func(c *Call) Return {
		if !c.boolean("text", false) {
			return Failf("Missing required argument text.")
		}
		return OKf("%s", c.str("text", ""))
	})
	t.add("test.check_pillar", "present boolean integer string listing dictionary verbose", checkPillar)
	t.onWatch("test", testWatch)

	// mc_proxy.hook is a no-op that counts as changed when what it watches changed.
	// Source: makina-states, mc_states/states/mc_proxy.py.
	t.add("mc_proxy.hook", "changes *", func(c *Call) Return {
		ret := OKf("Dummy state for %s", c.Name)
		if d := c.dict("changes"); d.Len() > 0 {
			ret.Changes = d
		}
		return ret
	})
	t.onWatch("mc_proxy", func(c *Call, _ string) Return {
		return Return{Result: True, Changes: py.NewDict("1", int64(1)), Comment: "Dummy state for " + c.Name}
	})
}

func testChanges() *py.Dict {
	return py.NewDict("testing", py.NewDict("old", "Unchanged", "new", "Something pretended to change"))
}

func configurableTestState(c *Call) Return {
	ret := Return{Comment: c.str("comment", "")}
	random := func(v any) bool { return strings.EqualFold(py.Str(v), "random") }
	changes, ok := c.Args.GetStr("changes")
	if !ok {
		changes = true
	}
	switch {
	case changes == true:
		ret.Changes = testChanges()
	case changes == false:
	case random(changes):
		if rand.IntN(2) == 1 {
			ret.Changes = testChanges()
		}
	default:
		return Failf("You have specified the state option 'changes' with invalid arguments. It must be either True, False, or 'Random'")
	}
	result, ok := c.Args.GetStr("result")
	if !ok {
		result = true
	}
	switch {
	case result == true:
		ret.Result = True
	case result == false:
	case random(result):
		ret.Result = Tri(rand.IntN(2))
	default:
		return Failf("You have specified the state option 'result' with invalid arguments. It must be either True, False, or 'Random'")
	}
	ret.Warnings = c.strs("warnings")
	if c.Test {
		switch {
		case c.boolean("allow_test_mode_failure", false) && result == false:
			ret.Result = False
		case changes == false:
			ret.Result = True
		default:
			ret.Result = None
		}
		if ret.Comment == "" {
			ret.Comment = "This is a test"
		}
	}
	return ret
}

func testWatch(c *Call, _ string) Return {
	ret := Return{Result: True, Comment: c.str("comment", "Watch statement fired.")}
	if v, ok := c.Args.GetStr("result"); ok {
		ret.Result = False
		if py.Truth(v) {
			ret.Result = True
		}
	}
	if d, ok := c.Args.GetStr("changes"); ok {
		if d, ok := d.(*py.Dict); ok {
			ret.Changes = d
			return ret
		}
		return Failf("'Changes' should be a dictionary.")
	}
	changed := py.NewList()
	for _, r := range c.Requires {
		if r.Type == "watch" && r.Changed {
			changed.Append(r.Module + ": " + r.ID)
		}
	}
	ret.Set("Requisites with changes", changed)
	return ret
}

// checkPillar tells which keys are missing or of a wrong type; values never appear.
func checkPillar(c *Call) Return {
	kinds := []struct{ arg, label string }{
		{"present", ""}, {"boolean", "bool"}, {"integer", "int"}, {"string", "str"}, {"listing", "list"}, {"dictionary", "dict"},
	}
	var bad, good strings.Builder
	for _, k := range kinds {
		for _, key := range c.strs(k.arg) {
			v, ok := py.Traverse(c.Pillar, key, ":")
			label := k.label
			if label == "" {
				label = "present"
			}
			switch {
			case !ok:
				bad.WriteString("Pillar key \"" + key + "\" is missing.\n")
			case k.label != "" && py.TypeName(v) != k.label:
				bad.WriteString("Pillar key \"" + key + "\" is not <class '" + label + "'>.\n")
			default:
				good.WriteString("- " + key + " (" + label + ")\n")
			}
		}
	}
	if bad.Len() > 0 {
		return Failf("%s", bad.String())
	}
	if c.boolean("verbose", false) {
		return OKf("Those keys passed the check:\n%s", good.String())
	}
	return OKf("")
}
