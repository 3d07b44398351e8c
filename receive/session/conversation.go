package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pktline"
	"corpus-git/git/refs"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// conversation is a Push after the client's request was read.
type conversation struct {
	*Push
	nonce  string // given to the client for its certificate
	req    *Request
	over   error // the limit that req exceeds
	body   *bufio.Reader
	wire   *wire
	show   show
	opts   Options
	signs  []demands.Signature
	items  []*Item
	deploy *Item
	held   *refs.Prepared // what an atomic push stores beside its deployment, locked
	in     *Incoming
	end    func() // what Begin returned, nil before
	unpack string
	unread bool // the pack, or the rest of it, was not received yet
}

func (c *conversation) hold(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	every := c.Keepalive
	if every == 0 {
		every = 5 * time.Second
	}
	kctx, stop := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); c.wire.keepalive(kctx, every) }()
	gone := c.work(ctx)
	stop()
	<-kept
	if c.in != nil {
		if err := c.in.release(); err != nil {
			c.Log.Error().Err(err).Str("push", c.ID).Msg("removing a quarantine")
		}
	}
	if c.end != nil {
		c.end()
	}
	if gone != nil {
		return 1
	}
	if c.Shared != nil {
		c.Shared()
	}
	bad := false
	for _, i := range c.items {
		bad = bad || i.Err != nil
	}
	if c.req.Caps.Has("report-status") || c.req.Caps.Has("report-status-v2") {
		if err := c.wire.report(c.unpack, c.items); err != nil {
			return 1
		}
		bad = false
	}
	if err := c.wire.close(); err != nil {
		return 1
	}
	if c.unread {
		l := c.Limits.WithDefaults()
		pktline.Drain(ctx, c.body, l.Drain, l.DrainIdle)
	}
	if bad {
		return 1 // a client without a report has nothing else to tell by
	}
	return 0
}

