package procedures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/fleet"
	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/changed"
	"corpus-git/layout"
	"corpus-git/procedures/examined"
	"corpus-git/procedures/inherit"
	"corpus-git/procedures/keys"
	"corpus-git/procedures/outfile"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
	"corpus-git/procedures/resume"
	"corpus-git/procedures/waiting"
	"corpus-git/project"
	"corpus-git/project/configs"
	"corpus-git/sls"
	"corpus-git/sls/host"
	"corpus-git/sls/tool"
	"corpus-git/undo"
)

// Procedure is one named phase of a deployment.
type Procedure interface {
	// Name returns the procedure's name as in only=, skip_ and .salt/<name>.sls.
	Name() string
	// Run does the work, and can be run again. It describes the work with env.Summarize. A *fault.Error of kind Failed is the project's fault,
	// any other kind is the machine's or ours.
	Run(ctx context.Context, env *Env) error
}

// The names of the procedures, in the order of a deployment.
const (
	NameArchive     = "archive"
	NameSync        = "sync"
	NameReleaseSync = "release-sync"
	NameFixperms    = "fixperms"
	NameInstall     = "install"
	NameRollback    = "rollback"
	NameNotify      = "notify"
)

// Names returns all procedures, in order; fixperms runs a second time after install.
func Names() []string { return recipe.Procedures() }

// Repository is what the procedures need from one repository of a project, and of its working copy; receive's satisfies it.
type Repository interface {
	Create(ctx context.Context) (made bool, err error)
	Checkout(ctx context.Context, req project.Checkout) (project.CheckoutStats, error)
	// TryCheckout reports what was changed in a working copy, and the error that Checkout would return because of that; it writes nothing.
	TryCheckout(ctx context.Context, req project.Checkout, in project.Incoming) (project.CheckoutStats, error)
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	Describe(ctx context.Context, old, new project.Commit, in project.Incoming) (project.Description, error)
	// Commit returns the commit that a ref points to, directly or through tags, "" if there is none; List returns the refs below prefix, hidden
	// ones included.
	Commit(ctx context.Context, ref string) (project.Commit, error)
	List(ctx context.Context, prefix string) (map[string]project.Commit, error)
	CompareAndSwap(ctx context.Context, c project.Change) error
	// Refresh updates a working copy's index after owners and modes, but not contents, were changed.
	Refresh(ctx context.Context, dir string) error
}

// Reporter receives the events of a deployment; *event.Log implements it.
type Reporter interface {
	Append(e event.Event) uint64
}

// Tools are the dependencies of all deployments; they are created once.
type Tools struct {
	Root  layout.Root
	State layout.State
	// Repository opens a repository of a project.
	Repository func(project.Name, project.Repo) Repository
	// Upstream reads recipes from other servers; nil reads none.
	Upstream func(project.Name) inherit.Upstream
	// Archives gives the archives of one project, the same Store each time.
	Archives func(project.Name) *archive.Store
	// Ahead begins archive.Store.Ahead in the background; nil does nothing.
	Ahead func(project.Name)
	// Steps applies SLS files and Scripts executable steps.
	Steps   sls.Runner
	Scripts sls.Runner
	// Others apply the steps of other tools, by recipe.Step.Tool.
	Others map[string]sls.Runner
	Host   *host.Host
	Hooks  *hooks.Runner
	FS     vfs.FS
	Exec   execx.Commander
	Now    func() time.Time
	// Grains are the facts of this machine.
	Grains func() *py.Dict
	// FileRoots are further file roots of salt://, after <root>/salt.
	FileRoots []string
	// CfgDir is the folder of the configuration files of the machine's image; "" means none.
	CfgDir string
	// Accounts: projects have their own users and groups, which own their files. This needs root.
	Accounts bool
	// Retention returns which archives are kept if a project sets nothing; nil means project.DefaultRetention.
	Retention func() project.Retention
	// Environments returns the environments of the server; nil means dev, staging and prod.
	Environments func() project.Environments
	// Remotes returns the two addresses to push to, for the sync procedure and cfg.
	Remotes func(project.Name) (code, pillar string)
	// Configs records what was applied; nil records nothing.
	Configs *configs.Store
	// Fleet deploys projects with nodes to other machines; nil means no nodes.
	Fleet Fleet
	// Signals lets steps wait for signals; nil if no server receives them.
	Signals waiting.Signals
	// Keys provides the keys of package kv to steps.
	Keys keys.Source
	// Live returns the commit of a project's newest live deployment, ""> if there is none or the project has no commits.
	Live func(context.Context, project.Name) (project.Commit, error)
	// Changes reports what steps changed; nil means that everything is looked at.
	Changes *changed.Notifier

	known *examined.Known // of one deployment
}

