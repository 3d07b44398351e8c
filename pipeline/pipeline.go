package pipeline

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
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
	"corpus-git/pipeline/approvals"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/locks"
	"corpus-git/pipeline/records"
	"corpus-git/pipeline/secrets"
	"corpus-git/pipeline/texts"
	"corpus-git/pipeline/vanished"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/project/underway"
)

// Settings are what the server knows about a project before its configuration is read.
type Settings struct {
	// Environment is the name of the environment, "" if the project's configuration sets it.
	Environment string
	RemoteLess  bool
	// Node is set where another server deploys the project here and knows its nodes; nil if it is pushed to.
	Node *project.Node
	// Unlinked: the operator removed the project from the Salt and pillar trees, and sync does not add it.
	Unlinked bool
}

// Config are the dependencies of a Pipeline. All fields except Demands, Signed, ApprovalTime, Underway, Converged, StopUnits, Boundary, OnEnd, OnLive, Notify, QueuedAfter,
// MaxLogBytes, Secrets and Logger are needed.
type Config struct {
	Root  layout.Root
	State layout.State
	DB    *sql.DB
	// Repository opens a repository of a project.
	Repository func(project.Name, project.Repo) Repository
	Tools      *procedures.Tools
	// Settings finds a project; an unknown one is fault.Refused.
	Settings func(ctx context.Context, name project.Name) (Settings, error)
	// SetEnvironment makes an environment that of a project; durable on return, and idempotent.
	SetEnvironment func(ctx context.Context, name project.Name, env string) error
	// May reports whether an actor has a permission on a project now. A rollback moves both branches, whichever repository it was requested in.
	May func(ctx context.Context, who project.Pusher, name project.Name, want project.Right) (bool, error)
	// Demands are those on a project in some environments; nil demands nothing.
	Demands func(name project.Name, environments []string) demands.Demands
	// Signed verifies the signature of the commit that a deployment brings to a repository, or of the tag of it; what is not signed by somebody who may is fault.Refused.
	Signed func(ctx context.Context, d project.Deployment, repo project.Repo, in project.Incoming) (demands.Signature, error)
	// ApprovalTime is how long a deployment waits for approval; nil is a day.
	ApprovalTime func() time.Duration
	Audit        *audit.Log
	// Underway records the projects in which a deployment runs; nil records none, and then Recover must examine all.
	Underway *underway.Markers
	Now      func() time.Time
	NewID    func() project.ID
	// Deadline ends a deployment that takes longer; 0 means 5 hours.
	Deadline time.Duration
	// StopTimeout is how long, while the server stops, hooks and files of projects may take in a rollback; 0 means 30 seconds.
	StopTimeout time.Duration
	// Logs opens the event logs; nil opens them, too.
	Logs *event.Opened
	// MaxLogBytes limits the event log of a new deployment (event.Log.Limit); nil sets no limit.
	MaxLogBytes func() int64
	// Secrets are the server's own, such as addresses of notifications; nil means none.
	Secrets func() []redact.Secret
	Logger  zerolog.Logger
	// Notify adds the notifications of a deployment to the transaction that writes its record; nil adds none.
	Notify func(ctx context.Context, tx db.Execer, n project.Notification) error
	// QueuedAfter is how long a deployment waits for its turn before that is notified; nil, and 0, never notify it.
	QueuedAfter func() time.Duration
	// OnEnd is called for every ended deployment.
	OnEnd func(project.Record)
	// OnLive is called with the live release and its checks after a deployment went live, after a manual rollback, and, without checks,
	// after an undeploy.
	OnLive func(project.Name, []project.Check)
	// Converged is called for each converge that has ended, before it is recorded, and reports whether its record is kept; nil keeps all.
	Converged func(context.Context, project.Record) (keep bool)
	// StopUnits stops a project's units, and returns their names; nil stops nothing.
	StopUnits func(ctx context.Context, name project.Name) ([]string, error)
	// Boundary is called with a name right after each journal entry, before what the entry announces: several hubs share the state there, and crash tests end the process.
	Boundary func(of project.Name, point string)
}

// DefaultDeadline is how long a deployment may take where nothing else is configured.
const DefaultDeadline = 5 * time.Hour

// DefaultStopTimeout is the default of Config.StopTimeout.
const DefaultStopTimeout = 30 * time.Second

// Pipeline runs the deployments of all projects. All methods are safe for concurrent use.
type Pipeline struct {
	cfg     Config
	records *records.Store
	// approvals are the deployments that wait until others approve them.
	approvals *approvals.Store
	// journals are those of projects.
	journals journal.Closed

	starting locks.Projects
	// settling is held while a deployment that has left the queue makes its results durable.
	settling locks.Projects
	bundles  locks.Projects
	mu       sync.Mutex
	queues   map[project.Name]*queue
	byID     map[project.ID]*deployment
	vanished vanished.Results
	holders  map[project.Name][]*holder
	stopping bool
	known    *secrets.Finder
	kept     recipe.Kept
	running  sync.WaitGroup
}

