package service

import (
	"testing"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestMaskedStates(t *testing.T) {
	m := statetest.NewMachine(t, States)
	m.Cache["service-manager"] = "systemctl"
	lasting, runtime, refuses := false, false, false
	answer := func() {
		link := map[bool]string{true: "/dev/null\n", false: "!no such file"}
		m.Answers = map[string]string{"readlink /etc/systemd/system/web.service": link[lasting], "readlink /run/systemd/system/web.service": link[runtime]}
		if refuses {
			m.Answers["systemctl mask"] = "!File '/etc/systemd/system/web.service' already exists."
		}
	}
	answer()
	m.On = func(line string) {
		switch line {
		case "systemctl mask web.service":
			lasting = !refuses
		case "systemctl mask --runtime web.service":
			runtime = true
		case "systemctl unmask web.service":
			lasting = false
		}
		answer()
	}
	m.Is(m.Call(false, "service.unmasked", "web"), core.True, "Service web was already unmasked", "")
	m.Is(m.Call(true, "service.masked", "web"), core.None, "Service web would be masked", `{"masked": {"old": false, "new": true}}`)
	m.Is(m.Call(false, "service.masked", "web"), core.True, "Service web was masked", `{"masked": {"old": false, "new": true}}`, "systemctl mask web.service")
	m.Is(m.Call(false, "service.masked", "web"), core.True, "Service web is already masked", "")
	m.Is(m.Call(false, "service.masked", "web", "runtime", true), core.True, "Service web was runtime masked", `{"runtime masked": {"old": false, "new": true}}`,
		"systemctl mask --runtime web.service")
	m.Is(m.Call(true, "service.unmasked", "web", "runtime", true), core.None, "Service web would be runtime unmasked", `{"runtime masked": {"old": true, "new": false}}`)
	m.Is(m.Call(false, "service.unmasked", "web"), core.True, "Service web was unmasked", `{"masked": {"old": true, "new": false}}`, "systemctl unmask web.service")
	refuses = true
	answer()
	m.Is(m.Call(false, "service.masked", "web"), core.False, "Failed to mask service 'web': File '/etc/systemd/system/web.service' already exists.", "")
	m.Cache["service-manager"] = "service"
	m.Is(m.Call(false, "service.masked", "web"), core.False, "Service masking not available on this minion", "")
}
