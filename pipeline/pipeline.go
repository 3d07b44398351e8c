package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/underway"
)

// Settings are what the server knows about a project before its configuration is read.
type Settings struct {
	// Environment is the name of the environment, "" where the project's configuration says.
	Environment string
	RemoteLess  bool
	// Node says that another server deploys the project here, and knows its nodes; nil where it is pushed to.
	Node *project.Node
	// Unlinked: the operator took the project out of the Salt and pillar trees; sync leaves it out.
	Unlinked bool
}

// Config is what a Pipeline works with. All fields but Underway, StopUnits, Boundary, OnEnd, OnLive, Tell, QueuedAfter, MaxLogBytes, Secrets and Logger are needed.
type Config struct {
	Root  layout.Root
	State layout.State
	DB    *sql.DB
	// Repository opens a repository of a project.
	Repository func(project.Name, project.Repo) Repository
	Tools      *procedures.Tools
	// Settings finds a project; an unknown one is fault.Refused.
	Settings func(ctx context.Context, name project.Name) (Settings, error)
	// May reports whether somebody has a right on a project now. A rollback moves both branches, whichever repository it was
	// asked for at.
	May   func(ctx context.Context, who project.Pusher, name project.Name, want project.Right) (bool, error)
	Audit *audit.Log
	// Underway notes the projects in which a deployment is under way; nil notes none, and then Recover must look at all.
	Underway *underway.Markers
	Now      func() time.Time
	NewID    func() project.ID
	// Deadline ends a deployment that takes longer; 0 means 5 hours.
	Deadline time.Duration
	// Patience is how long, once the server must stop, what projects bring for a rollback may take; 0 means 30 seconds.
	Patience time.Duration
	// MaxLogBytes bounds the event log of a deployment that begins (event.Log.Limit); nil sets no bound.
	MaxLogBytes func() int64
	// Secrets are the server's own, such as the address of notifications; nil is none.
	Secrets func() []redact.Secret
	Logger  zerolog.Logger
	// Tell adds what others are told of a deployment to the transaction that writes its record; nil tells nobody.
	Tell func(ctx context.Context, tx db.Execer, n project.Notification) error
	// QueuedAfter is how long a deployment waits for its turn before that is told; nil, and 0, never tell it.
	QueuedAfter func() time.Duration
	// OnEnd is told every ended deployment.
	OnEnd func(project.Record)
	// OnLive is told what is live after a deployment that went live, or a rollback by hand, and which checks its configuration has; none after
	// an undeploy.
	OnLive func(project.Name, []project.Check)
	// StopUnits stops what a project runs, and names it; nil stops nothing.
	StopUnits func(ctx context.Context, name project.Name) ([]string, error)
	// Boundary is called with a name right after each journal entry; crash tests end the process there.
	Boundary func(point string)
}

// DefaultDeadline is how long a deployment may take where nothing else is configured.
const DefaultDeadline = 5 * time.Hour

// DefaultPatience is Config.Patience where nothing else is said.
const DefaultPatience = 30 * time.Second

// Pipeline runs the deployments of all projects. All methods are safe for concurrent use.
type Pipeline struct {
	cfg     Config
	records *records

	starting projectLocks
	// settling is held while a deployment that has left the queue makes durable what it left.
	settling projectLocks
	bundles  projectLocks
	mu       sync.Mutex
	queues   map[project.Name]*queue
	byID     map[project.ID]*deployment
	holders  map[project.Name][]*holder
	stopping bool
	known    knownSecrets
	running  sync.WaitGroup
}

