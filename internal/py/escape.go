package py

import "strings"

// ReEscape returns re.escape(s): a pattern that matches s and nothing else. Source: Python documentation, re.
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
