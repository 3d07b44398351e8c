package service

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// masked implements service.masked and service.unmasked: of the two masks that a unit may have at a time, the lasting one and the one until the next boot, one
// is looked at. A mask that could not be set fails the state, where Salt says that it succeeded. Source: Salt documentation, service state; systemctl(1), mask.
func masked(c *core.Call, want bool) core.Return {
	if manager(c) != "systemctl" {
		return core.Failf("Service masking not available on this minion")
	}
	kind, dir, flag := "masked", "/etc/systemd/system/", []string{}
	if c.Bool("runtime", false) {
		kind, dir, flag = "runtime masked", "/run/systemd/system/", []string{"--runtime"}
	}
	is := func() bool {
		out, err := c.Query("readlink", dir+unit(c.Name))
		return err == nil && strings.TrimRight(out, "\n") == "/dev/null"
	}
	done, verb, back := kind, "mask", "unmask"
	if !want {
		done, verb, back = strings.Replace(kind, "masked", "unmasked", 1), "unmask", "mask"
	}
	if is() == want {
		return core.OKf("Service %s %s already %s", c.Name, map[bool]string{true: "is", false: "was"}[want], done)
	}
	changes := py.NewDict(kind, py.NewDict("old", !want, "new", want))
	if c.Test {
		return core.Would(changes, "Service %s would be %s", c.Name, done)
	}
	argv := func(verb string) []string { return append(append([]string{"systemctl", verb}, flag...), unit(c.Name)) }
	if err := c.BeforeAction(undo.Action{Noun: "mask", Name: c.Name, Probe: []string{"readlink", dir + unit(c.Name)}, Undo: argv(back)}); err != nil {
		return core.Failf("Failed to %s service '%s': %s", verb, c.Name, err)
	}
	if _, err := c.Tool(argv(verb)...); err != nil {
		return core.Failf("Failed to %s service '%s': %s", verb, c.Name, strings.Join(c.Problems(err), ""))
	}
	if is() != want {
		return core.Failf("Failed to %s service %s", verb, c.Name)
	}
	return core.Return{Result: core.True, Changes: changes, Comment: "Service " + c.Name + " was " + done}
}
