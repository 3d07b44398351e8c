package remote

import (
	"bufio"
	"fmt"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// errorMark and hintMark begin the lines by which a corpus-git says why it ended.
const (
	errorMark = "error: "
	hintMark  = "hint: "
)

// Reported returns the error that a corpus-git printed before it ended with an exit status: its first "error:" and "hint:" lines, or
// otherwise its first line. where is the machine, "" for this one.
func Reported(where string, code int, text string) error {
	var first, other, hint string
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if s, ok := strings.CutPrefix(line, errorMark); ok && first == "" {
			first = s
		} else if s, ok := strings.CutPrefix(line, hintMark); ok && hint == "" {
			hint = s
		} else if other == "" {
			other = line
		}
	}
	if first == "" {
		first = other
	}
	if first == "" {
		first = fmt.Sprintf("corpus-git ended with status %d and said nothing", code)
	}
	on := ""
	if where != "" {
		on = "on " + printable.Text(where) + ": "
	}
	e := fault.New(kindOf(code), "", "%s%s", on, printable.Text(first))
	if hint != "" {
		e = e.WithHint("%s%s", on, printable.Text(hint))
	}
	return e
}

// kindOf returns the kind for an exit status of corpus-git.
func kindOf(code int) fault.Kind {
	for _, k := range []fault.Kind{fault.Usage, fault.Refused, fault.Busy, fault.Failed} {
		if k.ExitCode() == code {
			return k
		}
	}
	return fault.Failed
}
