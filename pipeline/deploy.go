package pipeline

import (
	"context"
	"errors"
	"io/fs"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// deploy runs one deployment whose turn has come.
func (p *Pipeline) deploy(ctx context.Context, r *run, set Settings) project.Result {
	// What is done to archives in the background waits: the disk is the deployment's, and so are the archives it finds.
	defer p.cfg.Tools.Archives(r.record().Project).Pause()()
	d, notes, err := p.resolve(ctx, r.record().Deployment, set)
	for _, n := range notes {
		r.log.Append(n)
	}
	if err != nil {
		return p.refuse(r, err)
	}
	r.update(func(rec *project.Record) { rec.Deployment = d })
	defer p.dropRecipes(d.ID)
	p.recall(ctx, d, r.in, r.redact)
	tools, end := p.cfg.Tools.Open()
	defer func() {
		if err := end(); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
		}
	}()
	env, err := p.prepare(ctx, r, tools, d, set)
	if err != nil {
		return p.refuse(r, err)
	}
	switch d.Trigger {
	case project.TriggerPlan:
		return p.plan(ctx, r, env)
	case project.TriggerTask:
		return p.task(ctx, r, env)
	case project.TriggerCheck:
		return p.check(ctx, r, env)
	}
	j, entries, err := OpenJournal(p.cfg.State.Journal(d.Project.String()))
	if err != nil {
		return p.refuse(r, err)
	}
	defer j.Close()
	if isOpenEnded(entries) {
		return p.refuse(r, p.recoverLate(ctx, d.Project))
	}
	if err := env.OpenUndo(); err != nil {
		return p.refuse(r, fault.New(fault.Internal, "open the undo log", "%w", err))
	}
	if err := p.accept(ctx, r, d, j); err != nil {
		return p.refuse(r, err)
	}
	return p.execute(ctx, r, env, j)
}

// recoverLate ends a deployment that a start should have ended: it could not, or its note was lost. The journal says so, and another Accepted
// would bury it. What the deployment in hand is about may have changed by it: it is refused, and may come again.
func (p *Pipeline) recoverLate(ctx context.Context, name project.Name) error {
	if err := p.recoverProject(context.WithoutCancel(ctx), name); err != nil {
		return fault.New(fault.Internal, "recover "+name.String(), "%w", err)
	}
	return fault.New(fault.Busy, "", "a deployment that the server had left unfinished was ended first").WithHint("try again")
}

// resolve fills in the commits that a deployment is about, now that nothing else runs.
func (p *Pipeline) resolve(ctx context.Context, d project.Deployment, set Settings) (_ project.Deployment, notes []event.Event, err error) {
	if set.RemoteLess {
		if d.Change.Ref != "" {
			return d, nil, fault.New(fault.Refused, "push", "%s is remote-less: it has no repositories to push to", d.Project).
				WithHint("deploy it on its machine:  corpus-git deploy %s", d.Project)
		}
		return d, nil, nil
	}
	if d.Change.Ref != "" {
		if err := p.compare(ctx, d); err != nil {
			return d, nil, err
		}
	}
	at, notes, err := p.live(ctx, &d)
	if err != nil {
		return d, nil, err
	}
	d.Code, d.Pillar = d.LiveCode, d.LivePillar
	switch {
	case d.Trigger == project.TriggerRollback:
		a, err := p.findArchive(ctx, d)
		if err != nil {
			return d, notes, err
		}
		d.Restore = a.ID
		d.Code, d.Pillar = a.Code, a.Pillar
		if err := p.mayMove(ctx, d); err != nil {
			return d, notes, err
		}
	case d.Change.Ref != "" && d.Repo == project.PillarRepo:
		d.Pillar = d.Change.New
	case d.Change.Ref != "":
		d.Code = d.Change.New
	case d.Trigger != project.TriggerTask && d.Trigger != project.TriggerCheck:
		d.Code, d.Pillar = at.code, at.pillar // who deploys what is pushed already means the branches
	}
	if hint := hintMoved(d, at); hint != "" && d.Code != at.code {
		notes = append(notes, event.Event{Kind: event.Note, Text: hint})
	}
	if d.Code == "" && d.Pillar == "" {
		return d, notes, fault.New(fault.Refused, string(d.Trigger), "%s has no code yet", d.Project).WithHint("push a branch  master  or  main  first")
	}
	return d, notes, nil
}

// prepare builds the environment of the procedures and checks everything that can be checked now.
func (p *Pipeline) prepare(ctx context.Context, r *run, tools *procedures.Tools, d project.Deployment, set Settings) (*procedures.Env, error) {
	src, err := p.sources(ctx, d, set, r.in)
	if err == nil {
		err = p.submodules(ctx, r, tools, d, &src)
	}
	if err != nil {
		return nil, err
	}
	src.Private = p.cfg.State.Recipe(string(d.ID), brought)
	prep, err := procedures.Prepare(ctx, tools, d, src, r.redact)
	if err != nil {
		return nil, err
	}
	if err := p.guard(ctx, r, tools, d, src, prep); err != nil {
		return nil, err
	}
	if d.Code != "" && prep.Cfg.RefusesLFS() && !set.RemoteLess && (d.Trigger == project.TriggerPush || d.Trigger == project.TriggerPlan || d.Trigger == project.TriggerRedeploy) {
		if err := p.cfg.Repository(d.Project, project.Code).RefuseLFS(ctx, d.Code, incomingOf(d, r.in, project.Code)); err != nil {
			return nil, err
		}
	}
	env := &procedures.Env{
		Tools: tools, Deployment: d, Paths: p.cfg.Root.Project(d.Project.String()), Report: &tracker{r, p.cfg.Now}, Prepared: prep,
		ArchiveName: layout.ArchiveName(d.At, string(d.ID)), Usual: p.records.usual(ctx, d.Project), RemoteLess: set.RemoteLess, Unlinked: set.Unlinked,
		Hurry: r.hurry, Said: r.toldSoFar,
	}
	if !set.RemoteLess && d.LiveCode != d.Code {
		env.LiveTree = func(ctx context.Context) (fs.FS, error) { return p.liveTree(ctx, r, tools, d) }
	}
	return env, nil
}

