package saltyaml

import (
	"regexp"
	"strings"
)

var (
	versionDirective = regexp.MustCompile(`^%YAML[ \t]+(\d+\.\d+)[ \t]*(?:#.*)?$`)
	tagDirective     = regexp.MustCompile(`^%TAG[ \t]+(!\w*!?)[ \t]+\S`)
)

// badDirective finds the directive that libyaml refuses: a version other than 1.1 and 1.2, or one that occurs twice before
// a document. line is 0 if there is none. The parser here names the line of the document, or what comes before.
func badDirective(text string) (msg string, line int) {
	head, version, tags := true, false, map[string]bool{}
	for n, l := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		l = strings.TrimRight(l, "\r")
		trimmed := strings.TrimLeft(l, " \t")
		switch {
		case l == "..." || strings.HasPrefix(l, "... "):
			head, version, tags = true, false, map[string]bool{}
		case !head || trimmed == "" || trimmed[0] == '#':
		case l[0] != '%':
			head = false
		default:
			if m := versionDirective.FindStringSubmatch(l); m != nil {
				if version {
					return "found duplicate %YAML directive", n + 1
				}
				if version = true; m[1] != "1.1" && m[1] != "1.2" {
					return "found incompatible YAML document", n + 1
				}
			} else if m := tagDirective.FindStringSubmatch(l); m != nil {
				if tags[m[1]] {
					return "found duplicate %TAG directive", n + 1
				}
				tags[m[1]] = true
			}
		}
	}
	return "", 0
}
