// Package demands has what a server demands of deployments before they begin, and the signatures that satisfy it: types, and the form in which an operator
// writes where a demand holds.
//
// It verifies nothing and knows no project. It is a leaf: package project has its types in the facts of deployments.
package demands

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Signature is one that was verified.
type Signature struct {
	// Of is what was signed: OfPush or OfCommit.
	Of string `json:"of"`
	// Kind is "ssh" or "openpgp".
	Kind string `json:"kind"`
	// Signer is the principal whose key it is, or who the file of allowed signers, or the OpenPGP key, says.
	Signer string `json:"signer"`
	// Key is the fingerprint of the key: SHA256:… of an SSH key, 40 or 64 hexadecimal digits of an OpenPGP key.
	Key string `json:"key"`
	// Object is the name of the commit, or of the tag of it.
	Object string `json:"object,omitempty"`
	// Certificate is the text of a push certificate, as git sent it; secrets that options of the push set are replaced.
	Certificate string `json:"certificate,omitempty"`
}

// The values of Signature.Of.
const (
	OfPush   = "push"
	OfCommit = "commit"
)

// String names a signature in a line: "push by marie, ssh SHA256:…".
func (s Signature) String() string {
	return fmt.Sprintf("%s by %s, %s %s", s.Of, s.Signer, s.Kind, s.Key)
}

// Approval is how a deployment came to be allowed that others must approve.
type Approval struct {
	// Request is the ID of the request: of the deployment whose plan was approved. RequestedBy is who asked for it, By who approved.
	Request     string   `json:"request"`
	RequestedBy string   `json:"requested_by"`
	By          []string `json:"by"`
	// Plan is the SHA-256 of the plan that was approved.
	Plan string `json:"plan"`
	// BreakGlass is why an administrator deployed it without others, "" if nobody did.
	BreakGlass string `json:"break_glass,omitempty"`
}

// Waiting begins the reason of a deployment that waits for approval; the ID of the request follows.
const Waiting = "waiting for approval: "

// Demands are what a deployment must satisfy. The zero value demands nothing.
type Demands struct {
	// SignedPush: the push has a certificate. SignedCommits: the commit, or the tag that was pushed of it, is signed.
	SignedPush, SignedCommits bool
	// Approvals is how many others must approve.
	Approvals int
}

// Scope is where a demand holds: an environment and a project, * for any.
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

// Has reports whether a project in one of some environments is in the scope.
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

// Policy is where what is demanded.
type Policy struct {
	push, commits []Scope
	approvals     []count
}

type count struct {
	Scope
	n int
}

// maxApprovals limits the number of approvals: a larger one is a typing error.
const maxApprovals = 10

// ParsePolicy reads the lists of a configuration: scopes, and for approvals SCOPE=N, of which a scope alone means 1.
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

// Of returns the demands on a project in some environments: those that it had, has and would have. The strictest counts, but of approvals the scope that names the
// project wins over one that does not.
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
