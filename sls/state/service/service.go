package service

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/sleep"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/regex"
	"corpus-git/undo"
)

// States adds Salt's service module, through systemctl or service(8).
func States(t *core.Table) {
	// no_block, unmask and unmask_runtime are systemd's; timeout is Windows'.
	const common = "sig init_delay no_block unmask unmask_runtime timeout? "
	t.Add("service.running", common+"enable reload full_restart? force **", func(c *core.Call) core.Return { return service(c, true) })
	t.Add("service.dead", common+"enable **", func(c *core.Call) core.Return { return service(c, false) })
	t.Add("service.enabled", common+"**", func(c *core.Call) core.Return { return enabledOnly(c, true) })
	t.Add("service.disabled", common+"**", func(c *core.Call) core.Return { return enabledOnly(c, false) })
	t.Add("service.masked", "runtime", func(c *core.Call) core.Return { return masked(c, true) })
	t.Add("service.unmasked", "runtime", func(c *core.Call) core.Return { return masked(c, false) })
	t.OnWatch("service", serviceWatch)
}

// manager returns what manages services here: systemctl, service, or "". A state can name it as provider.
// Source: Salt documentation, "Overriding Virtual Module Providers", in states.
func manager(c *core.Call) string {
	switch c.Provider {
	case "systemd_service", "systemd":
		return "systemctl"
	case "debian_service", "service":
		return "service"
	}
	return c.Once("service-manager", func() any {
		if core.IsDir("/run/systemd/system") && c.Installed("systemctl") {
			return "systemctl"
		}
		if c.Installed("service") && !core.IsDir("/run/systemd/system") {
			return "service"
		}
		return ""
	}).(string)
}

func runVerb(c *core.Call, verb string) error {
	if err := noteAct(c, verb); err != nil {
		return err
	}
	var err error
	if manager(c) == "systemctl" {
		// As Salt's module: what systemd read of the unit may be older than its file.
		if out, err := c.Query("systemctl", "show", "-p", "NeedDaemonReload", "--value", unit(c.Name)); err == nil && strings.TrimSpace(out) == "yes" {
			if _, err := c.Tool("systemctl", "daemon-reload"); err != nil {
				return err
			}
		}
		argv := []string{"systemctl", verb}
		if c.Bool("no_block", false) {
			argv = append(argv, "--no-block")
		}
		_, err = c.Tool(append(argv, unit(c.Name))...)
	} else {
		_, err = c.Tool("service", c.Name, verb)
	}
	return err
}

// Note records in the undo log a service that a module function is about to act on (restart, reload, …).
func Note(c *core.Call, name, verb string) error {
	of := *c
	of.Name = name
	return noteAct(&of, strings.ReplaceAll(verb, "_", "-"))
}

// noteAct records in the undo log a service that is about to be started, stopped, restarted or reloaded. What ran before runs again in the end,
// with the files that are back: as a restart, or a reload where it was one.
func noteAct(c *core.Call, verb string) error {
	argv := func(verb string) []string {
		if manager(c) == "systemctl" {
			return []string{"systemctl", verb, unit(c.Name)}
		}
		return []string{"service", c.Name, verb}
	}
	// The unit's file is back by then, so systemd has to read it again; and what crashed too often is not started before its failures are forgotten.
	again := func(verb string) []string {
		if manager(c) == "systemctl" {
			return []string{"sh", "-c", `systemctl daemon-reload; systemctl reset-failed "$0"; exec systemctl ` + verb + ` "$0"`, unit(c.Name)}
		}
		return argv(verb)
	}
	a := undo.Action{Noun: "service", Name: c.Name}
	switch {
	case !active(c):
		a.Undo = argv("stop")
		if manager(c) == "systemctl" {
			// What crashes is failed, or about to be started again: it goes with its failures, which a start would forget anyway.
			if err := forgetFailures(c); err != nil {
				return err
			}
			a.Undo = []string{"sh", "-c", `systemctl stop "$0" && { systemctl reset-failed "$0" 2>/dev/null || true; }`, unit(c.Name)}
			a.Probe = []string{"sh", "-c", `case $(systemctl show -p ActiveState --value "$0") in inactive|"") echo stopped ;; *) echo started ;; esac`, unit(c.Name)}
		}
	case verb == "reload" || verb == "force-reload":
		a.Undo, a.Last = again(verb), true
	default:
		a.Undo, a.Last = again("restart"), true
	}
	return c.BeforeAction(a)
}

