package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/rs/zerolog"

	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/receive/pack"
	"corpus-git/receive/pktline"
	"corpus-git/receive/refs"
	"corpus-git/receive/store"
	"corpus-git/receive/worktree"
)

// Deployer runs deployments. It is receive.Deployer.
type Deployer interface {
	Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error)
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	Wait(ctx context.Context, id project.ID) (project.Result, error)
}

// Push is one git-receive-pack conversation. The caller has checked the right to push.
type Push struct {
	Policy Policy
	Pusher project.Pusher
	DB     *store.DB
	Refs   *refs.Store
	// Hold keeps DB open until what it returns is called: a quarantine may outlive the session. nil where DB is never closed.
	Hold func() (release func())
	// Deployer runs what deploys.
	Deployer Deployer
	// Find resolves the prefix of a deployment's ID, for refs/rollback.
	Find func(ctx context.Context, name project.Name, prefix string) (project.ID, error)
	// Version is the protocol's: 0 or 1.
	Version int
	// Agent is our name and version in the capabilities: corpus-git/<version>.
	Agent string
	// Colour is used where no push option says otherwise.
	Colour     bool
	Limits     Limits
	PackLimits pack.Limits
	// Keepalive and Still are the silences after which an empty packet, and a line about what runs, are sent. Defaults 5 s and 30 s.
	Keepalive, Still time.Duration
	Now              func() time.Time
	// ID names this push in the log, and its quarantine.
	ID  string
	Log zerolog.Logger
	// Audit records what was done and refused; nil drops it.
	Audit func(audit.Entry)
}

func (p *Push) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// Serve holds the conversation and gives the exit status of git-receive-pack: 0 whenever a report was sent, because git reads
// verdicts there.
func (p *Push) Serve(ctx context.Context, in io.Reader, out, errw io.Writer) int {
	bw := bufio.NewWriterSize(out, 64<<10)
	if err := p.advertise(bw); err != nil {
		return p.early(errw, err)
	}
	r := pktline.NewReader(in, pktline.Limits{})
	req, err := ReadRequest(r, p.Limits)
	if errors.Is(err, io.EOF) {
		return 0
	}
	if err != nil {
		return p.early(errw, err)
	}
	if len(req.Commands) == 0 {
		return 0
	}
	c := &conversation{Push: p, req: req, body: r.Raw(), unpack: "ok"}
	c.wire = newWire(req.Caps.Has("side-band-64k"), out, errw)
	return c.hold(ctx)
}

// early ends a conversation that has not come to a report.
func (p *Push) early(errw io.Writer, err error) int {
	err = classify(err)
	if fault.KindOf(err) == fault.Internal {
		p.Log.Error().Err(err).Str("push", p.ID).Msg("push failed")
	}
	p.record("push", "", "", err)
	c := event.NewConsole(errw, event.Style{Colour: p.Colour})
	for _, e := range Explain(err, p.ID) {
		_, _ = c.Show(e)
	}
	return fault.ExitCode(err)
}

func (p *Push) record(action, object string, id project.ID, err error) {
	if p.Audit == nil {
		return
	}
	e := audit.Entry{Actor: p.Pusher.Key, Fingerprint: p.Pusher.Fingerprint, From: p.Pusher.From, Action: action, Project: string(p.Policy.Project),
		Object: object, Outcome: "ok", Deployment: string(id)}
	if err != nil {
		e.Outcome, e.Detail = "refused", oneLine(err)
		if k := fault.KindOf(err); k == fault.Failed || k == fault.Internal {
			e.Outcome = "failed"
		}
	}
	p.Audit(e)
}

// capabilities are what we say we can do. A client that asks for "quiet" gets no less: git does that whenever its standard
// error is no terminal, so a CI log would stay empty. Who wants silence says  -o quiet.
func (p *Push) capabilities() string {
	return "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options object-format=sha1 agent=" + p.Agent
}

