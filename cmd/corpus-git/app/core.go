package app

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/archive"
	"corpus-git/checks/watch"
	"corpus-git/cmd/corpus-git/changes"
	"corpus-git/cmd/corpus-git/hostkeys"
	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/cmd/corpus-git/verbs"
	hubverbs "corpus-git/cmd/corpus-git/verbs/hubs"
	"corpus-git/container/credentials"
	"corpus-git/converge"
	"corpus-git/fleet"
	"corpus-git/fleet/agent"
	"corpus-git/fleet/machines"
	"corpus-git/git/pack"
	"corpus-git/hooks"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/memory"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
	"corpus-git/kv"
	"corpus-git/kv/register"
	keywatch "corpus-git/kv/watch"
	"corpus-git/layout"
	"corpus-git/live"
	"corpus-git/notify"
	"corpus-git/pipeline"
	"corpus-git/procedures"
	"corpus-git/procedures/inherit"
	"corpus-git/procedures/permissions"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/salttree"
	"corpus-git/procedures/upkeep"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/configs"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/project/underway"
	"corpus-git/receive"
	"corpus-git/receive/maintenance"
	"corpus-git/remote"
	"corpus-git/signals"
	"corpus-git/sls"
	"corpus-git/sls/choose"
	"corpus-git/sls/grains"
	"corpus-git/sls/host"
	"corpus-git/sls/run"
	"corpus-git/sls/tool"
)

// core contains all rooms except the listeners (SSH, HTTP, socket): what both a server and a command without a server need.
type core struct {
	// build is the result of Build, which reads the whole list of modules.
	build status.Build
	root  layout.Root
	state layout.State
	cfg   atomic.Pointer[config.Config]
	lock  *statedir.Lock
	// clean reports that there is nothing to recover: the last owner of the state shut down cleanly, or this one has recovered it.
	clean    atomic.Bool
	underway *underway.Markers
	// recovered holds the projects that recover examined, if not all. It is set before anything listens.
	recovered map[project.Name]bool
	db        *sql.DB
	audit     *audit.Log
	access    *access.Store
	registry  *registry.Registry
	repos     *receive.Repositories
	memory    *pack.Memory // for deltas of all pushes
	pipeline  *pipeline.Pipeline
	changes   changes.Gate
	fleet     *fleet.Store
	hubs      hubverbs.Backend
	nodes     *machines.Fleet
	hosts     *remote.Hosts // of nodes
	nodeKeys  *credentials.Agent
	tools     *procedures.Tools
	signals   *signals.Store
	kv        *kv.Store
	runner    *choose.Runner
	live      *live.Projects
	outbox    *notify.Outbox
	notifier  *notify.Worker
	log       zerolog.Logger
	env       []string
	// port is that of the SSH server, 0 until it listens.
	port    atomic.Int64
	onEnd   func(project.Record)
	reached func(point string)

	archivesMu sync.Mutex
	archives   map[project.Name]*archive.Store
	looks      *changed.Notifier   // of looks at trees before their archives
	looksAfter *changed.Notifier   // of looks after deployments
	background *archive.Background // one archive of the machine is packed at a time
	upkeep     *upkeep.Scheduler
	watch      *watch.Watcher
	converge   *converge.Scheduler
	keys       *keywatch.Watcher
	register   *register.Registrar
	hostKeys   *hostkeys.Keys
	agent      atomic.Pointer[agent.Agent] // nil if this is not an agent that dials in
	serves     bool                        // a server's: upkeep runs
	packAtOnce int64                       // archive.Config.AtOnce
	lead       *hubs.Lead                  // nil without other hubs
	facts      func() *py.Dict
	trash      sync.WaitGroup
	// maintainer is created with the pipeline; only a server runs it in the background.
	maintainer *maintenance.Scheduler
}

