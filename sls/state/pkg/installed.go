package pkg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// install implements pkg.installed. Source: Salt documentation, pkg state, installed.
func install(c *core.Call) core.Return {
	if fail := apt(c); fail != "" {
		return core.Failf("%s", fail)
	}
	if v, ok := c.Value("pkg_verify"); ok {
		if _, list := v.(*py.List); list || v == true {
			return core.Failf("pkg.verify not implemented") // with apt it isn't in Salt either
		}
	}
	if noPackages(c) {
		return core.OKf("No packages to install provided")
	}
	p := &pkgPlan{Call: c}
	dir, discard, err := c.NewTempDir("corpus-pkg-")
	if err != nil {
		return core.Failf("%s", err)
	}
	defer discard()
	p.dir = dir
	if r, done := p.inspect(); done {
		return r
	}
	if c.Test {
		return p.would()
	}
	return p.run()
}

// pkgPlan is what pkg.installed determines before it installs.
type pkgPlan struct {
	*core.Call
	names    []string
	versions map[string]string
	sources  []pkgSource
	before   map[string]string
	// targets are to be installed, again to be installed again.
	targets, again []string
	// dir holds copies of package files.
	dir string
}

// readRequest reads what the state requests; problem says why it could not.
func (p *pkgPlan) readRequest() (problem string) {
	if v, ok := p.Value("sources"); ok && py.Truth(v) {
		if len(p.List("pkgs")) > 0 {
			return `Only one of "pkgs" and "sources" is permitted.`
		}
		if p.sources, ok = pkgSources(p.Call); !ok {
			return "Invalidly formatted 'sources' parameter. See minion log."
		}
		p.versions = map[string]string{}
		for _, s := range p.sources {
			if _, there := p.versions[s.name]; !there {
				p.names = append(p.names, s.name)
			}
			p.versions[s.name] = s.from
		}
		return ""
	}
	p.names, p.versions, problem = packages(p.Call, false)
	return problem
}

// inspect determines what has to be done; done reports that there is nothing to do, or that it is not
// known.
func (p *pkgPlan) inspect() (r core.Return, done bool) {
	if fail := p.readRequest(); fail != "" {
		return core.Failf("%s", fail), true
	}
	var err error
	if p.before, _, err = dpkg(p.Call); err != nil {
		return core.Failf("%s", err), true
	}
	versioned, problems := false, []string{}
	for _, n := range p.names {
		have, want := pkgVersion(p.Call, p.before, n), p.versions[n]
		if want == "latest" {
			want = cmp.Or(candidate(p.Call, n), have)
			p.versions[n] = want
		}
		switch {
		case have == "":
			bare, _, _ := strings.Cut(n, ":")
			if p.sources != nil || want != "" || !provided(p.Call, bare) {
				p.targets = append(p.targets, n)
			}
		case p.Bool("reinstall", false):
			p.again = append(p.again, n)
		case p.sources != nil:
			i := slices.IndexFunc(p.sources, func(s pkgSource) bool { return s.name == n })
			v, err := sourceVersion(p.Call, p.sources[i], p.dir)
			if err != nil {
				problems = append(problems, err.Error())
			} else if !satisfies(p.Call, have, v, false) {
				p.targets = append(p.targets, n)
			}
		case want != "":
			versioned = true
			if !satisfies(p.Call, have, want, p.Bool("allow_updates", false)) {
				p.targets = append(p.targets, n)
			}
		}
	}
	if len(problems) > 0 {
		return core.Failf("%s", strings.Join(problems, " ")), true
	}
	if len(p.targets)+len(p.again) > 0 {
		return core.Return{}, false
	}
	r = core.OKf("All specified packages are already installed")
	if versioned {
		r.Comment += " and are at the desired version"
	}
	return withHolds(p.Call, r, p.keys()), true
}

// keys returns the names of the packages as the arguments have them.
func (p *pkgPlan) keys() []string {
	if p.sources == nil {
		return p.names
	}
	var out []string
	for _, s := range p.sources {
		out = append(out, s.key)
	}
	return out
}

// shown returns the name of a package, with the version that is requested.
func (p *pkgPlan) shown(n string) string {
	v := p.versions[n]
	switch {
	case p.sources != nil || v == "":
		return n
	case strings.ContainsAny(v[:1], "<>="):
		return n + v
	}
	return n + "=" + v
}

