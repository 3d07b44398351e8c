package python

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// pipArg returns the name that an argument of pip.installed has in the state that runs.
func pipArg(c *core.Call, name string) string {
	if strings.HasPrefix(c.Function, "virtualenv.") &&
		slices.Contains([]string{"download", "download_cache", "exists_action", "ignore_installed", "upgrade", "no_cache_dir", "cache_dir"}, name) {
		return "pip_" + name
	}
	return name
}

func pipText(c *core.Call, name string) string { return c.Str(pipArg(c, name), "") }

func pipIs(c *core.Call, name string) bool { return c.Bool(pipArg(c, name), false) }

// pipVersion is that of pip.
func pipVersion(c *core.Call, pip []string) string {
	q := *c
	q.Output = nil
	out, err := asUser(&q, append(slices.Clone(pip), "--version"))
	if f := strings.Fields(out); err == nil && len(f) > 1 && f[0] == "pip" {
		return f[1]
	}
	return ""
}

// wheelProblem is Salt's error about arguments that this release of pip does not have: those about wheels are of old releases.
func wheelProblem(c *core.Call, pip []string) string {
	for _, name := range []string{"use_wheel", "no_use_wheel"} {
		if !pipIs(c, name) {
			continue
		}
		v := pipVersion(c, pip)
		if n := numbers(v); slices.Compare(n, []int{1, 4}) < 0 || slices.Compare(n, []int{9, 0, 3}) > 0 {
			return "The '" + name + "' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was " + v + "."
		}
	}
	if py.Truth(valueOf(c.Value("no_binary"))) {
		if v := pipVersion(c, pip); slices.Compare(numbers(v), []int{7}) < 0 {
			return "The 'no_binary' option is only supported in pip 7.0.0 and newer. The version of pip detected was " + v + "."
		}
	}
	return ""
}

func valueOf(v any, _ bool) any { return v }

