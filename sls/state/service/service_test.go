package service

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestServiceStates(t *testing.T) {
	m := statetest.NewMachine(t, States)
	m.Cache["service-manager"] = "systemctl"
	up, enabled := false, false
	answer := func() {
		m.Answers = map[string]string{
			"systemctl show -p LoadState --value web.service":  "loaded\n",
			"systemctl show -p LoadState --value none.service": "not-found\n",
			"systemctl show -p NeedDaemonReload":               "no\n",
			"systemctl is-active --quiet web.service":          map[bool]string{true: "", false: "!"}[up],
			"systemctl is-enabled web.service":                 map[bool]string{true: "enabled\n", false: "!disabled\n"}[enabled],
		}
	}
	answer()
	m.On = func(line string) {
		switch line {
		case "systemctl start web.service", "systemctl restart web.service":
			up = true
		case "systemctl stop web.service":
			up = false
		case "systemctl enable web.service":
			enabled = true
		case "systemctl disable web.service":
			enabled = false
		}
		answer()
	}
	m.Is(m.Call(false, "service.running", "none"), core.False, "The named service none is not available", "")
	m.Is(m.Call(false, "service.dead", "none"), core.True, "The named service none is not available", "")
	m.Is(m.Call(true, "service.running", "web"), core.None, "Service web is set to start", "")
	m.Is(m.Call(false, "service.running", "web"), core.True, "Started service web", `{"web": true}`, "systemctl start web.service")
	m.Is(m.Call(false, "service.running", "web"), core.True, "The service web is already running", "")
	m.Is(m.Call(false, "service.running", "web", "enable", true), core.True, "Service web has been enabled, and is in the desired state",
		`{"web": true}`, "systemctl enable web.service")
	m.Is(m.Call(false, "service.enabled", "web"), core.True, "Service web is already enabled, and is in the desired state", "")
	m.Is(m.Call(true, "service.disabled", "web"), core.None, "Service web set to be disabled", "")
	m.Is(m.Call(false, "service.disabled", "web"), core.True, "Service web has been disabled, and is in the desired state", `{"web": true}`, "systemctl disable web.service")
	m.Is(m.Call(false, "service.dead", "web"), core.True, "Service web was killed", `{"web": false}`, "systemctl stop web.service")
	m.Is(m.Call(false, "service.dead", "web"), core.True, "The service web is already dead", "")

	watch := func(test bool, args ...any) core.Return {
		m.Ran = nil
		h := host.New(m)
		h.Users, h.Environ = m, []string{"PATH=" + m.Dir, "HOME=/"}
		c := &core.Call{Env: &core.Env{Host: h, Cache: m.Cache}, Ctx: context.Background(), Name: "web", Args: py.NewDict(args...), Test: test}
		return core.NewTable(States).Watch("service")(c, "running")
	}
	m.Is(watch(false), core.True, "Service started", `{"web": true}`, "systemctl stop web.service", "systemctl start web.service")
	m.Is(watch(false), core.True, "Service restarted", `{"web": true}`, "systemctl restart web.service")
	m.Is(watch(false, "reload", true), core.True, "Service reloaded", `{"web": true}`, "systemctl reload web.service")
	reread := "systemctl show -p NeedDaemonReload --value web.service"
	m.On, m.Answers = nil, map[string]string{reread: "yes\n", "systemctl is-active --quiet web.service": ""}
	m.Is(watch(false), core.True, "Service restarted", `{"web": true}`, "systemctl daemon-reload", "systemctl restart web.service")
	answer()
	m.Is(watch(true, "reload", true), core.None, "Service is set to be reloaded", "")

	// Without systemd a service can be looked for among the processes.
	m.Cache["service-manager"], m.Ran, m.On = "service", nil, nil
	m.Answers = map[string]string{"ps -efHww": "UID PID PPID\nroot 17 1 0 /usr/sbin/web -d\n", "service web status": "!dead"}
	h := host.New(m)
	h.Users, h.Environ = m, []string{"PATH=" + m.Dir, "HOME=/"}
	running := func(args ...any) bool {
		c := &core.Call{Env: &core.Env{Host: h, Cache: m.Cache}, Ctx: context.Background(), Name: "web", Args: py.NewDict(args...)}
		return active(c)
	}
	require.True(t, running("sig", "bin/web .*-d"))
	require.False(t, running("sig", "bin/other"))
	require.False(t, running())
	m.Cache["service-manager"] = ""
	r := m.Call(false, "service.running", "web")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "no service manager")
}