// Fleet deploys to other machines.
type Fleet interface {
	// Known returns the nodes that the operator added.
	Known(ctx context.Context) (map[string]fleet.Node, error)
	// NodeOf returns the node on which a project without a nodes.yaml runs, "" if none; where every project must have one, that is fault.Refused if it is needed.
	NodeOf(ctx context.Context, of project.Name, needed bool) (node string, err error)
	// Job finds a stored job by NAME@REVISION.
	Job(ctx context.Context, of project.Name, ref string) (fleet.Job, error)
	// Rollout prepares the deployment of a plan to the nodes; with a nil plan, its rollback.
	Rollout(d project.Deployment, p *fleet.Plan, known map[string]fleet.Node) *fleet.Rollout
}

// recipes is where the recipes are found that another one extends. alone: those of other projects are not.
func (t *Tools) recipes(alone bool) inherit.Server {
	s := inherit.Server{FS: t.FS, Root: t.Root, State: t.State, Upstream: t.Upstream, Live: t.Live}
	if t.Repository != nil && !alone {
		s.Code = func(n project.Name) inherit.Repository { return t.Repository(n, project.Code) }
	}
	return s
}

func (t *Tools) environments() project.Environments {
	if t.Environments == nil {
		return project.Environments{}
	}
	return t.Environments()
}

func (t *Tools) retention() project.Retention {
	if t.Retention == nil {
		return project.DefaultRetention()
	}
	return t.Retention()
}

// Pillar returns a reader of a project's pillar.
func (t *Tools) Pillar(name project.Name) *pillar.Reader {
	return &pillar.Reader{Root: t.Root, Host: t.Host, Name: name, Grains: t.Grains()}
}

// Open returns the tools of one deployment: its steps may share what their runner keeps alive. close must be called once, when the
// deployment has ended; it waits until what its steps were recorded as is written.
func (t *Tools) Open() (tools *Tools, close func() error) {
	out := *t
	out.known = examined.New(t.Changes)
	steps, end := sls.Open(t.Steps)
	out.Steps = steps
	return &out, func() error {
		out.known.Close()
		out.Configs.Flush()
		return end()
	}
}

// runner returns the runner that applies a step.
func (t *Tools) runner(s recipe.Step) sls.Runner {
	switch {
	case s.Script:
		return t.Scripts
	case s.Tool == "":
		return t.Steps
	}
	if r, ok := t.Others[s.Tool]; ok {
		return r
	}
	return tool.Program{Group: s.Tool, Path: filepath.Join(t.State.Steps(), s.Tool, "run")}
}

