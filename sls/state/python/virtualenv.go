package python

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// addVenv adds virtualenv.managed and pip.installed, through the tools of the machine. What old releases of Salt or pip had
// and that Salt takes without doing anything is taken: no_chown, repo.
func addVenv(t *core.Table) {
	t.Add("virtualenv.managed", "venv_bin requirements system_site_packages distribute use_wheel clear python extra_search_dir never_download "+
		"prompt user cwd index_url extra_index_url pre_releases no_deps pip_download pip_download_cache pip_exists_action "+
		"pip_ignore_installed proxy use_vt env_vars no_use_wheel pip_upgrade pip_pkgs pip_no_cache_dir pip_cache_dir no_chown? process_dependency_links no_binary **", venvManaged)
	t.Add("pip.installed", "pkgs pip_bin requirements bin_env user cwd upgrade force_reinstall ignore_installed index_url extra_index_url "+
		"pre_releases no_deps use_vt env_vars proxy no_cache_dir editable find_links constraint extra_args timeout target "+
		"use_wheel no_use_wheel log repo? no_index mirrors build download download_cache source exists_action no_install no_download "+
		"install_options global_options cert allow_all_external allow_external allow_unverified process_dependency_links trusted_host "+
		"cache_dir no_binary **", pipInstalled)
}

func asUser(c *core.Call, argv []string) (string, error) {
	if c.Output != nil {
		if err := c.ManualAt(filepath.Join(c.Str("bin_env", c.Str("name", c.Name)), ".")); err != nil {
			return "", err
		}
	}
	sh := host.Shell{Argv: argv, RunAs: c.Str("user", c.RunAs), Dir: c.Str("cwd", ""), Env: c.EnvVars("env_vars")}
	return c.ToolShell(sh)
}