// makeTools creates the tools of procedures.
func (c *core) makeTools(o options) {
	commander := execx.OS{Notes: c.state.Processes(), Boot: execx.Boot()}
	machine := host.New(commander)
	machine.Boot = cmp.Or(o.boot, machine.Boot)
	machine.Environ = host.CleanEnviron(o.env, machine.Users, machine.EUID)
	c.runner = choose.New(choose.Config{
		Settings: func() (string, string) { cfg := c.cfg.Load(); return cfg.Runner, cfg.SaltCall },
		Backups:  filepath.Join(c.state.Path(), "backups"), SaltDir: func() string { return c.state.SaltConfig("x", string(project.NewID())) }, Env: o.env,
	})
	c.tools = &procedures.Tools{
		Root: c.root, State: c.state, Archives: c.archive, Ahead: func(n project.Name) { c.upkeep.Ahead(n) }, Steps: c.runner, Scripts: run.Script{}, Host: machine,
		Others: map[string]sls.Runner{recipe.ToolAnsible: tool.Ansible{}, recipe.ToolPuppet: tool.Puppet{}, recipe.ToolFiles: &run.Builtin{Backups: filepath.Join(c.state.Path(), "backups")}},
		Hooks:  &hooks.Runner{Exec: commander, State: c.state}, FS: vfs.OS{}, Exec: commander, Now: time.Now, Changes: changed.New(changed.Watches),
		Grains: c.facts, FileRoots: o.cfg.FileRoots, CfgDir: o.cfg.CfgDir, Retention: func() project.Retention { return c.cfg.Load().Retention() },
		Remotes: func(n project.Name) (string, string) { r := c.remotes(n); return r.Project, r.Pillar },
	}
	c.tools.Repository = func(n project.Name, r project.Repo) procedures.Repository { return c.repos.Open(n, r) }
	c.tools.Upstream = func(n project.Name) inherit.Upstream { return c.repos.Open(n, project.Code) }
	c.tools.Live = c.liveCommit
	c.nodes = &machines.Fleet{Store: c.fleet, Hosts: c.hosts, Bundles: func() machines.Bundles { return c.bundles() }, State: c.state, Signer: c.signer, Elect: c.kv.Elect, Leads: c.kv.Leads, Facts: c.kv.SetFacts, Saved: func(n project.Name) { c.lead.Share(n) }, Required: c.lead != nil, Log: c.log}
	c.hostKeys = &hostkeys.Keys{State: c.state, Fleet: c.nodes, Busy: func() int { return c.pipeline.Busy() }, Shared: func() { c.lead.Share() }}
	c.nodes.Keys = c.hostKeys.Said
	c.nodeKeys = nodeKeys(c.state)
	c.nodes.Offer = func(options []string) error {
		if !slices.Contains(options, c.nodeKeys.Option()) {
			return nil
		}
		return c.nodeKeys.Ensure()
	}
	c.tools.Fleet, c.tools.Keys = c.nodes, c.visibleKeys
	c.tools.Environments = c.environments
	c.registry.Environments = c.environments
	c.tools.Accounts = o.cfg.Accounts != "off"
}

// makeBackground creates what inspects and maintains projects between deployments. None of it runs before the pipeline exists.
func (c *core) makeBackground(o options) {
	c.upkeep = &upkeep.Scheduler{Archives: c.archive, Retention: c.retention, Projects: c.withArchives, Every: upkeepEvery, Quiet: o.upkeepQuiet(), Reached: o.reached, Log: o.log}
	c.maintainer = maintenance.New(maintenance.Config{
		Settings: func() config.Maintenance { return c.cfg.Load().Maintenance }, Repository: c.repos.Open, Projects: c.maintained, Log: o.log,
		Deploying: func(ctx context.Context, n project.Name) (bool, error) {
			q, err := c.pipeline.Queue(ctx, n)
			return q.Running != nil, err
		},
		Busy: func() int { return c.pipeline.Busy() },
	})
	c.live = live.New(live.Config{
		Tools: c.tools, Get: c.registry.Get, Repository: func(n project.Name, r project.Repo) live.Repository { return c.repos.Open(n, r) },
		Redactor:  func(ctx context.Context, n project.Name) *redact.Redactor { return c.pipeline.Redactor(ctx, n) },
		Retention: func() project.Retention { return c.cfg.Load().Retention() },
	})
}

