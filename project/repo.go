package project

import (
	"fmt"
	"strings"
)

// Repo names one of a project's two repositories.
type Repo string

const (
	// Code is project.git: the code and the deployment recipe.
	Code Repo = "project"
	// PillarRepo is pillar.git: the private configuration.
	PillarRepo Repo = "pillar"
)

// Commit is the name of a commit, 40 lower-case hexadecimal digits, or "" for none.
type Commit string

// ZeroCommit is how git writes "none" on the wire.
const ZeroCommit = "0000000000000000000000000000000000000000"

// Short returns the first seven digits, or "none".
func (c Commit) Short() string {
	if c == "" {
		return "none"
	}
	if len(c) < 7 {
		return string(c)
	}
	return string(c[:7])
}

// ParseCommit accepts exactly 40 hexadecimal digits; the all-zero name is "".
func ParseCommit(s string) (Commit, bool) {
	if len(s) != 40 {
		return "", false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	if s == ZeroCommit {
		return "", true
	}
	return Commit(s), true
}

// Change is one proposed ref update. Old "" means create, New "" means delete.
type Change struct {
	Ref string `json:"ref"`
	Old Commit `json:"old,omitempty"`
	New Commit `json:"new,omitempty"`
}

// Branch returns the short name of a branch ref; ok is false for any other ref.
func (c Change) Branch() (name string, ok bool) { return strings.CutPrefix(c.Ref, "refs/heads/") }

// MovedBeside returns the message that the branch of a repository is at a commit that no deployment
// moved it to.
func MovedBeside(repo Repo, branch, live Commit) string {
	at, is := "is at "+branch.Short()+", which was not deployed", live.Short()+" is live"
	if branch == "" {
		at = "is gone"
	}
	if live == "" {
		is = "it has no live release"
	}
	return fmt.Sprintf("the branch of %s.git %s: it was moved beside the server; %s", repo, at, is)
}
