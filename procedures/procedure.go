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
	"corpus-git/layout"
	"corpus-git/procedures/pillar"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/sls"
	"corpus-git/sls/host"
	"corpus-git/sls/tool"
	"corpus-git/undo"
)

// Procedure is one named phase of a deployment.
type Procedure interface {
	// Name is the procedure's name as only=, skip_ and .salt/<name>.sls have it.
	Name() string
	// Run does the work and can be run again. What it did goes to env.Summarize. A *fault.Error of
	// kind Failed is the project's own doing, any other kind the machine's or ours.
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

// Names are all procedures, in order; fixperms runs a second time after install.
func Names() []string { return recipe.Procedures() }

// Repository is what the procedures need of one repository of a project, and of its working copy; receive's satisfies it.
type Repository interface {
	Create(ctx context.Context) (made bool, err error)
	Checkout(ctx context.Context, req project.Checkout) (project.CheckoutStats, error)
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	Describe(ctx context.Context, old, new project.Commit, in project.Incoming) (project.Description, error)
	// Refresh tells a working copy's index that owners and modes were changed, not contents.
	Refresh(ctx context.Context, dir string) error
}

// Reporter takes the events of a deployment; *event.Log satisfies it.
type Reporter interface {
	Append(e event.Event) uint64
}

// Tools are what every deployment works with; they are made once.
type Tools struct {
	Root  layout.Root
	State layout.State
	// Repository opens a repository of a project.
	Repository func(project.Name, project.Repo) Repository
	// Archives gives the archives of one project, the same Store each time.
	Archives func(project.Name) *archive.Store
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
	// Accounts: projects get users and groups of their own, which own their files. Only root can.
	Accounts bool
	// Retention is which archives stay where a project does not say; nil is project.DefaultRetention.
	Retention func() project.Retention
	// Environments are those that the server knows; nil is dev, staging and prod.
	Environments func() project.Environments
	// Remotes are the two addresses to push to, for the sync procedure and cfg.
	Remotes func(project.Name) (code, pillar string)
	// Fleet deploys on other machines what a project with nodes brings; nil knows no nodes.
	Fleet Fleet
	// Live is the commit of the newest deployment of a project that went live, "" where there is none or the project has no commits.
	Live func(context.Context, project.Name) (project.Commit, error)
}

// Fleet deploys on other machines.
type Fleet interface {
	// Known are the nodes that the operator added.
	Known(ctx context.Context) (map[string]fleet.Node, error)
	// Rollout makes ready what deploys a plan there; with a nil plan, what undoes it.
	Rollout(d project.Deployment, p *fleet.Plan, known map[string]fleet.Node) *fleet.Rollout
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

// Pillar reads the pillar of a project.
func (t *Tools) Pillar(name project.Name) *pillar.Reader {
	return &pillar.Reader{Root: t.Root, Host: t.Host, Name: name, Grains: t.Grains()}
}

// Open gives the tools of one deployment: its steps may share what their runner keeps alive. close is called once,
// when the deployment has ended.
func (t *Tools) Open() (tools *Tools, close func() error) {
	out := *t
	out.Steps, close = sls.Open(t.Steps)
	return &out, close
}

// runner is the runner that applies a step.
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

// Groups are the endings of files that programs of the operator's apply: the folders of <state>/steps.d.
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
	// Usual is how long things took in the last good deployment, by Timing.Name.
	Usual map[string]time.Duration
	// Protect are the archives that rotation must leave alone, by folder name.
	Protect []string
	// Brings is what the checkout will write; nil where that is not known.
	Brings *project.Description
	// Result is what is known when rollback and notify run.
	Result project.Result
	// Timings collect how long steps took.
	Timings []project.Timing
	// Unlinked: the project stays out of the Salt and pillar trees.
	Unlinked bool
	// RemoteLess: there are no bare repositories, and nothing to check out.
	RemoteLess bool

	// Beside, where it is not nil, is archive.MakeRequest.Beside; Publish follows as soon as the archive has its name, and makes what that began visible and durable.
	Beside  func(covered uint64) error
	Publish func(context.Context) error

	// LiveTree gives the files of the commit that was live before, nil where there is none; where it is nil itself, what is brought is
	// what was live.
	LiveTree func(context.Context) (fs.FS, error)

	live       *recipe.Recipe // of LiveTree, once something asked for it
	liveLoaded bool
	// Undo is the undo log of the steps; nil keeps none.
	Undo *undo.Log
	// Since are the deployments that a rollback by hand goes back over: they went live, and what was live before the oldest of them is restored.
	Since []project.ID
	// Hurry, where it is not nil, is closed when what runs beside a rollback, and after the end, shall end at once.
	Hurry <-chan struct{}
	// Output is what the deployment has told so far, redacted; nil is nothing.
	Output func() string

	// back tells that what was live before is live again.
	back bool
	// OwnFailed are the project's own files that failed after a procedure that cannot be undone.
	OwnFailed []string

	// staged is the verdict that StageVerdict wrote down.
	staged archive.StagedVerdict
	// Short is what the disk lacked when the archive was made, nil where it had room.
	Short *project.Shortage

	// archived: this deployment has made its archive.
	archived bool
	cfg      *stepCfg // of the steps that ran
	full     bool     // the disk was full when the deployment failed
	// scan is what the archive's walk saw of the trees; nil as soon as anything of the project's or the operator's has run since.
	scan *tree.Snapshot
	// synced is what release-sync left for the permissions that come right after it.
	synced  *synced
	summary string
	lines   []string
}

// Again is the environment of the release that is live again in the same deployment; d is that release. Nothing is noted in the undo log.
func (e *Env) Again(t *Tools, p *Prepared, d project.Deployment) *Env {
	out := *e
	out.Tools, out.Prepared, out.Deployment = t, p, d
	out.LiveTree, out.live, out.liveLoaded, out.Undo, out.cfg, out.scan, out.synced = nil, nil, false, nil, nil, nil, nil
	out.Beside, out.Publish = nil, nil
	return &out
}

// Summarize sets the procedure's own line, and what stands under it.
func (e *Env) Summarize(lines []string, format string, args ...any) {
	e.summary, e.lines = fmt.Sprintf(format, args...), lines
}

// TakeSummary returns what the last procedure said, and forgets it.
func (e *Env) TakeSummary() (string, []string) {
	s, l := e.summary, e.lines
	e.summary, e.lines = "", nil
	return s, l
}

// Note reports a line of its own.
func (e *Env) Note(format string, args ...any) {
	e.Report.Append(event.Event{Kind: event.Note, Text: fmt.Sprintf(format, args...)})
}

// ArchiveDir is the path of this deployment's archive.
func (e *Env) ArchiveDir() string {
	if e.ArchiveName == "" {
		return ""
	}
	return e.Paths.Archives() + "/" + e.ArchiveName
}

// leftOwners says why they are not.
func (e *Env) leftOwners() string {
	if e.Tools.Host.EUID == 0 {
		return "owners skipped (accounts: off)"
	}
	return "owners skipped (not root)"
}

// describe is the deployment as hooks and steps are told it.
func (e *Env) describe(p hooks.Point) hooks.Description {
	d := describe(e.Deployment, e.Paths, e.Prepared.Environment(), p)
	d.ArchiveDir = e.ArchiveDir()
	return d
}

func describe(d project.Deployment, at layout.Project, environment string, p hooks.Point) hooks.Description {
	out := hooks.Description{
		Point: p, Deployment: d, Environment: environment,
		ProjectDir: at.Dir(), ProjectRoot: at.Live(), PillarRoot: at.Pillar(), DataRoot: at.Data(),
	}
	if d.ID != "" {
		out.ArchiveDir = at.Archive(d.At, string(d.ID))
	}
	return out
}

// runAside is runHooks for hooks that nothing waits for: they have a limit, and end when somebody is in a hurry.
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
	r, err := e.recipeAt(ctx, p)
	var own []hooks.Hook
	if err == nil {
		own, err = r.Hooks(p)
	}
	if err != nil {
		return fault.New(fault.KindOf(err), string(p)+" hooks", "%w", err)
	}
	out := e.outputs(string(p))
	n, err := e.Tools.Hooks.Run(ctx, own, slices.Concat(e.Tools.Host.Environ, e.Prepared.Cfg.Environ()), d, func(hook, stream, line string) { out.line(p, hook, stream, line) })
	out.close()
	if n > 0 || err != nil {
		e.scan, e.synced = nil, nil
	}
	if n > 0 && err == nil {
		e.Note("%s: %s ran", p, humanize.Plural(n, "hook"))
	}
	return err
}