// openCore locks the state and opens every room. Nothing is recovered yet. The caller closes it. It is long because it is one list of rooms, each of which
// needs earlier ones.
func openCore(ctx context.Context, o options) (c *core, err error) {
	c = &core{build: Build(), root: layout.Root(o.cfg.Root), state: layout.State(o.cfg.StateDir), log: o.log, env: o.env, onEnd: o.onEnd, reached: o.reached, packAtOnce: o.packAtOnce(), lead: o.lead, archives: map[project.Name]*archive.Store{}, background: archive.NewBackground(), looks: changed.New(looks), looksAfter: changed.New(looks)}
	c.hubs = hubverbs.New(c.state)
	if at := c.lead.Cluster(); at != nil {
		c.hubs.Cluster = at
	}
	c.cfg.Store(o.cfg)
	// The root is accessible to every user who runs a step; the state below it only to the server.
	if err := os.MkdirAll(o.cfg.Root, 0o755); err != nil {
		return nil, fault.New(fault.Internal, "make the root", "%w", err)
	}
	if c.lock, err = statedir.Take(c.state, o.who, o.wait); err != nil {
		return nil, err
	}
	begun := c
	defer func() {
		if err != nil {
			err = newerDatabase(err)
			_ = begun.close() // c is nil by now
		}
	}()
	clean, err := statedir.TakeClean(c.state)
	if err != nil {
		return nil, statedir.Error(c.state, err)
	}
	if c.underway, err = underway.Open(c.state.Underway(), vfs.OS{}); err != nil {
		return nil, statedir.Error(c.state, err)
	}
	if c.db, err = db.OpenWith(ctx, c.state.Database(), db.Options{Replicated: o.lead != nil}); err != nil {
		return nil, statedir.Error(c.state, err)
	}
	o.lead.Database(c.db)
	if c.audit, err = audit.Open(ctx, c.db, time.Now); err != nil {
		return nil, err
	}
	if c.access, err = access.Open(ctx, c.db, c.audit, time.Now); err != nil {
		return nil, err
	}
	if c.registry, err = registry.Open(ctx, c.db, c.root, c.state, time.Now); err != nil {
		return nil, err
	}
	c.hosts = &remote.Hosts{Like: &remote.Host{Exec: execx.OS{}, Env: c.env, Dir: c.state.Path()}}
	if c.fleet, err = fleet.Open(ctx, c.db); err != nil {
		return nil, err
	}
	c.memory = pack.NewMemory(int64(o.cfg.Limits.DeltaMemory))
	c.repos = &receive.Repositories{Root: c.root, Now: time.Now, MaxFiles: o.cfg.Limits.MaxFiles, Submodule: c.submodules, Underway: c.underway, Log: o.log}
	c.facts = sync.OnceValue(func() *py.Dict { return grains.Collect(grains.Source{}) })
	if c.kv, err = kv.Open(ctx, c.db, time.Now); err != nil {
		return nil, err
	}
	c.makeTools(o)
	program, err := os.Executable()
	if err == nil {
		c.repos.HandOver = receive.HandOver{Program: program, Socket: c.state.Socket()}
		err = permissions.WriteProgram(c.state, program)
	}
	if err != nil {
		return nil, fmt.Errorf("write the program reset-perms: %w", err)
	}
	if err := c.openNotify(ctx); err != nil {
		return nil, err
	}
	c.makeBackground(o)
	c.pipeline, err = pipeline.New(ctx, pipeline.Config{
		Repository: func(n project.Name, r project.Repo) pipeline.Repository {
			return c.changes.Repository(c.repos.Open(n, r))
		},
		Root: c.root, State: c.state, DB: c.db, Tools: c.tools, Settings: c.settings, SetEnvironment: c.setEnvironment, May: c.may, Demands: c.demands, Signed: c.signed, ApprovalTime: func() time.Duration { return c.cfg.Load().Require.ApprovalTime }, Audit: c.audit, Underway: c.underway, Now: time.Now,
		NewID: project.NewID, Deadline: o.cfg.Deadline, Logger: o.log, OnEnd: c.ended, StopUnits: func(ctx context.Context, n project.Name) ([]string, error) { return c.units().Stop(ctx, n) },
		OnLive: c.wentLive, Converged: func(ctx context.Context, rec project.Record) bool { return c.converge.Ended(ctx, rec) }, Boundary: o.shares(), Logs: o.lead.Logs(),
		Notify: c.outbox.Add, QueuedAfter: func() time.Duration { return c.cfg.Load().Notify.QueuedAfter },
		MaxLogBytes: func() int64 { return int64(c.cfg.Load().Limits.MaxLog) }, Secrets: func() []redact.Secret { return c.cfg.Load().Secrets() },
	})
	if err != nil {
		return nil, err
	}
	if err := c.openWatch(ctx); err != nil {
		return nil, err
	}
	if err := c.openConverge(ctx); err != nil {
		return nil, err
	}
	c.upkeep.Removed = c.pipeline.SweepPins
	c.registry.Linker, c.registry.Deployments = linker{salttree.Links{FS: vfs.OS{}, Root: c.root}}, c.pipeline
	c.registry.Repository = func(n project.Name, r project.Repo) registry.Repository { return c.repos.Open(n, r) }
	if _, err = c.registry.Reconcile(ctx); err != nil {
		return nil, fmt.Errorf("look for projects: %w", err)
	}
	if c.tools.Configs, err = configs.Open(ctx, c.db, time.Now); err != nil {
		return nil, err
	}
	if c.signals, err = signals.OpenStore(ctx, c.db, time.Now); err != nil {
		return nil, err
	}
	if _, err := c.tools.Configs.Abandon(ctx, c.signals.Left()...); err != nil {
		return nil, err
	}
	if err := db.SetWriter(ctx, c.db, Build().Release); err != nil {
		return nil, statedir.Error(c.state, err)
	}
	c.clean.Store(clean)
	return c, nil
}

