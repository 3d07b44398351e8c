package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/git/pack"
	"corpus-git/git/pktline"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/receive/signed"
)

// Deployer runs deployments; the pipeline satisfies it.
type Deployer interface {
	// Start adds d to the project's queue and returns immediately with the ID under which it can be followed. The Deployer fills in d.ID, d.At
	// and the Live commits; d.Code and d.Pillar too, except for the repository that d.Change updates. in may be nil when no pack was sent. On
	// success the Deployer owns in: it migrates or discards it. A push of exactly the commit that is running or waiting joins that deployment
	// and returns its ID; its in is discarded. An error means that nothing was started and in is still the caller's: the branch is not at
	// d.Change.Old (fault.Refused, "fetch first"), or the server is shutting down (fault.Busy).
	Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error)
	// Follow yields the events of a deployment after seq, old ones first, until it has ended.
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	// Wait returns when the deployment has ended. A failed deployment is a Result, not an error. The end of ctx does not end the
	// deployment.
	Wait(ctx context.Context, id project.ID) (project.Result, error)
}

// Push is one git-receive-pack conversation. The caller has checked the permission to push.
type Push struct {
	Policy Policy
	Pusher project.Pusher
	DB     *store.DB
	Refs   *refs.Store
	// Hold keeps DB open until its result is called, since a quarantine may outlive the session. It is nil if DB is never closed.
	Hold func() (release func())
	// Begin is called before anything is written, and its result once the session has removed its leftovers. It may be nil. A deployment
	// that outlives the session records that by itself.
	Begin func() (end func(), err error)
	// Deployer runs what deploys.
	Deployer Deployer
	// Find resolves the prefix of a deployment's ID, for refs/rollback.
	Find func(ctx context.Context, name project.Name, prefix string) (project.ID, error)
	// Version is the protocol's: 0 or 1.
	Version int
	// Agent is our name and version in the capabilities: corpus-git/<version>.
	Agent string
	// Commands is how the pusher runs the server's commands (event.WithCommands); "" for a user on the same machine.
	Commands string
	// Colour is used where no push option sets it.
	Colour     bool
	Limits     Limits
	PackLimits pack.Limits
	// Keepalive and ProgressAfter are the periods without output after which an empty packet, and a line about what is running, are sent.
	// Defaults 5 s and 30 s.
	Keepalive, ProgressAfter time.Duration
	Now                      func() time.Time
	// ID names this push in the log, and its quarantine.
	ID  string
	Log zerolog.Logger
	// Verify verifies the certificate of a signed push to which a nonce was sent; see signed.Verifier.Push. nil accepts no signed pushes.
	Verify func(ctx context.Context, c *signed.Certificate, nonce string, options []string) (demands.Signature, error)
	// Shared is called before the client learns how its push ended, and returns when that cannot be lost; nil does nothing.
	Shared func()
	// Audit records what was stored, deleted and refused, at least one entry; nil discards them. The Deployer records deployments.
	Audit func(...audit.Entry)
}

func (p *Push) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// Serve conducts the conversation and returns the exit status of git-receive-pack: 0 whenever a report was sent, because git reads results
// there.
func (p *Push) Serve(ctx context.Context, in io.Reader, out, errw io.Writer) int {
	bw := bufio.NewWriterSize(out, 16<<10)
	list, _, err := p.Refs.ListReadable("refs/")
	if err != nil {
		return p.early(out, err)
	}
	nonce := ""
	if p.Verify != nil {
		nonce = signed.NewNonce(p.now())
	}
	if err := p.advertise(bw, list, nonce); err != nil {
		return p.early(out, err)
	}
	r := pktline.NewReader(in, pktline.Limits{})
	req, err := ReadRequest(r, p.Limits)
	if errors.Is(err, io.EOF) {
		return 0
	}
	if req == nil {
		exit := p.early(out, err)
		if !cut(err) { // a client that is still writing would not read the reason
			l := p.Limits.WithDefaults()
			pktline.Drain(ctx, r.Raw(), l.Drain, l.DrainIdle)
		}
		return exit
	}
	if len(req.Commands) == 0 {
		return 0
	}
	c := &conversation{Push: p, nonce: nonce, req: req, over: err, body: r.Raw(), unpack: "ok"}
	c.wire = newWire(req.Caps.Has("side-band-64k"), out, errw)
	return c.hold(ctx)
}

// early ends a conversation before there is anything to report, with an ERR line (gitprotocol-pack(5)): git prints that, without a message
// about a broken connection.
func (p *Push) early(out io.Writer, err error) int {
	err = Classify(err)
	if fault.KindOf(err) == fault.Internal {
		p.Log.Error().Err(err).Str("push", p.ID).Msg("push failed")
	}
	p.record("push", "", "", err)
	var told bytes.Buffer
	c := event.NewConsole(&told, event.Style{Colour: p.Colour, Commands: p.Commands})
	for _, e := range Explain(err, p.ID) {
		_, _ = c.Show(e)
	}
	_ = pktline.NewWriter(out).Errorf("%s", bytes.TrimRight(told.Bytes(), "\n"))
	return fault.ExitCode(err)
}

func (p *Push) record(action, object string, id project.ID, err error) {
	if p.Audit != nil {
		p.Audit(p.entry(action, object, id, err))
	}
}

// entry returns the entry for the audit log.
func (p *Push) entry(action, object string, id project.ID, err error) audit.Entry {
	e := audit.Entry{Actor: p.Pusher.Key, Fingerprint: p.Pusher.Fingerprint, From: p.Pusher.From, Action: action, Project: string(p.Policy.Project),
		Object: object, Outcome: "ok", Deployment: string(id)}
	if err != nil {
		e.Outcome, e.Detail = "refused", oneLine(err)
		if k := fault.KindOf(err); k == fault.Failed || k == fault.Internal {
			e.Outcome = "failed"
		}
	}
	return e
}

// capabilities returns the capabilities that we advertise. "quiet" is ignored: git requests it whenever its standard error is not a terminal,
// which would leave CI logs empty. The push option -o quiet does it.
func (p *Push) capabilities(nonce string) string {
	caps := "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options object-format=sha1"
	if nonce != "" {
		caps += " push-cert=" + nonce
	}
	return caps + " agent=" + p.Agent
}

// advertise sends the refs (gitprotocol-pack(5), "Reference Discovery"). Hidden refs are not included.
func (p *Push) advertise(bw *bufio.Writer, list []refs.Ref, nonce string) error {
	w := pktline.NewWriter(bw)
	if p.Version == 1 {
		if err := w.Linef("version 1"); err != nil {
			return err
		}
	}
	caps := "\x00" + p.capabilities(nonce)
	for _, r := range list {
		if strings.HasPrefix(r.Name, HiddenPrefix) || r.Hash.IsZero() {
			continue
		}
		if err := w.Linef("%s %s%s", r.Hash, r.Name, caps); err != nil {
			return err
		}
		caps = ""
	}
	if caps != "" {
		if err := w.Linef("%s capabilities^{}%s", project.ZeroCommit, caps); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return bw.Flush()
}
