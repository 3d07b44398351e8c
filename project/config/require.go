package config

import (
	"time"

	"corpus-git/project/demands"
)

// Require says what deployments must satisfy. The operator sets it: nothing that is pushed can remove it.
type Require struct {
	SignedPush     []string      `key:"signed_push" help:"Where pushes must be signed (git push --signed) to be deployed: environments, or ENVIRONMENT/PROJECT, where * matches any: prod, */shop. A class (dev, staging, prod) covers all its environments."`
	SignedCommits  []string      `key:"signed_commits" help:"Where the deployed commit, or its pushed tag, must be signed."`
	Approvals      []string      `key:"approvals" help:"Where deployments need approval by others, and how many: prod=1, */shop=2. Entries with a project take precedence, otherwise the highest number applies. Without a number it is 1."`
	ApprovalTime   time.Duration `key:"approval_expires" default:"24h" min:"1" help:"How long a deployment waits for approval."`
	AllowedSigners string        `key:"allowed_signers" default:"" help:"A file of keys that may sign for every project, in the format of ssh-keygen's allowed_signers, in addition to the keys of this server's users. It is read for each signature."`
	GPGHome        string        `key:"gpg_home" default:"" help:"A gpg home directory whose keys may sign for every project; empty turns OpenPGP signatures off."`
}

// Policy returns what is demanded, and where.
func (r Require) Policy() (demands.Policy, error) {
	return demands.ParsePolicy(r.SignedPush, r.SignedCommits, r.Approvals)
}
