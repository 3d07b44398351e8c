package py

import "strings"

// ReEscape is re.escape: a pattern that matches s and nothing else. Source: Python documentation, re.
func ReEscape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
