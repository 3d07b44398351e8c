package python

import (
	"regexp"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// requirement is what pip is asked for. Source: PyPA specifications, "Dependency specifiers" (PEP 508).
type requirement struct {
	text string // as it was given
	name string // as pip compares it; "" for an address or a file, of which only pip can tell what it is
	// versions are the conditions of its version: ">=1.0,<2"; "" is any.
	versions string
}

// parseRequirement reads one. complaint is Salt's, "" if there is none.
func parseRequirement(text string) (r requirement, complaint string) {
	r.text = text
	if name, _, ok := strings.Cut(text, " @ "); ok && !strings.Contains(name, "://") {
		r.name = distName(strings.TrimSpace(name))
		return r, ""
	}
	if strings.ContainsAny(text, "/\\") || strings.HasPrefix(text, ".") || pipFile(text) {
		return r, ""
	}
	m := requirementForm().FindStringSubmatch(text)
	if m == nil && strings.Contains(text, "=") && !strings.Contains(text, "==") {
		return r, "Invalid version specification in package " + text + ". '=' is not supported, use '==' instead."
	}
	if m == nil {
		return r, "pip raised an exception while parsing '" + text + "': Invalid requirement: '" + text + "'"
	}
	r.name, r.versions = distName(m[1]), strings.TrimSpace(m[2])
	return r, ""
}

// requirementForm returns a name, extras, conditions, which parentheses may enclose, and a marker.
func requirementForm() *regexp.Regexp {
	const one = `(?:~=|===|==|!=|<=|>=|<|>)\s*[^\s,;()=<>]*`
	return regexp.MustCompile(`^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*\(?\s*((?:` + one + `(?:\s*,\s*` + one + `)*)?)\s*\)?\s*(?:;.*)?$`)
}

// pipFile reports whether a name is that of a file which pip installs.
func pipFile(name string) bool {
	for _, end := range []string{".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return true
		}
	}
	return false
}

// metBy reports whether a version is one of those that are asked for (PEP 440); one that is not of its form is for pip to judge.
func (r requirement) metBy(version string) bool {
	if r.versions == "" {
		return true
	}
	if name, ok := strings.CutPrefix(r.versions, "==="); ok { // letter by letter
		return strings.TrimSpace(name) == version
	}
	v, err := pep440.Parse(version)
	if err != nil {
		return strings.TrimSpace(strings.TrimPrefix(r.versions, "==")) == version
	}
	early := r.namesPreRelease()
	if v.IsPreRelease() && !early {
		return false
	}
	s, err := pep440.NewSpecifiers(r.versions, pep440.WithPreRelease(early))
	return err == nil && s.Check(v)
}

// namesPreRelease reports whether a condition is about a release before the final one: only then are such met.
func (r requirement) namesPreRelease() bool {
	for cond := range strings.SplitSeq(r.versions, ",") {
		cond = strings.TrimSpace(cond)
		if strings.HasPrefix(cond, "!=") {
			continue
		}
		if v, err := pep440.Parse(strings.TrimLeft(cond, "~=<>! ")); err == nil && v.IsPreRelease() {
			return true
		}
	}
	return false
}
