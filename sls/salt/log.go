package salt

import (
	"regexp"
	"strings"
)

var (
	logLine   = regexp.MustCompile(`^\[(\w+)\s*\] ?(.*)$`)
	executing = regexp.MustCompile(`^Executing state (\S+) for \[`)
)

// saltLog keeps what is relevant to a pusher in Salt's log: which function runs, warnings and errors.
func saltLog(l string) string {
	m := logLine.FindStringSubmatch(strings.TrimSpace(l))
	if m == nil {
		return l
	}
	switch m[1] {
	case "WARNING", "ERROR", "CRITICAL":
		return strings.ToLower(m[1]) + ": " + m[2]
	case "INFO":
		if executing.MatchString(m[2]) {
			return strings.TrimPrefix(m[2], "Executing state ")
		}
	}
	return ""
}
