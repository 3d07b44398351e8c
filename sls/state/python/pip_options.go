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

// pipArg is the name that an argument of pip.installed has in the state that runs.
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

// wheels is Salt's complaint about arguments that this release of pip has not: those about wheels are of old ones.
func wheels(c *core.Call, pip []string) string {
	for _, name := range []string{"use_wheel", "no_use_wheel"} {
		if !pipIs(c, name) {
			continue
		}
		v := pipVersion(c, pip)
		if n := numbers(v); slices.Compare(n, []int{1, 4}) < 0 || slices.Compare(n, []int{9, 0, 3}) > 0 {
			return "The '" + name + "' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was " + v + "."
		}
	}
	if py.Truth(first(c.Value("no_binary"))) {
		if v := pipVersion(c, pip); slices.Compare(numbers(v), []int{7}) < 0 {
			return "The 'no_binary' option is only supported in pip 7.0.0 and newer. The version of pip detected was " + v + "."
		}
	}
	return ""
}

func first(v any, _ bool) any { return v }

// pipCommand is the command line of pip install, in Salt's order. The error says what is wrong with an argument.
func pipCommand(c *core.Call, pip []string, reqs string, pkgs, editable []string) (argv []string, err error) {
	wrong := func(words ...string) error { return &core.InvocationError{Msg: strings.Join(words, "")} }
	argv = append(slices.Clone(pip), "install")
	flag := func(name, flag string) {
		if pipIs(c, name) {
			argv = append(argv, flag)
		}
	}
	opt := func(name, flag string) {
		if v := pipText(c, name); v != "" {
			argv = append(argv, flag, v)
		}
	}
	if reqs != "" {
		argv = append(argv, "--requirement", reqs)
	}
	flag("use_wheel", "--use-wheel")
	flag("no_use_wheel", "--no-use-wheel")
	if l := c.Strings("no_binary"); len(l) > 0 {
		argv = append(argv, "--no-binary", strings.Join(l, ","))
	}
	if log := pipText(c, "log"); log != "" {
		if fail := unwritable(log); fail != "" {
			return nil, wrong(fail)
		}
		argv = append(argv, "--log", log)
	}
	opt("proxy", "--proxy")
	if t := pipText(c, "timeout"); t != "" {
		if _, err := strconv.Atoi(t); err != nil {
			return nil, wrong("'", t, "' is not a valid timeout, must be an integer")
		}
		argv = append(argv, "--timeout", t)
	}
	for _, l := range c.CommaList("find_links") {
		if !pipURL(l) && !core.Exists(l) {
			return nil, wrong("'", l, "' is not a valid URL or path")
		}
		argv = append(argv, "--find-links", l)
	}
	if pipIs(c, "no_index") && (c.Has("index_url") || c.Has("extra_index_url")) {
		return nil, wrong("'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.")
	}
	for _, o := range [][2]string{{"index_url", "--index-url"}, {"extra_index_url", "--extra-index-url"}} {
		if v := pipText(c, o[0]); v != "" && !pipURL(v) {
			return nil, wrong("'", v, "' is not a valid URL")
		}
		opt(o[0], o[1])
	}
	flag("no_index", "--no-index")
	if mirrors := c.CommaList("mirrors"); len(mirrors) > 0 {
		if slices.Compare(numbers(pipVersion(c, pip)), []int{7}) >= 0 {
			return nil, wrong("pip >= 7.0.0 does not support mirror argument: use index_url and/or extra_index_url instead")
		}
		argv = append(argv, "--use-mirrors")
		for _, m := range mirrors {
			if !strings.HasPrefix(m, "http://") {
				return nil, wrong("'", m, "' is not a valid URL")
			}
			argv = append(argv, "--mirrors", m)
		}
	}
	if strings.HasPrefix(c.Function, "pip.") {
		argv = append(argv, "--disable-pip-version-check")
	}
	opt("build", "--build")
	opt("target", "--target")
	opt("download", "--download")
	if dir := cmp.Or(pipText(c, "download_cache"), pipText(c, "cache_dir")); dir != "" {
		name := "--cache-dir"
		if slices.Compare(numbers(pipVersion(c, pip)), []int{6}) < 0 {
			name = "--download-cache"
		}
		argv = append(argv, name, dir)
	}
	opt("source", "--source")
	flag("upgrade", "--upgrade")
	flag("force_reinstall", "--force-reinstall")
	flag("ignore_installed", "--ignore-installed")
	if v := pipText(c, "exists_action"); v != "" && !slices.Contains([]string{"s", "i", "w", "b"}, strings.ToLower(v)) {
		return nil, wrong("The exists_action pip option only supports the values s, i, w, and b. '", v, "' is not valid.")
	}
	opt("exists_action", "--exists-action")
	for _, o := range [][2]string{{"no_deps", "--no-deps"}, {"no_install", "--no-install"}, {"no_download", "--no-download"},
		{"no_cache_dir", "--no-cache-dir"}, {"pre_releases", "--pre"}} {
		flag(o[0], o[1])
	}
	opt("cert", "--cert")
	many := func(name, flag string) {
		for _, v := range c.CommaList(name) {
			argv = append(argv, flag, v)
		}
	}
	many("global_options", "--global-option")
	many("install_options", "--install-option")
	opt("constraint", "--constraint")
	argv = append(argv, pkgs...)
	for _, e := range editable {
		if e != "." && !strings.HasPrefix(e, "file://") && !strings.HasPrefix(e, "/") && !regexp.MustCompile(`(?:#|#.*?&)egg=[^&]`).MatchString(e) {
			return nil, wrong("You must specify an egg for this editable")
		}
		argv = append(argv, "--editable", e)
	}
	flag("allow_all_external", "--allow-all-external")
	many("allow_external", "--allow-external")
	many("allow_unverified", "--allow-unverified")
	flag("process_dependency_links", "--process-dependency-links")
	opt("trusted_host", "--trusted-host")
	return pipExtra(c, argv)
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

// unwritable is Salt's complaint about a log that can't be written.
func unwritable(log string) string {
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
