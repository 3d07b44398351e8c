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
		switch { // a virtual environment, a Python, a pip. Source: salt/modules/pip.py, _get_pip_bin
		case core.IsFile(b) && strings.Contains(filepath.Base(b), "python"):
			pip = []string{b, "-m", "pip"}
		case core.IsDir(b):
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
		return core.Failf("Unable to process requirements file \"%s\" Error: %s", c.Str("requirements", ""), fail)
	}
	if u := c.RunAsUser(); u != "" {
		if _, err := c.Host.CredFor(u); err != nil {
			return core.Failf("User %s does not exist", u)
		}
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
	pkgs, wanted, fail := wantedPackages(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	before, err := freeze(c, pip)
	if err != nil {
		return core.Failf("%s", pipUnasked(c, err))
	}
	anew := c.Bool("upgrade", false) || c.Bool("force_reinstall", false) || c.Bool("ignore_installed", false)
	var targets []requirement
	var names, shown, notes []string
	have := frozen(before)
	for _, r := range wanted {
		if v, ok := have[r.name]; ok && !anew && r.name != "" && r.metBy(v) {
			notes = append(notes, "Python package "+r.text+" was already installed")
			continue
		}
		targets, names = append(targets, r), append(names, r.text)
		shown = append(shown, strings.ReplaceAll(r.text, ",", ";"))
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
	out, err := pipInstall(c, pip, "", names, nil)
	var bad *core.InvocationError
	if errors.As(err, &bad) {
		return core.Failf("%s", err)
	}
	if err != nil {
		return core.Failf("%s", with("Failed to install packages: "+strings.Join(shown, ", ")+". Error: "+strings.TrimSpace(out)+" "+
			strings.Join(c.Problems(err), "")))
	}
	after, err := freeze(c, pip)
	if err != nil {
		return core.Failf("pip cannot be asked: %s", err)
	}
	ret := core.Return{Result: core.True}
	done := installedNow(&ret, targets, frozen(after), satisfiedIn(out), pkgs[len(pkgs)-1])
	ret.Comment = with(done)
	return ret
}

// wantedPackages returns the packages of a call, as they were given and as they are read. fail is Salt's words about what is wrong with them.
func wantedPackages(c *core.Call) (pkgs []string, wanted []requirement, fail string) {
	if v, ok := c.Value("pkgs"); ok && py.Truth(v) {
		if _, ok := v.(*py.List); !ok {
			return nil, nil, "pkgs argument must be formatted as a list"
		}
	}
	pkgs = c.Strings("pkgs")
	if len(pkgs) == 0 {
		pkgs = []string{c.Name}
	}
	var wrong []string
	for _, p := range pkgs {
		r, complaint := parseRequirement(p)
		if complaint != "" {
			wrong = append(wrong, complaint)
		}
		wanted = append(wanted, r)
	}
	return pkgs, wanted, strings.Join(wrong, "\n")
}

// pipUnasked returns what Salt says where pip cannot be asked.
func pipUnasked(c *core.Call, err error) string {
	if strings.HasPrefix(err.Error(), "Specified cwd ") {
		return err.Error()
	}
	return "Error installing '" + c.Name + "': " + err.Error()
}

// satisfiedIn returns the packages that pip found there already, by what it printed.
func satisfiedIn(out string) map[string]bool {
	there := map[string]bool{}
	for l := range strings.SplitSeq(out, "\n") {
		for _, says := range []string{"Requirement already satisfied: ", "Requirement already up-to-date: "} {
			if rest, ok := strings.CutPrefix(l, says); ok {
				there[distName(rest)] = true
			}
		}
	}
	return there
}

// installedNow notes what pip installed, and gives what is said of it. last is the package that was given last, which Salt names where one is missing.
func installedNow(ret *core.Return, targets []requirement, list map[string]string, there map[string]bool, last string) string {
	var missing []string
	for _, r := range targets {
		if r.name == "" {
			ret.Set(strings.ReplaceAll(r.text, ",", ";")+"==???", "Installed")
			continue
		}
		if v, ok := list[r.name]; ok {
			if !there[r.name] {
				ret.Set(r.name+"=="+v, "Installed")
			}
			continue
		}
		alike := false
		for name := range list {
			alike = alike || strings.HasPrefix(name, r.name)
		}
		if !alike {
			missing = append(missing, "There was no error installing package '"+last+"' although it does not show when calling 'pip.freeze'.")
		}
	}
	if len(missing) > 0 {
		return strings.Join(missing, "\n")
	}
	return "All packages were successfully installed"
}

// distName returns the name of a requirement as pip compares it. Source: PyPA specifications, "Names and normalization".
func distName(requirement string) string {
	if i := strings.IndexAny(requirement, "<>=!~[@ ;"); i >= 0 {
		requirement = requirement[:i]
	}
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(requirement))
}

// frozen returns the versions in a list of pip freeze.
func frozen(list string) map[string]string {
	have := map[string]string{}
	for _, l := range strings.Split(list, "\n") {
		if n, v, ok := strings.Cut(strings.TrimSpace(l), "=="); ok {
			have[distName(n)] = v
		}
	}
	return have
}