// newerDatabase adds a hint to the error of a database of a newer version.
func newerDatabase(err error) error {
	var newer *db.NewerError
	if !errors.As(err, &newer) {
		return err
	}
	return fault.New(fault.Refused, "", "%w; this is corpus-git %s", err, Build().Release).
		WithHint("install that version again, or restore a backup made before the upgrade:  corpus-git restore FILE")
}

// ended is called for every deployment that has ended.
func (c *core) ended(rec project.Record) {
	if err := c.signals.Ended(context.Background(), rec.ID); err != nil {
		c.log.Error().Err(err).Str("deployment", string(rec.ID)).Msg("end its waits")
	}
	if slices.Contains(c.signals.Left(), rec.ID) {
		if err := c.tools.Configs.AbandonOf(context.Background(), rec.ID); err != nil {
			c.log.Error().Err(err).Str("deployment", string(rec.ID)).Msg("end its configs")
		}
	}
	switch rec.Trigger {
	case project.TriggerTask, project.TriggerCheck, project.TriggerPlan, project.TriggerConverge:
	default:
		if rec.State.Good() {
			c.keys.Live(rec.Project, rec.At)
		}
	}
	c.upkeep.Due(rec.Project)
	c.maintainer.Ended(rec.Project)
	c.reached("told")
	if c.onEnd != nil {
		c.onEnd(rec)
	}
	c.lead.Share(rec.Project) // nobody may wait for the result: its client has gone, or another hub led when it began
	if c.pipeline.Busy() == 0 {
		memory.Collect()
	}
}

// close closes everything in reverse order. Deployments must have ended.
func (c *core) close() error {
	if c.upkeep != nil && !c.upkeep.Stop(closeTimeout) {
		c.log.Warn().Msg("packing of archives was interrupted; the next start continues it")
		c.clean.Store(false)
	}
	if c.watch != nil {
		c.watch.Stop()
	}
	if c.register != nil {
		c.register.Stop()
	}
	if c.keys != nil {
		c.keys.Stop()
	}
	if c.converge != nil {
		c.converge.Stop()
	}
	c.drain()
	c.trash.Wait()
	var errs []error
	c.archivesMu.Lock()
	for _, a := range c.archives {
		errs = append(errs, a.Wait())
	}
	c.archivesMu.Unlock()
	if c.repos != nil {
		errs = append(errs, c.repos.Close())
	}
	if c.hosts != nil {
		errs = append(errs, c.hosts.Close())
	}
	if c.nodeKeys != nil {
		errs = append(errs, c.nodeKeys.Close())
	}
	errs = append(errs, c.lead.Close(context.Background()))
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	if c.clean.Load() && errors.Join(errs...) == nil {
		errs = append(errs, statedir.LeaveClean(c.state))
	}
	return errors.Join(append(errs, c.lock.Release())...)
}

// closeTimeout is how long close waits for background work that can be interrupted safely.
const closeTimeout = 5 * time.Second

// looks is how many projects at a time are looked at before their archives, and how many after their deployments.
const looks = 2