// freeze lists what pip has installed, "" if that cannot be asked.
func freeze(c *core.Call, pip []string) (string, error) {
	q := *c
	q.Output = nil
	return asUser(&q, append(append([]string{}, pip...), "freeze", "--all"))
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
func venvManaged(c *core.Call) core.Return {
	name := c.ExpandUser(c.Name)
	if !filepath.IsAbs(name) {
		return core.Failf("Specified path %s is not absolute", name)
	}
	python := filepath.Join(name, "bin", "python")
	there := core.Exists(python)
	fresh := !there || c.Bool("clear", false)
	ret := core.Return{Result: core.True}
	pip := []string{python, "-m", "pip"}
	if there && fresh {
		had := py.NewList()
		list, _ := freeze(c, pip)
		for _, l := range strings.Fields(list) {
			had.Append(l)
		}
		ret.Set("cleared_packages", had)
		ret.Set("old", noVersion)
	}
	if c.Test {
		switch {
		case there && fresh:
			ret.Result, ret.Comment = core.None, "Virtualenv "+name+" is set to be cleared"
			return ret
		case fresh:
			return core.Would(nil, "Virtualenv %s is set to be created", name)
		}
		return core.OKf("Virtualenv %s is already created", name)
	}
	reqs, fail := requirements(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	ret.Comment = "virtualenv exists"
	if fresh {
		argv, fail := venvCommand(c, name)
		if fail != "" {
			return core.Failf("%s", fail)
		}
		if err := c.BeforeWhole(name); err != nil {
			return core.Failf("%s", err)
		}
		if out, err := asUser(c, argv); err != nil {
			return core.Failf("%s%s", out, strings.Join(c.Problems(err), ""))
		}
		ret.Set("new", noVersion)
		ret.Comment = map[bool]string{true: "Cleared existing virtualenv", false: "Created new virtualenv"}[c.Bool("clear", false)]
	}
	if fail := wheelProblem(c, pip); fail != "" {
		ret.Result, ret.Comment = core.False, fail
		return ret
	}
	pkgs := c.Strings("pip_pkgs")
	if reqs == "" && len(pkgs) == 0 {
		return ret
	}
	before, err := freeze(c, pip)
	if err != nil {
		ret.Result, ret.Comment = core.False, strings.Join(c.Problems(err), "")
		return ret
	}
	if out, err := pipInstall(c, pip, reqs, pkgs, nil); err != nil {
		var bad *core.InvocationError
		if errors.As(err, &bad) {
			return core.Failf("%s", err)
		}
		ret.Result = core.False
		ret.Comment += "\n" + out + "\n" + strings.Join(c.Problems(err), "")
	}
	after, err := freeze(c, pip)
	if err != nil {
		return core.Failf("pip freeze failed: %s", err)
	}
	for _, e := range freezeDiff(before, after).Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	return ret
}

// noVersion is what Salt shows as the version of an environment's Python: the standard error of python -V, which is
// empty since Python 3.4.
const noVersion = ""

// requirements returns the path of the requirements file, "" if there is none. One below the file roots is given by the
// path that it has on disk, so that files it refers to are found.
func requirements(c *core.Call) (path, fail string) {
	reqs := c.Str("requirements", "")
	rel, ok := strings.CutPrefix(reqs, "salt://")
	if !ok {
		return reqs, ""
	}
	f, err := c.Roots.Find(rel)
	if err != nil {
		return "", "pip requirements file '" + reqs + "' not found"
	}
	path = f.Disk()
	if cred, err := c.Host.CredFor(c.RunAsUser()); err == nil && cred != nil {
		path = f.DiskFor() // the private copy is closed to them
	}
	if !filepath.IsAbs(path) {
		return "", "pip requirements file '" + reqs + "' is not on disk"
	}
	return path, ""
}

func venvCommand(c *core.Call, name string) ([]string, string) {
	bin := c.Str("venv_bin", "")
	if bin == "" {
		bin = "virtualenv"
		if !c.Installed(bin) {
			bin = "venv"
		}
	}
	var argv []string
	var fail string
	if bin == "venv" || strings.Contains(bin, "venv") || pythonBinary(bin) {
		argv, fail = venvModule(c, bin)
	} else {
		argv, fail = virtualenvProgram(c, bin)
	}
	if fail != "" {
		return nil, fail
	}
	if c.Bool("clear", false) {
		argv = append(argv, "--clear")
	}
	if c.Bool("system_site_packages", false) {
		argv = append(argv, "--system-site-packages")
	}
	return append(argv, name), ""
}

// pythonBinary reports whether a program is an interpreter by its name.
func pythonBinary(bin string) bool {
	name := strings.ToLower(filepath.Base(bin))
	rest, ok := strings.CutPrefix(name, "python")
	if !ok {
		rest, ok = strings.CutPrefix(name, "pypy")
	}
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// venvModule is the command of Python's own module, or of a program like it.
func venvModule(c *core.Call, bin string) ([]string, string) {
	py3 := strings.TrimSpace(c.Str("python", ""))
	unsupported := func(arg, flag string) string {
		return "The `" + arg + "`(`" + flag + "`) option is not supported by '" + bin + "'"
	}
	var argv []string
	switch {
	case bin == "venv":
		py3 = cmp.Or(py3, "python3")
		if !runnable(c, py3) {
			return nil, "Cannot find requested python (" + py3 + ")."
		}
		argv = []string{py3, "-m", "venv"}
	case pythonBinary(bin) && py3 != "":
		return nil, "Pass the target interpreter either as `venv_bin` or as `python`, not both."
	case pythonBinary(bin) && !runnable(c, bin):
		return nil, "Cannot find requested python (" + bin + ")."
	case pythonBinary(bin):
		argv = []string{bin, "-m", "venv"}
	case py3 != "":
		return nil, unsupported("python", "--python")
	case !runnable(c, bin):
		return nil, bin + " is not installed on this machine"
	default:
		argv = []string{bin}
	}
	if v, ok := c.Value("extra_search_dir"); ok && strings.TrimSpace(py.Str(v)) != "" {
		return nil, unsupported("extra_search_dir", "--extra-search-dir")
	}
	if c.Has("never_download") {
		return nil, unsupported("never_download", "--never-download")
	}
	if p := c.Str("prompt", ""); strings.TrimSpace(p) != "" {
		argv = append(argv, "--prompt", p)
	}
	return argv, ""
}

func runnable(c *core.Call, bin string) bool {
	return filepath.IsAbs(bin) && core.Exists(bin) || c.Installed(bin)
}

// virtualenvProgram is the command of virtualenv. Its options by release are those of Salt: setuptools instead of
// distribute before 1.10, and downloads, which were the rule once and the exception later.
func virtualenvProgram(c *core.Call, bin string) ([]string, string) {
	if !runnable(c, bin) {
		return nil, bin + " is not installed on this machine"
	}
	argv := []string{bin}
	var version []int
	never, said := c.Value("never_download")
	if c.Bool("distribute", false) || said {
		out, err := c.Query(bin, "--version")
		if err != nil {
			return nil, "Unable to get the version of " + bin + ": " + strings.Join(c.Problems(err), "")
		}
		for _, w := range strings.Fields(out) {
			if w[0] >= '0' && w[0] <= '9' {
				version = numbers(w)
				break
			}
		}
	}
	if c.Bool("distribute", false) && slices.Compare(version, []int{1, 10}) < 0 {
		argv = append(argv, "--distribute")
	}
	if p := strings.TrimSpace(c.Str("python", "")); p != "" {
		if !runnable(c, p) {
			return nil, "Cannot find requested python (" + p + ")."
		}
		argv = append(argv, "--python="+p)
	}
	for _, d := range c.CommaList("extra_search_dir") {
		argv = append(argv, "--extra-search-dir="+d)
	}
	switch {
	case never == true && (slices.Compare(version, []int{1, 10}) < 0 || slices.Compare(version, []int{14, 0, 0}) >= 0):
		argv = append(argv, "--never-download")
	case never == false && slices.Compare(version, []int{20}) >= 0:
		argv = append(argv, "--download")
	}
	if p := c.Str("prompt", ""); strings.TrimSpace(p) != "" {
		argv = append(argv, "--prompt='"+p+"'")
	}
	return argv, ""
}

// numbers returns those of a version, up to what is not a number.
func numbers(version string) (out []int) {
	for _, p := range strings.Split(version, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
