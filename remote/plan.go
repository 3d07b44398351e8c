package remote

import (
	"cmp"
	"context"
	"runtime"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// PlanRequest asks whether a deployment would begin, and changes nothing.
type PlanRequest struct {
	Project project.Name `json:"project"`
	// Live is the commit from which Bytes and Files were counted: what the checkout would write.
	Live  project.Commit `json:"live,omitempty"`
	Bytes int64          `json:"bytes,omitempty"`
	Files int            `json:"files,omitempty"`
	// Lease is bundle.Manifest.Lease; 0 means that there is none yet, so that it would be newer.
	Lease int64 `json:"lease,omitempty"`
}

// Planned is the response to a PlanRequest. What keeps the deployment from beginning is the error of the request.
type Planned struct {
	// Live is the commit that is live there, "" for none. If it is not that of the request, space was not looked at: ask again.
	Live project.Commit `json:"live,omitempty"`
	// Running is the ID of the deployment that runs in the project there, "" for none.
	Running project.ID `json:"running,omitempty"`
	// Note says what the deployment would do first to have enough space, "" for nothing.
	Note string `json:"note,omitempty"`
}

// unknownRequest is the text of the error for a request that a release does not know.
const unknownRequest = "an unknown request"

// ErrNotAsked means that the machine is reached and its release of corpus-git can't be asked.
var ErrNotAsked = fault.New(fault.Refused, "", "its release of corpus-git cannot be asked before a deployment")

// Look begins a session as Open does, but changes nothing there: no program is installed, no key trusted, no state made. absent says what is missing there, "" for nothing: then
// the session has begun, and Plan may be called. A machine that the program is not for is the error that Open returns.
func (n *Node) Look(ctx context.Context) (absent string, err error) {
	n.tips, n.looks = nil, true
	if n.Dial != nil {
		n.conn, err = n.attach(ctx)
		return "", err
	}
	if n.conn = n.resume(ctx); n.conn != nil {
		return "", nil
	}
	c, missing, err := n.start(ctx)
	switch {
	case err != nil:
		return "", err
	case missing != "":
		return "the program, which is copied there first", n.Release.fits(n.Host, missing)
	case n.Hello.New:
		_ = c.end() // it has nothing more to say
		return "any deployment", nil
	}
	n.conn = c
	return "", nil
}

// fits refuses a machine that a program is not for. on is the output of uname -s and -m there.
func (r Release) fits(h *Host, on string) error {
	if arch := cmp.Or(r.Arch, runtime.GOARCH); !runsOn(arch, on) {
		return fault.New(fault.Refused, "", "%s is %s, and this program is for Linux %s", printable.Text(h.Target), printable.Text(on), machine(arch)).
			WithHint("remote deploy --program FILE  copies a corpus-git for that machine; on a node, install one and join it:  corpus-git node token NAME")
	}
	return nil
}

// Plan asks in the session whether a deployment would begin. ErrNotAsked is that of a machine of an older release.
func (n *Node) Plan(ctx context.Context, q PlanRequest) (Planned, error) {
	f, err := n.ask(ctx, Request{Plan: &q})
	switch {
	case f.Error != nil && f.Error.Text == unknownRequest:
		return Planned{}, ErrNotAsked
	case err != nil:
		return Planned{}, err
	case f.Planned == nil:
		return Planned{}, fault.New(fault.Failed, "", "on %s: corpus-git gave no answer", printable.Text(n.Host.Target))
	}
	return *f.Planned, nil
}
