package pkg

import (
	"sort"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// latest implements pkg.latest. Source: Salt documentation, pkg state, latest.
func latest(c *core.Call) core.Return {
	if fail := apt(c); fail != "" {
		return core.Failf("%s", fail)
	}
	if v, ok := c.Value("sources"); ok && py.Truth(v) {
		return core.Failf(`The "sources" parameter is not supported.`)
	}
	if noPackages(c) {
		return core.OKf("No packages to install provided")
	}
	names, _, problem := packages(c, c.Has("pkgs"))
	if problem != "" {
		return core.Failf("%s", problem)
	}
	if !c.Test {
		if err := notePackages(c); err != nil {
			return core.Failf("%s", err)
		}
		if err := refresh(c); err != nil {
			return core.Failf("An error was encountered while checking the newest available version of package(s): %s", err)
		}
	}
	before, _, err := dpkg(c)
	if err != nil {
		return core.Failf("%s", err)
	}
	u := findUpgrades(c, names, before)
	switch {
	case len(u.unknown) > 0:
		return core.Failf("%s", strings.Join(u.unknown, " "))
	case len(u.targets) == 0 && len(u.current) > 1:
		return core.OKf("All packages are up-to-date (%s).", strings.Join(u.current, ", "))
	case len(u.targets) == 0:
		return core.OKf("Package %s is already up-to-date", strings.Join(u.current, ""))
	case c.Test:
		return u.would(before)
	}
	runErr := aptInstall(c, nil, forApt(c, u.targets)...)
	after, _, err := dpkg(c)
	if err != nil {
		return core.Failf("%s", err)
	}
	ret := core.Return{Result: core.True, Changes: changed(before, after)}
	if runErr != nil {
		ret.Result = core.False
		ret.Comment = "An error was encountered while installing package(s): " + strings.Join(c.Problems(runErr), " ")
		return ret
	}
	return u.done(c, ret, after)
}

// upgrades are the packages of pkg.latest: those to install or upgrade, those that are of the newest version, and
// complaints about those that apt does not know.
type upgrades struct {
	targets, current, unknown []string
	newest                    map[string]string
}

func findUpgrades(c *core.Call, names []string, before map[string]string) *upgrades {
	u := &upgrades{newest: map[string]string{}}
	for _, n := range names {
		have, cand := pkgVersion(c, before, n), candidate(c, n)
		switch {
		case cand == "" && have == "":
			u.unknown = append(u.unknown, "No information found for '"+n+"'.")
		case cand == "" || cand == have || have != "" && !older(c, have, "lt", cand):
			u.current = append(u.current, n)
		default:
			u.targets, u.newest[n] = append(u.targets, n), cand
		}
	}
	sort.Strings(u.targets)
	sort.Strings(u.current)
	return u
}

// would returns the result of a test run.
func (u *upgrades) would(before map[string]string) core.Return {
	changes := py.NewDict()
	for _, n := range u.targets {
		changes.SetStr(n, py.NewDict("new", "installed", "old", before[n]))
	}
	comment := "The following packages would be installed/upgraded: " + strings.Join(u.targets, ", ")
	if len(u.current) > 0 {
		var current []string
		for _, n := range u.current {
			current = append(current, n+" ("+before[n]+")")
		}
		comment += "\nThe following packages are already up-to-date: " + strings.Join(current, ", ")
	}
	return core.Would(changes, "%s", comment)
}

// done adds to the result which packages are of the newest version now.
func (u *upgrades) done(c *core.Call, ret core.Return, after map[string]string) core.Return {
	var good, failed, comment []string
	for _, n := range u.targets {
		if pkgVersion(c, after, n) == u.newest[n] {
			good = append(good, n)
		} else {
			failed = append(failed, n)
		}
	}
	if len(failed) > 0 {
		ret.Result = core.False
		comment = append(comment, "The following packages failed to update: "+strings.Join(failed, ", "))
	}
	if len(good) > 0 {
		comment = append(comment, "The following packages were successfully installed/upgraded: "+strings.Join(good, ", "))
	}
	if len(u.current) > 0 {
		comment = append(comment, "The following packages were already up-to-date: "+strings.Join(u.current, ", "))
	}
	ret.Comment = strings.Join(comment, " ")
	return ret
}

// forApt returns names of packages for apt-get: without the architecture of this machine, unless normalize says
// otherwise.
func forApt(c *core.Call, names []string) (out []string) {
	for _, n := range names {
		if c.Bool("normalize", true) {
			n = plainName(c, n)
		}
		out = append(out, n)
	}
	return out
}
