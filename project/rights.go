package project

import "corpus-git/internal/fault"

// Right is what a key may do with one project. Each right stands alone but Admin, which has them all.
// The zero value is no right.
type Right string

const (
	// Read is to clone and fetch the code, and read its records and logs.
	Read Right = "read"
	// Deploy is to push the code, redeploy, roll back, run tasks, cancel. Implies Read. A rollback that moves the pillar
	// takes Configure too.
	Deploy Right = "deploy"
	// Configure is to read and push the pillar, read cfg.
	Configure Right = "configure"
	// Admin is everything of the project, its access included.
	Admin Right = "admin"
)

// ParseRight validates what a person typed.
func ParseRight(s string) (Right, error) {
	switch r := Right(s); r {
	case Read, Deploy, Configure, Admin:
		return r, nil
	}
	return "", fault.New(fault.Usage, "right", "%q is not a right", s).WithHint("a right is one of: read, deploy, configure, admin")
}

// Grants reports whether holding r allows want.
func (r Right) Grants(want Right) bool {
	switch r {
	case Admin:
		return want != ""
	case Deploy:
		return want == Deploy || want == Read
	case Read, Configure:
		return want == r
	}
	return false
}
