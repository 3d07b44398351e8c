package project

import "corpus-git/internal/fault"

// Right is a permission on one project. Permissions are independent, except that Admin includes all, and Deploy includes Read. The zero
// value is none.
type Right string

const (
	// Read allows to clone and fetch the code, and to read records and logs.
	Read Right = "read"
	// Deploy allows to push the code, redeploy, roll back, run tasks and cancel. Implies Read. A rollback that moves the pillar needs
	// Configure too.
	Deploy Right = "deploy"
	// Configure allows to read and push the pillar, and to read cfg.
	Configure Right = "configure"
	// Shell allows to run commands as the project's user on a terminal, where the server allows it. Implies Read.
	Shell Right = "shell"
	// Approve allows to approve what others want to deploy, where the server demands that. Implies Read; Deploy does not imply it.
	Approve Right = "approve"
	// Admin allows everything on the project, including access to it.
	Admin Right = "admin"
)

// ParseRight validates what a person typed.
func ParseRight(s string) (Right, error) {
	switch r := Right(s); r {
	case Read, Deploy, Configure, Shell, Approve, Admin:
		return r, nil
	}
	return "", fault.New(fault.Usage, "right", "%q is not a right", s).WithHint("a right is one of: read, deploy, configure, shell, approve, admin")
}

// Grants reports whether holding r allows want.
func (r Right) Grants(want Right) bool {
	switch r {
	case Admin:
		return want != ""
	case Deploy:
		return want == Deploy || want == Read
	case Shell, Approve:
		return want == r || want == Read
	case Read, Configure:
		return want == r
	}
	return false
}
