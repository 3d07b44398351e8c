package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"corpus-git/bundle"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// A session is the conversation of two corpus-git over the standard input and output of one command: requests, one after the other, and the
// frames of their responses, each a line of JSON. A request whose Apply is set is followed by a bundle, which contains its length. The last
// frame of a response has Done set.

// Request is one request.
type Request struct {
	// Trust is a public key whose bundles are to be deployed, as bundle.Signers.Trust takes it.
	Trust string `json:"trust,omitempty"`
	// Untrust are public keys whose bundles are not to be deployed any more, in a request with Trust. A machine of an older release ignores them.
	Untrust []string `json:"untrust,omitempty"`
	// Keys says which key the hub has, and which one will replace it, to an agent that dials in. A machine of an older release refuses it.
	Keys *bundle.Succession `json:"keys,omitempty"`
	// Hello requests the greeting again: what the machine says of itself may have changed since the session began. A machine of an older release refuses it.
	Hello bool `json:"hello,omitempty"`
	// Tips requests the commits of a project.
	Tips project.Name `json:"tips,omitempty"`
	// Apply means that a bundle follows.
	Apply *ApplyRequest `json:"apply,omitempty"`
	// Cancel cancels a running or waiting deployment, and responds when it has ended.
	Cancel *CancelRequest `json:"cancel,omitempty"`
	// Check runs the checks of a project; the response has a result.
	Check project.Name `json:"check,omitempty"`
	// Converge applies what is live again, or compares it; the response has a result. A machine of an older release refuses it.
	Converge *ConvergeRequest `json:"converge,omitempty"`
	// Plan asks whether a deployment would begin. A machine of an older release refuses it.
	Plan *PlanRequest `json:"plan,omitempty"`
	// Upgrade is followed by a program, as package bundle/program writes it: the machine runs it from now on, if it reaches the hub. The
	// response comes before it is run. This request has the same form in all versions of the protocol.
	Upgrade bool `json:"upgrade,omitempty"`
}

// CancelRequest names a deployment.
type CancelRequest struct {
	Project    project.Name `json:"project"`
	Deployment project.ID   `json:"deployment"`
	// Lease is bundle.Manifest.Lease.
	Lease int64 `json:"lease,omitempty"`
}

// ConvergeRequest describes a converge of what is live on the machine.
type ConvergeRequest struct {
	Project project.Name `json:"project"`
	// Deployment is the ID that it gets there, for a CancelRequest.
	Deployment project.ID          `json:"deployment"`
	Run        project.ConvergeRun `json:"run"`
	// Lease is bundle.Manifest.Lease.
	Lease int64 `json:"lease,omitempty"`
}

// ApplyRequest describes what to do with a bundle.
type ApplyRequest struct {
	// StoreOnly deploys nothing.
	StoreOnly bool `json:"store_only,omitempty"`
	// Hold begins the deployment, until its archive is made, where it waits until the same bundle is applied without Hold. The response
	// is sent when it waits; for a deployment that ended before, it has the result.
	Hold bool `json:"hold,omitempty"`
	// After skips the events up to this number.
	After uint64 `json:"after,omitempty"`
}

// Frame is one line of a response.
type Frame struct {
	// Hello is the first frame of a session, before any request, and part of the response to Request.Hello.
	Hello *Hello       `json:"hello,omitempty"`
	Tips  *bundle.Tips `json:"tips,omitempty"`
	Event *event.Event `json:"event,omitempty"`
	// Result is that of a deployment, and Exit the exit status that goes with it.
	Result  *project.Result `json:"result,omitempty"`
	Planned *Planned        `json:"planned,omitempty"`
	Exit    int             `json:"exit,omitempty"`
	Error   *Failure        `json:"error,omitempty"`
	Done    bool            `json:"done,omitempty"`
}

// Hello describes the responding machine.
type Hello struct {
	// Protocol is Protocol there.
	Protocol int `json:"protocol"`
	// Oldest is the oldest version that it also supports; 0 is Protocol.
	Oldest  int    `json:"oldest,omitempty"`
	Release string `json:"release"`
	// Program is the SHA-256 of the running program, in hexadecimal, and Failed why its last replacement failed; "" if it can't be
	// replaced.
	Program string `json:"program,omitempty"`
	Failed  string `json:"failed,omitempty"`
	// Process identifies this run of an agent that dials in, at random: two that are connected at once have the same key.
	Process string `json:"process,omitempty"`
	// Facts are grains of the machine, as text.
	Facts map[string]string `json:"facts,omitempty"`
	// HubKeys are the fingerprints of the keys by which an agent that dials in knows its hub: the present one, then the next one.
	HubKeys []string `json:"hub_keys,omitempty"`
	// New: nothing was ever deployed there, and the session ends, as it was to change nothing.
	New bool `json:"new,omitempty"`
	// HostKeys are the public keys of the machine's own ssh server, lines as in authorized_keys.
	HostKeys []string `json:"host_keys,omitempty"`
}

