package project

import (
	"regexp"

	"corpus-git/internal/fault"
)

// Name is a validated project name: safe as one path element, as one element of a
// dotted SLS name, as the prefix of a user name (<name>-user, at most 32 bytes, the limit of
// useradd(8)) and in a URL. The zero value is not a project.
type Name string

// MaxName is the longest name, in bytes: "-group" must still fit into 32.
const MaxName = 26

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// ParseName validates s. An error is the user's fault (fault.Usage) and states the rule.
func ParseName(s string) (Name, error) {
	if len(s) > MaxName || !nameForm.MatchString(s) {
		return "", fault.New(fault.Usage, "project name", "%q is not a valid project name", s).
			WithHint("a name is 1 to %d of a-z 0-9 - _ and starts with a letter", MaxName)
	}
	return Name(s), nil
}

// String returns the name itself.
func (n Name) String() string { return string(n) }

// User returns the default system user of the project.
func (n Name) User() string { return string(n) + "-user" }

// Group returns the default system group of the project.
func (n Name) Group() string { return string(n) + "-grp" }
