package state

import (
	"os"
	"sort"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addPkg adds Salt's pkg module for machines with apt. What asks for more than apt-get and dpkg-query do is lacking:
// packages from files, holds, and looking at what installed files became.
func addPkg(t *Table) {
	const apt = "version refresh fromrepo skip_verify pkgs sources~ normalize~true ignore_epoch~ install_recommends force_yes " +
		"cache_valid_time only_upgrade hold~ "
	t.add("pkg.installed", apt+"skip_suggestions? allow_updates~ pkg_verify~ reinstall update_holds~", func(c *Call) Return { return c.install() })
	t.add("pkg.latest", apt+"watch_flags?", func(c *Call) Return { return c.latest() })
	t.add("pkg.removed", apt, func(c *Call) Return { return c.remove("remove") })
	t.add("pkg.purged", apt, func(c *Call) Return { return c.remove("purge") })
	t.onWatch("pkg", func(c *Call, sfun string) Return {
		switch sfun {
		case "installed":
			return c.install()
		case "latest":
			return c.latest()
		case "removed":
			return c.remove("remove")
		case "purged":
			return c.remove("purge")
		}
		return Failf("pkg.%s does not work with the watch requisite", sfun)
	})
}

// packages are the wanted packages and versions ("" for any), in order.
func (c *Call) packages() (names []string, versions map[string]string) {
	versions = map[string]string{}
	add := func(n, v string) {
		n = strings.TrimSpace(n)
		if n == "" {
			return
		}
		if _, ok := versions[n]; !ok {
			names = append(names, n)
		}
		versions[n] = strings.TrimLeft(v, "=")
	}
	if !c.has("pkgs") {
		add(c.Name, c.str("version", ""))
		return names, versions
	}
	for _, it := range c.list("pkgs") {
		if d, ok := it.(*py.Dict); ok {
			for _, e := range d.Items() {
				v := ""
				if e.Value != nil {
					v = py.Str(e.Value)
				}
				add(py.Str(e.Key), v)
			}
			continue
		}
		add(py.Str(it), "")
	}
	return names, versions
}

func (c *Call) apt() string {
	if !c.installed("apt-get") || !c.installed("dpkg-query") {
		return "pkg needs apt on this machine"
	}
	return ""
}

// dpkg lists the installed packages and versions, and those of which only configuration files are left.
func (c *Call) dpkg() (installed, leftover map[string]string, err error) {
	out, err := c.quiet("dpkg-query", "--showformat", "${db:Status-Status} ${Package} ${Version}\\n", "-W")
	if err != nil {
		return nil, nil, err
	}
	installed, leftover = map[string]string{}, map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		f := strings.Fields(l)
		switch {
		case len(f) == 3 && f[0] == "installed":
			installed[f[1]] = f[2]
		case len(f) == 3 && f[0] == "config-files":
			leftover[f[1]] = f[2]
		}
	}
	return installed, leftover, nil
}

// aptGet runs apt-get with the options of all states.
func (c *Call) aptGet(args ...string) error {
	argv := append([]string{"apt-get", "-q", "-y", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"}, args...)
	_, err := c.toolAs(host.Shell{Argv: argv, Env: map[string]string{"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none",
		"APT_LISTBUGS_FRONTEND": "none", "UCF_FORCE_CONFFOLD": "1"}})
	return err
}

// aptInstall installs packages, with the options that the state's arguments stand for.
func (c *Call) aptInstall(more []string, packages ...string) error {
	args := append([]string{"install"}, more...)
	if v, ok := c.val("install_recommends"); ok {
		args = append(args, map[bool]string{true: "--install-recommends", false: "--no-install-recommends"}[py.Truth(v)])
	}
	for _, o := range [][2]string{{"skip_verify", "--allow-unauthenticated"}, {"force_yes", "--force-yes"}, {"only_upgrade", "--only-upgrade"}} {
		if c.boolean(o[0], false) {
			args = append(args, o[1])
		}
	}
	if r := c.str("fromrepo", ""); r != "" {
		args = append(args, "-t", r)
	}
	return c.aptGet(append(args, packages...)...)
}

// refresh updates the package lists, once for a program.
func (c *Call) refresh() error {
	v, ok := c.val("refresh")
	if ok && !py.Truth(v) {
		return nil
	}
	if valid := c.integer("cache_valid_time", 0); valid > 0 {
		st, err := os.Stat("/var/lib/apt/lists")
		if err == nil && c.Host.Now().Sub(st.ModTime()) < time.Duration(valid)*time.Second {
			return nil
		}
	}
	done := c.once("apt-update", func() any { return c.aptGet("update") })
	if err, isErr := done.(error); isErr {
		return err
	}
	return nil
}

// candidate is the newest version that apt could install, "" where it knows none.
func (c *Call) candidate(name string) string {
	out, err := c.quiet("apt-cache", "-q", "policy", name)
	if err != nil {
		return ""
	}
	for _, l := range strings.Split(out, "\n") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(l), "Candidate:"); ok {
			if v = strings.TrimSpace(v); v != "(none)" {
				return v
			}
		}
	}
	return ""
}

// provided tells whether an installed package provides a virtual one.
func (c *Call) provided(name string) bool {
	out, err := c.quiet("dpkg-query", "--showformat", "${db:Status-Status} ${Provides}\\n", "-W")
	if err != nil {
		return false
	}
	for _, l := range strings.Split(out, "\n") {
		rest, ok := strings.CutPrefix(l, "installed ")
		if !ok {
			continue
		}
		for _, p := range strings.Split(rest, ",") {
			if f := strings.Fields(p); len(f) > 0 && f[0] == name {
				return true
			}
		}
	}
	return false
}

// changed are the differences of two lists, as Salt shows them.
func changed(before, after map[string]string) *py.Dict {
	d := py.NewDict()
	var names []string
	for n, v := range after {
		if before[n] != v {
			names = append(names, n)
		}
	}
	for n := range before {
		if _, ok := after[n]; !ok {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	for _, n := range names {
		d.SetStr(n, py.NewDict("old", before[n], "new", after[n]))
	}
	return d
}
