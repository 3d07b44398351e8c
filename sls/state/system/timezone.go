package system

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addTimezone adds timezone.system for a machine whose files are below root.
// Source: Salt documentation, timezone state; localtime(5), hwclock(8) for /etc/adjtime.
func addTimezone(t *core.Table, root string) {
	t.Add("timezone.system", "utc", func(c *core.Call) core.Return { return timezone(c, root) })
}

func timezone(c *core.Call, root string) core.Return {
	zoneinfo, link := filepath.Join(root, "usr/share/zoneinfo"), filepath.Join(root, "etc/localtime")
	zone := filepath.Join(zoneinfo, c.Name)
	if st, err := os.Stat(zone); err != nil || !st.Mode().IsRegular() || !strings.HasPrefix(zone, zoneinfo+"/") {
		return core.Failf("Unable to compare desired timezone '%s' to system timezone: Can't find a local timezone \"%s\"", c.Name, c.Name)
	}
	doZone, doUTC := !sameZone(link, zoneinfo, zone, c.Name), false
	if c.Bool("utc", true) {
		adjtime, _ := vfs.ReadFollowed(filepath.Join(root, "etc/adjtime"), 1<<16)
		lines := strings.Split(strings.TrimRight(string(adjtime), "\n"), "\n")
		doUTC = lines[len(lines)-1] == "LOCAL"
	}
	var said []string
	say := func(text string) { said = append(said, text) }
	if !doZone && !doUTC {
		say("Timezone " + c.Name + " already set")
		if c.Bool("utc", true) {
			say("UTC already set to " + c.Name)
		}
		return core.OKf("%s", strings.Join(said, ", "))
	}
	if c.Test {
		if doZone {
			say("Timezone " + c.Name + " needs to be set")
		}
		if doUTC {
			say("UTC needs to be set to True")
		}
		return core.Would(nil, "%s", strings.Join(said, ", "))
	}
	ret := core.Return{Result: core.True}
	if doZone {
		if err := setZone(c, root, link); err != nil {
			return core.Failf("Failed to set timezone: %s", core.Cause(err))
		}
		ret.Set("timezone", c.Name)
		say("Set timezone " + c.Name)
	}
	if doUTC {
		if err := setUTC(c); err != nil {
			ret.Result = core.False
			say("Failed to set UTC to True: " + strings.Join(c.Problems(err), ""))
		} else {
			ret.Set("utc", true)
			say("Set UTC to True")
		}
	}
	ret.Comment = strings.Join(said, ", ")
	return ret
}

// sameZone reports whether /etc/localtime leads to the zone of that name, or is a copy of its file.
func sameZone(link, zoneinfo, zone, name string) bool {
	if to, err := os.Readlink(link); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		below, ok := strings.CutPrefix(filepath.Clean(to), zoneinfo+"/")
		return ok && below == name
	}
	have, err := vfs.ReadFollowed(link, 1<<20)
	if err != nil {
		return false
	}
	want, err := vfs.ReadFollowed(zone, 1<<20)
	return err == nil && bytes.Equal(have, want)
}

// setZone makes /etc/localtime the link that localtime(5) describes, and writes /etc/timezone, which programs of Debian read.
func setZone(c *core.Call, root, link string) error {
	if err := c.Symlink("/usr/share/zoneinfo/"+c.Name, link); err != nil {
		return err
	}
	name := filepath.Join(root, "etc/timezone")
	if core.Exists(name) || c.Grains != nil && core.DictText(c.Grains, "os_family") == "Debian" {
		return c.WriteFile(name, []byte(c.Name+"\n"), 0o644)
	}
	return nil
}

// setUTC lets the hardware clock run in UTC.
func setUTC(c *core.Call) error {
	if !c.Installed("timedatectl") {
		return core.Errorf("timedatectl is not installed on this machine")
	}
	if err := c.BeforeAction(undo.Action{Noun: "hardware clock", Name: "local time", Probe: []string{"timedatectl", "show", "-p", "LocalRTC"},
		Undo: []string{"timedatectl", "set-local-rtc", "1"}}); err != nil {
		return err
	}
	_, err := c.Tool("timedatectl", "set-local-rtc", "0")
	return err
}
