package command

import (
	"math/rand/v2"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// addTest adds Salt's test module and makina-states' ordering anchor.
func addTest(t *core.Table) {
	t.Add("test.nop", "comment *", func(*core.Call) core.Return { return core.OKf("Success!") })
	t.Add("test.succeed_without_changes", "comment **", func(c *core.Call) core.Return { return core.OKf("%s", c.Str("comment", "Success!")) })
	t.Add("test.fail_without_changes", "comment **", func(c *core.Call) core.Return {
		if c.Test {
			return core.Failf("If we weren't testing, this would be a failure!")
		}
		return core.Failf("%s", c.Str("comment", "Failure!"))
	})
	t.Add("test.succeed_with_changes", "comment **", func(c *core.Call) core.Return {
		if c.Test {
			return core.Would(testChanges(), "If we weren't testing, this would be successful with changes")
		}
		return core.Return{Result: core.True, Changes: testChanges(), Comment: c.Str("comment", "Success!")}
	})
	t.Add("test.fail_with_changes", "comment **", func(c *core.Call) core.Return {
		if c.Test {
			return core.Would(testChanges(), "If we weren't testing, this would be failed with changes")
		}
		return core.Return{Result: core.False, Changes: testChanges(), Comment: c.Str("comment", "Failure!")}
	})
	t.Add("test.configurable_test_state", "changes result comment warnings allow_test_mode_failure", configurableTestState)
	t.Add("test.show_notification", "text **", func(c *core.Call) core.Return {
		if !c.Bool("text", false) {
			return core.Failf("Missing required argument text.")
		}
		return core.OKf("%s", c.Str("text", ""))
	})
	t.Add("test.check_pillar", "present boolean integer string listing dictionary verbose", checkPillar)
	t.OnWatch("test", testWatch)

	// mc_proxy.hook is a no-op that counts as changed if what it watches changed.
	// Source: makina-states, mc_states/states/mc_proxy.py.
	t.Add("mc_proxy.hook", "changes *", func(c *core.Call) core.Return {
		ret := core.OKf("Dummy state for %s", c.Name)
		if d := c.Dict("changes"); d.Len() > 0 {
			ret.Changes = d
		}
		return ret
	})
	t.OnWatch("mc_proxy", func(c *core.Call, _ string) core.Return {
		return core.Return{Result: core.True, Changes: py.NewDict("1", int64(1)), Comment: "Dummy state for " + c.Name}
	})
}

func testChanges() *py.Dict {
	return py.NewDict("testing", py.NewDict("old", "Unchanged", "new", "Something pretended to change"))
}

func configurableTestState(c *core.Call) core.Return {
	ret := core.Return{Comment: c.Str("comment", "")}
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
		return core.Failf("You have specified the state option 'changes' with invalid arguments. It must be either True, False, or 'Random'")
	}
	result, ok := c.Args.GetStr("result")
	if !ok {
		result = true
	}
	switch {
	case result == true:
		ret.Result = core.True
	case result == false:
	case random(result):
		ret.Result = core.Tri(rand.IntN(2))
	default:
		return core.Failf("You have specified the state option 'result' with invalid arguments. It must be either True, False, or 'Random'")
	}
	ret.Warnings = c.Strings("warnings")
	if c.Test {
		switch {
		case c.Bool("allow_test_mode_failure", false) && result == false:
			ret.Result = core.False
		case changes == false:
			ret.Result = core.True
		default:
			ret.Result = core.None
		}
		if ret.Comment == "" {
			ret.Comment = "This is a test"
		}
	}
	return ret
}

func testWatch(c *core.Call, _ string) core.Return {
	ret := core.Return{Result: core.True, Comment: c.Str("comment", "Watch statement fired.")}
	if v, ok := c.Args.GetStr("result"); ok {
		ret.Result = core.False
		if py.Truth(v) {
			ret.Result = core.True
		}
	}
	if d, ok := c.Args.GetStr("changes"); ok {
		if d, ok := d.(*py.Dict); ok {
			ret.Changes = d
			return ret
		}
		return core.Failf("'Changes' should be a dictionary.")
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

// checkPillar reports which keys are missing or of a wrong type; values never appear.
func checkPillar(c *core.Call) core.Return {
	kinds := []struct{ arg, label string }{
		{"present", ""}, {"boolean", "bool"}, {"integer", "int"}, {"string", "str"}, {"listing", "list"}, {"dictionary", "dict"},
	}
	var bad, good strings.Builder
	for _, k := range kinds {
		for _, key := range c.Strings(k.arg) {
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
		return core.Failf("%s", bad.String())
	}
	if c.Bool("verbose", false) {
		return core.OKf("Those keys passed the check:\n%s", good.String())
	}
	return core.OKf("")
}
