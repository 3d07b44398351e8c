package modules

import (
	"fmt"
	"os"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addService adds the functions of the module service for one service, through systemctl or
// service(8). Source: Salt documentation, systemd_service and debian_service execution modules.
func addService(s table) {
	for _, verb := range []string{"start", "stop", "restart", "reload", "force_reload", "enable", "disable"} {
		s.live("service."+verb, "name **", func(c *call) (any, error) { return c.act(verb) })
	}
	for _, ask := range []struct{ name, systemd string }{{"status", "is-active"}, {"enabled", "is-enabled"}} {
		s.live("service."+ask.name, "name **", func(c *call) (any, error) {
			argv := []string{"systemctl", ask.systemd, "--quiet", c.unit()}
			if !booted() {
				if ask.name == "enabled" {
					return nil, &UnsupportedError{"service.enabled without systemd"}
				}
				argv = []string{"service", c.str("name", ""), "status"}
			}
			res, err := c.Host.RunShell(c.ctx, host.Shell{Argv: argv})
			return err == nil && res.Retcode == 0, err
		})
	}
	s.live("service.available", "name **", func(c *call) (any, error) {
		if !booted() {
			_, err := os.Stat("/etc/init.d/" + c.str("name", ""))
			return err == nil, nil
		}
		res, err := c.Host.RunShell(c.ctx, host.Shell{Argv: []string{"systemctl", "show", "-p", "LoadState", "--value", c.unit()}})
		return err == nil && res.Retcode == 0 && strings.TrimSpace(res.Stdout) == "loaded", err
	})
}

// booted reports whether systemd manages the machine. Source: sd_booted(3).
func booted() bool {
	fi, err := os.Stat("/run/systemd/system")
	return err == nil && fi.IsDir()
}

// unit returns the service's unit for systemctl.
func (c *call) unit() string {
	name := c.str("name", "")
	if strings.Contains(name, ".") {
		return name
	}
	return name + ".service"
}

// act runs one verb; as in Salt a failure is an error, and success is true.
func (c *call) act(verb string) (any, error) {
	name := c.str("name", "")
	if name == "" || strings.HasPrefix(name, "-") {
		return nil, py.Errorf(py.ValueError, "service.%s: no service has the name %q", verb, name)
	}
	argv := []string{"systemctl", strings.ReplaceAll(verb, "force_reload", "reload-or-restart"), c.unit()}
	if !booted() {
		switch verb {
		case "enable", "disable":
			argv = []string{"update-rc.d", name, verb}
		default:
			argv = []string{"service", name, strings.ReplaceAll(verb, "_", "-")}
		}
	}
	res, err := c.Host.RunShell(c.ctx, host.Shell{Argv: argv})
	if err != nil {
		return nil, err
	}
	if res.Retcode != 0 {
		return nil, fmt.Errorf("%s ended with exit status %d: %s", strings.Join(argv, " "), res.Retcode, strings.TrimSpace(res.Stderr+res.Stdout))
	}
	return true, nil
}
