package pkg

import (
	"slices"
	"sort"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// remove implements pkg.removed and pkg.purged. Source: Salt documentation, pkg state, removed and purged. It is long as it answers for each
// case, in the order in which Salt looks at them.
func remove(c *core.Call, how string) core.Return {
	if fail := apt(c); fail != "" {
		return core.Failf("%s", fail)
	}
	names, versions, problem := packages(c, c.Bool("normalize", true) || !c.Has("pkgs"))
	if problem != "" {
		return core.Failf("%s", problem)
	}
	before, left, err := dpkg(c)
	if err != nil {
		return core.Failf("%s", err)
	}
	var doomed []string
	versioned := ""
	for _, n := range names {
		have, there := before[n]
		if there && versions[n] != "" {
			versioned = " (matching specified versions)"
			there = satisfies(c, have, versions[n], false)
		}
		if _, conf := left[n]; there || how == "purge" && conf {
			doomed = append(doomed, n)
		}
	}
	sort.Strings(doomed)
	past := how + "d"
	switch {
	case len(doomed) == 0 && how == "purge":
		return core.OKf("None of the targeted packages are installed or partially installed")
	case len(doomed) == 0:
		return core.OKf("All specified packages%s are already absent", versioned)
	case c.Test:
		changes := py.NewDict()
		for _, n := range doomed {
			changes.SetStr(n, py.NewDict("new", past, "old", ""))
		}
		return core.Would(changes, "The following packages will be %s: %s.", past, strings.Join(doomed, ", "))
	}
	if err := notePackages(c); err != nil {
		return core.Failf("%s", err)
	}
	runErr := AptGet(c, append([]string{how}, doomed...)...)
	after, stays, err := dpkg(c)
	if err != nil {
		return core.Failf("%s", err)
	}
	ret := core.Return{Result: core.True, Changes: changed(before, after), Comment: "All targeted packages were " + past + "."}
	if how == "purge" {
		ret.Changes = py.NewDict("removed", changed(left, stays), "installed", ret.Changes)
	}
	// What sources names is looked for by its place, which is the name of no package.
	params, _, _ := packages(c, c.Bool("normalize", true))
	if v, ok := c.Value("sources"); ok && py.Truth(v) {
		list, _ := pkgSources(c)
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
		ret.Result, ret.Comment = core.False, withErrors("Problem encountered removing package(s)", c.Problems(runErr))
	case len(failed) > 0:
		ret.Result, ret.Comment = core.False, "The following packages failed to "+how+": "+strings.Join(failed, ", ")+"."
	case len(absent) > 0:
		ret.Comment = "The following packages were not installed: " + strings.Join(absent, ", ") + " The following packages were " +
			past + ": " + strings.Join(doomed, ", ") + "."
	}
	return ret
}
