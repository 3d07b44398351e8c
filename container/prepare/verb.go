package prepare

import (
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// VerbError returns the error of a command of the server that ended with an exit status other than 0, from what it printed: its kind, its message and its hint.
func VerbError(exit int, said string) error {
	kind := fault.Failed
	for _, k := range []fault.Kind{fault.Usage, fault.Refused, fault.Busy} {
		if k.ExitCode() == exit {
			kind = k
		}
	}
	var message []string
	hint := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "hint: "); ok {
			hint = text
		} else if line != "" {
			message = append(message, printable.Text(strings.TrimPrefix(line, "error: ")))
		}
	}
	return fault.New(kind, "", "%s", strings.Join(message, "; ")).WithHint("%s", printable.Text(hint))
}
