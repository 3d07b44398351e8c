package system

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addSysctl adds sysctl.present. Source: Salt documentation, sysctl state.
func addSysctl(t *core.Table) { t.Add("sysctl.present", "value! config", sysctlPresent) }

var blanks = regexp.MustCompile(`\s+`)

// sysctlValue returns a value with one tab between its words, as the kernel shows it.
func sysctlValue(s string) string { return blanks.ReplaceAllString(strings.TrimSpace(s), "\t") }

// sysctlFile is where the machine reads its values from when it starts.
func sysctlFile(c *core.Call) string {
	if f := c.Str("config", ""); f != "" {
		return f
	}
	if core.IsDir("/run/systemd/system") {
		return "/etc/sysctl.d/99-salt.conf" // systemd does not read sysctl.conf
	}
	return "/etc/sysctl.conf"
}

// sysctlLine reads a line "name = value" of a configuration file.
func sysctlLine(l string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(strings.TrimSpace(l), "=")
	name = strings.TrimSpace(name)
	return name, strings.TrimSpace(value), ok && !strings.HasPrefix(name, "#")
}

func sysctlPresent(c *core.Call) core.Return {
	if !c.Installed("sysctl") {
		return core.Failf("sysctl is not installed on this machine")
	}
	v, _ := c.Args.GetStr("value")
	value, file := py.Str(v), sysctlFile(c)
	raw, err := vfs.ReadFollowed(file, vfs.MaxRead)
	if err != nil && !os.IsNotExist(err) {
		return core.Failf("Failed to set %s to %s: Could not read from file: %s", c.Name, value, file)
	}
	if c.Test {
		return sysctlTest(c, string(raw), value)
	}
	if os.IsNotExist(err) {
		raw = []byte("#\n# Kernel sysctl configuration\n#\n")
	}
	text, right := sysctlEdit(string(raw), c.Name, value)
	if right {
		if now, _ := c.Query("sysctl", "-n", c.Name); sysctlValue(now) == sysctlValue(value) {
			return core.OKf("Sysctl value %s = %s is already set", c.Name, value)
		}
	} else {
		if err := c.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return core.Failf("Failed to set %s to %s: %s", c.Name, value, err)
		}
		if err := c.WriteFile(file, []byte(text), 0o644); err != nil {
			return core.Failf("Failed to set %s to %s: Could not write to file: %s", c.Name, value, file)
		}
	}
	if !core.Exists("/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(c.Name)) {
		return core.Failf("Failed to set %s to %s: sysctl %s does not exist", c.Name, value, c.Name)
	}
	old, err := c.Query("sysctl", "-n", c.Name)
	if err == nil {
		err = c.BeforeAction(undo.Action{Noun: "sysctl value", Name: c.Name, Probe: []string{"sysctl", "-n", c.Name},
			Undo: []string{"sysctl", "-w", c.Name + "=" + strings.TrimRight(old, "\n")}})
	}
	if err != nil {
		return core.Failf("Failed to set %s to %s: %s", c.Name, value, err)
	}
	if _, err := c.Tool("sysctl", "-w", c.Name+"="+value); err != nil {
		return core.Failf("Failed to set %s to %s: sysctl -w failed: %s", c.Name, value, err)
	}
	return core.Return{Result: core.True, Changes: py.NewDict(c.Name, v), Comment: "Updated sysctl value " + c.Name + " = " + value}
}

// sysctlEdit sets a value in the text of a configuration file; right is true if it is set already.
func sysctlEdit(text, name, value string) (out string, right bool) {
	var b strings.Builder
	edited := false
	for _, l := range strings.SplitAfter(text, "\n") {
		n, have, ok := sysctlLine(l)
		if !ok || n != name {
			b.WriteString(l)
			continue
		}
		if sysctlValue(have) == sysctlValue(value) {
			return text, true
		}
		b.WriteString(name + " = " + value + "\n")
		edited = true
	}
	if !edited {
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteString("\n")
		}
		b.WriteString(name + " = " + value + "\n")
	}
	return b.String(), false
}

func sysctlTest(c *core.Call, text, value string) core.Return {
	configured := false
	for _, l := range strings.Split(text, "\n") {
		if n, _, ok := sysctlLine(l); ok && n == c.Name {
			configured = true
		}
	}
	now, err := c.Query("sysctl", "-n", c.Name)
	now = strings.TrimSpace(now)
	same := sysctlValue(now) == sysctlValue(value)
	switch {
	case err != nil || now == "":
		if configured {
			return core.Would(nil, "Sysctl value %s is present in configuration file but is not present in the running config. "+
				"The value %s is set to be changed to %s", c.Name, c.Name, value)
		}
	case configured && same:
		return core.OKf("Sysctl value %s = %s is already set", c.Name, value)
	case configured:
	case same:
		return core.Would(nil, "Sysctl value is currently set on the running system but not in a config file. "+
			"Sysctl option %s set to be changed to %s in config file.", c.Name, value)
	default:
		return core.Would(nil, "Sysctl option %s set to be changed to %s", c.Name, value)
	}
	return core.Would(nil, "Sysctl option %s would be changed to %s", c.Name, value)
}