// New prepares the tables. Call Recover before the first Start.
func New(ctx context.Context, cfg Config) (*Pipeline, error) {
	if cfg.Deadline == 0 {
		cfg.Deadline = DefaultDeadline
	}
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.OnEnd == nil {
		cfg.OnEnd = func(project.Record) {}
	}
	if cfg.StopUnits == nil {
		cfg.StopUnits = func(context.Context, project.Name) ([]string, error) { return nil, nil }
	}
	if cfg.OnLive == nil {
		cfg.OnLive = func(project.Name, []project.Check) {}
	}
	if cfg.Boundary == nil {
		cfg.Boundary = func(string) {}
	}
	if cfg.MaxLogBytes == nil {
		cfg.MaxLogBytes = func() int64 { return 0 }
	}
	if cfg.Secrets == nil {
		cfg.Secrets = func() []redact.Secret { return nil }
	}
	recs, err := openRecords(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	recs.tell = cfg.Tell
	if cfg.QueuedAfter == nil {
		cfg.QueuedAfter = func() time.Duration { return 0 }
	}
	p := &Pipeline{cfg: cfg, records: recs, queues: map[project.Name]*queue{}, byID: map[project.ID]*deployment{}, holders: map[project.Name][]*holder{}}
	return p, nil
}

// Start takes the project's next place in line; see session.Deployer, whose contract this is.
func (p *Pipeline) Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error) {
	set, err := p.cfg.Settings(ctx, d.Project)
	if err != nil {
		return "", err
	}
	if d.Change.Ref != "" {
		if err := p.compare(ctx, d); err != nil {
			return "", err
		}
	}
	if d.ID != "" && (d.Trigger == project.TriggerBundle || d.Trigger == project.TriggerTask) {
		defer p.bundles.lock(d.Project)()
		if known, err := p.Begun(ctx, d); known || err != nil {
			return d.ID, err
		}
	}
	if d.ID == "" {
		d.ID = p.cfg.NewID()
	}
	d.At = p.cfg.Now()
	hide := p.liveRedactor(ctx, d, in)
	d.Set = p.settings(ctx, d, in, set, hide)
	// From here on a crash leaves something in this project, and the note says so.
	over, err := p.cfg.Underway.Begin(d.Project)
	if err != nil {
		return "", fault.New(fault.Internal, "start a deployment", "%w", err)
	}
	started := false
	defer func() {
		if !started {
			over()
		}
	}()
	log, err := p.openLog(d, hide)
	if err != nil {
		return "", fault.New(fault.Internal, "open event log", "%w", err)
	}
	// The deployment's life is its own: only its values come from the caller's context.
	dctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	dep := p.newDeployment(project.Record{Deployment: d, State: project.Waiting})
	dep.set, dep.in, dep.log, dep.redact, dep.cancel = set, in, log, hide, cancel
	same, err := p.admit(ctx, dep)
	if err != nil {
		return "", err
	}
	if same != nil {
		if in != nil {
			_ = in.Discard()
		}
		return same.record().ID, nil
	}
	started = true
	go func() {
		defer p.running.Done()
		defer over()
		defer cancel(nil)
		dep.drive(dctx)
	}()
	return d.ID, nil
}

// Begun reports whether the deployment that a bundle asks for was started before: it is known by its ID, and runs once. One of that ID that is
// about something else is fault.Refused.
func (p *Pipeline) Begun(ctx context.Context, d project.Deployment) (bool, error) {
	rec, err := p.records.get(ctx, d.ID)
	switch {
	case err != nil && fault.KindOf(err) == fault.Usage:
		return false, nil
	case err != nil:
		return false, err
	case rec.Project != d.Project || rec.Trigger != d.Trigger || d.Trigger == project.TriggerBundle && (rec.Code != d.Code || rec.Pillar != d.Pillar):
		return false, fault.New(fault.Refused, "bundle", "deployment %s is another one here: %s of %s", d.ID.Short(), rec.Code.Short(), rec.Project)
	}
	return true, nil
}

// admit records a deployment and puts it in its project's queue. Where one for the very same change runs or waits, it is that one, and dep is
// abandoned; so it is with an error.
func (p *Pipeline) admit(ctx context.Context, dep *deployment) (same *deployment, err error) {
	d := dep.rec.Deployment
	// The record is written with mu open, which every project needs all the time. Of one project one deployment at a time comes
	// so far: their records are in the order of the queue, and two pushes of the same change find each other.
	defer p.starting.lock(d.Project)()
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		dep.abandon()
		return nil, errStopping
	}
	if same := p.joinable(d); same != nil {
		p.mu.Unlock()
		dep.abandon()
		return same, nil
	}
	p.byID[d.ID] = dep
	p.running.Add(1)
	p.mu.Unlock()
	err = p.records.note(ctx, dep.shown())
	p.mu.Lock()
	if err != nil {
		delete(p.byID, d.ID)
		p.mu.Unlock()
		p.running.Done()
		dep.abandon()
		return nil, fault.New(fault.Internal, "record deployment", "%w", err)
	}
	defer p.mu.Unlock()
	p.enqueue(dep)
	if dep.place > 0 {
		dep.printWaiting(p.queues[d.Project].all[0].shown(), dep.place, p.cfg.Now())
	}
	if p.stopping {
		dep.cancel(errShutdown()) // Shutdown came while it was recorded
	}
	return nil, nil
}