// brought names the private copy of the recipe that a deployment brings.
const brought = "brought"

// liveTree are the files of the commit that was live before the deployment, with those of its submodules.
func (p *Pipeline) liveTree(ctx context.Context, r *run, tools *procedures.Tools, d project.Deployment) (fs.FS, error) {
	if d.LiveCode == "" {
		return nil, nil
	}
	tree, err := p.cfg.Repository(d.Project, project.Code).Tree(ctx, d.LiveCode, nil)
	if err != nil {
		return nil, err
	}
	old := d
	old.Code, old.Pillar, old.Trigger = d.LiveCode, "", project.TriggerRollback // nothing is fetched: it was when it went live
	src := procedures.Sources{Code: tree}
	if err := p.submodules(ctx, r, tools, old, &src); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(d.ID)).Msg("submodules of what is live")
	}
	return src.Code, nil
}

func (p *Pipeline) dropRecipes(id project.ID) {
	if err := procedures.DropRecipes(p.cfg.State, id); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(id)).Msg("remove the private copies of recipes; the next start does")
	}
}

func (p *Pipeline) sources(ctx context.Context, d project.Deployment, set Settings, in project.Incoming) (procedures.Sources, error) {
	src := procedures.Sources{Environment: set.Environment, RemoteLess: set.RemoteLess}
	if set.RemoteLess {
		paths := p.cfg.Root.Project(d.Project.String())
		var err error
		if src.Code, err = treeWith(paths.Live(), "."); err == nil {
			src.Pillar, err = treeWith(paths.Pillar(), layout.PillarFile)
		}
		return src, err
	}
	of := func(repo project.Repo) project.Incoming { return incomingOf(d, in, repo) }
	var err error
	if d.Code != "" {
		if src.Code, err = p.cfg.Repository(d.Project, project.Code).Tree(ctx, d.Code, of(project.Code)); err != nil {
			return src, fault.New(fault.KindOf(err), "read commit "+d.Code.Short(), "%w", err)
		}
	}
	if d.Pillar != "" {
		if src.Pillar, err = p.cfg.Repository(d.Project, project.PillarRepo).Tree(ctx, d.Pillar, of(project.PillarRepo)); err != nil {
			return src, fault.New(fault.KindOf(err), "read pillar commit "+d.Pillar.Short(), "%w", err)
		}
	}
	return src, nil
}

// incomingOf is what was pushed to a repository: it belongs to one of the two.
func incomingOf(d project.Deployment, in project.Incoming, repo project.Repo) project.Incoming {
	if repo == d.Repo {
		return in
	}
	return nil
}

// treeWith is a folder that its owner may change while it is read, nil where it, or the file in it that is wanted, is missing.
func treeWith(dir, file string) (fs.FS, error) {
	tree, err := vfs.Beneath(dir)
	if err == nil {
		_, err = fs.Stat(tree, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read the working copy", "%w", err)
	}
	return tree, nil
}

// accept pins what is live, which the archive will hold, and opens the journal: from here on a crash is recovered from.
func (p *Pipeline) accept(ctx context.Context, r *run, d project.Deployment, j *Journal) error {
	if err := p.pin(ctx, d, livePins(d)); err != nil {
		return err
	}
	facts := r.shown().Deployment
	if err := p.journal(j, Entry{Kind: Accepted, Deployment: d.ID, Facts: &facts}); err != nil {
		return err
	}
	r.update(func(rec *project.Record) { rec.State, rec.Since = project.Running, p.cfg.Now() })
	if err := p.records.put(ctx, r.shown()); err != nil {
		return fault.New(fault.Internal, "record deployment", "%w", err)
	}
	return nil
}

// publish makes what the push brought part of the repository, and pins it. It comes after the archive: where there is no room for that the push
// is refused, and leaves nothing.
func (p *Pipeline) publish(ctx context.Context, r *run, d project.Deployment) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.in != nil {
		if err := r.in.Migrate(ctx); err != nil {
			return fault.New(fault.Internal, "publish objects", "%w", err)
		}
	}
	return p.pin(ctx, d, newPins(d))
}

func (p *Pipeline) pin(ctx context.Context, d project.Deployment, pins []RefChange) error {
	for _, pin := range pins {
		if err := p.cfg.Repository(d.Project, pin.Repo).CompareAndSwap(ctx, pin.Change); err != nil {
			return fault.New(fault.Internal, "pin commits", "%w", err)
		}
	}
	return nil
}

func (p *Pipeline) journal(j *Journal, e Entry) error {
	e.Time = p.cfg.Now()
	if err := j.Append(e); err != nil {
		return fault.New(fault.Internal, "journal", "%w", err)
	}
	point := string(e.Kind)
	if e.Procedure != "" {
		point += " " + e.Procedure
	}
	p.cfg.Boundary(point)
	return nil
}
