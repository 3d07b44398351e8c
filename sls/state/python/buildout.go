package python

import (
	"fmt"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// addBuildout adds buildout.installed: zc.buildout in a directory. Source: makina-states, states/zcbuildout.py, and Salt
// documentation up to release 3007, buildout state. The bootstrap script is that of the project: none is downloaded.
func addBuildout(t *core.Table) {
	t.Add("buildout.installed", "config quiet parts user env buildout_ver test_release distribute new_st? offline newest python debug verbose "+
		"use_vt? loglevel? output_loglevel? buildout_egg_ver setuptools_egg_ver **", buildoutInstalled)
}

func buildoutInstalled(c *core.Call) core.Return {
	dir := c.ExpandUser(c.Name)
	switch {
	case !filepath.IsAbs(dir):
		return core.Failf("Specified path %s is not absolute", dir)
	case c.Test:
		return core.Would(nil, "Buildout is set to be run in %s", dir)
	case !core.IsDir(dir):
		return core.Failf("The directory %s does not exist", dir)
	}
	b := &buildout{Call: c, dir: dir, config: c.Str("config", "buildout.cfg")}
	if c.Bool("quiet", false) {
		quiet := *c
		quiet.Output = nil
		b.Call = &quiet
	}
	boot, fail := b.bootstrap()
	if fail != "" {
		return core.Failf("%s", fail)
	}
	commands := append(boot, b.commands()...)
	var done []string
	for _, argv := range commands {
		done = append(done, strings.Join(argv, " "))
		if out, err := b.run(argv); err != nil {
			return core.Failf("%s\n%s", strings.Join(done, "\n"), strings.TrimSpace(strings.TrimSpace(out)+"\n"+strings.Join(c.Problems(err), "")))
		}
	}
	return core.OKf("%s", strings.Join(done, "\n"))
}

// buildout is one run in one directory.
type buildout struct {
	*core.Call
	dir, config string
}

func (b *buildout) run(argv []string) (string, error) {
	return b.ToolShell(host.Shell{Argv: argv, RunAs: b.Str("user", b.RunAs), Dir: b.dir, Env: b.EnvVars("env")})
}

// program returns the buildout of the directory, which the bootstrap makes.
func (b *buildout) program() string { return filepath.Join(b.dir, "bin", "buildout") }

// bootstrap is the command that makes bin/buildout: the project's bootstrap.py, as every time, and if there is none
// the buildout that is beside the named Python, if there is nothing to run yet.
func (b *buildout) bootstrap() (commands [][]string, fail string) {
	python := b.Str("python", "")
	if python == "" {
		if python = "python3"; !b.Installed(python) {
			python = "python"
		}
	}
	script, err := vfs.ReadFollowed(filepath.Join(b.dir, "bootstrap.py"), vfs.MaxRead)
	if err == nil {
		return [][]string{append([]string{python, "bootstrap.py"}, b.bootstrapOptions(string(script))...)}, ""
	}
	if core.Exists(b.program()) {
		return nil, ""
	}
	beside := filepath.Join(filepath.Dir(python), "buildout")
	if filepath.IsAbs(beside) && core.Exists(beside) {
		return [][]string{{beside, "-c", b.config, "bootstrap"}}, ""
	}
	return nil, fmt.Sprintf("%s has neither bootstrap.py nor bin/buildout, and no buildout stands beside %s: "+
		"add bootstrap.py, or install zc.buildout with a virtualenv.managed and name its python", b.dir, python)
}

// bootstrapOptions returns those that the script knows: releases of buildout differ.
func (b *buildout) bootstrapOptions(script string) []string {
	var out []string
	if b.Bool("distribute", false) && b.Int("buildout_ver", 0) == 1 {
		out = append(out, "--distribute")
	}
	if b.Bool("test_release", false) && strings.Contains(script, "--accept-buildout-test-releases") {
		out = append(out, "--accept-buildout-test-releases")
	}
	if strings.Contains(script, `"-c"`) {
		out = append(out, "-c", b.config)
	}
	if v, ok := b.Value("setuptools_egg_ver"); ok {
		out = append(out, "--setuptools-version="+py.Str(v))
	}
	if v, ok := b.Value("buildout_egg_ver"); ok {
		option := "--version"
		if strings.Contains(script, `"--buildout-version"`) {
			option = "--buildout-version"
		}
		out = append(out, option+"="+py.Str(v))
	}
	return out
}

// commands run the buildout: all of it, or one part after the other.
func (b *buildout) commands() [][]string {
	argv := []string{b.program(), "-c", b.config}
	for _, o := range []struct {
		on     bool
		option string
	}{
		{b.Bool("verbose", false), "-vvvvvvv"},
		{!b.Bool("newest", false) && core.Exists(filepath.Join(b.dir, ".installed.cfg")), "-N"},
		{b.Bool("newest", false), "-n"},
		{b.Bool("offline", false), "-o"},
		{b.Bool("debug", false), "-D"},
	} {
		if o.on {
			argv = append(argv, o.option)
		}
	}
	parts := b.Strings("parts")
	if len(parts) == 0 {
		return [][]string{argv}
	}
	var out [][]string
	for _, p := range parts {
		out = append(out, append(argv[:len(argv):len(argv)], "install", p))
	}
	return out
}
