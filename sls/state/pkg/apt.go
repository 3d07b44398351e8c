package pkg

import (
	"cmp"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// States adds Salt's pkg module for machines with apt. Arguments that Salt accepts and that change nothing with apt are
// accepted: hold except for pkg.installed, update_holds (a held package that is to be installed always is), ignore_epoch of
// pkg.latest.
func States(t *core.Table) {
	const apt = "version refresh fromrepo skip_verify pkgs sources normalize install_recommends force_yes " +
		"cache_valid_time only_upgrade "
	t.Add("pkg.installed", apt+"hold ignore_epoch skip_suggestions? allow_updates pkg_verify reinstall update_holds? **", func(c *core.Call) core.Return { return install(c) })
	t.Add("pkg.latest", apt+"hold? ignore_epoch? watch_flags? **", func(c *core.Call) core.Return { return latest(c) })
	t.Add("pkg.removed", apt+"hold? ignore_epoch **", func(c *core.Call) core.Return { return remove(c, "remove") })
	t.Add("pkg.purged", apt+"hold? ignore_epoch **", func(c *core.Call) core.Return { return remove(c, "purge") })
	t.OnWatch("pkg", func(c *core.Call, sfun string) core.Return {
		switch sfun {
		case "installed":
			return install(c)
		case "latest":
			return latest(c)
		case "removed":
			return remove(c, "remove")
		case "purged":
			return remove(c, "purge")
		}
		return core.Failf("pkg.%s does not work with the watch requisite", sfun)
	})
}

// packages returns the wanted packages and versions ("" for any), in order. plain removes the architecture of this machine from
// their names. The text is Salt's complaint about pkgs: it must be a list of names and of mappings with one key, each name once.
// Source: salt/utils/data.py, repack_dictlist; salt/modules/pkg_resource.py, _repack_pkgs.
func packages(c *core.Call, plain bool) (names []string, versions map[string]string, problem string) {
	versions = map[string]string{}
	add := func(n, v string) {
		if plain {
			n = plainName(c, n)
		}
		if _, ok := versions[n]; !ok && n != "" {
			names = append(names, n)
		}
		versions[n] = strings.TrimLeft(v, "=")
	}
	pkgs, _ := c.Value("pkgs")
	if !py.Truth(pkgs) {
		add(c.Name, c.Str("version", ""))
		return names, versions, ""
	}
	list, valid := pkgs.(*py.List)
	for _, it := range c.List("pkgs") {
		switch x := it.(type) {
		case *py.Dict:
			valid = valid && x.Len() == 1
			for _, e := range x.Items() {
				v := ""
				if e.Value != nil {
					v = py.Str(e.Value)
				}
				add(py.Str(e.Key), v)
			}
		case nil, *py.List:
			valid = false
		default:
			add(py.Str(it), "")
		}
	}
	if !valid || len(names) != list.Len() {
		return nil, nil, "You are passing a list of packages that contains duplicated packages names: " + py.Str(pkgs) +
			". This cannot be processed. In case you are targeting different versions of the same package, please target them individually"
	}
	return names, versions, ""
}

// noPackages reports whether pkgs is an empty list; another empty value counts as none at all.
func noPackages(c *core.Call) bool {
	v, _ := c.Value("pkgs")
	l, isList := v.(*py.List)
	return isList && l.Len() == 0
}

// architecture returns how dpkg calls that of this machine.
func architecture(c *core.Call) string {
	if c.Grains == nil {
		return ""
	}
	return core.DictText(c.Grains, "osarch")
}

// plainName returns the name of a package without the architecture, if that is the one of this machine or none.
func plainName(c *core.Call, n string) string {
	if i := strings.LastIndex(n, ":"); i >= 0 && slices.Contains([]string{architecture(c), "all", "any"}, n[i+1:]) {
		return n[:i]
	}
	return n
}

// pkgVersion returns the version of a package in a list that dpkg made, "" if it is not in it.
func pkgVersion(c *core.Call, list map[string]string, name string) string {
	return cmp.Or(list[name], list[plainName(c, name)])
}

func apt(c *core.Call) string {
	if !c.Installed("apt-get") || !c.Installed("dpkg-query") {
		return "pkg needs apt on this machine"
	}
	return ""
}

// dpkg lists the installed packages and versions, and those of which only configuration files are left. Packages of
// another architecture than the machine's have it behind their names.
func dpkg(c *core.Call) (installed, leftover map[string]string, err error) {
	out, err := c.Query("dpkg-query", "--showformat", "${Status} ${Package} ${Version} ${Architecture}\\n", "-W")
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
		if own := architecture(c); own == "amd64" && f[5] != "all" && f[5] != own {
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

// AptGet runs apt-get with the options of all states.
func AptGet(c *core.Call, args ...string) error {
	argv := append([]string{"apt-get", "-q", "-y", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"}, args...)
	_, err := c.ToolShell(host.Shell{Argv: argv, Env: map[string]string{"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none",
		"APT_LISTBUGS_FRONTEND": "none", "UCF_FORCE_CONFFOLD": "1"}})
	return err
}

// aptInstall installs packages, with the options that the state's arguments stand for.
func aptInstall(c *core.Call, more []string, packages ...string) error {
	args := append([]string{"install"}, more...)
	if v, ok := c.Value("install_recommends"); ok {
		args = append(args, map[bool]string{true: "--install-recommends", false: "--no-install-recommends"}[py.Truth(v)])
	}
	for _, o := range [][2]string{{"skip_verify", "--allow-unauthenticated"}, {"force_yes", "--force-yes"}, {"only_upgrade", "--only-upgrade"}} {
		if c.Bool(o[0], false) {
			args = append(args, o[1])
		}
	}
	if r := c.Str("fromrepo", ""); r != "" && !c.Has("sources") {
		args = append(args, "-t", r)
	}
	return AptGet(c, append(args, packages...)...)
}

// refresh updates the package lists, once for a program.
func refresh(c *core.Call) error {
	v, ok := c.Value("refresh")
	if ok && !py.Truth(v) {
		return nil
	}
	if valid := c.Int("cache_valid_time", 0); valid > 0 {
		st, err := os.Stat("/var/lib/apt/lists")
		if err == nil && c.Host.Now().Sub(st.ModTime()) < time.Duration(valid)*time.Second {
			return nil
		}
	}
	done := c.Once("apt-update", func() any { return AptGet(c, "update") })
	if err, isErr := done.(error); isErr {
		return err
	}
	return nil
}

// candidate returns the newest version that apt could install, "" if it knows none.
func candidate(c *core.Call, name string) string {
	out, err := c.Query("apt-cache", "-q", "policy", name)
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
func provided(c *core.Call, name string) bool {
	out, err := c.Query("dpkg-query", "--showformat", "${db:Status-Status} ${Provides}\\n", "-W")
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

// changed returns the differences of two lists, as Salt shows them.
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