func (p *pkgPlan) shownAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = p.shown(n)
	}
	return strings.Join(out, ", ")
}

func (p *pkgPlan) would() core.Return {
	changes := py.NewDict()
	var comment []string
	for _, n := range p.targets {
		version := "installed"
		if p.sources == nil {
			version = newest(p.Call, n, p.versions[n])
		}
		changes.SetStr(n, py.NewDict("new", version, "old", ""))
	}
	if len(p.targets) > 0 {
		comment = append(comment, "The following packages would be installed/updated: "+strings.Join(p.targets, ", "))
	}
	for _, n := range p.again {
		changes.SetStr(p.shown(n), py.NewDict("new", "installed", "old", ""))
	}
	if len(p.again) > 0 {
		comment = append(comment, "The following packages would be reinstalled: "+p.shownAll(p.again))
	}
	return core.Would(changes, "%s", strings.Join(comment, "\n"))
}

// newest returns what a plan shows as the new version: that of the package lists if none is
// requested.
func newest(c *core.Call, name, version string) string {
	if version == "" {
		if v := candidate(c, name); v != "" {
			return v
		}
	}
	return "installed"
}

func (p *pkgPlan) run() core.Return {
	after, problems, err := p.installAll()
	var bad *core.InvocationError
	switch {
	case errors.As(err, &bad):
		return core.Failf("%s", err)
	case err != nil:
		return core.Failf("An error was encountered while installing package(s): %s", err)
	}
	ret := core.Return{Result: core.True, Changes: changed(p.before, after)}
	for _, n := range p.again {
		n = plainName(p.Call, n)
		if p.before[n] == after[n] {
			ret.Set(n, py.NewDict("old", p.before[n], "new", after[n]))
		}
	}
	if len(problems) > 0 {
		ret.Result = core.False
		ret.Comment = withErrors("Problem encountered installing package(s)", problems)
		return ret
	}
	holds, err := holdAll(p.Call, p.names)
	if err != nil {
		return core.Failf("%s", err)
	}
	return p.result(ret, after, holds)
}

// withErrors returns how Salt shows the errors of programs.
func withErrors(what string, problems []string) string {
	out := what + ". Additional info follows:\n\nerrors:"
	for _, e := range problems {
		out += "\n    - " + strings.ReplaceAll(e, "\n", "\n      ")
	}
	return out
}

// installAll runs apt-get. Held packages that are to be installed are released meanwhile.
func (p *pkgPlan) installAll() (after map[string]string, problems []string, err error) {
	var args, again, more []string
	replaced := p.again
	if p.sources != nil {
		if args, again, replaced, err = p.files(); err != nil {
			return nil, nil, err
		}
		if len(args)+len(again) == 0 { // a name that is only right with its architecture: Salt forgets where it comes from
			p.sources = nil
		}
	} else {
		args, more, problems = p.arguments()
		again = p.again
	}
	if len(args)+len(again) > 0 {
		if err := notePackages(p.Call); err != nil {
			return nil, nil, err
		}
		if err := refresh(p.Call); err != nil {
			return nil, nil, err
		}
		held, err := heldTargets(p.Call, append(slices.Clone(args), replaced...))
		if err != nil {
			return nil, nil, err
		}
		if err := selectAll(p.Call, held, "install"); err != nil {
			return nil, nil, err
		}
		if len(args) > 0 {
			problems = append(problems, p.Problems(aptInstall(p.Call, more, args...))...)
		}
		if len(again) > 0 {
			reinstall := []string{"--reinstall"}
			if p.sources != nil {
				reinstall = nil
			}
			problems = append(problems, p.Problems(aptInstall(p.Call, reinstall, again...))...)
		}
		if err := selectAll(p.Call, held, "hold"); err != nil {
			return nil, nil, err
		}
	}
	after, _, err = dpkg(p.Call)
	return after, problems, err
}

func selectAll(c *core.Call, names []string, state string) error {
	for _, n := range names {
		if err := selectPkg(c, n, state); err != nil {
			return err
		}
	}
	return nil
}

