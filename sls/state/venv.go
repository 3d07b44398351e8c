package state

import (
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addVenv adds virtualenv.managed and pip.installed, through the tools of the machine.
func addVenv(t *Table) {
	t.add("virtualenv.managed", "venv_bin requirements system_site_packages distribute~ use_wheel? clear python extra_search_dir~ never_download~ "+
		"prompt user cwd index_url extra_index_url pre_releases no_deps pip_download~ pip_download_cache~ pip_exists_action "+
		"pip_ignore_installed proxy use_vt env_vars no_use_wheel~ pip_upgrade pip_pkgs pip_no_cache_dir pip_cache_dir no_chown~ process_dependency_links~ no_binary", venvManaged)
	t.add("pip.installed", "pkgs pip_bin requirements bin_env user cwd upgrade force_reinstall ignore_installed index_url extra_index_url "+
		"pre_releases no_deps use_vt env_vars proxy no_cache_dir editable find_links constraint extra_args timeout target "+
		"use_wheel? no_use_wheel~ log~ repo~ no_index mirrors~ build~ download~ download_cache~ source~ exists_action no_install~ no_download~ "+
		"install_options~ global_options~ cert allow_all_external~ allow_external~ allow_unverified~ process_dependency_links~ trusted_host "+
		"cache_dir no_binary", pipInstalled)
}

func (c *Call) asUser(argv []string) (string, error) {
	sh := host.Shell{Argv: argv, RunAs: c.str("user", c.RunAs), Dir: c.str("cwd", ""), Env: c.env("env_vars")}
	return c.toolAs(sh)
}

// pipArgs are the options that both states hand to pip install.
func (c *Call) pipArgs() []string {
	var out []string
	for _, o := range [][2]string{{"index_url", "--index-url"}, {"extra_index_url", "--extra-index-url"}, {"proxy", "--proxy"},
		{"pip_exists_action", "--exists-action"}, {"pip_cache_dir", "--cache-dir"}, {"find_links", "--find-links"},
		{"constraint", "--constraint"}, {"exists_action", "--exists-action"}, {"cert", "--cert"}, {"trusted_host", "--trusted-host"},
		{"cache_dir", "--cache-dir"}, {"no_binary", "--no-binary"}, {"timeout", "--timeout"}, {"target", "--target"}} {
		if v := c.str(o[0], ""); v != "" {
			out = append(out, o[1], v)
		}
	}
	for _, o := range [][2]string{{"pre_releases", "--pre"}, {"no_deps", "--no-deps"}, {"pip_ignore_installed", "--ignore-installed"},
		{"ignore_installed", "--ignore-installed"}, {"force_reinstall", "--force-reinstall"}, {"pip_upgrade", "--upgrade"},
		{"upgrade", "--upgrade"}, {"no_index", "--no-index"}, {"pip_no_cache_dir", "--no-cache-dir"}, {"no_cache_dir", "--no-cache-dir"}} {
		if c.boolean(o[0], false) {
			out = append(out, o[1])
		}
	}
	return out
}

// freeze lists what pip has installed, "" where that cannot be asked.
func (c *Call) freeze(pip []string) (string, error) {
	q := *c
	q.Output = nil
	return q.asUser(append(append([]string{}, pip...), "freeze", "--all"))
}

func freezeDiff(before, after string) *py.Dict {
	have := map[string]bool{}
	for _, l := range strings.Split(before, "\n") {
		have[l] = true
	}
	fresh, gone := py.NewList(), py.NewList()
	for _, l := range strings.Split(after, "\n") {
		if l != "" && !have[l] {
			fresh.Append(l)
		}
		delete(have, l)
	}
	for _, l := range strings.Split(before, "\n") {
		if l != "" && have[l] {
			gone.Append(l)
		}
	}
	or := func(l *py.List) any {
		if l.Len() == 0 {
			return ""
		}
		return l
	}
	d := py.NewDict()
	if fresh.Len()+gone.Len() > 0 {
		d.SetStr("packages", py.NewDict("new", or(fresh), "old", or(gone)))
	}
	return d
}

// venvManaged implements virtualenv.managed. Source: Salt documentation, virtualenv_mod state.
func venvManaged(c *Call) Return {
	name := c.expand(c.Name)
	if !filepath.IsAbs(name) {
		return Failf("Specified path %s is not absolute", name)
	}
	python := filepath.Join(name, "bin", "python")
	there := exists(python)
	fresh := !there || c.boolean("clear", false)
	ret := Return{Result: True}
	pip := []string{python, "-m", "pip"}
	if there && fresh {
		had := py.NewList()
		list, _ := c.freeze(pip)
		for _, l := range strings.Fields(list) {
			had.Append(l)
		}
		ret.Set("cleared_packages", had)
		ret.Set("old", noVersion)
	}
	if c.Test {
		switch {
		case there && fresh:
			ret.Result, ret.Comment = None, "Virtualenv "+name+" is set to be cleared"
			return ret
		case fresh:
			return Would(nil, "Virtualenv %s is set to be created", name)
		}
		return OKf("Virtualenv %s is already created", name)
	}
	reqs, fail := c.requirements()
	if fail != "" {
		return Failf("%s", fail)
	}
	ret.Comment = "virtualenv exists"
	if fresh {
		argv, fail := c.venvCommand(name)
		if fail != "" {
			return Failf("%s", fail)
		}
		if out, err := c.asUser(argv); err != nil {
			return Failf("%s%s", out, strings.Join(c.complaints(err), ""))
		}
		ret.Set("new", noVersion)
		ret.Comment = map[bool]string{true: "Cleared existing virtualenv", false: "Created new virtualenv"}[c.boolean("clear", false)]
	}
	pkgs := c.strs("pip_pkgs")
	if reqs == "" && len(pkgs) == 0 {
		return ret
	}
	before, err := c.freeze(pip)
	if err != nil {
		ret.Result, ret.Comment = False, strings.Join(c.complaints(err), "")
		return ret
	}
	args := append(append(append([]string{}, pip...), "install"), c.pipArgs()...)
	if reqs != "" {
		args = append(args, "-r", reqs)
	}
	if out, err := c.asUser(append(args, pkgs...)); err != nil {
		ret.Result = False
		ret.Comment += "\n" + out + "\n" + strings.Join(c.complaints(err), "")
	}
	after, err := c.freeze(pip)
	if err != nil {
		return Failf("pip freeze failed: %s", err)
	}
	for _, e := range freezeDiff(before, after).Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	return ret
}

// noVersion is what Salt shows as the version of an environment's Python: the standard error of python -V, which is
// empty since Python 3.4.
const noVersion = ""

// requirements is the path of the requirements file, "" where there is none. One below the file roots is given by the
// path that it has on disk, so that files it refers to are found.
func (c *Call) requirements() (path, fail string) {
	reqs := c.str("requirements", "")
	rel, ok := strings.CutPrefix(reqs, "salt://")
	if !ok {
		return reqs, ""
	}
	f, err := c.Roots.Find(rel)
	if err != nil {
		return "", "pip requirements file '" + reqs + "' not found"
	}
	if path = f.Disk(); !filepath.IsAbs(path) {
		return "", "pip requirements file '" + reqs + "' is not on disk"
	}
	return path, ""
}

func (c *Call) venvCommand(name string) ([]string, string) {
	bin := c.str("venv_bin", "")
	if bin == "" {
		bin = "virtualenv"
		if !c.installed(bin) {
			bin = "venv"
		}
	}
	var argv []string
	if bin == "venv" || bin == "pyvenv" {
		py3 := c.str("python", "python3")
		if !filepath.IsAbs(py3) && !c.installed(py3) {
			return nil, "neither virtualenv nor python3 is installed on this machine"
		}
		argv = []string{py3, "-m", "venv"}
	} else {
		if !filepath.IsAbs(bin) && !c.installed(bin) {
			return nil, bin + " is not installed on this machine"
		}
		argv = []string{bin}
		if p := c.str("python", ""); p != "" {
			argv = append(argv, "--python="+p)
		}
	}
	if c.boolean("system_site_packages", false) {
		argv = append(argv, "--system-site-packages")
	}
	if c.boolean("clear", false) {
		argv = append(argv, "--clear")
	}
	if p := c.str("prompt", ""); p != "" {
		argv = append(argv, "--prompt", p)
	}
	return append(argv, name), ""
}

// pipInstalled implements pip.installed. Source: Salt documentation, pip_state.
func pipInstalled(c *Call) Return {
	pip := []string{"pip3"}
	if b := c.str("bin_env", c.str("pip_bin", "")); b != "" {
		pip = []string{b}
		if isDir(b) {
			pip = []string{filepath.Join(b, "bin", "python"), "-m", "pip"}
		}
	}
	if !filepath.IsAbs(pip[0]) && !c.installed(pip[0]) {
		if pip[0] != "pip3" || !c.installed("pip") {
			return Failf("%s is not installed on this machine", pip[0])
		}
		pip[0] = "pip"
	}
	if b := c.str("bin_env", ""); b != "" && !exists(b) {
		return Failf("Error installing '%s': Access denied to %s, could not find a pip binary", c.Name, b)
	}
	reqs, fail := c.requirements()
	if fail != "" {
		return Failf("%s", fail)
	}
	if editable := c.strs("editable"); reqs != "" || len(editable) > 0 {
		return c.pipFiles(pip, reqs, editable)
	}
	return c.pipPackages(pip)
}

// pipInstall runs pip install and gives what it printed.
func (c *Call) pipInstall(pip []string, what ...string) (string, error) {
	args := append(append(append([]string{}, pip...), "install"), c.pipArgs()...)
	return c.asUser(append(append(args, c.strs("extra_args")...), what...))
}

// pipFiles installs what a requirements file names, and checkouts.
func (c *Call) pipFiles(pip []string, reqs string, editable []string) Return {
	file, all := c.str("requirements", ""), strings.Join(editable, ", ")
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
		return Would(nil, "%s", say("Requirements file '"+file+"' will be processed.",
			"Package will be installed in editable mode (i.e. setuptools \"develop mode\") from "+all+"."))
	}
	var what []string
	if reqs != "" {
		what = append(what, "-r", reqs)
	}
	for _, e := range editable {
		what = append(what, "-e", e)
	}
	out, err := c.pipInstall(pip, what...)
	if err != nil {
		return Failf("%s Error: %s %s", say("Unable to process requirements file \""+file+"\"", "Unable to install from VCS checkout "+all+"."),
			strings.TrimSpace(out), strings.Join(c.complaints(err), ""))
	}
	ret := Return{Result: True}
	done := "Requirements were already installed."
	if reqs != "" && !nothingNew(out) {
		ret.Set("requirements", true)
		done = "Successfully processed requirements file " + file + "."
	}
	if len(editable) > 0 {
		ret.Set("editable", true)
	}
	ret.Comment = say(done, "Package successfully installed from VCS checkout "+all+".")
	return ret
}