// advertise sends the refs (gitprotocol-pack(5), "Reference Discovery"). Hidden ones are not among them.
func (p *Push) advertise(bw *bufio.Writer) error {
	list, err := p.Refs.List("refs/")
	if err != nil {
		return err
	}
	w := pktline.NewWriter(bw)
	if p.Version == 1 {
		if err := w.Linef("version 1"); err != nil {
			return err
		}
	}
	caps := "\x00" + p.capabilities()
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

// conversation is a Push after the client has spoken.
type conversation struct {
	*Push
	req    *Request
	body   *bufio.Reader
	wire   *wire
	show   show
	opts   Options
	items  []*Item
	deploy *Item
	in     *Incoming
	unpack string
	unread bool // the pack, or the rest of it, is still to come
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
	if gone != nil {
		return 1
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
		c.drain(ctx)
	}
	if bad {
		return 1 // a client without a report has nothing else to tell by
	}
	return 0
}

// work does what was asked for. Its error is a client that is gone; everything else stands in the items.
func (c *conversation) work(ctx context.Context) (gone error) {
	head, err := c.deployed()
	if err != nil {
		c.setAll(err)
		return c.refuseAll()
	}
	c.Policy.Deployed = head
	c.items, c.deploy = c.Policy.Classify(c.req.Commands)
	c.opts, err = ParseOptions(c.req.Options)
	c.show = show{style: event.Style{Colour: c.Colour, Verbose: c.opts.Verbose}, quiet: c.opts.Quiet}
	if c.opts.Colour != nil {
		c.show.style.Colour = *c.opts.Colour
	}
	if err != nil {
		c.setAll(err)
		return c.refuseAll()
	}
	for _, n := range c.opts.Notes {
		c.show.say(c.wire, event.Event{Kind: event.Note, Text: n})
	}
	c.compareOld()
	c.keepAtomic()
	if len(c.todo()) == 0 {
		return c.refuseAll()
	}
	if c.req.Pack() {
		if err := c.ingest(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = classify(err)
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
	c.explain()
	if c.deploy != nil && c.deploy.Err == nil {
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	c.apply(ctx)
	return nil
}

// deployed is the ref that deploys: HEAD's, once it exists.
func (c *conversation) deployed() (string, error) {
	head, err := c.Refs.Head()
	if err != nil || head == "" {
		return "", err
	}
	h, err := c.Refs.Get(head)
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
	err = classify(err)
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
		if i.Err != nil && i.reason == "" && first == nil {
			first = i
		}
	}
	if first == nil {
		return
	}
	for _, i := range c.items {
		if i.Err == nil {
			i.refuse(refused("atomic push: %s was refused", printable(first.Ref)))
			i.reason = "atomic push failed"
		}
	}
}

// refuseAll explains. The pack that follows is not read, but by drain.
func (c *conversation) refuseAll() error {
	c.explain()
	c.unread = c.req.Pack()
	return nil
}

// drain reads on, after the report went out, what a refused client still sends: many come to read the report only when all
// of the pack is written. It ends with the stream, with a pause, or at the limit.
func (c *conversation) drain(ctx context.Context) {
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The caller ends the stream when it closes the session, and this with it.
		_, _ = io.Copy(counter{&n}, io.LimitReader(c.body, c.Limits.WithDefaults().Drain))
	}()
	tick := time.NewTicker(c.Limits.WithDefaults().DrainIdle)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			now := n.Load()
			if now == last {
				return
			}
			last = now
		}
	}
}

// counter counts what is written to it, and drops it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// maxExplained bounds the explanations of one push.
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
		c.show.say(c.wire, event.Event{Kind: event.Verdict, Status: event.Bad, Text: "refused: nothing was changed"})
	}
}

// failed shows, logs and records one item that is not done.
func (c *conversation) failed(i *Item) {
	if fault.KindOf(i.Err) == fault.Internal {
		c.Log.Error().Err(i.Err).Str("push", c.ID).Str("project", string(c.Policy.Project)).Str("ref", i.Ref).Msg("push failed")
	}
	c.record("push", object(i.Change, c.Policy.Repo), "", i.Err)
	c.show.say(c.wire, Explain(i.Err, c.ID)...)
}

// object names a change in the audit log.
func object(ch project.Change, repo project.Repo) string {
	return fmt.Sprintf("%s.git %s %s..%s", repo, printable(ch.Ref), ch.Old.Short(), ch.New.Short())
}

func hash(c project.Commit) plumbing.Hash { return plumbing.NewHash(string(c)) }

// compareOld refuses commands that expect a ref where it is not.
func (c *conversation) compareOld() {
	for _, i := range c.items {
		if i.Err != nil || i.Role == Redeploy || i.Role == Plan || i.Role == Rollback {
			continue
		}
		have, err := c.Refs.Get(i.Ref)
		if err != nil {
			i.refuse(classify(err))
			continue
		}
		if i.New == "" && have.IsZero() {
			continue // deleting what is not there: git says ok too
		}
		if have != hash(i.Old) {
			i.refuse(classify(&refs.ConflictError{Name: i.Ref, Want: hash(i.Old), Have: have}))
			i.reason = "fetch first"
		}
	}
}

