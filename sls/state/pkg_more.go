package state

import (
	"slices"
	"sort"
	"strings"

	"corpus-git/internal/py"
)

// latest implements pkg.latest. Source: Salt documentation, pkg state, latest.
func (c *Call) latest() Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	if v, ok := c.val("sources"); ok && py.Truth(v) {
		return Failf(`The "sources" parameter is not supported.`)
	}
	if c.has("pkgs") && len(c.list("pkgs")) == 0 {
		return OKf("No packages to install provided")
	}
	names, _ := c.packages(c.has("pkgs"))
	if !c.Test {
		if err := c.refresh(); err != nil {
			return Failf("An error was encountered while checking the newest available version of package(s): %s", err)
		}
	}
	before, _, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	var targets, right, unknown []string
	newest := map[string]string{}
	for _, n := range names {
		have, cand := c.pkgVersion(before, n), c.candidate(n)
		switch {
		case cand == "" && have == "":
			unknown = append(unknown, "No information found for '"+n+"'.")
		case cand == "" || cand == have || have != "" && !c.older(have, "lt", cand):
			right = append(right, n)
		default:
			targets, newest[n] = append(targets, n), cand
		}
	}
	sort.Strings(targets)
	sort.Strings(right)
	switch {
	case len(unknown) > 0:
		return Failf("%s", strings.Join(unknown, " "))
	case len(targets) == 0 && len(right) > 1:
		return OKf("All packages are up-to-date (%s).", strings.Join(right, ", "))
	case len(targets) == 0:
		return OKf("Package %s is already up-to-date", strings.Join(right, ""))
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
		return Would(changes, "%s", comment)
	}
	runErr := c.aptInstall(nil, c.forApt(targets)...)
	after, _, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: changed(before, after)}
	if runErr != nil {
		ret.Result = False
		ret.Comment = "An error was encountered while installing package(s): " + strings.Join(c.complaints(runErr), " ")
		return ret
	}
	var good, failed, comment []string
	for _, n := range targets {
		if c.pkgVersion(after, n) == newest[n] {
			good = append(good, n)
		} else {
			failed = append(failed, n)
		}
	}
	if len(failed) > 0 {
		ret.Result = False
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
func (c *Call) forApt(names []string) (out []string) {
	for _, n := range names {
		if c.boolean("normalize", true) {
			n = c.plainName(n)
		}
		out = append(out, n)
	}
	return out
}

// remove implements pkg.removed and pkg.purged. Source: Salt documentation, pkg state, removed and purged.
func (c *Call) remove(how string) Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	names, versions := c.packages(c.boolean("normalize", true) || !c.has("pkgs"))
	before, left, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	var doomed []string
	versioned := ""
	for _, n := range names {
		have, there := before[n]
		if there && versions[n] != "" {
			versioned = " (matching specified versions)"
			there = c.fulfils(have, versions[n], false)
		}
		if _, conf := left[n]; there || how == "purge" && conf {
			doomed = append(doomed, n)
		}
	}
	sort.Strings(doomed)
	past := how + "d"
	switch {
	case len(doomed) == 0 && how == "purge":
		return OKf("None of the targeted packages are installed or partially installed")
	case len(doomed) == 0:
		return OKf("All specified packages%s are already absent", versioned)
	case c.Test:
		changes := py.NewDict()
		for _, n := range doomed {
			changes.SetStr(n, py.NewDict("new", past, "old", ""))
		}
		return Would(changes, "The following packages will be %s: %s.", past, strings.Join(doomed, ", "))
	}
	runErr := c.aptGet(append([]string{how}, doomed...)...)
	after, stays, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: changed(before, after), Comment: "All targeted packages were " + past + "."}
	if how == "purge" {
		ret.Changes = py.NewDict("removed", changed(left, stays), "installed", ret.Changes)
	}
	// What sources names is looked for by its place, which is the name of no package.
	params, _ := c.packages(c.boolean("normalize", true))
	if v, ok := c.val("sources"); ok && py.Truth(v) {
		list, _ := c.pkgSources()
		params = nil
		for _, s := range list {
			params = append(params, s.from)
		}
	}
	var failed, absent []string
	for _, n := range params {
		_, there := after[n]
		if _, conf := stays[n]; there || how == "purge" && conf {
			failed = append(failed, n)
		}
		if !slices.Contains(doomed, n) {
			absent = append(absent, n)
		}
	}
	sort.Strings(failed)
	sort.Strings(absent)
	switch {
	case runErr != nil:
		ret.Result, ret.Comment = False, additional("Problem encountered removing package(s)", c.complaints(runErr))
	case len(failed) > 0:
		ret.Result, ret.Comment = False, "The following packages failed to "+how+": "+strings.Join(failed, ", ")+"."
	case len(absent) > 0:
		ret.Comment = "The following packages were not installed: " + strings.Join(absent, ", ") + " The following packages were " +
			past + ": " + strings.Join(doomed, ", ") + "."
	}
	return ret
}
