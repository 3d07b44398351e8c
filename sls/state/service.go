package state

import (
	"strings"
	"time"

	"corpus-git/internal/py"
)

// addService adds Salt's service module, through systemctl or service(8).
func addService(t *Table) {
	const common = "enable sig init_delay unmask unmask_runtime no_block reload full_restart force timeout"
	t.add("service.running", common, func(c *Call) Return { return c.service(true) })
	t.add("service.dead", common, func(c *Call) Return { return c.service(false) })
	t.add("service.enabled", common, func(c *Call) Return { return c.boot(true) })
	t.add("service.disabled", common, func(c *Call) Return { return c.boot(false) })
	t.onWatch("service", serviceWatch)
}

// manager is what manages services here: systemctl, service, or "".
func (c *Call) manager() string {
	return c.once("service-manager", func() any {
		if isDir("/run/systemd/system") && c.installed("systemctl") {
			return "systemctl"
		}
		if c.installed("service") && !isDir("/run/systemd/system") {
			return "service"
		}
		return ""
	}).(string)
}

func (c *Call) act(verb string) error {
	var err error
	if c.manager() == "systemctl" {
		argv := []string{"systemctl", verb}
		if c.boolean("no_block", false) {
			argv = append(argv, "--no-block")
		}
		_, err = c.tool(append(argv, unit(c.Name))...)
	} else {
		_, err = c.tool("service", c.Name, verb)
	}
	return err
}

func unit(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	return name + ".service"
}

func (c *Call) exists() bool {
	if c.manager() == "systemctl" {
		out, err := c.quiet("systemctl", "show", "-p", "LoadState", "--value", unit(c.Name))
		return err == nil && strings.TrimSpace(out) != "not-found"
	}
	return exists("/etc/init.d/" + c.Name)
}

func (c *Call) active() bool {
	var err error
	if c.manager() == "systemctl" {
		_, err = c.quiet("systemctl", "is-active", "--quiet", unit(c.Name))
	} else {
		_, err = c.quiet("service", c.Name, "status")
	}
	return err == nil
}

// enabled tells whether the service starts at boot; known is false where that cannot be asked.
func (c *Call) enabled() (on, known bool) {
	if c.manager() != "systemctl" {
		return false, false
	}
	out, _ := c.quiet("systemctl", "is-enabled", unit(c.Name))
	s := strings.TrimSpace(out)
	return s == "enabled" || s == "static" || s == "alias" || s == "generated", true
}

func (c *Call) setEnabled(on bool) error {
	verb := map[bool]string{true: "enable", false: "disable"}[on]
	if c.manager() == "systemctl" {
		_, err := c.tool("systemctl", verb, unit(c.Name))
		return err
	}
	arg := map[bool]string{true: "defaults", false: "remove"}[on]
	_, err := c.tool("update-rc.d", c.Name, arg)
	return err
}

func (c *Call) ready() string {
	if c.manager() == "" {
		return "there is no service manager on this machine (neither systemd nor service)"
	}
	return ""
}

func (c *Call) service(run bool) Return {
	if fail := c.ready(); fail != "" {
		return Failf("%s", fail)
	}
	if !c.exists() {
		if !run {
			return OKf("The named service %s is not available", c.Name)
		}
		return Failf("The named service %s is not available", c.Name)
	}
	ret := Return{Result: True}
	word := map[bool]string{true: "running", false: "dead"}[run]
	wantBoot, hasBoot := c.Args.GetStr("enable")
	hasBoot = hasBoot && wantBoot != nil
	on, known := c.enabled()
	bootChange := hasBoot && known && on != py.Truth(wantBoot)
	if c.active() == run {
		ret.Comment = "The service " + c.Name + " is already " + word
		if !bootChange {
			return ret
		}
	} else {
		if c.Test {
			verb := map[bool]string{true: "start", false: "stop"}[run]
			return Would(nil, "Service %s is set to %s", c.Name, verb)
		}
		if err := c.act(map[bool]string{true: "start", false: "stop"}[run]); err != nil {
			return Failf("Service %s failed to %s: %s", c.Name, map[bool]string{true: "start", false: "die"}[run], err)
		}
		if d := c.integer("init_delay", 0); d > 0 {
			c.sleep(time.Duration(d) * time.Second)
		}
		if c.active() != run {
			return Failf("Service %s failed to %s", c.Name, map[bool]string{true: "start", false: "die"}[run])
		}
		ret.Set(c.Name, true)
		ret.Comment = map[bool]string{true: "Started", false: "Killed"}[run] + " service " + c.Name
	}
	if bootChange {
		b := c.boot(py.Truth(wantBoot))
		if b.Result == False {
			return b
		}
		if b.Result == None {
			ret.Result = None
		}
		ret.Comment = b.Comment
		ret.Set(c.Name, true)
	}
	return ret
}

func (c *Call) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.Ctx.Done():
	case <-t.C:
	}
}

func (c *Call) boot(want bool) Return {
	if fail := c.ready(); fail != "" {
		return Failf("%s", fail)
	}
	word := map[bool]string{true: "enabled", false: "disabled"}[want]
	if !c.exists() {
		if !want {
			return OKf("The named service %s is not available", c.Name)
		}
		return Failf("The named service %s is not available", c.Name)
	}
	if on, known := c.enabled(); known && on == want {
		return OKf("Service %s is already %s, and is in the desired state", c.Name, word)
	}
	if c.Test {
		return Would(nil, "Service %s set to be %s", c.Name, word)
	}
	if err := c.setEnabled(want); err != nil {
		return Failf("When trying to set service %s to be %s: %s", c.Name, word, err)
	}
	return Return{Result: True, Changes: py.NewDict(c.Name, true),
		Comment: "Service " + c.Name + " has been " + word + ", and is in the desired state"}
}

// serviceWatch restarts (or reloads) a service whose watched state changed.
func serviceWatch(c *Call, sfun string) Return {
	if fail := c.ready(); fail != "" {
		return Failf("%s", fail)
	}
	verb, past := "restart", "restarted"
	switch sfun {
	case "dead":
		if !c.active() {
			return OKf("Service is already stopped")
		}
		verb, past = "stop", "stopped"
	case "running":
		switch {
		case !c.active():
			verb, past = "start", "started"
		case c.boolean("reload", false):
			verb, past = "reload", "reloaded"
			if c.boolean("force", false) {
				verb = "force-reload"
			}
		}
	default:
		return Failf("Unable to trigger watch for service.%s", sfun)
	}
	if c.Test {
		return Would(nil, "Service is set to be %s", past)
	}
	if err := c.act(verb); err != nil {
		return Failf("Failed to %s the service: %s", verb, err)
	}
	if d := c.integer("init_delay", 0); d > 0 {
		c.sleep(time.Duration(d) * time.Second)
	}
	return Return{Result: True, Comment: "Service " + past, Changes: py.NewDict(c.Name, true)}
}