// ingest takes the pack into a quarantine.
func (c *conversation) ingest(ctx context.Context) error {
	q, err := c.DB.NewQuarantine(c.ID)
	if err != nil {
		return err
	}
	var ended func()
	if c.Hold != nil {
		ended = c.Hold()
	}
	c.in = NewIncoming(c.DB, q, ended)
	_, err = q.Ingest(ctx, c.body, store.IngestOptions{Limits: c.PackLimits})
	return err
}

// connect checks that what the commands name is there, whole, and of the right type. All at once; one by one only to find
// out which is not.
func (c *conversation) connect(ctx context.Context) error {
	var tips []*Item
	for _, i := range c.todo() {
		if i.New == "" || i.Role == Rollback {
			continue
		}
		if err := c.checkType(i); err != nil {
			i.refuse(classify(err))
			continue
		}
		tips = append(tips, i)
	}
	list, err := c.Refs.List("refs/")
	if err != nil {
		c.setAll(err)
		return nil
	}
	have := make([]plumbing.Hash, 0, len(list))
	for _, r := range list {
		have = append(have, r.Hash)
	}
	check := func(items []*Item) error {
		news := make([]plumbing.Hash, len(items))
		for n, i := range items {
			news[n] = hash(i.New)
		}
		return c.in.q.Connected(ctx, store.Connect{Tips: news, Refs: have, Shallow: c.req.Shallow})
	}
	if len(tips) == 0 {
		return nil
	}
	all := check(tips)
	if all == nil {
		return nil
	}
	for _, i := range tips {
		err := all
		if len(tips) > 1 {
			err = check([]*Item{i})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			i.refuse(classify(err))
			var s *store.ShallowError
			if errors.As(err, &s) {
				i.reason = "shallow update not allowed"
			}
		}
	}
	return nil
}

// checkType demands a commit for a branch, and for what deploys a commit or a tag of one, which is followed.
func (c *conversation) checkType(i *Item) error {
	r := c.in.Reader()
	h, t, err := store.Peel(r, hash(i.New))
	if errors.Is(err, store.ErrNotFound) {
		return refused("%s: the push does not bring %s", printable(i.Ref), i.New.Short())
	}
	if err != nil {
		return err
	}
	_, branch := i.Branch()
	if !branch && !i.Role.Deploys() {
		return nil
	}
	if t != plumbing.CommitObject || branch && h != hash(i.New) {
		return refused("%s: %s is no commit", printable(i.Ref), i.New.Short()).WithHint("push the commit it stands for:  git push %s %s^{commit}:%s", c.Policy.Remote, i.New.Short(), printable(i.Ref))
	}
	i.New = project.Commit(h.String())
	return nil
}

// run deploys and follows. Its error is a client that is gone.
func (c *conversation) run(ctx context.Context) error {
	i := c.deploy
	d, err := c.deployment(ctx, i)
	if err != nil {
		i.Err = classify(err)
		c.failed(i)
		c.verdict()
		return nil
	}
	var in project.Incoming
	if c.in != nil && d.Change.New != "" {
		c.in.hand(true)
		in = c.in
	}
	id, err := c.Deployer.Start(ctx, d, in)
	if err != nil {
		if in != nil {
			c.in.hand(false)
		}
		i.Err = classify(err)
		c.failed(i)
		c.verdict()
		return nil
	}
	object := object(project.Change{Ref: i.Ref, Old: d.Change.Old, New: i.New}, c.Policy.Repo)
	ferr := c.follow(ctx, c.wire, id, c.show)
	if ctx.Err() != nil || ferr != nil {
		if ferr != nil && ctx.Err() == nil {
			c.Log.Warn().Err(ferr).Str("push", c.ID).Str("deployment", string(id)).Msg("following ended early")
		}
	}
	res, err := c.Deployer.Wait(ctx, id)
	if err != nil {
		c.record(string(d.Trigger), object+" (the client left, the deployment goes on)", id, nil)
		return err
	}
	if !res.State.Good() {
		kind := fault.Failed
		if res.State == project.Refused {
			kind = fault.Refused
		}
		i.Err = fault.New(kind, "", "%s", Reason(res))
		i.reason = Reason(res)
	}
	c.record(string(d.Trigger), object, id, i.Err)
	return nil
}