// New prepares the tables. Call Recover before the first Start.
func New(ctx context.Context, cfg Config) (*Pipeline, error) {
	if cfg.Deadline == 0 {
		cfg.Deadline = DefaultDeadline
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = DefaultStopTimeout
	}
	if cfg.OnEnd == nil {
		cfg.OnEnd = func(project.Record) {}
	}
	if cfg.StopUnits == nil {
		cfg.StopUnits = func(context.Context, project.Name) ([]string, error) { return nil, nil }
	}
	if cfg.Converged == nil {
		cfg.Converged = func(context.Context, project.Record) bool { return true }
	}
	if cfg.OnLive == nil {
		cfg.OnLive = func(project.Name, []project.Check) {}
	}
	if cfg.Boundary == nil {
		cfg.Boundary = func(project.Name, string) {}
	}
	if cfg.MaxLogBytes == nil {
		cfg.MaxLogBytes = func() int64 { return 0 }
	}
	if cfg.Secrets == nil {
		cfg.Secrets = func() []redact.Secret { return nil }
	}
	recs, err := records.Open(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	recs.Notify = cfg.Notify
	waiting, err := approvals.NewStore(ctx, cfg.DB, cfg.Now)
	if err != nil {
		return nil, err
	}
	waiting.May, waiting.Audit, waiting.Notify = cfg.May, cfg.Audit, cfg.Notify
	if cfg.ApprovalTime == nil {
		cfg.ApprovalTime = func() time.Duration { return 24 * time.Hour }
	}
	if cfg.QueuedAfter == nil {
		cfg.QueuedAfter = func() time.Duration { return 0 }
	}
	known := &secrets.Finder{Root: cfg.Root, Tools: cfg.Tools, Own: cfg.Secrets, Records: recs.List, Pins: archivePins, Log: cfg.Logger,
		Repository: func(name project.Name, repo project.Repo) secrets.Repository { return cfg.Repository(name, repo) }}
	p := &Pipeline{cfg: cfg, known: known, kept: recipe.Kept{State: cfg.State}, records: recs, approvals: waiting, queues: map[project.Name]*queue{}, byID: map[project.ID]*deployment{}, holders: map[project.Name][]*holder{}}
	return p, nil
}

// Start adds a deployment to the project's queue; see session.Deployer for the contract.
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
		defer p.bundles.Lock(d.Project)()
		if known, err := p.Begun(ctx, d); known || err != nil {
			return d.ID, err
		}
	}
	if d.ID == "" {
		d.ID = p.cfg.NewID()
	}
	d.At = p.cfg.Now()
	hide := p.known.Live(ctx, d, in)
	d.Set = p.known.Settings(ctx, d, in, set.RemoteLess, hide)
	// A crash from here on leaves something in this project, so the note is written first.
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
	// The deployment does not end with the caller's context: only its values are used.
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
		defer cancel(nil)
		if dep.drive(dctx); !dep.isSuspended() {
			over()
		}
	}()
	return d.ID, nil
}

// Begun reports whether the deployment that a bundle asks for was started before: it is identified by its ID, and runs once. One of that ID
// with another content is fault.Refused.
func (p *Pipeline) Begun(ctx context.Context, d project.Deployment) (bool, error) {
	rec, err := p.records.Get(ctx, d.ID)
	switch {
	case err != nil && fault.KindOf(err) == fault.Usage:
		return false, nil
	case err != nil:
		return false, err
	case rec.Project != d.Project || rec.Trigger != d.Trigger || d.Trigger == project.TriggerBundle && (rec.Code != d.Code || rec.Pillar != d.Pillar):
		return false, fault.New(fault.Refused, "bundle", "deployment %s already exists here with other content: %s of %s", d.ID.Short(), rec.Code.Short(), rec.Project)
	}
	return true, nil
}

