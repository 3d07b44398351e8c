package project

import "corpus-git/internal/fault"

// Right is a permission on one project. Permissions are independent, except that Admin includes all, and Deploy includes Read. The zero
// value is none.
type Right string

const (
	// Read allows cloning and fetching the code, and reading records and logs.
	Read Right = "read"
	// Deploy allows pushing the code, redeploying, rolling back, running tasks and cancelling. Implies Read. A rollback that moves the
	// pillar needs Configure too.
	Deploy Right = "deploy"
	// Configure allows reading and pushing the pillar, and reading cfg.
	Configure Right = "configure"
	// Shell allows running commands as the project's user on a terminal, if the server allows it. Implies Read.
	Shell Right = "shell"
	// Approve allows approving the deployments of others, if the server demands approval. Implies Read; Deploy does not imply it.
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
