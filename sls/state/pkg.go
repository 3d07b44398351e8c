package state

import (
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addPkg adds Salt's pkg module for machines with apt. Arguments that Salt takes and that change nothing with apt are taken:
// hold beside pkg.installed, update_holds (a held package that is to be installed always is), ignore_epoch of pkg.latest.
func addPkg(t *Table) {
	const apt = "version refresh fromrepo skip_verify pkgs sources normalize install_recommends force_yes " +
		"cache_valid_time only_upgrade "
	t.add("pkg.installed", apt+"hold ignore_epoch skip_suggestions? allow_updates pkg_verify reinstall update_holds?", func(c *Call) Return { return c.install() })
	t.add("pkg.latest", apt+"hold? ignore_epoch? watch_flags?", func(c *Call) Return { return c.latest() })
	t.add("pkg.removed", apt+"hold? ignore_epoch", func(c *Call) Return { return c.remove("remove") })
	t.add("pkg.purged", apt+"hold? ignore_epoch", func(c *Call) Return { return c.remove("purge") })
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

// packages are the wanted packages and versions ("" for any), in order. plain takes the architecture of this machine off
// their names.
func (c *Call) packages(plain bool) (names []string, versions map[string]string) {
	versions = map[string]string{}
	add := func(n, v string) {
		if n = strings.TrimSpace(n); plain {
			n = c.plainName(n)
		}
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

// architecture is how dpkg calls that of this machine.
func (c *Call) architecture() string {
	if c.Grains == nil {
		return ""
	}
	return text(c.Grains, "osarch")
}

// plainName is the name of a package without the architecture, where that is the one of this machine or none.
func (c *Call) plainName(n string) string {
	if i := strings.LastIndex(n, ":"); i >= 0 && slices.Contains([]string{c.architecture(), "all", "any"}, n[i+1:]) {
		return n[:i]
	}
	return n
}

// pkgVersion is the version of a package in a list that dpkg made, "" where it is not in it.
func (c *Call) pkgVersion(list map[string]string, name string) string {
	return either(list[name], list[c.plainName(name)])
}

func (c *Call) apt() string {
	if !c.installed("apt-get") || !c.installed("dpkg-query") {
		return "pkg needs apt on this machine"
	}
	return ""
}

// dpkg lists the installed packages and versions, and those of which only configuration files are left. Packages of
// another architecture than the machine's have it behind their names.
func (c *Call) dpkg() (installed, leftover map[string]string, err error) {
	out, err := c.quiet("dpkg-query", "--showformat", "${Status} ${Package} ${Version} ${Architecture}\\n", "-W")
	if err != nil {
		return nil, nil, err
	}
	installed, leftover = map[string]string{}, map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		f := strings.Fields(l)
		if len(f) < 6 {
			continue
		}
		name := f[3]
		if own := c.architecture(); own == "amd64" && f[5] != "all" && f[5] != own {
			name += ":" + f[5]
		}
		switch {
		case strings.Contains(f[2], "installed") && f[0] != "deinstall":
			installed[name] = f[4]
		case f[0] == "deinstall":
			leftover[name] = f[4]
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
	if r := c.str("fromrepo", ""); r != "" && !c.has("sources") {
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

// provided reports whether an installed package provides a virtual one.
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