// admit records a deployment and adds it to its project's queue. Where one for the very same change runs or waits, it returns that one, and
// dep is abandoned, as after an error.
func (p *Pipeline) admit(ctx context.Context, dep *deployment) (same *deployment, err error) {
	d := dep.rec.Deployment
	// mu, which every project needs, is not held while the record is written. Per project one deployment at a time gets here: records are
	// in the order of the queue, and two pushes of the same change find each other.
	defer p.starting.Lock(d.Project)()
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		dep.abandon()
		return nil, errStopping
	}
	if d.Trigger == project.TriggerConverge && d.Converge.Occasion != "" && p.queues[d.Project] != nil {
		p.mu.Unlock()
		dep.abandon()
		return nil, fault.New(fault.Busy, "converge", "a deployment of %s is running", d.Project)
	}
	if q := p.queues[d.Project]; q != nil && q.all[0].left {
		p.mu.Unlock()
		dep.abandon()
		return nil, fault.New(fault.Busy, "deploy", "deployment %s of %s waits for signals, and no server is running", q.all[0].rec.ID.Short(), d.Project).
			WithHint("start it:  corpus-git serve ; or end the deployment:  corpus-git cancel %s", d.Project)
	}
	if same := p.joinable(d); same != nil {
		p.mu.Unlock()
		dep.abandon()
		return same, nil
	}
	var ahead []*deployment
	if q := p.queues[d.Project]; q != nil {
		ahead = slices.Clone(q.all)
	}
	p.byID[d.ID] = dep
	p.running.Add(1)
	p.mu.Unlock()
	if err = p.records.Note(ctx, dep.shown()); err == nil && !p.records.Estimated(d.Project) {
		go dep.estimated() // it is asked for before the steps
	} else if err == nil {
		dep.estimated()
	}
	for _, x := range ahead {
		x.estimated() // when it is dep's turn depends on it
	}
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
		dep.printWaiting(p.queues[d.Project].all[:dep.place], p.cfg.Now())
	}
	if p.stopping {
		dep.cancel(errShutdown()) // Shutdown came while it was recorded
	}
	return nil, nil
}

// abandon undoes Start for a deployment that was not admitted.
func (dep *deployment) abandon() {
	dep.cancel(nil)
	_ = dep.log.Close()
	removeQuietly(dep.p.cfg.State.EventLog(dep.rec.Project.String(), string(dep.rec.ID)))
}

// compare refuses a change whose old value is not the ref's.
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
		if cur == d.Change.New {
			return fault.New(fault.Refused, "", "%s is at %s already: another push of this commit has ended meanwhile", branch, cur.Short()).
				WithHint("nothing is left to do; to deploy it again:  git push prod HEAD:refs/deploy/now")
		}
		return fault.New(fault.Refused, "", "fetch first: %s is at %s now, not at %s", branch, cur.Short(), d.Change.Old.Short()).
			WithHint("git fetch, check the new commits, then push again (git push -f overwrites them)")
	}
	return nil
}

// openLog opens the event log of a deployment.
func (p *Pipeline) openLog(d project.Deployment, hide *redact.Redactor) (*event.Log, error) {
	log, err := p.cfg.Logs.Create(p.cfg.State.EventLog(d.Project.String(), string(d.ID)), p.cfg.Now, hide)
	if err == nil {
		log.Limit(p.cfg.MaxLogBytes())
	}
	return log, err
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

// drive takes one deployment from the queue to its end.
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
	if dep.isSuspended() {
		dep.leaveWaiting()
		return
	}
	dep.finish()
}

// finish records the result, reports the verdict and lets the next one run.
func (dep *deployment) finish() {
	p, ctx := dep.p, context.Background()
	dep.res.End(p.cfg.Now())
	dep.hide(&dep.res)
	res := dep.res
	dep.update(func(rec *project.Record) {
		rec.State, rec.Result = res.State, &res
		rec.Procedure, rec.Step, rec.Waits = "", "", ""
	})
	rec := dep.shown()
	put, note := p.records.Put, p.cfg.Audit.Record
	if dep.soon {
		put, note = p.records.Note, p.cfg.Audit.Note
	}
	if rec.Trigger == project.TriggerConverge && !p.cfg.Converged(ctx, rec) {
		dep.vanish()
		return
	}
	if err := put(ctx, rec, dep.notificationsOf(rec)...); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("record result")
	}
	p.record(ctx, rec, note)
	texts.Result(dep.log, rec)
	if !dep.soon {
		dep.settle()
	}
	dep.log.End()
	settled := p.settling.Lock(rec.Project)
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
	if res.State == project.Live {
		// The next deployment need not look for them, and says so if they can't be read.
		_, _ = p.records.Estimates(ctx, rec.Project)
		_, _ = p.records.Live(ctx, []project.Name{rec.Project})
	}
	p.cfg.OnEnd(rec)
}

// record writes the audit entry of an ended deployment, and a line of the server's log.
func (p *Pipeline) record(ctx context.Context, rec project.Record, note func(context.Context, audit.Entry) error) {
	if err := note(ctx, texts.Audit(rec)); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(rec.ID)).Msg("audit")
	}
	p.cfg.Logger.Info().Str("project", rec.Project.String()).Str("deployment", string(rec.ID)).Str("state", string(rec.State)).
		Str("reason", rec.Result.Reason).Stringer("took", rec.Result.Ended.Sub(rec.Result.Started).Round(time.Millisecond)).Msg("deployment ended")
}
