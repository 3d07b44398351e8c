package pkg

import (
	"path"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// conditions returns the conditions of a version: [operator, version] pairs, all of which must hold.
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

// satisfies reports whether a version is what is requested. With newer, a later version than the requested one is sufficient if
// only that one is requested.
func satisfies(c *core.Call, have, want string, newer bool) bool {
	verb := map[string]string{"==": "eq", "=": "eq", "!=": "ne", "<>": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt"}
	conds := conditions(want)
	for _, cond := range conds {
		op, v := verb[cond[0]], cond[1]
		if newer && len(conds) == 1 && op == "eq" {
			op = "ge"
		}
		if op == "eq" {
			if ok, err := path.Match(v, have); err == nil && ok {
				continue
			}
		}
		a, b := have, v
		if epochIgnored(c, op, v) {
			a, b = withoutEpoch(a), withoutEpoch(b)
		}
		if !(a == b && (op == "eq" || op == "ge" || op == "le")) && !older(c, a, op, b) {
			return false
		}
	}
	return true
}

// epochIgnored reports whether versions are compared without their epochs. If ignore_epoch is not set, they are if equality
// with a version without an epoch is requested. Source: Salt documentation, pkg.installed, ignore_epoch.
func epochIgnored(c *core.Call, op, want string) bool {
	if v, ok := c.Value("ignore_epoch"); ok {
		return py.Truth(v)
	}
	return (op == "eq" || op == "ne") && !strings.Contains(want, ":")
}

func withoutEpoch(v string) string {
	if _, rest, ok := strings.Cut(v, ":"); ok {
		return rest
	}
	return v
}

// older compares two versions as dpkg does; op is an operator of dpkg --compare-versions.
func older(c *core.Call, a, op, b string) bool {
	_, err := c.Query("dpkg", "--compare-versions", a, op, b)
	return err == nil
}
