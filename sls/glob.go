package sls

import (
	"path"
	"strings"
)

// Glob is Python's fnmatch, with which Salt matches names: * and ? also match dots and slashes.
func Glob(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == s
	}
	// path.Match stops at slashes only, so they are replaced by another character first.
	swap := func(x string) string { return strings.ReplaceAll(x, "/", "\x00") }
	pattern = strings.ReplaceAll(pattern, "[!", "[^")
	ok, err := path.Match(swap(pattern), swap(s))
	return err == nil && ok
}