// files returns the package files to install, and those to install again, with their packages' names.
func (p *pkgPlan) files() (fresh, again, replaced []string, err error) {
	in := func(names []string) (out []pkgSource) {
		for _, s := range p.sources {
			if slices.Contains(names, s.key) {
				out = append(out, s)
			}
		}
		return out
	}
	if fresh, err = sourcePaths(p.Call, in(p.targets), p.dir); err != nil {
		return nil, nil, nil, err
	}
	paths, err := sourcePaths(p.Call, in(p.again), p.dir)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, path := range paths {
		name, version, err := debInfo(p.Call, path)
		if err != nil {
			return nil, nil, nil, err
		}
		if p.before[name] == version {
			again, replaced = append(again, path), append(replaced, name)
		} else {
			fresh = append(fresh, path)
		}
	}
	return fresh, again, replaced, nil
}

// arguments returns those of apt-get for the targets.
func (p *pkgPlan) arguments() (args, more, problems []string) {
	for _, n := range p.targets {
		v := strings.TrimLeft(p.versions[n], "=")
		if strings.HasPrefix(v, "<") || strings.HasPrefix(v, ">") {
			cand := candidate(p.Call, n)
			if cand == "" || !satisfies(p.Call, cand, v, false) {
				problems = append(problems, "No version matching '"+n+v+"' could be found (available: "+cmp.Or(cand, "None")+")")
				continue
			}
			v = cand
		}
		if v != "" {
			if have := p.before[n]; have != "" && !strings.Contains(v, "*") && older(p.Call, v, "lt", have) {
				more = []string{"--allow-downgrades"}
			}
			n += "=" + v
		}
		args = append(args, n)
	}
	return args, more, problems
}

// result returns the comment of what was done.
func (p *pkgPlan) result(ret core.Return, after map[string]string, holds []held) core.Return {
	var good, failed, right []string
	for _, n := range p.names {
		targeted := slices.Contains(p.targets, n)
		ok := p.isInstalled(n, after, ret.Changes)
		switch {
		case !ok && targeted:
			failed = append(failed, n)
		case ok && targeted:
			good = append(good, n)
		case ok && !slices.Contains(p.again, n):
			right = append(right, n)
		}
	}
	var comment []string
	tell := func(yes bool, format string, args ...any) {
		if yes {
			comment = append(comment, fmt.Sprintf(format, args...))
		}
	}
	tell(len(failed) > 0, "The following packages failed to install/update: %s", p.shownAll(failed))
	if summary := p.shownAll(good); len(summary) < 20 {
		tell(len(good) > 0, "The following packages were installed/updated: %s", summary)
	} else {
		tell(len(good) == 1, "1 targeted package was installed/updated.")
		tell(len(good) > 1, "%d targeted packages were installed/updated.", len(good))
	}
	for _, h := range holds {
		if h.changed() {
			comment = append(comment, h.comment)
			if ret.Changes == nil {
				ret.Changes = py.NewDict()
			}
			h.show(ret.Changes)
		}
	}
	tell(len(right) > 0 && len(right) <= 20, "The following packages were already installed: %s", p.shownAll(right))
	tell(len(right) > 20, "%d targeted packages were already installed", len(right))
	for _, h := range holds {
		tell(!h.changed() && h.result == core.True, "%s", h.comment)
	}
	unheld := false
	for _, h := range holds {
		unheld = unheld || h.result != core.True
		tell(h.result != core.True, "%s", h.comment)
	}
	for _, n := range p.again {
		tell(true, "Package %s was reinstalled.", p.shown(n))
	}
	if len(failed) > 0 || unheld {
		ret.Result = core.False
	}
	ret.Comment = strings.Join(comment, "\n")
	return ret
}

// isInstalled reports whether a package is what was requested, after the installation.
func (p *pkgPlan) isInstalled(n string, after map[string]string, changes *py.Dict) bool {
	if p.sources != nil {
		_, is := changes.GetStr(n)
		return is || !slices.Contains(p.targets, n)
	}
	inName, _, _ := strings.Cut(n, "=") // a name may hold the version, as for apt-get
	have, want := pkgVersion(p.Call, after, inName), p.versions[n]
	if have == "" {
		bare, _, _ := strings.Cut(n, ":")
		return want == "" && provided(p.Call, bare)
	}
	return want == "" || satisfies(p.Call, have, want, false)
}