// forgetFailures lets a unit that failed be one that was not started, where the undo log is about to compare that.
func forgetFailures(c *core.Call) error {
	if c.Undo == nil {
		return nil
	}
	out, err := c.Query("systemctl", "show", "-p", "ActiveState", "--value", unit(c.Name))
	if err != nil || strings.TrimSpace(out) != "failed" {
		return nil // what cannot be asked is noted as it is
	}
	_, err = c.Tool("systemctl", "reset-failed", unit(c.Name))
	return err
}

func unit(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	return name + ".service"
}

func exists(c *core.Call) bool {
	if manager(c) == "systemctl" {
		out, err := c.Query("systemctl", "show", "-p", "LoadState", "--value", unit(c.Name))
		return err == nil && strings.TrimSpace(out) != "not-found"
	}
	return core.Exists("/etc/init.d/" + c.Name)
}

func active(c *core.Call) bool {
	var err error
	if manager(c) == "systemctl" {
		_, err = c.Query("systemctl", "is-active", "--quiet", unit(c.Name))
	} else if sig := c.Str("sig", ""); sig != "" {
		return inProcesses(c, sig)
	} else {
		_, err = c.Query("service", c.Name, "status")
	}
	return err == nil
}

// inProcesses reports whether a process is listed in a line that matches. systemd knows by itself, and is not asked so.
// Source: Salt documentation, service.running, sig; status.pid.
func inProcesses(c *core.Call, sig string) bool {
	re, bad := regex.Text(sig, "")
	if bad != "" {
		core.BadArg("The argument %q: %s", "sig", bad)
	}
	ps := ""
	if c.Grains != nil {
		ps = core.DictText(c.Grains, "ps")
	}
	out, err := c.Query(strings.Fields(cmp.Or(ps, "ps -efHww"))...)
	if err != nil {
		return false
	}
	self := strconv.Itoa(os.Getpid())
	return slices.ContainsFunc(strings.Split(out, "\n"), func(l string) bool {
		f := strings.Fields(l)
		return len(f) > 1 && f[1] != self && re.Matches(l, false)
	})
}

// enabled reports whether the service starts at boot; known is false if that cannot be asked.
func enabled(c *core.Call) (on, known bool) {
	if manager(c) != "systemctl" {
		return false, false
	}
	out, _ := c.Query("systemctl", "is-enabled", unit(c.Name))
	s := strings.TrimSpace(out)
	return s == "enabled" || s == "static" || s == "alias" || s == "generated", true
}

func setEnabled(c *core.Call, on bool) error {
	if err := noteEnabled(c, on); err != nil {
		return err
	}
	verb := map[bool]string{true: "enable", false: "disable"}[on]
	if manager(c) == "systemctl" {
		_, err := c.Tool("systemctl", verb, unit(c.Name))
		return err
	}
	arg := map[bool]string{true: "defaults", false: "remove"}[on]
	_, err := c.Tool("update-rc.d", c.Name, arg)
	return err
}

// noteEnabled records in the undo log a service that is about to be enabled or disabled.
func noteEnabled(c *core.Call, on bool) error {
	if manager(c) != "systemctl" {
		return c.Manual()
	}
	back := map[bool]string{true: "disable", false: "enable"}[on]
	return c.BeforeAction(undo.Action{Noun: "boot setting", Name: c.Name, Probe: []string{"systemctl", "is-enabled", unit(c.Name)},
		Undo: []string{"systemctl", back, unit(c.Name)}})
}

func unavailable(c *core.Call) string {
	if manager(c) == "" {
		return "there is no service manager on this machine (neither systemd nor service)"
	}
	return ""
}