// abandon undoes what Start made for a deployment that never was.
func (dep *deployment) abandon() {
	dep.cancel(nil)
	_ = dep.log.Close()
	removeQuietly(dep.p.cfg.State.EventLog(dep.rec.Project.String(), string(dep.rec.ID)))
}

// compare refuses a change whose old value is not what the ref holds.
func (p *Pipeline) compare(ctx context.Context, d project.Deployment) error {
	// Two first pushes, of main and of master: the one that went live decides which branch deploys.
	deployed, err := p.cfg.Repository(d.Project, d.Repo).Deployed(ctx)
	if err != nil {
		return err
	}
	if deployed != "" && deployed != d.Change.Ref {
		short := strings.TrimPrefix(deployed, "refs/heads/")
		return fault.New(fault.Refused, "", "the deployed branch of %s is %s", d.Project, short).WithHint("git push prod HEAD:%s", short)
	}
	cur, err := p.cfg.Repository(d.Project, d.Repo).Get(ctx, d.Change.Ref)
	if err != nil {
		return err
	}
	if cur != d.Change.Old {
		branch, _ := d.Change.Branch()
		return fault.New(fault.Refused, "", "fetch first: %s is at %s now, not at %s", branch, cur.Short(), d.Change.Old.Short()).
			WithHint("git fetch, look at what came, then push again (git push -f to override it)")
	}
	return nil
}

// openLog opens the event log of a deployment.
func (p *Pipeline) openLog(d project.Deployment, hide *redact.Redactor) (*event.Log, error) {
	log, err := event.Create(p.cfg.State.EventLog(d.Project.String(), string(d.ID)), p.cfg.Now, hide)
	if err == nil {
		log.Limit(p.cfg.MaxLogBytes())
	}
	return log, err
}

// deployedCommit is the commit of a repository's deployed branch, "" where there is none or it can't be read.
func deployedCommit(ctx context.Context, r Repository) project.Commit {
	ref, err := r.Deployed(ctx)
	if err != nil || ref == "" {
		return ""
	}
	c, err := r.Get(ctx, ref)
	if err != nil {
		return ""
	}
	return c
}

// Follow implements session.Deployer.
func (p *Pipeline) Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error] {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep != nil {
		return dep.log.Follow(ctx, seq)
	}
	rec, err := p.records.get(ctx, id)
	if err != nil {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, err) }
	}
	return event.Read(p.cfg.State.EventLog(rec.Project.String(), string(id)), seq)
}

// Wait implements session.Deployer.
func (p *Pipeline) Wait(ctx context.Context, id project.ID) (project.Result, error) {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep != nil {
		select {
		case <-dep.ended:
			return dep.res, nil
		case <-ctx.Done():
			return project.Result{}, context.Cause(ctx)
		}
	}
	rec, err := p.records.get(ctx, id)
	if err != nil {
		return project.Result{}, err
	}
	if rec.Result == nil {
		return project.Result{}, fault.New(fault.Internal, "wait", "deployment %s has no result", id.Short())
	}
	return *rec.Result, nil
}

// Deployments lists the newest deployments first, at most limit.
func (p *Pipeline) Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error) {
	list, err := p.records.list(ctx, name, limit)
	for i := range list {
		p.addRunning(&list[i])
	}
	return list, err
}

// Before gives the deployments of a project that are older than one of them, the newest first.
func (p *Pipeline) Before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error) {
	list, err := p.records.before(ctx, name, id, limit)
	for i := range list {
		p.addRunning(&list[i])
	}
	return list, err
}

// Last gives the newest deployment that has ended, of each of the projects that have one.
func (p *Pipeline) Last(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	list, err := p.records.last(ctx, names)
	return byProject(list), err
}

// Find resolves an ID or the beginning of one; "" is the newest deployment.
func (p *Pipeline) Find(ctx context.Context, name project.Name, prefix string) (project.Record, error) {
	rec, err := p.records.find(ctx, name, prefix)
	p.addRunning(&rec)
	return rec, err
}

// addRunning adds what is known of a deployment that runs right now.
func (p *Pipeline) addRunning(rec *project.Record) {
	p.mu.Lock()
	dep := p.byID[rec.ID]
	p.mu.Unlock()
	if dep != nil {
		*rec = dep.shown()
	}
}