// archive returns the archives of a project, the same Store each time.
func (c *core) archive(name project.Name) *archive.Store {
	c.archivesMu.Lock()
	defer c.archivesMu.Unlock()
	a := c.archives[name]
	if a == nil {
		a = archive.New(c.root.Project(string(name)), archive.Config{Background: c.background, Reserve: reserve(c.cfg.Load()), AtOnce: c.packAtOnce, Files: c.lead != nil, Looks: c.looks, LooksAfter: c.looksAfter,
			Begin: func() (func(), error) { return c.underway.Begin(name) }})
		c.archives[name] = a
	}
	return a
}

// reserve returns the disk space that deployments keep free.
func reserve(cfg *config.Config) archive.Reserve {
	if cfg.DiskReserve == 0 && cfg.DiskPercent == 0 {
		return archive.Reserve{Percent: -1} // nothing, since zero means the default
	}
	return archive.Reserve{Percent: cfg.DiskPercent, Bytes: uint64(cfg.DiskReserve)}
}

// environments returns the environments of the configuration, which was validated when it was loaded.
func (c *core) environments() project.Environments {
	envs, err := c.cfg.Load().Envs()
	if err != nil {
		c.log.Error().Err(err).Msg("environments")
	}
	return envs
}

// settings adapts a project of the registry to the pipeline.
func (c *core) settings(ctx context.Context, name project.Name) (pipeline.Settings, error) {
	p, err := c.registry.Get(ctx, name)
	return pipeline.Settings{Environment: p.Env, RemoteLess: p.RemoteLess, Unlinked: !p.Linked, Node: p.Node}, err
}

// setEnvironment is pipeline.Config.SetEnvironment.
func (c *core) setEnvironment(ctx context.Context, name project.Name, env string) error {
	_, err := c.registry.Create(ctx, name, registry.Settings{Env: env})
	return err
}

// liveCommit returns the commit of the newest deployment that went live, according to the server's records.
func (c *core) liveCommit(ctx context.Context, name project.Name) (project.Commit, error) {
	last, err := c.pipeline.LastLive(ctx, []project.Name{name})
	return last[name].Code, err
}

// backend returns the backend of the verbs. detached reports that a server runs them.
func (c *core) backend(detached bool) *verbs.Backend {
	b := &verbs.Backend{
		Projects: projects{c.registry, c}, Runs: c.pipeline, Access: c.access, Archives: archives{c}, Cfg: c.live, Units: c.units(), Enter: c.units(), Shells: c.cfg.Load().Shell, Checks: c.watch, Bundles: c.bundles(), Promotions: c.bundles(), Configs: c.tools.Configs, Fleet: c.nodes, Hubs: c.hubs, Jobs: c.fleet, Signals: c.signals, Approvals: c.pipeline, KV: c.kv, Recipes: c.live, Begin: c.begin, Audit: c.audit, Notifications: outbox{c.outbox, c},
		Status: c.status(), Commands: c.sshCommand, Address: c.address, Hello: c.hello, HostKeys: c.hostKeys,
		PublishedKeys: func(ctx context.Context, address string) ([]access.Published, error) {
			return access.FetchKeys(ctx, &http.Client{}, address)
		},
		Events: func(name project.Name, id project.ID) iter.Seq2[event.Event, error] {
			return event.Read(c.state.EventLog(string(name), string(id)), 0)
		},
		Doctor: c.doctor(),
		Backup: c.backup, Maintainer: c.maintainer, Host: c.hostName(), Build: c.build, Now: time.Now, Detached: detached, ProgressAfter: c.cfg.Load().Progress,
	}
	if detached {
		b.Discard = func(context.Context) {
			c.trash.Go(func() { c.emptyTrash(context.Background()) })
		}
	} else {
		b.Prepare, b.Discard = c.recover, c.emptyTrash
	}
	return b
}

// units returns the units of projects.
func (c *core) units() live.Units {
	return live.Units{Projects: c.live, Exclusive: c.pipeline.Exclusive}
}

func (c *core) emptyTrash(ctx context.Context) {
	if err := c.registry.EmptyTrash(ctx); err != nil {
		c.log.Warn().Err(err).Msg("empty the trash")
	}
}

func (c *core) status() *status.Source {
	return &status.Source{
		Root: c.root, Projects: c.registry, Records: c.pipeline, Archives: archives{c}, Remotes: c.remotes, Server: c.reach, Checks: c.watch.States, Converge: c.converge.State,
		Repository: func(n project.Name, r project.Repo) status.Repository { return c.repos.Open(n, r) },
	}
}