// Groups returns the file name extensions that the operator's programs apply: the folders of <state>/steps.d.
func (t *Tools) Groups() ([]string, error) {
	entries, err := os.ReadDir(t.State.Steps())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read "+t.State.Steps(), "%w", err)
	}
	var out []string
	for _, e := range entries {
		if fi, err := os.Stat(filepath.Join(t.State.Steps(), e.Name())); err == nil && fi.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Env is one deployment as its procedures see it. It belongs to one goroutine.
type Env struct {
	Tools      *Tools
	Deployment project.Deployment
	Paths      layout.Project
	Report     Reporter
	Prepared   *Prepared
	// ArchiveName is the folder of the archive that this deployment made or makes.
	ArchiveName string
	// Usual is the estimated duration of parts, by Timing.Name.
	Usual map[string]project.Estimate
	// Protect are the archives that rotation must keep, by folder name.
	Protect []string
	// Brings is what the checkout will write; nil if unknown.
	Brings *project.Description
	// Result is the result as far as it is known when rollback and notify run.
	Result project.Result
	// Timings collects the durations of steps.
	Timings []project.Timing
	// Unlinked: the project is not linked into the Salt and pillar trees.
	Unlinked bool
	// RemoteLess: there are no bare repositories, and nothing to check out.
	RemoteLess bool

	// Beside and Named, if not nil, are those of archive.MakeRequest; Publish follows as soon as the archive has its name, and makes visible
	// what Beside has begun. Settle makes all these names durable: it is called before hooks, or a file of the project's own, that belong to the archive.
	Beside  func(covered uint64) error
	Named   func(sync func(covered uint64) error)
	Publish func(context.Context) error
	Settle  func() error

	// LiveTree returns the files of the commit that was live before, nil if there is none; if LiveTree itself is nil, the new commit was live.
	LiveTree func(context.Context) (fs.FS, error)

	live       *recipe.Recipe // of LiveTree, on first use
	liveLoaded bool
	// Pause records durably that the deployment begins to wait for signals, and where a later process of the server would continue it. Goes records that it
	// waits no longer; signals.ErrSuspended means that the server stops. With nil a restart of the server ends waits.
	Pause func(resume.Paused) error
	Goes  func() error
	Rests func(bool) // as fleet.Rollout.Rests
	// Waits, if not nil, is called with the signals that the deployment waits for, and with "" when it no longer does.
	Waits func(text string)
	// Undo is the undo log of the steps; nil keeps none.
	Undo *undo.Log
	// Since are the deployments that a manual rollback reverts: they went live, and what was live before the oldest of them is restored.
	Since []project.ID
	// Hurry, if not nil, is closed when what is running during a rollback, and after the end, should stop immediately.
	Hurry <-chan struct{}
	// Yield, if not nil, is called before each state and each step; an error ends the steps there.
	Yield func() error
	// Changed is the number of things that a converge changed, or would change, and Drift the first of them, one line each.
	Changed int
	Drift   []string
	// Output is the deployment's output so far, redacted; nil means none.
	Output func() string

	// back reports that the release that was live before is restored.
	back bool
	// OwnFailed are the project's own files that failed after a procedure that cannot be undone.
	OwnFailed []string

	// staged is the verdict that StageVerdict wrote.
	staged archive.StagedVerdict
	// Short is the lack of space when the archive was made, nil if there was none.
	Short *project.Shortage

	// archived: this deployment has made its archive; first: there was nothing to archive.
	archived, first bool
	cfg             *stepCfg // of the steps that ran
	wrote           stepOutputs
	files           outfile.Series
	waiting         *waiting.Run
	roll            *fleet.Rollout
	before          *py.Dict // cfg as it was at the beginning of the step that is running, or failed
	running         running
	// installing is when the steps began; paused is where the deployment goes on, until that step has begun.
	installing time.Time
	paused     *resume.Paused
	kept       []string // steps that succeeded in keptFrom, which this deployment continues
	keptFrom   project.ID
	full       bool // the disk was full when the deployment failed
	// scan is the archive's scan of the trees; nil as soon as anything of the project's or the operator's has run since.
	scan *tree.Snapshot
	// synced are release-sync's facts for the fixperms that follows.
	synced  *examined.Synced
	summary string
	lines   []string
}

// Again returns the environment of the restored release in the same deployment; d is that release. Nothing is recorded in the undo log.
func (e *Env) Again(t *Tools, p *Prepared, d project.Deployment) *Env {
	out := *e
	out.Tools, out.Prepared, out.Deployment = t, p, d
	out.LiveTree, out.live, out.liveLoaded, out.Undo, out.cfg, out.scan, out.synced, out.wrote, out.files, out.kept = nil, nil, false, nil, nil, nil, nil, stepOutputs{}, outfile.Series{}, nil
	out.Beside, out.Named, out.Publish, out.Settle, out.waiting, out.Pause, out.Goes, out.paused = nil, nil, nil, nil, nil, nil, nil, nil
	return &out
}

// Summarize sets the procedure's own line, and the lines below it.
func (e *Env) Summarize(lines []string, format string, args ...any) {
	e.summary, e.lines = fmt.Sprintf(format, args...), lines
}

// TakeSummary returns and resets the procedure's summary.
func (e *Env) TakeSummary() (string, []string) {
	s, l := e.summary, e.lines
	e.summary, e.lines = "", nil
	return s, l
}

// Note reports a separate line.
func (e *Env) Note(format string, args ...any) {
	e.Report.Append(event.Event{Kind: event.Note, Text: fmt.Sprintf(format, args...)})
}

// ArchiveDir returns the path of this deployment's archive.
func (e *Env) ArchiveDir() string {
	if e.ArchiveName == "" {
		return ""
	}
	return e.Paths.Archives() + "/" + e.ArchiveName
}

// leftOwners returns why owners were not changed.
func (e *Env) leftOwners() string {
	if e.Tools.Host.EUID == 0 {
		return "owners skipped (accounts: off)"
	}
	return "owners skipped (not root)"
}

// describe describes the deployment for hooks and steps.
func (e *Env) describe(p hooks.Point) hooks.Description {
	d := hooks.Describe(e.Deployment, e.Paths, e.Prepared.Environment(), p)
	d.ArchiveDir = e.ArchiveDir()
	return d
}

// runAside is like runHooks, for hooks whose errors are ignored: they have a time limit, and end when Hurry is closed.
func (e *Env) runAside(ctx context.Context, p hooks.Point, more func(*hooks.Description)) error {
	ctx, end := e.aside(ctx, asideLimit)
	defer end()
	return e.runHooks(ctx, p, more)
}

// runHooks runs the hooks of one point; their output goes to the log.
func (e *Env) runHooks(ctx context.Context, p hooks.Point, more func(*hooks.Description)) error {
	d := e.describe(p)
	if more != nil {
		more(&d)
	}
	own, err := e.ownHooks(ctx, p)
	if err != nil {
		return fault.New(fault.KindOf(err), string(p)+" hooks", "%w", err)
	}
	if p == hooks.PostArchive && e.Settle != nil {
		if list, err := e.Tools.Hooks.List(p, own); err != nil || len(list) > 0 {
			if err := e.Settle(); err != nil {
				return err
			}
		}
	}
	out := e.outputs(string(p))
	n, err := e.Tools.Hooks.Run(ctx, own, slices.Concat(e.Tools.Host.Environ, e.Prepared.Cfg.Environ()), d, func(hook, stream, line string) { out.line(p, hook, stream, line) })
	out.close()
	if n > 0 || err != nil {
		e.scan, e.synced = nil, nil
		e.Tools.Archives(e.Deployment.Project).DropLook()
	}
	if n > 0 && err == nil {
		e.Note("%s: %s ran", p, humanize.Plural(n, "hook"))
	}
	return err
}