// work processes the request. Its error means that the client is gone; everything else is in the items.
func (c *conversation) work(ctx context.Context) (gone error) {
	head, err := c.deployed()
	if err != nil {
		c.setAll(err)
		return c.refuseAll()
	}
	c.Policy.Deployed = head
	c.items, c.deploy = c.Policy.Classify(c.req.Commands)
	c.show = show{style: event.Style{Colour: c.Colour, Commands: c.Commands}}
	if c.over != nil {
		for _, i := range c.items {
			i.Err = nil // one reason for all
		}
		c.setAll(c.over)
		return c.refuseAll()
	}
	c.opts, err = ParseOptions(c.req.Options)
	c.show = show{style: event.Style{Colour: c.Colour, Verbose: c.opts.Verbose, Commands: c.Commands}, quiet: c.opts.Quiet}
	if c.opts.Colour != nil {
		c.show.style.Colour = *c.opts.Colour
	}
	if err != nil {
		c.setAll(err)
		return c.refuseAll()
	}
	for _, n := range c.opts.Notes {
		c.show.showEvents(c.wire, event.Event{Kind: event.Note, Text: n})
	}
	if err := c.certificate(ctx); err != nil {
		c.setAll(err)
		return c.refuseAll()
	}
	c.compareOld()
	c.stays()
	c.keepAtomic()
	if len(c.todo()) == 0 {
		return c.refuseAll()
	}
	if c.Begin != nil {
		if c.end, err = c.Begin(); err != nil {
			c.setAll(err)
			return c.refuseAll()
		}
	}
	if c.req.Pack() {
		if err := c.ingest(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = Classify(err)
			c.unpack = oneLine(err)
			for _, i := range c.items {
				if i.Err == nil {
					i.refuse(err)
					i.reason = "unpacker error"
				}
			}
			return c.refuseAll()
		}
		if err := c.connect(ctx); err != nil {
			return err
		}
		c.keepAtomic()
	}
	c.lockAtomic()
	defer c.unlock()
	c.explain()
	if c.deploy != nil && c.deploy.Err == nil {
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	c.apply(ctx)
	return nil
}

// deployed returns the deployed ref: HEAD's, once it exists.
func (c *conversation) deployed() (string, error) {
	head, err := c.Refs.Head()
	if err != nil || head == "" {
		return "", err
	}
	h, err := c.Refs.Get(head)
	if errors.Is(err, refs.ErrCorrupt) {
		return head, nil // a push to it is refused, others are not
	}
	if err != nil || h.IsZero() {
		return "", err
	}
	return head, nil
}

// todo lists what is not refused.
func (c *conversation) todo() (out []*Item) {
	for _, i := range c.items {
		if i.Err == nil {
			out = append(out, i)
		}
	}
	return out
}

func (c *conversation) setAll(err error) {
	err = Classify(err)
	if c.items == nil {
		c.items, _ = c.Policy.Classify(c.req.Commands)
	}
	for _, i := range c.items {
		if i.Err == nil {
			i.refuse(err)
		}
	}
}

// keepAtomic refuses everything where one command of an atomic push was refused.
func (c *conversation) keepAtomic() {
	if !c.req.Caps.Has("atomic") {
		return
	}
	var first *Item
	for _, i := range c.items {
		if i.Err != nil && i.reason != "atomic push failed" && first == nil {
			first = i
		}
	}
	if first == nil {
		return
	}
	for _, i := range c.items {
		if i.Err == nil {
			i.refuse(refused("atomic push: %s was refused", printable.Line(first.Ref)))
			i.reason = "atomic push failed"
		}
	}
}

// lockAtomic checks and locks the other refs of an atomic push that deploys, before anything runs: after that only a failing disk keeps
// them from being stored, and nobody else can change them. The Deployer compares and moves the deployed ref.
func (c *conversation) lockAtomic() {
	rest := c.rest()
	if !c.req.Caps.Has("atomic") || c.deploy == nil || c.deploy.Err != nil || len(rest) == 0 {
		return
	}
	var beside []string
	if c.deploy.Role == Deploy {
		beside = append(beside, c.deploy.Ref)
	}
	changes, moved, _ := changesOf(rest)
	held, err := c.Refs.Prepare(changes, beside...)
	if err == nil {
		c.held = held
		return
	}
	// Find out which one: the others are refused because of it.
	for n, i := range moved {
		one, err := c.Refs.Prepare(changes[n:n+1], beside...)
		if err != nil {
			i.refuse(Classify(err))
			continue
		}
		one.Abort()
	}
	if len(c.rest()) == len(rest) { // each is valid by itself
		moved[0].refuse(Classify(err))
	}
	c.keepAtomic()
}

// unlock releases what was locked and not stored.
func (c *conversation) unlock() {
	if c.held != nil {
		c.held.Abort()
		c.held = nil
	}
}

// rest lists what is stored or deleted without a deployment.
func (c *conversation) rest() (out []*Item) {
	for _, i := range c.todo() {
		if i.Role == Store || i.Role == Delete {
			out = append(out, i)
		}
	}
	return out
}

// changesOf returns the changes of refs, the items of each, and the deletions of refs that do not exist.
func changesOf(items []*Item) (changes []refs.Change, moved, absent []*Item) {
	for _, i := range items {
		if i.Old == "" && i.New == "" {
			absent = append(absent, i)
			continue
		}
		changes = append(changes, refs.Change{Name: i.Ref, Old: hash(i.Old), New: hash(i.New)})
		moved = append(moved, i)
	}
	return changes, moved, absent
}

// refuseAll explains. The pack that follows is drained without being parsed.
func (c *conversation) refuseAll() error {
	c.explain()
	c.unread = (c.req.Pack() || c.over != nil) && c.body != nil
	return nil
}

// maxExplained limits the explanations of one push.
const maxExplained = 5

// explain shows and records why commands were refused, each reason once.
func (c *conversation) explain() {
	seen := map[string]bool{}
	shown := 0
	for _, i := range c.items {
		if i.Err == nil || i.reason == "atomic push failed" {
			continue
		}
		text := i.Err.Error()
		if seen[text] {
			continue
		}
		seen[text] = true
		if shown++; shown > maxExplained {
			continue
		}
		c.failed(i)
	}
	if shown > 0 && len(c.todo()) == 0 {
		c.show.showEvents(c.wire, event.Event{Kind: event.Verdict, Status: event.Bad, Text: "refused: nothing was changed"})
	}
}

// failed shows, logs and records one item that is not done.
func (c *conversation) failed(i *Item) {
	if fault.KindOf(i.Err) == fault.Internal {
		c.Log.Error().Err(i.Err).Str("push", c.ID).Str("project", string(c.Policy.Project)).Str("ref", i.Ref).Msg("push failed")
	}
	c.record("push", auditTarget(i.Change, c.Policy.Repo), "", i.Err)
	c.show.showEvents(c.wire, Explain(i.Err, c.ID)...)
}

// auditTarget names a change in the audit log.
func auditTarget(ch project.Change, repo project.Repo) string {
	return fmt.Sprintf("%s.git %s %s..%s", repo, printable.Line(ch.Ref), ch.Old.Short(), ch.New.Short())
}

func hash(c project.Commit) plumbing.Hash { return plumbing.NewHash(string(c)) }

// compareOld refuses commands whose expected value is not the ref's.
func (c *conversation) compareOld() {
	for _, i := range c.items {
		if i.Err != nil || i.Role == Redeploy || i.Role == Plan || i.Role == Rollback {
			continue
		}
		have, err := c.Refs.Get(i.Ref)
		if err != nil {
			i.refuse(Classify(err))
			continue
		}
		if i.New == "" && have.IsZero() {
			continue // deleting what is not there: git says ok too
		}
		switch have {
		case hash(i.Old):
		case hash(i.New):
			i.refuse(fault.New(fault.Refused, "", "%s is at %s already: another push of this commit has ended meanwhile", printable.Line(i.Ref), i.New.Short()).WithHint("nothing is left to do;  git fetch  shows it"))
			i.reason = "is at this commit already"
		default:
			i.refuse(Classify(&refs.ConflictError{Name: i.Ref, Want: hash(i.Old), Have: have}))
			i.reason = "fetch first"
		}
	}
}

// stays accepts a push of the deployed branch's present commit: there is nothing to do. git itself never sends one; libgit2 does.
func (c *conversation) stays() {
	i := c.deploy
	if i == nil || i.Err != nil || i.Role != Deploy || i.Old == "" || i.Old != i.New {
		return
	}
	i.Role, c.deploy = Store, nil
	c.show.showEvents(c.wire,
		event.Event{Kind: event.Note, Text: fmt.Sprintf("%s is already at %s: nothing to do", short(i.Ref), i.New.Short())},
		event.Event{Kind: event.Hint, Text: fmt.Sprintf("to deploy it again:  git push %s HEAD:refs/deploy/now", c.Policy.Remote)})
}
