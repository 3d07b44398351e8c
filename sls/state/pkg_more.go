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
	if c.has("pkgs") && len(c.list("pkgs")) == 0 {
		return OKf("No packages to install provided")
	}
	names, _ := c.packages()
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
		bare, _, _ := strings.Cut(n, ":")
		have := before[bare]
		cand := c.candidate(n)
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
	runErr := c.aptInstall(nil, targets...)
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
		if bare, _, _ := strings.Cut(n, ":"); after[bare] == newest[n] {
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

// remove implements pkg.removed and pkg.purged. Source: Salt documentation, pkg state, removed and purged.
func (c *Call) remove(how string) Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	names, versions := c.packages()
	before, left, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	var doomed, absent []string
	versioned := ""
	for _, n := range names {
		bare, _, _ := strings.Cut(n, ":")
		have, there := before[bare]
		if there && versions[n] != "" {
			versioned = " (matching specified versions)"
			there = c.fulfils(have, versions[n])
		}
		if _, conf := left[bare]; there || how == "purge" && conf {
			doomed = append(doomed, n)
		} else {
			absent = append(absent, n)
		}
	}
	sort.Strings(doomed)
	sort.Strings(absent)
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
	var failed []string
	for _, n := range names {
		bare, _, _ := strings.Cut(n, ":")
		_, there := after[bare]
		if _, conf := stays[bare]; (there || how == "purge" && conf) && slices.Contains(doomed, n) {
			failed = append(failed, n)
		}
	}
	switch {
	case len(failed) > 0:
		sort.Strings(failed)
		ret.Result, ret.Comment = False, "The following packages failed to "+how+": "+strings.Join(failed, ", ")+"."
	case runErr != nil:
		ret.Result, ret.Comment = False, strings.Join(c.complaints(runErr), " ")
	case len(absent) > 0:
		ret.Comment = "The following packages were not installed: " + strings.Join(absent, ", ") + " The following packages were " +
			past + ": " + strings.Join(doomed, ", ") + "."
	}
	return ret
}