// verdict closes what our own explanation of a deployment that did not start began.
func (c *conversation) verdict() {
	c.show.say(c.wire, event.Event{Kind: event.Verdict, Status: event.Bad, Text: "refused: nothing was changed"})
}

// deployment is what the deploying item asks for.
func (c *conversation) deployment(ctx context.Context, i *Item) (project.Deployment, error) {
	d := project.Deployment{Project: c.Policy.Project, Pusher: c.Pusher, Repo: c.Policy.Repo, Select: c.opts.Select}
	change := func(old project.Commit, ref string) error {
		d.Change = project.Change{Ref: ref, Old: old, New: i.New}
		if c.Policy.Repo == project.PillarRepo {
			d.Pillar = i.New
		} else {
			d.Code = i.New
		}
		if old != "" {
			a, err := worktree.Compare(ctx, c.in.Reader(), hash(old), hash(i.New))
			d.Forced = !a.FastForward
			return err
		}
		return nil
	}
	now := func() (project.Commit, error) {
		if c.Policy.Deployed == "" {
			return "", nil
		}
		h, err := c.Refs.Get(c.Policy.Deployed)
		if err != nil || h.IsZero() {
			return "", err
		}
		return project.Commit(h.String()), nil
	}
	switch i.Role {
	case Deploy:
		d.Trigger = project.TriggerPush
		return d, change(i.Old, i.Ref)
	case Rollback:
		d.Trigger = project.TriggerRollback
		prefix := strings.TrimPrefix(i.Ref, "refs/rollback/")
		if prefix == "last" {
			return d, nil
		}
		if c.Find == nil {
			d.Restore = project.ID(prefix)
			return d, nil
		}
		id, err := c.Find(ctx, c.Policy.Project, prefix)
		d.Restore = id
		return d, err
	}
	live, err := now()
	if err != nil {
		return d, err
	}
	ref := c.Policy.Deployed
	if ref == "" {
		ref = master
	}
	switch {
	case i.Role == Plan:
		d.Trigger = project.TriggerPlan
		if live != i.New {
			err = change(live, ref)
		}
	case live == i.New:
		d.Trigger = project.TriggerRedeploy
	default:
		d.Trigger = project.TriggerPush
		err = change(live, ref)
	}
	return d, err
}

// apply stores and deletes what does not deploy, when what deploys went well.
func (c *conversation) apply(ctx context.Context) {
	var rest []*Item
	for _, i := range c.todo() {
		if i.Role == Store || i.Role == Delete {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return
	}
	if c.deploy != nil && c.deploy.Err != nil {
		for _, i := range rest {
			i.Err = refused("not stored, because %s was rejected", short(c.deploy.Ref))
		}
		return
	}
	if c.in != nil {
		if err := c.in.Migrate(ctx); err != nil {
			for _, i := range rest {
				i.Err = classify(err)
			}
			c.failed(rest[0])
			return
		}
	}
	var changes []refs.Change
	var moved []*Item
	for _, i := range rest {
		if i.Old == "" && i.New == "" {
			c.show.say(c.wire, event.Event{Kind: event.Note, Text: printable(i.Ref) + " is not there: nothing to delete"})
			continue
		}
		changes = append(changes, refs.Change{Name: i.Ref, Old: hash(i.Old), New: hash(i.New)})
		moved = append(moved, i)
	}
	err := c.Refs.Update(changes)
	if err != nil && len(changes) > 1 && !c.req.Caps.Has("atomic") {
		for n, i := range moved {
			if i.Err = classify(c.Refs.Update(changes[n : n+1])); i.Err != nil {
				c.failed(i)
			}
		}
		err = nil
	}
	if err != nil {
		for _, i := range moved {
			i.Err = classify(err)
		}
		c.failed(moved[0])
	}
	for _, i := range moved {
		if i.Err != nil {
			continue
		}
		c.record("push", object(i.Change, c.Policy.Repo), "", nil)
		if name, ok := i.Branch(); ok && i.Role == Store {
			text := fmt.Sprintf("%s is stored, not deployed", printable(name))
			if c.Policy.Deployed != "" {
				text += fmt.Sprintf(": %s deploys", short(c.Policy.Deployed))
			}
			c.show.say(c.wire, event.Event{Kind: event.Note, Text: text})
		}
	}
}
