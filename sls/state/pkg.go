package state

import (
	"sort"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addPkg adds Salt's pkg module for machines with apt.
func addPkg(t *Table) {
	const common = "version refresh fromrepo skip_verify skip_suggestions pkgs sources allow_updates pkg_verify normalize ignore_epoch " +
		"reinstall update_holds install_recommends force_yes cache_valid_time only_upgrade hold watch_flags"
	t.add("pkg.installed", common, func(c *Call) Return { return c.install(false) })
	t.add("pkg.latest", common, func(c *Call) Return { return c.install(true) })
	t.add("pkg.removed", common, func(c *Call) Return { return c.remove("remove") })
	t.add("pkg.purged", common, func(c *Call) Return { return c.remove("purge") })
	t.onWatch("pkg", func(c *Call, sfun string) Return {
		switch sfun {
		case "installed":
			return c.install(false)
		case "latest":
			return c.install(true)
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
	if c.has("sources") {
		return "pkg with sources is not supported by the built-in runner"
	}
	if !c.installed("apt-get") || !c.installed("dpkg-query") {
		return "pkg needs apt on this machine"
	}
	return ""
}

// dpkg lists the installed packages and versions.
func (c *Call) dpkg() (map[string]string, error) {
	out, err := c.quiet("dpkg-query", "--showformat", "${db:Status-Status} ${Package} ${Version}\\n", "-W")
	if err != nil {
		return nil, err
	}
	list := map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		f := strings.Fields(l)
		if len(f) == 3 && f[0] == "installed" {
			list[f[1]] = f[2]
		}
	}
	return list, nil
}

func (c *Call) aptGet(args ...string) error {
	argv := append([]string{"apt-get", "-q", "-y", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"}, args...)
	_, err := c.toolAs(host.Shell{Argv: argv, Env: map[string]string{"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none",
		"APT_LISTBUGS_FRONTEND": "none", "UCF_FORCE_CONFFOLD": "1"}})
	return err
}

func (c *Call) refresh() error {
	v, ok := c.val("refresh")
	if ok && !py.Truth(v) {
		return nil
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

func (c *Call) install(latest bool) Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	names, versions := c.packages()
	before, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	want := func() (out []string) {
		for _, n := range names {
			bare, _, _ := strings.Cut(n, ":")
			have, ok := before[bare]
			v := versions[n]
			switch {
			case !ok && v == "" && c.provided(bare):
			case !ok, c.boolean("reinstall", false):
				out = append(out, n)
			case v != "" && v != have && !strings.HasSuffix(v, "*"), strings.HasSuffix(v, "*") && !strings.HasPrefix(have, strings.TrimSuffix(v, "*")):
				out = append(out, n)
			case latest:
				if cand := c.candidate(n); cand != "" && cand != have {
					out = append(out, n)
				}
			}
		}
		return out
	}
	if latest && !c.Test {
		if err := c.refresh(); err != nil {
			return Failf("apt-get update failed: %s", err)
		}
	}
	missing := want()
	if len(missing) == 0 {
		switch {
		case latest && len(names) == 1:
			return OKf("Package %s is already up-to-date", names[0])
		case latest:
			return OKf("All packages are up-to-date (%s).", strings.Join(names, ", "))
		case c.has("pkgs"):
			return OKf("All specified packages are already installed")
		}
		return OKf("All specified packages are already installed")
	}
	if c.Test {
		return Would(plan(missing, before), "The following packages would be installed/updated: %s", strings.Join(missing, ", "))
	}
	if !latest {
		if err := c.refresh(); err != nil {
			return Failf("apt-get update failed: %s", err)
		}
	}
	args := []string{"install"}
	if v, ok := c.val("install_recommends"); ok && !py.Truth(v) {
		args = append(args, "--no-install-recommends")
	}
	if c.boolean("reinstall", false) {
		args = append(args, "--reinstall")
	}
	if c.boolean("skip_verify", false) {
		args = append(args, "--allow-unauthenticated")
	}
	if r := c.str("fromrepo", ""); r != "" {
		args = append(args, "-t", r)
	}
	for _, n := range missing {
		if v := versions[n]; v != "" {
			n += "=" + v
		}
		args = append(args, n)
	}
	runErr := c.aptGet(args...)
	after, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: changed(before, after), Comment: "The following packages were installed/updated: " + strings.Join(missing, ", ")}
	if runErr != nil {
		ret.Result, ret.Comment = False, "The following packages failed to install/update: "+strings.Join(missing, ", ")+"\n"+runErr.Error()
	}
	return ret
}

func plan(names []string, before map[string]string) *py.Dict {
	d := py.NewDict()
	for _, n := range names {
		d.SetStr(n, py.NewDict("new", "installed", "old", before[n]))
	}
	return d
}

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

func (c *Call) remove(how string) Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	names, _ := c.packages()
	before, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	var doomed []string
	for _, n := range names {
		if _, ok := before[n]; ok {
			doomed = append(doomed, n)
		}
	}
	past := map[string]string{"remove": "removed", "purge": "purged"}[how]
	if len(doomed) == 0 {
		return OKf("All specified packages are already absent")
	}
	if c.Test {
		return Would(nil, "The following packages will be %s: %s.", past, strings.Join(doomed, ", "))
	}
	runErr := c.aptGet(append([]string{how}, doomed...)...)
	after, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: changed(before, after), Comment: "All targeted packages were " + past + "."}
	if runErr != nil {
		ret.Result, ret.Comment = False, runErr.Error()
	}
	return ret
}
