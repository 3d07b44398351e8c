package modules

import (
	"cmp"
	"strings"
)

// addPkgVersions adds the comparison of versions of packages: -1, 0 or 1. Source: Salt documentation, aptpkg.version_cmp.
func addPkgVersions(s table) {
	s.add("pkg.version_cmp", "pkg1 pkg2 ignore_epoch? **", func(c *call) (any, error) {
		a, b := c.str("pkg1", ""), c.str("pkg2", "")
		if c.boolean("ignore_epoch", false) {
			a, b = a[strings.IndexByte(a, ':')+1:], b[strings.IndexByte(b, ':')+1:]
		}
		return int64(compareVersions(a, b)), nil
	})
}

// compareVersions orders two versions as dpkg does: by epoch, upstream version, revision. Source: deb-version(7).
func compareVersions(a, b string) int {
	ea, ua, ra := splitVersion(a)
	eb, ub, rb := splitVersion(b)
	return cmp.Or(comparePart(ea, eb), comparePart(ua, ub), comparePart(ra, rb))
}

func splitVersion(v string) (epoch, upstream, revision string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// comparePart compares non-digits, letter by letter, and numbers in turn.
func comparePart(a, b string) int {
	for a != "" || b != "" {
		for a != "" && !digit(a[0]) || b != "" && !digit(b[0]) {
			if x := cmp.Compare(rank(a), rank(b)); x != 0 {
				return x
			}
			a, b = a[1:], b[1:]
		}
		var x, y string
		x, a = number(a)
		y, b = number(b)
		if r := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); r != 0 {
			return r
		}
	}
	return 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// rank returns the weight of the first letter: a tilde comes before the end, the end and digits before letters, letters before
// everything else.
func rank(s string) int {
	switch {
	case s == "" || digit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z':
		return int(s[0])
	}
	return int(s[0]) + 256
}

// number splits off the leading digits, and returns them without leading zeros.
func number(s string) (n, rest string) {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