// nothingNew tells whether pip found all that it was asked for.
func nothingNew(out string) bool {
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
func (c *Call) pipPackages(pip []string) Return {
	pkgs := c.strs("pkgs")
	if len(pkgs) == 0 {
		pkgs = []string{c.Name}
	}
	before, err := c.freeze(pip)
	if err != nil {
		return Failf("Error installing '%s': %s", c.Name, err)
	}
	anew := c.boolean("upgrade", false) || c.boolean("force_reinstall", false) || c.boolean("ignore_installed", false)
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
		return OKf("%s", with("All specified packages are already installed"))
	case c.Test && len(pkgs) > 1:
		return Would(nil, "Python package(s) set to be installed:\n%s", strings.Join(pkgs, "\n"))
	case c.Test:
		return Would(nil, "Python package %s is set to be installed", pkgs[0])
	}
	out, err := c.pipInstall(pip, targets...)
	if err != nil {
		return Failf("%s", with("Failed to install packages: "+strings.Join(targets, ", ")+". Error: "+strings.TrimSpace(out)+" "+
			strings.Join(c.complaints(err), "")))
	}
	after, err := c.freeze(pip)
	if err != nil {
		return Failf("pip cannot be asked: %s", err)
	}
	there := map[string]bool{}
	for _, l := range strings.Split(out, "\n") {
		if rest, ok := strings.CutPrefix(l, "Requirement already satisfied: "); ok {
			there[distName(rest)] = true
		}
	}
	ret := Return{Result: True, Comment: with("All packages were successfully installed")}
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

// satisfied tells whether a package, pinned with == or without a version, is in a list of pip freeze. Other conditions
// are for pip to decide.
func satisfied(pkg, list string) bool {
	name, version, pinned := strings.Cut(pkg, "==")
	if strings.ContainsAny(name, "<>=!~[@ ") {
		return false
	}
	v, ok := frozen(list)[distName(name)]
	return ok && (!pinned || v == version)
}