// Versions of sessions: a release supports its own and the previous one, so that a hub and its nodes can be upgraded one after the other.
const (
	// Protocol is the version of this release. 2 has Request.Upgrade, and leases.
	Protocol = 2
	// OldestProtocol is the oldest version that it supports.
	OldestProtocol = 1
)

// Negotiate returns the newest version that both sides support; if there is none, the error names the side to upgrade.
func (h Hello) Negotiate() (int, error) {
	oldest := h.Oldest
	if oldest == 0 {
		oldest = h.Protocol
	}
	switch {
	case h.Protocol < OldestProtocol:
		return 0, fmt.Errorf("its corpus-git %s is too old: it speaks version %d of the protocol, and this server %d to %d", printable.Text(h.Release), h.Protocol, OldestProtocol, Protocol)
	case oldest > Protocol:
		return 0, fmt.Errorf("its corpus-git %s is too new: it speaks version %d of the protocol and later, and this server %d: upgrade this server", printable.Text(h.Release), oldest, Protocol)
	}
	return min(h.Protocol, Protocol), nil
}

// Failure is an error in a frame.
type Failure struct {
	Exit int    `json:"exit"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// maxRequest limits the line of a request, in bytes.
const maxRequest = 64 << 10

// Handler responds to the requests of a session.
type Handler interface {
	Trust(ctx context.Context, key string) error
	// Untrust forgets a key; one that is not trusted is not an error.
	Untrust(ctx context.Context, key string) error
	// Keys keeps by which keys the hub is known from now on.
	Keys(ctx context.Context, s bundle.Succession) error
	Tips(ctx context.Context, name project.Name) (bundle.Tips, error)
	// Apply reads the bundle that in begins with, and no further. It passes on the events and the result, which a bundle that is only
	// stored does not have.
	Apply(ctx context.Context, q ApplyRequest, in *bufio.Reader, send func(Frame) error) error
	// Cancel ends a deployment; an unknown deployment, or one that has ended, is not an error.
	Cancel(ctx context.Context, q CancelRequest) error
	// Upgrade reads the program that in begins with, and no further.
	Upgrade(ctx context.Context, in *bufio.Reader) error
	// Check runs the checks of a project.
	Check(ctx context.Context, name project.Name) (project.Result, error)
	// Converge applies what is live again, or compares it. The result's kind is Busy if something else runs in the project.
	Converge(ctx context.Context, q ConvergeRequest) (project.Result, error)
	// Plan says whether a deployment would begin, and changes nothing.
	Plan(ctx context.Context, q PlanRequest) (Planned, error)
}

// Serve serves the requests of in, until it or ctx ends. A failed request is answered by its error, and ends the session if a bundle was not
// read completely: the other side begins a new one. hello is called for each greeting. The error is that of the streams.
func Serve(ctx context.Context, in io.Reader, out io.Writer, hello func() Hello, h Handler) error {
	enc := json.NewEncoder(out)
	send := func(f Frame) error { return enc.Encode(f) }
	greeting := hello()
	if err := send(Frame{Hello: &greeting}); err != nil {
		return err
	}
	r := bufio.NewReaderSize(in, maxRequest)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) == 0 && (errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil) {
			return nil
		}
		if err != nil {
			return fault.New(fault.Refused, "", "a request is cut off, or longer than %d bytes", maxRequest)
		}
		var q Request
		if err := json.Unmarshal(line, &q); err != nil {
			return fault.New(fault.Refused, "", "a request: %w", err)
		}
		last := Frame{Done: true}
		switch {
		case q.Trust != "":
			err = h.Trust(ctx, q.Trust)
			for _, key := range q.Untrust {
				if err == nil {
					err = h.Untrust(ctx, key)
				}
			}
		case q.Keys != nil:
			if err = h.Keys(ctx, *q.Keys); err == nil {
				now := hello()
				last.Hello = &now
			}
		case q.Hello:
			now := hello()
			last.Hello = &now
		case q.Tips != "":
			var t bundle.Tips
			if t, err = h.Tips(ctx, q.Tips); err == nil {
				last.Tips = &t
			}
		case q.Apply != nil:
			err = h.Apply(ctx, *q.Apply, r, send)
		case q.Upgrade:
			err = h.Upgrade(ctx, r)
		case q.Cancel != nil:
			err = h.Cancel(ctx, *q.Cancel)
		case q.Check != "":
			var res project.Result
			if res, err = h.Check(ctx, q.Check); err == nil {
				last.Result = &res
			}
		case q.Converge != nil:
			var res project.Result
			if res, err = h.Converge(ctx, *q.Converge); err == nil {
				last.Result = &res
			}
		case q.Plan != nil:
			var p Planned
			if p, err = h.Plan(ctx, *q.Plan); err == nil {
				last.Planned = &p
			}
		default:
			err = fault.New(fault.Refused, "", unknownRequest)
		}
		if err != nil {
			last.Error = &Failure{Exit: fault.ExitCode(err), Text: err.Error(), Hint: fault.HintOf(err)}
		}
		if serr := send(last); serr != nil || err != nil && (q.Apply != nil || q.Upgrade) {
			return serr
		}
	}
}
