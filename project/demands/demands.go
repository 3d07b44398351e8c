// Package demands defines what a server demands of deployments before they begin, and the signatures that satisfy these demands: the types, and the syntax in
// which an operator writes where a demand applies.
//
// It verifies nothing and knows no project. It imports no other room: package project uses its types in the facts of deployments.
package demands

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Signature is a signature that was verified.
type Signature struct {
	// Of says what was signed: OfPush or OfCommit.
	Of string `json:"of"`
	// Kind is "ssh" or "openpgp".
	Kind string `json:"kind"`
	// Signer is the principal that owns the key, or the signer named by the file of allowed signers or the OpenPGP key.
	Signer string `json:"signer"`
	// Key is the fingerprint of the key: SHA256:… of an SSH key, 40 or 64 hexadecimal digits of an OpenPGP key.
	Key string `json:"key"`
	// Object is the name of the commit, or of its tag.
	Object string `json:"object,omitempty"`
	// Certificate is the text of a push certificate, as git sent it; secrets set by push options are replaced.
	Certificate string `json:"certificate,omitempty"`
}

// The values of Signature.Of.
const (
	OfPush   = "push"
	OfCommit = "commit"
)

// String describes a signature in one line: "push by marie, ssh SHA256:…".
func (s Signature) String() string {
	return fmt.Sprintf("%s by %s, %s %s", s.Of, s.Signer, s.Kind, s.Key)
}

// Approval says how a deployment that needs the approval of others was approved.
type Approval struct {
	// Request is the ID of the request: that of the deployment whose plan was approved. RequestedBy is who requested it, By who approved.
	Request     string   `json:"request"`
	RequestedBy string   `json:"requested_by"`
	By          []string `json:"by"`
	// Plan is the SHA-256 of the plan that was approved.
	Plan string `json:"plan"`
	// BreakGlass is why an administrator deployed it without approval, "" if nobody did.
	BreakGlass string `json:"break_glass,omitempty"`
}

// Waiting is the prefix of the reason of a deployment that waits for approval; the ID of the request follows.
const Waiting = "waiting for approval: "

// Demands are the conditions that a deployment must satisfy. The zero value demands nothing.
type Demands struct {
	// SignedPush: the push has a certificate. SignedCommits: the commit, or its tag that was pushed, is signed.
	SignedPush, SignedCommits bool
	// Approvals is the number of approvals needed from others.
	Approvals int
}

// Scope is where a demand applies: an environment and a project, * for any.
type Scope struct{ Environment, Project string }

var scopeForm = regexp.MustCompile(`^(\*|[a-z][a-z0-9_-]{0,31})(/(\*|[a-z0-9][a-z0-9_.-]{0,63}))?$`)

// ParseScope reads ENVIRONMENT or ENVIRONMENT/PROJECT.
func ParseScope(s string) (Scope, error) {
	if !scopeForm.MatchString(s) {
		return Scope{}, fmt.Errorf("%.60q is not ENVIRONMENT or ENVIRONMENT/PROJECT: such as prod, */shop or *", s)
	}
	env, name, ok := strings.Cut(s, "/")
	if !ok {
		name = "*"
	}
	return Scope{env, name}, nil
}

// Has reports whether the scope includes a project that is in one of some environments.
func (s Scope) Has(environments []string, name string) bool {
	if s.Project != "*" && s.Project != name {
		return false
	}
	for _, e := range environments {
		if s.Environment == "*" || s.Environment == e {
			return true
		}
	}
	return s.Environment == "*"
}

// Policy says which demands apply where.
type Policy struct {
	push, commits []Scope
	approvals     []count
}

type count struct {
	Scope
	n int
}

// maxApprovals limits the number of approvals: a larger one is probably a typo.
const maxApprovals = 10

// ParsePolicy reads the lists of a configuration: scopes, and for approvals SCOPE=N, where a scope alone means 1.
func ParsePolicy(push, commits, approvals []string) (p Policy, err error) {
	scopes := func(key string, list []string) (out []Scope) {
		for _, item := range list {
			s, e := ParseScope(item)
			if e != nil && err == nil {
				err = fmt.Errorf("%s: %w", key, e)
			}
			out = append(out, s)
		}
		return out
	}
	p.push, p.commits = scopes("require.signed_push", push), scopes("require.signed_commits", commits)
	for _, item := range approvals {
		scope, digits, has := strings.Cut(item, "=")
		c := count{n: 1}
		if has {
			if c.n, err = parseCount(digits, err); err != nil {
				return Policy{}, err
			}
		}
		c.Scope = scopes("require.approvals", []string{scope})[0]
		p.approvals = append(p.approvals, c)
	}
	return p, err
}

func parseCount(s string, err error) (int, error) {
	n, e := strconv.Atoi(s)
	if err == nil && (e != nil || n < 0 || n > maxApprovals) {
		err = fmt.Errorf("require.approvals: %.20q is not a number from 0 to %d", s, maxApprovals)
	}
	return n, err
}

// Of returns the demands on a project in some environments: those that it had, has and would have. The strictest demand counts, except that for approvals a scope
// that names the project wins over one that does not.
func (p Policy) Of(environments []string, name string) Demands {
	has := func(list []Scope) bool {
		for _, s := range list {
			if s.Has(environments, name) {
				return true
			}
		}
		return false
	}
	d := Demands{SignedPush: has(p.push), SignedCommits: has(p.commits)}
	named := false
	for _, c := range p.approvals {
		switch own := c.Project != "*"; {
		case !c.Has(environments, name) || named && !own:
		case own && !named:
			named, d.Approvals = true, c.n
		default:
			d.Approvals = max(d.Approvals, c.n)
		}
	}
	return d
}
