package python

import (
	"errors"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// pipInstalled implements pip.installed. Source: Salt documentation, pip_state.
func pipInstalled(c *core.Call) core.Return {
	pip := []string{"pip3"}
	if b := c.Str("bin_env", c.Str("pip_bin", "")); b != "" {
		pip = []string{b}
		if core.IsDir(b) {
			pip = []string{filepath.Join(b, "bin", "python"), "-m", "pip"}
		}
	}
	if !filepath.IsAbs(pip[0]) && !c.Installed(pip[0]) {
		if pip[0] != "pip3" || !c.Installed("pip") {
			return core.Failf("%s is not installed on this machine", pip[0])
		}
		pip[0] = "pip"
	}
	if b := c.Str("bin_env", ""); b != "" && !core.Exists(b) {
		return core.Failf("Error installing '%s': Access denied to %s, could not find a pip binary", c.Name, b)
	}
	if fail := wheelProblem(c, pip); fail != "" {
		return core.Failf("%s", fail)
	}
	reqs, fail := requirements(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	if editable := c.CommaList("editable"); reqs != "" || len(editable) > 0 {
		return pipFiles(c, pip, reqs, editable)
	}
	return pipPackages(c, pip)
}

// pipFiles installs what a requirements file names, and checkouts.
func pipFiles(c *core.Call, pip []string, reqs string, editable []string) core.Return {
	file, all := c.Str("requirements", ""), ""
	if v, ok := c.Value("editable"); ok {
		all = py.Str(v)
	}
	say := func(r, e string) string {
		var out []string
		if reqs != "" {
			out = append(out, r)
		}
		if len(editable) > 0 {
			out = append(out, e)
		}
		return strings.Join(out, " ")
	}
	if c.Test {
		return core.Would(nil, "%s", say("Requirements file '"+file+"' will be processed.",
			"Package will be installed in editable mode (i.e. setuptools \"develop mode\") from "+all+"."))
	}
	out, err := pipInstall(c, pip, reqs, nil, editable)
	var bad *core.InvocationError
	if errors.As(err, &bad) {
		return core.Failf("%s", err)
	}
	if err != nil {
		return core.Failf("%s Error: %s %s", say("Unable to process requirements file \""+file+"\"", "Unable to install from VCS checkout "+all+"."),
			strings.TrimSpace(out), strings.Join(c.Problems(err), ""))
	}
	ret := core.Return{Result: core.True}
	done := "Requirements were already installed."
	if reqs != "" && !allSatisfied(out) {
		ret.Set("requirements", true)
		done = "Successfully processed requirements file " + file + "."
	}
	if len(editable) > 0 {
		ret.Set("editable", true)
	}
	ret.Comment = say(done, "Package successfully installed from VCS checkout "+all+".")
	return ret
}

// allSatisfied reports whether pip found all that it was asked for.
func allSatisfied(out string) bool {
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		known := false
		for _, p := range []string{"Requirement already satisfied", "Requirement already up-to-date", "Requirement not upgraded", "Collecting",
			"Cloning", "Cleaning up...", "Looking in indexes"} {
			known = known || strings.HasPrefix(strings.TrimSpace(l), p)
		}
		if !known {
			return false
		}
	}
	return true
}

// pipPackages installs packages by their names.
func pipPackages(c *core.Call, pip []string) core.Return {
	pkgs := c.Strings("pkgs")
	if len(pkgs) == 0 {
		pkgs = []string{c.Name}
	}
	before, err := freeze(c, pip)
	if err != nil {
		return core.Failf("Error installing '%s': %s", c.Name, err)
	}
	anew := c.Bool("upgrade", false) || c.Bool("force_reinstall", false) || c.Bool("ignore_installed", false)
	var targets, notes []string
	for _, p := range pkgs {
		if !anew && satisfied(p, before) {
			notes = append(notes, "Python package "+p+" was already installed")
		} else {
			targets = append(targets, p)
		}
	}
	with := func(last string) string { return strings.Join(append(notes[:len(notes):len(notes)], last), "\n") }
	switch {
	case len(targets) == 0:
		return core.OKf("%s", with("All specified packages are already installed"))
	case c.Test && len(pkgs) > 1:
		return core.Would(nil, "Python package(s) set to be installed:\n%s", strings.Join(pkgs, "\n"))
	case c.Test:
		return core.Would(nil, "Python package %s is set to be installed", pkgs[0])
	}
	out, err := pipInstall(c, pip, "", targets, nil)
	var bad *core.InvocationError
	if errors.As(err, &bad) {
		return core.Failf("%s", err)
	}
	if err != nil {
		return core.Failf("%s", with("Failed to install packages: "+strings.Join(targets, ", ")+". Error: "+strings.TrimSpace(out)+" "+
			strings.Join(c.Problems(err), "")))
	}
	after, err := freeze(c, pip)
	if err != nil {
		return core.Failf("pip cannot be asked: %s", err)
	}
	there := map[string]bool{}
	for _, l := range strings.Split(out, "\n") {
		if rest, ok := strings.CutPrefix(l, "Requirement already satisfied: "); ok {
			there[distName(rest)] = true
		}
	}
	ret := core.Return{Result: core.True, Comment: with("All packages were successfully installed")}
	list := frozen(after)
	for _, p := range targets {
		name := distName(p)
		switch v, ok := list[name]; {
		case strings.Contains(p, "://"):
			ret.Set(p+"==???", "Installed")
		case ok && !there[name]:
			ret.Set(name+"=="+v, "Installed")
		}
	}
	return ret
}

// distName is the name of a requirement as pip compares it. Source: PyPA specifications, "Names and normalization".
func distName(requirement string) string {
	if i := strings.IndexAny(requirement, "<>=!~[@ ;"); i >= 0 {
		requirement = requirement[:i]
	}
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(requirement))
}

// frozen are the versions in a list of pip freeze.
func frozen(list string) map[string]string {
	have := map[string]string{}
	for _, l := range strings.Split(list, "\n") {
		if n, v, ok := strings.Cut(strings.TrimSpace(l), "=="); ok {
			have[distName(n)] = v
		}
	}
	return have
}

// satisfied reports whether a package, pinned with == or without a version, is in a list of pip freeze. Other conditions
// are for pip to decide.
func satisfied(pkg, list string) bool {
	name, version, pinned := strings.Cut(pkg, "==")
	if strings.ContainsAny(name, "<>=!~[@ ") {
		return false
	}
	v, ok := frozen(list)[distName(name)]
	return ok && (!pinned || v == version)
}
