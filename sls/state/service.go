package state

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/py"
)

// addService adds Salt's service module, through systemctl or service(8).
func addService(t *Table) {
	// no_block, unmask and unmask_runtime are systemd's; timeout is Windows'.
	const common = "sig init_delay no_block unmask unmask_runtime timeout? "
	t.add("service.running", common+"enable reload full_restart? force", func(c *Call) Return { return c.service(true) })
	t.add("service.dead", common+"enable", func(c *Call) Return { return c.service(false) })
	t.add("service.enabled", common, func(c *Call) Return { return c.bootOnly(true) })
	t.add("service.disabled", common, func(c *Call) Return { return c.bootOnly(false) })
	t.onWatch("service", serviceWatch)
}

// manager is what manages services here: systemctl, service, or "". A state can name it as provider.
// Source: Salt documentation, "Overriding Virtual Module Providers", in states.
func (c *Call) manager() string {
	switch c.Provider {
	case "systemd_service", "systemd":
		return "systemctl"
	case "debian_service", "service":
		return "service"
	}
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
	} else if sig := c.str("sig", ""); sig != "" {
		return c.inProcesses(sig)
	} else {
		_, err = c.quiet("service", c.Name, "status")
	}
	return err == nil
}

// inProcesses reports whether a process is listed in a line that matches. systemd knows by itself, and is not asked so.
// Source: Salt documentation, service.running, sig; status.pid.
func (c *Call) inProcesses(sig string) bool {
	re, bad := textRegex(sig, "")
	if bad != "" {
		badArg("The argument %q: %s", "sig", bad)
	}
	ps := ""
	if c.Grains != nil {
		ps = text(c.Grains, "ps")
	}
	out, err := c.quiet(strings.Fields(either(ps, "ps -efHww"))...)
	if err != nil {
		return false
	}
	self := strconv.Itoa(os.Getpid())
	return slices.ContainsFunc(strings.Split(out, "\n"), func(l string) bool {
		f := strings.Fields(l)
		return len(f) > 1 && f[1] != self && re.matches(l, false)
	})
}

// enabled reports whether the service starts at boot; known is false where that cannot be asked.
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

// service implements service.running and service.dead. Source: Salt documentation, service state.
func (c *Call) service(run bool) Return {
	if fail := c.ready(); fail != "" {
		return Failf("%s", fail)
	}
	if !c.exists() {
		verb := map[bool]string{true: "started", false: "stopped"}[run]
		switch {
		case c.Test:
			return Would(nil, "Service %s not present; if created in this state run, it would have been %s", c.Name, verb)
		case !run:
			return OKf("The named service %s is not available", c.Name)
		}
		return Failf("The named service %s is not available", c.Name)
	}
	if c.boolean("unmask", false) && c.manager() == "systemctl" && !c.Test {
		if err := c.unmask(); err != nil {
			return Failf("Failed to unmask %s: %s", c.Name, err)
		}
	}
	want, decides := c.val("enable")
	bootWanted := py.Truth(want)
	if text, ok := want.(string); ok {
		bootWanted = strings.EqualFold(text, "true")
	}
	if c.active() == run {
		if on, known := c.enabled(); decides && known && on != bootWanted {
			return c.boot(bootWanted, "is in the desired state")
		}
		return OKf("The service %s is already %s", c.Name, map[bool]string{true: "running", false: "dead"}[run])
	}
	if c.Test {
		return Would(nil, "Service %s is set to %s", c.Name, map[bool]string{true: "start", false: "be killed"}[run])
	}
	if err := c.act(map[bool]string{true: "start", false: "stop"}[run]); err != nil {
		if run {
			return Failf("%s", strings.Join(c.complaints(err), ""))
		}
		return Failf("Service %s failed to die", c.Name)
	}
	delay := c.integer("init_delay", 0)
	if delay > 0 {
		c.sleep(time.Duration(delay) * time.Second)
	}
	now := c.active()
	ret := Return{Result: True}
	if now == run {
		ret.Set(c.Name, now)
		ret.Comment = "Started service " + c.Name
		if !run {
			ret.Comment = "Service " + c.Name + " was killed"
		}
	} else {
		ret.Result = False
		ret.Comment = "Service " + c.Name + " failed to " + map[bool]string{true: "start", false: "die"}[run]
	}
	if decides {
		b := c.boot(bootWanted, map[bool]string{true: "is running", false: "is dead"}[now])
		b.Result = min(b.Result, ret.Result)
		if !b.Changed() {
			b.Changes = ret.Changes
		}
		ret = b
	}
	if delay > 0 {
		ret.Comment += fmt.Sprintf("\nDelayed return for %d seconds", delay)
	}
	return ret
}

// unmask lets a masked unit start.
func (c *Call) unmask() error {
	argv := []string{"systemctl", "unmask"}
	if c.boolean("unmask_runtime", false) {
		argv = append(argv, "--runtime")
	}
	_, err := c.tool(append(argv, unit(c.Name))...)
	return err
}

func (c *Call) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.Ctx.Done():
	case <-t.C:
	}
}

// bootOnly implements service.enabled and service.disabled.
func (c *Call) bootOnly(want bool) Return {
	if fail := c.ready(); fail != "" {
		return Failf("%s", fail)
	}
	if !c.exists() {
		if !want {
			return OKf("The named service %s is not available", c.Name)
		}
		return Failf("The named service %s is not available", c.Name)
	}
	return c.boot(want, "is in the desired state")
}

// boot makes a service start at boot or not; state is how the comment goes on.
func (c *Call) boot(want bool, state string) Return {
	word := map[bool]string{true: "enabled", false: "disabled"}[want]
	if on, known := c.enabled(); known && on == want {
		return OKf("Service %s is already %s, and %s", c.Name, word, state)
	}
	if c.Test {
		return Would(nil, "Service %s set to be %s", c.Name, word)
	}
	if err := c.setEnabled(want); err != nil {
		how := map[bool]string{true: "start", false: "not start"}[want]
		return Failf("Failed when setting service %s to %s at boot, and it %s. Additional information follows:\n\n%s", c.Name, how, state,
			strings.Join(c.complaints(err), ""))
	}
	return Return{Result: True, Changes: py.NewDict(c.Name, true), Comment: "Service " + c.Name + " has been " + word + ", and " + state}
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
				verb, past = "force-reload", "forcefully reloaded"
			}
		}
	default:
		return Failf("Unable to trigger watch for service.%s", sfun)
	}
	if c.Test {
		return Would(nil, "Service is set to be %s", past)
	}
	if verb == "start" {
		_ = c.act("stop") // what hangs about, as Salt does
	}
	if err := c.act(verb); err != nil {
		return Failf("%s", strings.Join(c.complaints(err), ""))
	}
	if d := c.integer("init_delay", 0); d > 0 {
		c.sleep(time.Duration(d) * time.Second)
	}
	return Return{Result: True, Comment: "Service " + past, Changes: py.NewDict(c.Name, true)}
}
