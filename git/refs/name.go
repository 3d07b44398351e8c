package refs

import (
	"fmt"
	"strings"

	"corpus-git/internal/printable"
)

const (
	// MaxName is the longest name that may be created, in bytes: with the repository's path it must fit in 4,095 (PATH_MAX).
	MaxName = 2048
	// maxPart leaves room for ".lock" in a file name of 255 bytes.
	maxPart = 250
)

// NameError reports which rule of git-check-ref-format(1) a name breaks.
type NameError struct{ Name, Rule string }

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is not a valid ref name: %s", printable.Shorten(e.Name, 200), e.Rule)
}

// CheckName reports whether a ref of this name may be created: "refs/", at least two components more, and the rules of
// git-check-ref-format(1). The error is a *NameError.
func CheckName(name string) error {
	bad := func(format string, args ...any) error { return &NameError{name, fmt.Sprintf(format, args...)} }
	rest, ok := strings.CutPrefix(name, "refs/")
	switch {
	case !ok:
		return bad("it does not begin with refs/")
	case !strings.Contains(rest, "/"):
		return bad("it has no kind: refs/heads/… is a branch, refs/tags/… a tag")
	case len(name) > MaxName:
		return bad("it is longer than %d bytes", MaxName)
	}
	return checkFormat(name, bad)
}

// checkFormat checks the rules for any ref, including HEAD.
func checkFormat(name string, bad func(string, ...any) error) error {
	for i := range len(name) {
		switch c := name[i]; {
		case c < 0x20 || c == 0x7f:
			return bad("it holds a control character")
		case strings.IndexByte(" ~^:?*[\\", c) >= 0:
			return bad("it holds %q", c)
		}
	}
	switch {
	case strings.Contains(name, ".."):
		return bad("it holds \"..\"")
	case strings.Contains(name, "@{"):
		return bad("it holds \"@{\"")
	case strings.HasSuffix(name, "."):
		return bad("it ends in a dot")
	case name == "@":
		return bad("it is \"@\"")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return bad("it has an empty part")
		case part[0] == '.':
			return bad("a part begins with a dot")
		case strings.HasSuffix(part, ".lock"):
			return bad("a part ends in .lock")
		case len(part) > maxPart:
			return bad("a part is longer than %d bytes", maxPart)
		}
	}
	return nil
}

// wellFormed reports whether a name is safe as a path below the repository: what CheckName accepts, and refs of one component (refs/stash).
func wellFormed(name string) bool {
	return strings.HasPrefix(name, "refs/") && checkFormat(name, func(string, ...any) error { return errName }) == nil
}

// folderFormed reports whether a folder of refs may have a name.
func folderFormed(name string) bool { return wellFormed(name + "/x") }

var errName = fmt.Errorf("no valid name")