// service implements service.running and service.dead. Source: Salt documentation, service state.
func service(c *core.Call, run bool) core.Return {
	if fail := unavailable(c); fail != "" {
		return core.Failf("%s", fail)
	}
	if !exists(c) {
		verb := map[bool]string{true: "started", false: "stopped"}[run]
		switch {
		case c.Test:
			return core.Would(nil, "Service %s not present; if created in this state run, it would have been %s", c.Name, verb)
		case !run:
			return core.OKf("The named service %s is not available", c.Name)
		}
		return core.Failf("The named service %s is not available", c.Name)
	}
	if c.Bool("unmask", false) && manager(c) == "systemctl" && !c.Test {
		if err := unmask(c); err != nil {
			return core.Failf("Failed to unmask %s: %s", c.Name, err)
		}
	}
	want, decides := c.Value("enable")
	bootWanted := py.Truth(want)
	if text, ok := want.(string); ok {
		bootWanted = strings.EqualFold(text, "true")
	}
	if active(c) == run {
		if on, known := enabled(c); decides && known && on != bootWanted {
			return boot(c, bootWanted, "is in the desired state")
		}
		return core.OKf("The service %s is already %s", c.Name, map[bool]string{true: "running", false: "dead"}[run])
	}
	if c.Test {
		return core.Would(nil, "Service %s is set to %s", c.Name, map[bool]string{true: "start", false: "be killed"}[run])
	}
	if err := runVerb(c, map[bool]string{true: "start", false: "stop"}[run]); err != nil {
		if run {
			return core.Failf("%s", strings.Join(c.Problems(err), ""))
		}
		return core.Failf("Service %s failed to die", c.Name)
	}
	delay := c.Int("init_delay", 0)
	if delay > 0 {
		_ = sleep.For(c.Ctx, time.Duration(delay)*time.Second)
	}
	now := active(c)
	ret := core.Return{Result: core.True}
	if now == run {
		ret.Set(c.Name, now)
		ret.Comment = "Started service " + c.Name
		if !run {
			ret.Comment = "Service " + c.Name + " was killed"
		}
	} else {
		ret.Result = core.False
		ret.Comment = "Service " + c.Name + " failed to " + map[bool]string{true: "start", false: "die"}[run]
	}
	if decides {
		b := boot(c, bootWanted, map[bool]string{true: "is running", false: "is dead"}[now])
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

// unmask allows a masked unit to start.
func unmask(c *core.Call) error {
	argv := []string{"systemctl", "unmask"}
	if c.Bool("unmask_runtime", false) {
		argv = append(argv, "--runtime")
	}
	_, err := c.Tool(append(argv, unit(c.Name))...)
	return err
}

// enabledOnly implements service.enabled and service.disabled.
func enabledOnly(c *core.Call, want bool) core.Return {
	if fail := unavailable(c); fail != "" {
		return core.Failf("%s", fail)
	}
	if !exists(c) {
		if !want {
			return core.OKf("The named service %s is not available", c.Name)
		}
		return core.Failf("The named service %s is not available", c.Name)
	}
	return boot(c, want, "is in the desired state")
}

// boot makes a service start at boot or not; state is how the comment goes on.
func boot(c *core.Call, want bool, state string) core.Return {
	word := map[bool]string{true: "enabled", false: "disabled"}[want]
	if on, known := enabled(c); known && on == want {
		return core.OKf("Service %s is already %s, and %s", c.Name, word, state)
	}
	if c.Test {
		return core.Would(nil, "Service %s set to be %s", c.Name, word)
	}
	if err := setEnabled(c, want); err != nil {
		how := map[bool]string{true: "start", false: "not start"}[want]
		return core.Failf("Failed when setting service %s to %s at boot, and it %s. Additional information follows:\n\n%s", c.Name, how, state,
			strings.Join(c.Problems(err), ""))
	}
	return core.Return{Result: core.True, Changes: py.NewDict(c.Name, true), Comment: "Service " + c.Name + " has been " + word + ", and " + state}
}

// serviceWatch restarts (or reloads) a service whose watched state changed.
func serviceWatch(c *core.Call, sfun string) core.Return {
	if fail := unavailable(c); fail != "" {
		return core.Failf("%s", fail)
	}
	verb, past := "restart", "restarted"
	switch sfun {
	case "dead":
		if !active(c) {
			return core.OKf("Service is already stopped")
		}
		verb, past = "stop", "stopped"
	case "running":
		switch {
		case !active(c):
			verb, past = "start", "started"
		case c.Bool("reload", false):
			verb, past = "reload", "reloaded"
			if c.Bool("force", false) {
				verb, past = "force-reload", "forcefully reloaded"
			}
		}
	default:
		return core.Failf("Unable to trigger watch for service.%s", sfun)
	}
	if c.Test {
		return core.Would(nil, "Service is set to be %s", past)
	}
	if verb == "start" {
		_ = runVerb(c, "stop") // what hangs about, as Salt does
	}
	if err := runVerb(c, verb); err != nil {
		return core.Failf("%s", strings.Join(c.Problems(err), ""))
	}
	if d := c.Int("init_delay", 0); d > 0 {
		_ = sleep.For(c.Ctx, time.Duration(d)*time.Second)
	}
	return core.Return{Result: core.True, Comment: "Service " + past, Changes: py.NewDict(c.Name, true)}
}
