package state

import (
	"errors"
	"path"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// conditions are what a version asks for: [operator, version] pairs, all of which must hold.
// Source: Salt documentation, "salt.states.pkg.installed", version.
func conditions(version string) (out [][2]string) {
	for _, v := range strings.Split(version, ",") {
		v = strings.TrimSpace(v)
		op := "=="
		for _, o := range []string{"==", "!=", "<>", "<=", ">=", "=", "<", ">"} {
			if rest, ok := strings.CutPrefix(v, o); ok {
				op, v = o, strings.TrimSpace(rest)
				break
			}
		}
		if v != "" {
			out = append(out, [2]string{op, v})
		}
	}
	return out
}

// fulfils tells whether a version is what is asked for.
func (c *Call) fulfils(have, want string) bool {
	verb := map[string]string{"==": "eq", "=": "eq", "!=": "ne", "<>": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt"}
	for _, cond := range conditions(want) {
		op, v := verb[cond[0]], cond[1]
		switch {
		case strings.Contains(v, "*"):
			ok, err := path.Match(v, have)
			if err != nil || ok != (op == "eq") {
				return false
			}
		case (op == "eq" || op == "ne") && have == v:
			if op == "ne" {
				return false
			}
		case !c.older(have, op, v):
			return false
		}
	}
	return true
}

// older compares two versions as dpkg does; op is an operator of dpkg --compare-versions.
func (c *Call) older(a, op, b string) bool {
	_, err := c.quiet("dpkg", "--compare-versions", a, op, b)
	return err == nil
}

// install implements pkg.installed. Source: Salt documentation, pkg state, installed.
func (c *Call) install() Return {
	if fail := c.apt(); fail != "" {
		return Failf("%s", fail)
	}
	if c.has("pkgs") && len(c.list("pkgs")) == 0 {
		return OKf("No packages to install provided")
	}
	names, versions := c.packages()
	before, _, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	reinstall := c.boolean("reinstall", false)
	var targets, again []string
	versioned := false
	for _, n := range names {
		bare, _, _ := strings.Cut(n, ":")
		have, there := before[bare]
		want := versions[n]
		if want == "latest" {
			if want = c.candidate(n); want == "" {
				want = have
			}
			versions[n] = want
		}
		switch {
		case !there && (want != "" || !c.provided(bare)):
			targets = append(targets, n)
		case there && reinstall:
			again = append(again, n)
		case there && want != "":
			versioned = true
			if !c.fulfils(have, want) {
				targets = append(targets, n)
			}
		}
	}
	desired := func(names []string) string {
		out := make([]string, len(names))
		for i, n := range names {
			if out[i] = n; versions[n] != "" {
				if cond := conditions(versions[n]); len(cond) > 0 && cond[0][0] == "==" && !strings.HasPrefix(versions[n], "=") {
					out[i] += "="
				}
				out[i] += versions[n]
			}
		}
		return strings.Join(out, ", ")
	}
	switch {
	case len(targets)+len(again) == 0 && versioned:
		return OKf("All specified packages are already installed and are at the desired version")
	case len(targets)+len(again) == 0:
		return OKf("All specified packages are already installed")
	case c.Test:
		return c.wouldInstall(targets, again, versions, desired)
	}
	return c.installNow(targets, again, names, versions, before, desired)
}

func (c *Call) wouldInstall(targets, again []string, versions map[string]string, desired func([]string) string) Return {
	changes := py.NewDict()
	var comment []string
	for _, n := range targets {
		changes.SetStr(n, py.NewDict("new", c.newest(n, versions[n]), "old", ""))
	}
	if len(targets) > 0 {
		comment = append(comment, "The following packages would be installed/updated: "+strings.Join(targets, ", "))
	}
	for _, n := range again {
		changes.SetStr(n, py.NewDict("new", "installed", "old", ""))
	}
	if len(again) > 0 {
		comment = append(comment, "The following packages would be reinstalled: "+desired(again))
	}
	return Would(changes, "%s", strings.Join(comment, "\n"))
}

// newest is what a plan shows as the new version: that of the lists where none is asked for.
func (c *Call) newest(name, version string) string {
	if version == "" {
		if v := c.candidate(name); v != "" {
			return v
		}
	}
	return "installed"
}

func (c *Call) installNow(targets, again, names []string, versions, before map[string]string, desired func([]string) string) Return {
	if err := c.refresh(); err != nil {
		return Failf("apt-get update failed: %s", err)
	}
	var problems, args, more []string
	for _, n := range targets {
		v := strings.TrimLeft(versions[n], "=")
		if strings.HasPrefix(v, "<") || strings.HasPrefix(v, ">") {
			cand := c.candidate(n)
			if cand == "" || !c.fulfils(cand, v) {
				problems = append(problems, "No version matching '"+n+v+"' could be found (available: "+either(cand, "None")+")")
				continue
			}
			v = cand
		}
		if v != "" {
			if have := before[n]; have != "" && !strings.Contains(v, "*") && c.older(v, "lt", have) {
				more = []string{"--allow-downgrades"}
			}
			n += "=" + v
		}
		args = append(args, n)
	}
	if len(args) > 0 {
		problems = append(problems, c.complaints(c.aptInstall(more, args...))...)
	}
	if len(again) > 0 {
		problems = append(problems, c.complaints(c.aptInstall([]string{"--reinstall"}, again...))...)
	}
	after, _, err := c.dpkg()
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: changed(before, after)}
	for _, n := range again {
		if before[n] == after[n] {
			ret.Set(n, py.NewDict("old", before[n], "new", after[n]))
		}
	}
	if len(problems) > 0 {
		ret.Result = False
		ret.Comment = "Problem encountered installing package(s). Additional info follows:\n\nerrors:"
		for _, p := range problems {
			ret.Comment += "\n    - " + strings.ReplaceAll(p, "\n", "\n      ")
		}
		return ret
	}
	var good, failed, right []string
	for _, n := range names {
		bare, _, _ := strings.Cut(n, ":")
		v, there := after[bare]
		ok := there && (versions[n] == "" || c.fulfils(v, versions[n])) || !there && versions[n] == "" && c.provided(bare)
		targeted := slices.Contains(targets, n)
		switch {
		case !ok && targeted:
			failed = append(failed, n)
		case ok && targeted:
			good = append(good, n)
		case ok && !slices.Contains(again, n):
			right = append(right, n)
		}
	}
	var comment []string
	if len(failed) > 0 {
		ret.Result = False
		comment = append(comment, "The following packages failed to install/update: "+desired(failed))
	}
	if len(good) > 0 {
		comment = append(comment, "The following packages were installed/updated: "+desired(good))
	}
	if len(right) > 0 {
		comment = append(comment, "The following packages were already installed: "+desired(right))
	}
	if len(again) > 0 {
		comment = append(comment, "The following packages were reinstalled: "+desired(again))
	}
	ret.Comment = strings.Join(comment, "\n")
	return ret
}

// complaints are what apt-get wrote as it failed.
func (c *Call) complaints(err error) []string {
	var t *toolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &t) && t.msg != "":
		return []string{t.msg}
	}
	return []string{err.Error()}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