// Shutdown refuses new deployments and ends those that wait, with "try again". What runs may finish until ctx ends;
// then it is ended and rolled back. Hooks and files that projects bring for a rollback, or for after the end, have Config.Patience from then on. It returns when nothing runs any more.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	for _, q := range p.queues {
		for _, dep := range q.all[1:] {
			dep.cancel(errShutdown())
		}
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	for _, dep := range p.byID {
		dep.cancel(&ended{why: "the server was stopped before it finished"})
	}
	p.mu.Unlock()
	select {
	case <-done:
		return context.Cause(ctx)
	case <-time.After(p.cfg.Patience):
	}
	// The tree comes back whatever it takes; what projects bring for that has had its time.
	p.mu.Lock()
	for _, dep := range p.byID {
		dep.endAside()
	}
	p.mu.Unlock()
	<-done
	return errors.Join(context.Cause(ctx))
}

// drive takes one deployment from the line to its end.
func (dep *deployment) drive(ctx context.Context) {
	ctx, stop := context.WithTimeoutCause(ctx, dep.p.cfg.Deadline, &ended{why: fmt.Sprintf("deadline of %s exceeded", dep.p.cfg.Deadline)})
	defer stop()
	if err := dep.await(ctx); err != nil {
		dep.refuse(err)
	} else {
		dep.deploy(ctx)
	}
	if dep.in != nil {
		if err := dep.in.Discard(); err != nil {
			dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(dep.rec.ID)).Msg("discard quarantine")
		}
	}
	dep.finish()
}

// finish records the result, speaks the verdict and lets the next one run.
func (dep *deployment) finish() {
	p, ctx := dep.p, context.Background()
	dep.res.Ended = p.cfg.Now()
	if dep.res.Started.IsZero() {
		dep.res.Started = dep.res.Ended
	}
	dep.hide(&dep.res)
	res := dep.res
	dep.update(func(rec *project.Record) {
		rec.State, rec.Result = res.State, &res
		rec.Procedure, rec.Step = "", ""
	})
	rec := dep.shown()
	put, note := p.records.put, p.cfg.Audit.Record
	if dep.soon {
		put, note = p.records.note, p.cfg.Audit.Note
	}
	if err := put(ctx, rec, dep.news(rec)...); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("record result")
	}
	p.record(ctx, rec, note)
	printResult(dep.log, rec)
	if !dep.soon {
		dep.settle()
	}
	dep.log.End()
	settled := p.settling.lock(rec.Project)
	p.leave(dep)
	close(dep.ended)
	if dep.soon {
		dep.settle()
	}
	settled()
	if res.State == project.Live && dep.env != nil {
		p.cfg.OnLive(rec.Project, dep.env.Prepared.Checks())
	}
	if res.State == project.Done && rec.Trigger == project.TriggerUndeploy {
		p.cfg.OnLive(rec.Project, nil)
	}
	p.cfg.OnEnd(rec)
}

// record writes the audit entry of an ended deployment, and a line of the server's log.
func (p *Pipeline) record(ctx context.Context, rec project.Record, note func(context.Context, audit.Entry) error) {
	if err := note(ctx, auditEntry(rec)); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("audit")
	}
	p.cfg.Logger.Info().Str("project", rec.Project.String()).Str("deployment", string(rec.ID)).Str("state", string(rec.State)).
		Str("reason", rec.Result.Reason).Dur("took", rec.Result.Ended.Sub(rec.Result.Started)).Msg("deployment ended")
}

func auditEntry(rec project.Record) audit.Entry {
	outcome := "ok"
	switch {
	case rec.State == project.Refused:
		outcome = "refused"
	case !rec.State.Good() || rec.Result != nil && !rec.Result.Good():
		outcome = "failed"
	}
	object := fmt.Sprintf("%s..%s", rec.LiveCode.Short(), rec.Code.Short())
	if rec.Repo == project.PillarRepo {
		object = fmt.Sprintf("pillar %s..%s", rec.LivePillar.Short(), rec.Pillar.Short())
	}
	if rec.Task != "" {
		object = rec.Task
	}
	return audit.Entry{
		Actor: rec.Pusher.Key, Fingerprint: rec.Pusher.Fingerprint, From: rec.Pusher.From, Action: string(rec.Trigger),
		Project: rec.Project.String(), Object: object, Outcome: outcome, Detail: rec.Result.Reason, Deployment: string(rec.ID),
	}
}