// pipCommand is the command line of pip install, in Salt's order. The error says what is wrong with an argument.
func pipCommand(c *core.Call, pip []string, reqs string, pkgs, editable []string) ([]string, error) {
	p := &pipArgs{c: c, pip: pip, argv: append(slices.Clone(pip), "install")}
	if reqs != "" {
		p.add("--requirement", reqs)
	}
	p.flag("use_wheel", "--use-wheel")
	p.flag("no_use_wheel", "--no-use-wheel")
	if l := c.Strings("no_binary"); len(l) > 0 {
		p.add("--no-binary", strings.Join(l, ","))
	}
	if err := p.connection(); err != nil {
		return nil, err
	}
	if err := p.indexes(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(c.Function, "pip.") {
		p.add("--disable-pip-version-check")
	}
	if err := p.install(); err != nil {
		return nil, err
	}
	p.add(pkgs...)
	for _, e := range editable {
		if e != "." && !strings.HasPrefix(e, "file://") && !strings.HasPrefix(e, "/") && !regexp.MustCompile(`(?:#|#.*?&)egg=[^&]`).MatchString(e) {
			return nil, p.wrong("You must specify an egg for this editable")
		}
		p.add("--editable", e)
	}
	p.flag("allow_all_external", "--allow-all-external")
	p.many("allow_external", "--allow-external")
	p.many("allow_unverified", "--allow-unverified")
	p.flag("process_dependency_links", "--process-dependency-links")
	p.opt("trusted_host", "--trusted-host")
	return pipExtra(c, p.argv)
}

// pipArgs is a command line of pip while it is made.
type pipArgs struct {
	c    *core.Call
	pip  []string
	argv []string
}

func (p *pipArgs) wrong(words ...string) error {
	return &core.InvocationError{Msg: strings.Join(words, "")}
}

func (p *pipArgs) add(words ...string) { p.argv = append(p.argv, words...) }

// flag adds an option without a value, where the argument is true.
func (p *pipArgs) flag(name, flag string) {
	if pipIs(p.c, name) {
		p.add(flag)
	}
}

// opt adds an option with the value of an argument.
func (p *pipArgs) opt(name, flag string) {
	if v := pipText(p.c, name); v != "" {
		p.add(flag, v)
	}
}

// many adds an option for each value of an argument.
func (p *pipArgs) many(name, flag string) {
	for _, v := range p.c.CommaList(name) {
		p.add(flag, v)
	}
}

// connection adds log, proxy and timeout.
func (p *pipArgs) connection() error {
	if log := pipText(p.c, "log"); log != "" {
		if fail := logProblem(log); fail != "" {
			return p.wrong(fail)
		}
		p.add("--log", log)
	}
	p.opt("proxy", "--proxy")
	if t := pipText(p.c, "timeout"); t != "" {
		if _, err := strconv.Atoi(t); err != nil {
			return p.wrong("'", t, "' is not a valid timeout, must be an integer")
		}
		p.add("--timeout", t)
	}
	return nil
}

// indexes adds where pip looks for packages.
func (p *pipArgs) indexes() error {
	c := p.c
	for _, l := range c.CommaList("find_links") {
		if !pipURL(l) && !core.Exists(l) {
			return p.wrong("'", l, "' is not a valid URL or path")
		}
		p.add("--find-links", l)
	}
	if pipIs(c, "no_index") && (c.Has("index_url") || c.Has("extra_index_url")) {
		return p.wrong("'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.")
	}
	for _, o := range [][2]string{{"index_url", "--index-url"}, {"extra_index_url", "--extra-index-url"}} {
		if v := pipText(c, o[0]); v != "" && !pipURL(v) {
			return p.wrong("'", v, "' is not a valid URL")
		}
		p.opt(o[0], o[1])
	}
	p.flag("no_index", "--no-index")
	mirrors := c.CommaList("mirrors")
	if len(mirrors) == 0 {
		return nil
	}
	if slices.Compare(numbers(pipVersion(c, p.pip)), []int{7}) >= 0 {
		return p.wrong("pip >= 7.0.0 does not support mirror argument: use index_url and/or extra_index_url instead")
	}
	p.add("--use-mirrors")
	for _, m := range mirrors {
		if !strings.HasPrefix(m, "http://") {
			return p.wrong("'", m, "' is not a valid URL")
		}
		p.add("--mirrors", m)
	}
	return nil
}

// install adds how pip installs what it found.
func (p *pipArgs) install() error {
	c := p.c
	p.opt("build", "--build")
	p.opt("target", "--target")
	p.opt("download", "--download")
	if dir := cmp.Or(pipText(c, "download_cache"), pipText(c, "cache_dir")); dir != "" {
		name := "--cache-dir"
		if slices.Compare(numbers(pipVersion(c, p.pip)), []int{6}) < 0 {
			name = "--download-cache"
		}
		p.add(name, dir)
	}
	p.opt("source", "--source")
	p.flag("upgrade", "--upgrade")
	p.flag("force_reinstall", "--force-reinstall")
	p.flag("ignore_installed", "--ignore-installed")
	if v := pipText(c, "exists_action"); v != "" && !slices.Contains([]string{"s", "i", "w", "b"}, strings.ToLower(v)) {
		return p.wrong("The exists_action pip option only supports the values s, i, w, and b. '", v, "' is not valid.")
	}
	p.opt("exists_action", "--exists-action")
	for _, o := range [][2]string{{"no_deps", "--no-deps"}, {"no_install", "--no-install"}, {"no_download", "--no-download"},
		{"no_cache_dir", "--no-cache-dir"}, {"pre_releases", "--pre"}} {
		p.flag(o[0], o[1])
	}
	p.opt("cert", "--cert")
	p.many("global_options", "--global-option")
	p.many("install_options", "--install-option")
	p.opt("constraint", "--constraint")
	return nil
}

// pipExtra adds extra_args: words, and mappings of one option to its value.
func pipExtra(c *core.Call, argv []string) ([]string, error) {
	for _, a := range c.List("extra_args") {
		d, ok := a.(*py.Dict)
		if !ok {
			argv = append(argv, py.Str(a))
			continue
		}
		for _, e := range d.Items() {
			switch e.Value.(type) {
			case *py.Dict, *py.List:
				return nil, &core.InvocationError{Msg: "Too many levels in: " + py.Str(e.Key)}
			}
			argv = append(argv, py.Str(e.Key), py.Str(e.Value))
		}
	}
	return argv, nil
}

// pipURL reports whether pip can fetch from an address.
func pipURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains([]string{"http", "https", "ftp", "file"}, u.Scheme)
}

// logProblem is Salt's error about a log that can't be written.
func logProblem(log string) string {
	parent := filepath.Dir(log)
	switch {
	case core.IsDir(log):
		return "'" + log + "' is a directory. Use --log path_to_file"
	case core.Exists(log) && unix.Access(log, unix.W_OK) != nil:
		return "'" + log + "' is not writeable"
	case core.Exists(log):
	case !core.Exists(parent):
		return "Trying to create '" + log + "' but parent directory '" + parent + "' does not exist."
	case unix.Access(parent, unix.W_OK) != nil:
		return "Trying to create '" + log + "' but parent directory '" + parent + "' is not writeable."
	}
	return ""
}

// pipInstall runs pip install and gives what it printed.
func pipInstall(c *core.Call, pip []string, reqs string, pkgs, editable []string) (string, error) {
	argv, err := pipCommand(c, pip, reqs, pkgs, editable)
	if err != nil {
		return "", err
	}
	return asUser(c, argv)
}
