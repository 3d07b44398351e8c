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
	fresh := py.NewList()
	for _, l := range strings.Split(after, "\n") {
		if l != "" && !have[l] {
			fresh.Append(l)
		}
	}
	d := py.NewDict()
	if fresh.Len() > 0 {
		d.SetStr("packages", py.NewDict("new", fresh))
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
	if c.Test {
		if fresh {
			return Would(py.NewDict("new", python), "Virtualenv %s is set to be created", name)
		}
		if c.has("requirements") || c.has("pip_pkgs") {
			return Would(nil, "virtualenv exists, and its packages may change")
		}
		return OKf("virtualenv exists")
	}
	if fresh {
		argv, fail := c.venvCommand(name)
		if fail != "" {
			return Failf("%s", fail)
		}
		if _, err := c.asUser(argv); err != nil {
			return Failf("Failed to create the virtualenv: %s", err)
		}
		ret.Set("new", python)
		ret.Comment = "Created new virtualenv"
		if there {
			ret.Comment = "Cleared existing virtualenv"
		}
	} else {
		ret.Comment = "virtualenv exists"
	}
	pip := []string{python, "-m", "pip"}
	reqs, pkgs := c.str("requirements", ""), c.strs("pip_pkgs")
	if reqs == "" && len(pkgs) == 0 {
		return ret
	}
	if strings.HasPrefix(reqs, "salt://") {
		return Failf("requirements from salt:// are not supported by the built-in runner: use the path of a file")
	}
	before, _ := c.freeze(pip)
	args := append(append(append([]string{}, pip...), "install"), c.pipArgs()...)
	if reqs != "" {
		args = append(args, "-r", reqs)
	}
	if _, err := c.asUser(append(args, pkgs...)); err != nil {
		ret.Result, ret.Comment = False, "pip install failed: "+err.Error()
		return ret
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
	pkgs, reqs := c.strs("pkgs"), c.strs("requirements")
	if len(pkgs) == 0 && len(reqs) == 0 && !c.has("editable") {
		pkgs = []string{c.Name}
	}
	before, err := c.freeze(pip)
	if err != nil {
		return Failf("pip cannot be asked: %s", err)
	}
	if len(reqs) == 0 && !c.has("editable") && !c.boolean("upgrade", false) && !c.boolean("force_reinstall", false) && satisfied(pkgs, before) {
		return OKf("All specified packages are already installed")
	}
	if c.Test {
		return Would(nil, "Python package(s) set to be installed: %s", strings.Join(pkgs, ", "))
	}
	args := append(append(append([]string{}, pip...), "install"), c.pipArgs()...)
	for _, r := range reqs {
		args = append(args, "-r", r)
	}
	for _, e := range c.strs("editable") {
		args = append(args, "-e", e)
	}
	args = append(args, c.strs("extra_args")...)
	if _, err := c.asUser(append(args, pkgs...)); err != nil {
		return Failf("Failed to install packages: %s", err)
	}
	after, err := c.freeze(pip)
	if err != nil {
		return Failf("pip cannot be asked: %s", err)
	}
	ret := Return{Result: True, Comment: "All packages were successfully installed"}
	if d := freezeDiff(before, after); d.Len() > 0 {
		ret.Changes = d
	}
	return ret
}

// satisfied tells whether each package, pinned with == or without a version, is in the list of pip freeze.
func satisfied(pkgs []string, freeze string) bool {
	norm := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(s)) }
	have := map[string]string{}
	for _, l := range strings.Split(freeze, "\n") {
		if n, v, ok := strings.Cut(strings.TrimSpace(l), "=="); ok {
			have[norm(n)] = v
		}
	}
	for _, p := range pkgs {
		name, version, pinned := strings.Cut(p, "==")
		if strings.ContainsAny(name, "<>=!~[@ ") {
			return false
		}
		v, ok := have[norm(name)]
		if !ok || pinned && v != version {
			return false
		}
	}
	return true
}
