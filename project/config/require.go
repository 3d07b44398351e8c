package config

import (
	"time"

	"corpus-git/project/demands"
)

// Require is what is demanded of what is deployed. It is the operator's: nothing that is pushed takes it away.
type Require struct {
	SignedPush     []string      `key:"signed_push" help:"Where a push must be signed (git push --signed) to be deployed: environments, or ENVIRONMENT/PROJECT, * being any: prod, */shop. A class (dev, staging, prod) stands for all its environments."`
	SignedCommits  []string      `key:"signed_commits" help:"Where the commit that is deployed, or the tag that is pushed of it, must be signed."`
	Approvals      []string      `key:"approvals" help:"Where others must approve what is deployed, and how many: prod=1, */shop=2. What names the project wins over what does not, else the most; a scope alone means 1."`
	ApprovalTime   time.Duration `key:"approval_expires" default:"24h" min:"1" help:"How long a deployment waits for approval."`
	AllowedSigners string        `key:"allowed_signers" default:"" help:"A file of keys that may sign for every project, in the form of ssh-keygen's allowed_signers, besides the keys of this server's users. It is read for each signature."`
	GPGHome        string        `key:"gpg_home" default:"" help:"The folder of a keyring of gpg, whose keys may sign for every project; empty verifies no OpenPGP signatures."`
}

// Policy is what is demanded where.
func (r Require) Policy() (demands.Policy, error) {
	return demands.ParsePolicy(r.SignedPush, r.SignedCommits, r.Approvals)
}
