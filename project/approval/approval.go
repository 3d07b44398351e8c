// Package approval defines the types of deployments that wait for the approval of others: what is requested, who approved, and what the approval is
// bound to.
//
// It decides nothing, and stores nothing; package pipeline/approvals does both.
package approval

import (
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/demands"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"
)

// State is the state of a request.
type State string

// The states of a request. Open is the only one that is not final.
const (
	Open State = "open"
	// Deployed: a deployment of it began, whatever its result.
	Deployed State = "deployed"
	Rejected State = "rejected"
	Expired  State = "expired"
	// Void: what would be deployed is no longer what was approved, or the requester no longer has the permission.
	Void State = "void"
)

// Request is a deployment that waits for approval. Its ID is that of the deployment whose plan was shown.
type Request struct {
	ID      project.ID   `json:"id"`
	Project project.Name `json:"project"`
	At      time.Time    `json:"at"`
	Expires time.Time    `json:"expires"`
	// Need is the number of approvals that it needs.
	Need int `json:"need"`
	// Plan is the SHA-256 of the plan that was shown.
	Plan string `json:"plan"`
	// Deployment holds the facts of what is to be deployed, and what was live.
	Deployment Facts `json:"deployment"`
	// Basis is what the deployment depends on besides the commits. It is never shown.
	Basis Basis `json:"-"`
	State State `json:"state"`
	// Reason is why it ended without a deployment, By is who ended it, Ended is when.
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	Ended  time.Time `json:"ended,omitzero"`
	// Result is the deployment that it led to.
	Result project.ID `json:"result,omitempty"`
	Votes  []Vote     `json:"votes,omitempty"`
}

// Basis holds digests of what a deployment depends on and its plan need not show: the plan only names an executable. They are stored and compared, but
// never shown: somebody who can guess at a configuration could use them to confirm the guess.
type Basis struct {
	// Recipe is the digest of .salt with the recipes below it, Others the digest of the other projects' recipes that it includes.
	Recipe string `json:"recipe,omitempty"`
	Others string `json:"others,omitempty"`
	// Cfg is the digest of the configuration and the compiled pillar. Keys (cfg.kv) may change at any time, and are not included.
	Cfg string `json:"cfg,omitempty"`
	// Machine is its minion_id and fqdn, if steps run there, and Root where its projects are. Neither is secret.
	Machine string `json:"machine,omitempty"`
	Root    string `json:"root,omitempty"`
	// Live is the digest of the tracked files of the live trees that were changed on the machine.
	Live string `json:"live,omitempty"`
}

// differs names what differs, "" if nothing does.
func (b Basis) differs(now Basis) string {
	var out []string
	if b.Root == "" { // requested at an earlier release, which compared it with the configuration
		b.Root, b.Machine = now.Root, now.Machine
	}
	if b.Root != now.Root { // paths in the configuration are different, too
		b.Cfg = now.Cfg
	}
	for _, x := range []struct{ was, now, what string }{
		{b.Recipe, now.Recipe, "a recipe that it extends"}, {b.Others, now.Others, "a recipe that it includes"}, {b.Cfg, now.Cfg, "the configuration of the machine"},
		{b.Machine, now.Machine, fmt.Sprintf("minion_id and fqdn of the machine (%s, now %s)", b.Machine, now.Machine)},
		{b.Root, now.Root, fmt.Sprintf("the root of the server (%s, now %s)", b.Root, now.Root)}, {b.Live, now.Live, "files of the live tree"},
	} {
		if x.was != x.now {
			out = append(out, x.what)
		}
	}
	return strings.Join(out, ", ")
}

// Facts are the facts of a deployment.
type Facts struct{ project.Deployment }

