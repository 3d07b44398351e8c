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
	if c.Has("pkgs") && len(c.List("pkgs")) == 0 {
		return core.OKf("No packages to install provided")
	}
	names, _ := packages(c, c.Has("pkgs"))
	if !c.Test {
		if err := refresh(c); err != nil {
			return core.Failf("An error was encountered while checking the newest available version of package(s): %s", err)
		}
	}
	before, _, err := dpkg(c)
	if err != nil {
		return core.Failf("%s", err)
	}
	var targets, right, unknown []string
	newest := map[string]string{}
	for _, n := range names {
		have, cand := pkgVersion(c, before, n), candidate(c, n)
		switch {
		case cand == "" && have == "":
			unknown = append(unknown, "No information found for '"+n+"'.")
		case cand == "" || cand == have || have != "" && !older(c, have, "lt", cand):
			right = append(right, n)
		default:
			targets, newest[n] = append(targets, n), cand
		}
	}
	sort.Strings(targets)
	sort.Strings(right)
	switch {
	case len(unknown) > 0:
		return core.Failf("%s", strings.Join(unknown, " "))
	case len(targets) == 0 && len(right) > 1:
		return core.OKf("All packages are up-to-date (%s).", strings.Join(right, ", "))
	case len(targets) == 0:
		return core.OKf("Package %s is already up-to-date", strings.Join(right, ""))
	}
	if c.Test {
		changes := py.NewDict()
		for _, n := range targets {
			changes.SetStr(n, py.NewDict("new", "installed", "old", before[n]))
		}
		comment := "The following packages would be installed/upgraded: " + strings.Join(targets, ", ")
		for i, n := range right {
			right[i] += " (" + before[n] + ")"
		}
		if len(right) > 0 {
			comment += "\nThe following packages are already up-to-date: " + strings.Join(right, ", ")
		}
		return core.Would(changes, "%s", comment)
	}
	runErr := aptInstall(c, nil, forApt(c, targets)...)
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
	var good, failed, comment []string
	for _, n := range targets {
		if pkgVersion(c, after, n) == newest[n] {
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
	if len(right) > 0 {
		comment = append(comment, "The following packages were already up-to-date: "+strings.Join(right, ", "))
	}
	ret.Comment = strings.Join(comment, " ")
	return ret
}

// forApt are names of packages as apt-get gets them: without the architecture of this machine, where normalize does not
// say otherwise.
func forApt(c *core.Call, names []string) (out []string) {
	for _, n := range names {
		if c.Bool("normalize", true) {
			n = plainName(c, n)
		}
		out = append(out, n)
	}
	return out
}