// Vote is the vote of one principal on a request.
type Vote struct {
	By project.Pusher `json:"by"`
	At time.Time      `json:"at"`
	// BreakGlass: an administrator deploys it without the approval of others, for Reason.
	BreakGlass bool   `json:"break_glass,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Document is printed by  approvals --json.
type Document struct {
	Version   int       `json:"version"`
	Approvals []Request `json:"approvals"`
}

// Decision is printed by  approve --json  and  reject --json.
type Decision struct {
	Version  int     `json:"version"`
	Approval Request `json:"approval"`
	// Deployment is the one that began, absent while more approvals are needed, and after a rejection.
	Deployment project.ID `json:"deployment,omitempty"`
}

// Closed returns the error for a request that is not open, nil if it is open.
func (r Request) Closed() error {
	if r.State == Open {
		return nil
	}
	why := string(r.State)
	if r.Reason != "" {
		why += ": " + r.Reason
	}
	if r.State == Deployed {
		why = "it was deployed, as " + r.Result.Short()
	}
	return fault.New(fault.Refused, "approve", "%s of %s is no longer waiting: %s", r.ID.Short(), r.Project, why).WithHint("push the commit again to request approval")
}

// Enough reports whether it has enough approvals to be deployed.
func (r Request) Enough() bool { return len(r.Votes) >= r.Need || r.Broken() != nil }

// Broken returns the vote that deploys it without the approval of others, nil if there is none.
func (r Request) Broken() *Vote {
	if i := slices.IndexFunc(r.Votes, func(v Vote) bool { return v.BreakGlass }); i >= 0 {
		return &r.Votes[i]
	}
	return nil
}

// Names returns the names of those who approved.
func (r Request) Names() (out []string) {
	for _, v := range r.Votes {
		out = append(out, v.By.Key)
	}
	return out
}

// Asks reports whether a deployment requests exactly the same: the same commits over the same live ones, with the same settings and options.
func (r Request) Asks(d project.Deployment) bool {
	x := r.Deployment
	same := func(a, b any) bool {
		p, err1 := json.Marshal(a)
		q, err2 := json.Marshal(b)
		return err1 == nil && err2 == nil && string(p) == string(q)
	}
	return x.Code == d.Code && x.Pillar == d.Pillar && x.LiveCode == d.LiveCode && x.LivePillar == d.LivePillar && same(x.Select, d.Select) && same(x.Set, d.Set) &&
		x.Overwrite == d.Overwrite && x.AllowEmpty == d.AllowEmpty && x.AllowMissing == d.AllowMissing && x.Resume == d.Resume && x.Job == d.Job && same(x.Nodes, d.Nodes)
}

// Changed returns why what a deployment would do differs from what was approved, "" if it does not: other commits, another live release, another
// basis, another plan.
func (r Request) Changed(d project.Deployment, plan string, basis Basis) string {
	x := r.Deployment
	switch {
	case x.LiveCode != d.LiveCode:
		return "since then " + d.LiveCode.Short() + " went live, for which it was not planned"
	case x.LivePillar != d.LivePillar:
		return "since then the pillar " + d.LivePillar.Short() + " went live, for which it was not planned"
	case x.Code != d.Code || x.Pillar != d.Pillar:
		return "the commits differ from the approved ones"
	case r.Basis != basis:
		return "since then there was a change of " + r.Basis.differs(basis)
	case plan != r.Plan:
		return "its plan has changed: the machine differs"
	}
	return ""
}

// Plan is the hash of a plan as it was shown. The zero value is not ready: see NewPlan.
type Plan struct{ h hash.Hash }

// NewPlan returns an empty hash of a plan.
func NewPlan() Plan { return Plan{sha256.New()} }

// Add adds an event. Only events that are part of a plan count, without their time and number.
func (p Plan) Add(e event.Event) {
	if e.Kind != event.Plan {
		return
	}
	for _, s := range append([]string{string(e.Status), e.Procedure, e.Step, e.Text}, e.Lines...) {
		p.h.Write([]byte(strings.ReplaceAll(s, "\x00", "") + "\x00"))
	}
	p.h.Write([]byte{0, 0})
}

// Sum returns the hash in hexadecimal.
func (p Plan) Sum() string { return hex.EncodeToString(p.h.Sum(nil)) }

// Waits returns what a pusher reads if the deployment waits.
func (r Request) Waits() error {
	d := r.Deployment
	return fault.New(fault.Refused, "", "%s%s: %d of %s, until %s", demands.Waiting, r.ID, len(r.Votes), humanize.Plural(r.Need, "approval", "approvals"), r.Expires.UTC().Format(time.RFC3339)).
		WithHint("somebody else with approve permission runs  corpus-git approve %s %s  or, with the commit,  git push prod %s:refs/deploy/now", d.Project, r.ID.Short(), r.Commit().Short())
}

// Commit returns the commit that the request would deploy.
func (r Request) Commit() project.Commit {
	if r.Deployment.Repo == project.PillarRepo {
		return r.Deployment.Pillar
	}
	return r.Deployment.Code
}

// Right returns the permission needed to request this deployment.
func (r Request) Right() project.Right {
	if r.Deployment.Repo == project.PillarRepo {
		return project.Configure
	}
	return project.Deploy
}
