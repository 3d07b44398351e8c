package pipeline

import (
	"context"
	"errors"
	"io/fs"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/pipeline/journal"
	"corpus-git/pipeline/sources"
	"corpus-git/pipeline/staged"
	"corpus-git/procedures"
	"corpus-git/procedures/outfile"
	"corpus-git/project"
)

// deploy runs the deployment, whose turn has come, to its result.
func (dep *deployment) deploy(ctx context.Context) {
	p := dep.p
	// Background work on archives pauses: the deployment needs the disk, and the archives must not change under it.
	archives := p.cfg.Tools.Archives(dep.record().Project)
	defer archives.Pause()()
	if archivesTrees(dep.record().Trigger) {
		defer archives.Look(ctx, true)()
	}
	d, notes, err := p.resolve(ctx, dep.record().Deployment, dep.set)
	for _, n := range notes {
		dep.log.Append(n)
	}
	if err != nil {
		dep.refuse(err)
		return
	}
	dep.update(func(rec *project.Record) { rec.Deployment = d })
	dep.printPromoted()
	defer func() {
		_ = dep.later(func() error {
			if dep.env != nil {
				dep.env.EndSteps()
			}
			if d.Trigger == project.TriggerUndeploy {
				p.dropRecipes(d.ID, p.kept.Drop)
			} else {
				p.dropRecipes(d.ID, p.kept.Keep)
			}
			return nil
		})
	}()
	p.known.Recall(ctx, d, dep.in, dep.redact)
	tools, end := p.cfg.Tools.Open()
	defer func() {
		if err := end(); err != nil {
			p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("end the runner of steps")
		}
	}()
	dep.tools = tools
	defer func() { _, _ = dep.described() }() // it reads what was pushed
	if err := dep.recoverPanic("prepare", func() error { return dep.prepare(ctx) }); err != nil {
		dep.refuse(err)
		return
	}
	switch d.Trigger {
	case project.TriggerPlan:
		dep.plan(ctx)
		return
	case project.TriggerTask:
		dep.task(ctx)
		return
	case project.TriggerCheck:
		dep.check(ctx)
		return
	case project.TriggerUndeploy:
		dep.undeploy(ctx)
		return
	case project.TriggerConverge:
		dep.converge(ctx)
		return
	}
	if ok, err := dep.approved(ctx); err != nil || !ok {
		if err != nil {
			dep.refuse(err)
		}
		return
	}
	p.settling.Lock(d.Project)()
	j, entries, err := p.journals.Open(p.cfg.State.Journal(d.Project.String()))
	if err != nil {
		dep.refuse(err)
		return
	}
	if journal.OpenEnded(entries) {
		_ = j.Close()
		dep.refuse(p.recoverLate(ctx, d.Project))
		return
	}
	if err := dep.env.OpenUndo(); err != nil {
		_ = j.Close()
		dep.refuse(fault.New(fault.Internal, "open the undo log", "%w", err))
		return
	}
	dep.journal = j
	defer dep.dropStaged()
	if err := dep.accept(ctx); err != nil {
		dep.refuse(err)
		return
	}
	if err := dep.env.DropPoint(); err != nil {
		p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("discard the resume point")
	}
	dep.execute(ctx)
}

// archivesTrees reports whether deployments with this trigger make an archive, unless they are told not to.
func archivesTrees(t project.Trigger) bool {
	switch t {
	case project.TriggerPlan, project.TriggerTask, project.TriggerCheck, project.TriggerUndeploy, project.TriggerConverge:
		return false
	}
	return true
}

// recoverLate ends a deployment that recovery at a start should have ended: recovery failed, or the note was lost. The deployment is open
// in the journal, and another Accepted would hide it. Ending it may change what the present deployment is based on, which is therefore
// refused, and may be repeated.
func (p *Pipeline) recoverLate(ctx context.Context, name project.Name) error {
	u, err := p.takeUp(context.WithoutCancel(ctx), name)
	if err != nil {
		return fault.New(fault.Internal, "recover "+name.String(), "%w", err)
	}
	if u != nil {
		u.finish(context.WithoutCancel(ctx), recoverySteps)
	}
	return fault.New(fault.Busy, "", "an unfinished deployment had to be recovered first").WithHint("try again")
}

// resolve fills in the commits of a deployment, now that nothing else runs.
func (p *Pipeline) resolve(ctx context.Context, d project.Deployment, set Settings) (_ project.Deployment, notes []event.Event, err error) {
	if set.RemoteLess {
		if d.Change.Ref != "" {
			return d, nil, fault.New(fault.Refused, "push", "%s is remote-less: it has no repositories to push to", d.Project).
				WithHint("deploy it on the server:  corpus-git deploy %s", d.Project)
		}
		return d, nil, nil
	}
	if d.Change.Ref != "" {
		if err := p.compare(ctx, d); err != nil {
			return d, nil, err
		}
	}
	code, pillar := d.Code, d.Pillar
	at, notes, err := p.live(ctx, &d)
	if err != nil {
		return d, nil, err
	}
	d.Code, d.Pillar = d.LiveCode, d.LivePillar
	switch {
	case d.Trigger == project.TriggerBundle:
		d.Code, d.Pillar = code, pillar
	case d.Promoted != nil:
		if d.Code = code; d.Promoted.WithPillar {
			d.Pillar = pillar
		}
		if err := p.promotable(ctx, d, code, pillar); err != nil {
			return d, notes, err
		}
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
	case d.Trigger != project.TriggerTask && d.Trigger != project.TriggerCheck && d.Trigger != project.TriggerUndeploy && d.Trigger != project.TriggerConverge:
		d.Code, d.Pillar = at.code, at.pillar // a deployment of what was pushed already uses the branches
	}
	if hint := hintMoved(d, at); hint != "" && d.Code != at.code {
		notes = append(notes, event.Event{Kind: event.Note, Text: hint})
	}
	if d.Code == "" && d.Pillar == "" {
		return d, notes, fault.New(fault.Refused, string(d.Trigger), "%s has no code yet", d.Project).WithHint("push a branch  master  or  main  first")
	}
	return d, notes, nil
}

// prepare builds the environment of the procedures and checks everything that can be checked at this point.
func (dep *deployment) prepare(ctx context.Context) error {
	p, d := dep.p, dep.record().Deployment
	src, err := p.sources(ctx, d, dep.set, dep.in)
	src.Fetch = func(line string) { dep.log.Append(event.Event{Kind: event.Note, Text: line}) }
	if err == nil {
		err = dep.submodules(ctx, d, &src)
	}
	if err != nil {
		return err
	}
	if !dep.continuing && d.Trigger.Deploys() {
		dep.describe(ctx)
	}
	src.Private, src.Kept = p.cfg.State.Recipe(string(d.ID), brought), &p.kept
	prep, err := procedures.Prepare(ctx, dep.tools, d, src, dep.redact)
	if err != nil {
		return err
	}
	if err := dep.guard(ctx, src, prep); err != nil {
		return err
	}
	if err := dep.demand(ctx, prep.Environment()); err != nil {
		return err
	}
	if d.Code != "" && prep.Cfg.RefusesLFS() && !dep.set.RemoteLess && (d.Trigger == project.TriggerPush || d.Trigger == project.TriggerPlan || d.Trigger == project.TriggerRedeploy || d.Trigger == project.TriggerBundle || d.Trigger == project.TriggerPromote) {
		if err := p.cfg.Repository(d.Project, project.Code).RefuseLFS(ctx, d.Code, sources.Incoming(d, dep.in, project.Code)); err != nil {
			return err
		}
	}
	dep.env = dep.environment(ctx, dep.tools, dep.set)
	dep.env.Prepared = prep
	if !dep.set.RemoteLess && d.LiveCode != d.Code {
		dep.env.LiveTree = dep.liveTree
	}
	if d.Resume == "" || d.Trigger == project.TriggerPlan || dep.continuing {
		return nil
	}
	from, err := dep.env.Resume(d.Resume)
	if err == nil {
		dep.env.Deployment.Resume = from
		dep.update(func(rec *project.Record) { rec.Resume = from })
	}
	return err
}

// environment returns the procedures' environment of a deployment, without the prepared parts.
func (dep *deployment) environment(ctx context.Context, tools *procedures.Tools, set Settings) *procedures.Env {
	dep.estimated()
	p, d := dep.p, dep.record().Deployment
	return &procedures.Env{
		Tools: tools, Deployment: d, Paths: p.cfg.Root.Project(d.Project.String()), Report: dep,
		ArchiveName: layout.ArchiveName(d.At, string(d.ID)), Usual: dep.usual, RemoteLess: set.RemoteLess, Unlinked: set.Unlinked,
		Hurry: dep.hurry, Yield: dep.yield, Output: dep.output, Pause: dep.pause, Goes: dep.goes, Rests: dep.restsOrGoes,
		Waits: func(text string) { dep.update(func(rec *project.Record) { rec.Waits = text }) },
	}
}

// brought is the path of the private copy of the new recipe.
const brought = "brought"

// liveTree returns the files of the commit that was live before the deployment, with those of its submodules.
func (dep *deployment) liveTree(ctx context.Context) (fs.FS, error) {
	d := dep.record().Deployment
	if d.LiveCode == "" {
		return nil, nil
	}
	tree, err := dep.p.cfg.Repository(d.Project, project.Code).Tree(ctx, d.LiveCode, nil)
	if err != nil {
		return nil, err
	}
	old := d
	old.Code, old.Pillar, old.Trigger = d.LiveCode, "", project.TriggerRollback // nothing is fetched: that was done when the commit went live
	src := procedures.Sources{Code: tree}
	if err := dep.submodules(ctx, old, &src); err != nil {
		dep.p.cfg.Logger.Warn().Err(err).Str("deployment", string(d.ID)).Msg("submodules of what is live")
	}
	return src.Code, nil
}

// dropRecipes removes what ran in a deployment, by a method of kept.
func (p *Pipeline) dropRecipes(id project.ID, drop func(project.ID) error) {
	if err := drop(id); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(id)).Msg("remove the private copies of recipes; the next start does")
	}
	if err := outfile.Drop(p.cfg.State, id); err != nil {
		p.cfg.Logger.Warn().Err(err).Str("deployment", string(id)).Msg("remove the file of the steps' outputs")
	}
}

func (p *Pipeline) sources(ctx context.Context, d project.Deployment, set Settings, in project.Incoming) (procedures.Sources, error) {
	src := procedures.Sources{Environment: set.Environment, RemoteLess: set.RemoteLess, Node: set.Node}
	if d.Promoted != nil {
		src.From = d.Promoted.From
	}
	if set.RemoteLess {
		paths := p.cfg.Root.Project(d.Project.String())
		var err error
		if src.Code, err = sources.TreeWith(paths.Live(), "."); err == nil {
			src.Pillar, err = sources.TreeWith(paths.Pillar(), layout.PillarFile)
		}
		return src, err
	}
	of := func(repo project.Repo) project.Incoming { return sources.Incoming(d, in, repo) }
	var err error
	if src.Commit = d.Code; d.Code != "" {
		if src.Code, err = p.cfg.Repository(d.Project, project.Code).Tree(ctx, d.Code, of(project.Code)); err != nil {
			return src, fault.New(fault.KindOf(err), "read commit "+d.Code.Short(), "%w", err)
		}
	}
	if d.Pillar != "" {
		if src.Pillar, err = p.cfg.Repository(d.Project, project.PillarRepo).Tree(ctx, d.Pillar, of(project.PillarRepo)); err != nil {
			return src, fault.New(fault.KindOf(err), "read pillar commit "+d.Pillar.Short(), "%w", err)
		}
	}
	if d.LivePillar != "" && d.LivePillar != d.Pillar { // only for a note
		src.Live, _ = p.cfg.Repository(d.Project, project.PillarRepo).Tree(ctx, d.LivePillar, nil)
	}
	return src, nil
}

// accept records that the deployment begins, and prepares the pins of the live and the new commits. None of it is durable or visible before
// beside, which runs before anything is changed.
func (dep *deployment) accept(ctx context.Context) error {
	d := dep.record().Deployment
	staging := staged.Together(
		func() (err error) { dep.livePins, err = dep.stage(ctx, livePins(d)); return err },
		func() (err error) { dep.newPins, err = dep.stage(ctx, newPins(d)); return err },
	)
	if err := staging(); err != nil {
		return fault.New(fault.Internal, "pin commits", "%w", err)
	}
	facts := dep.shown().Deployment
	if err := dep.enter(journal.Entry{Kind: journal.Accepted, Facts: &facts}); err != nil {
		return err
	}
	dep.env.Beside, dep.env.Publish = func(covered uint64) error { return dep.beside(ctx, covered) }, dep.publish
	dep.env.Named, dep.env.Settle = func(sync func(covered uint64) error) { dep.names = append(dep.names, sync) }, func() error { return dep.settleNames(0) }
	dep.update(func(rec *project.Record) { rec.State, rec.Since = project.Running, dep.p.cfg.Now() })
	dep.recorded = staged.Together(func() error { return dep.p.records.Note(ctx, dep.shown()) })
	return nil
}

// stage locks and writes changes of refs, which belong to at most one repository each.
func (dep *deployment) stage(ctx context.Context, changes []journal.RefChange) (staged.Refs, error) {
	return staged.Stage(ctx, changes, func(repo project.Repo) staged.Repository { return dep.p.cfg.Repository(dep.rec.Project, repo) })
}

// dropStaged releases staged refs that were not published, and waits for the syncs of those that were.
func (dep *deployment) dropStaged() {
	dep.livePins.Abort()
	dep.newPins.Abort()
	_ = dep.recorded()
	_ = dep.settleNames(0)
}

// settleNames makes durable the names that the archive, beside and publish gave, all at once, so that they share one commit of the file system;
// covered is the device number of one that was synced since, 0 for none. more are further syncs.
func (dep *deployment) settleNames(covered uint64, more ...func() error) error {
	for _, sync := range dep.names {
		more = append(more, func() error { return sync(covered) })
	}
	dep.names = nil
	if len(more) == 0 {
		return nil
	}
	var err error
	if covered == 0 {
		err = staged.Together(more...)()
	} else { // hardly anything is left to do: beginning it all beside each other would take longer
		for _, sync := range more {
			err = errors.Join(err, sync())
		}
	}
	if err != nil {
		return fault.New(fault.Internal, "make the archive and the pushed objects durable", "%w", err)
	}
	return nil
}

// beside makes durable what the deployment has recorded. It runs after the archive was written and its file system synced, so that little
// is left to write. The names that it gives become durable with that of the archive, by settleNames.
func (dep *deployment) beside(ctx context.Context, covered uint64) error {
	if dep.begun {
		return nil
	}
	if err := dep.recorded(); err != nil {
		return fault.New(fault.Internal, "record deployment", "%w", err)
	}
	if err := dep.journal.SyncBut(covered); err != nil {
		return fault.New(fault.Internal, "journal", "%w", err)
	}
	if dep.in != nil {
		if err := dep.in.Stage(ctx, covered); err != nil {
			return fault.New(fault.Internal, "store objects", "%w", err)
		}
	}
	err := dep.newPins.Sync(covered)
	if err == nil {
		err = dep.livePins.Sync(covered)
	}
	if err == nil {
		err = dep.livePins.Publish()
	}
	if err != nil {
		return fault.New(fault.Internal, "pin commits", "%w", err)
	}
	dep.names = append(dep.names, dep.livePins.Settle)
	dep.livePins, dep.begun = nil, true
	return nil
}

// publish moves the pushed objects to the repository, stores what the preparation found out (procedures.Prepared.Store), and pins them. It
// comes after the archive: if there is too little space for that, the push is refused, and leaves nothing behind. What is visible then is made
// durable by settleNames.
func (dep *deployment) publish(ctx context.Context) error {
	if dep.published {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := dep.beside(ctx, 0); err != nil {
		return err
	}
	if err := dep.env.Prepared.Store(ctx, dep.env.Tools, dep.env.Deployment.Project); err != nil {
		return err
	}
	// The pin comes right before the objects, so that one commit of the file system covers both; without them it is removed with the deployment.
	if err := dep.newPins.Publish(); err != nil {
		return fault.New(fault.Internal, "pin commits", "%w", err)
	}
	dep.names = append(dep.names, dep.newPins.Settle)
	if dep.in != nil {
		objects, err := dep.in.Publish(ctx)
		if err != nil {
			return fault.New(fault.Internal, "publish objects", "%w", err)
		}
		dep.names = append(dep.names, objects)
	}
	dep.newPins, dep.published = nil, true
	return nil
}

// enter appends an entry to the journal.
func (dep *deployment) enter(e journal.Entry) error {
	if dep.journal == nil { // it deploys nothing
		return nil
	}
	e.Time, e.Deployment = dep.p.cfg.Now(), dep.rec.ID
	add := dep.journal.Append
	later := e.Kind == journal.Accepted || e.Kind == journal.Ready || e.Kind == journal.Ended && dep.soon // beside makes it durable, commit, or settle
	// A power failure while the tree changes may take the names that the archive, the pins and the objects have by then: recovery gives the
	// first two theirs again, and needs none of what was pushed. What this process or another continues from needs them all.
	names := len(dep.names) > 0 && e.Kind != journal.Ready && (e.Kind != journal.Begin || e.Procedure == procedures.NameNodes)
	if later || names {
		add = dep.journal.Write
	}
	if err := add(e); err != nil {
		return fault.New(fault.Internal, "journal", "%w", err)
	}
	if names {
		if err := dep.settleNames(0, dep.journal.Sync); err != nil {
			return err
		}
	}
	point := string(e.Kind)
	if e.Procedure != "" {
		point += " " + e.Procedure
	}
	dep.p.cfg.Boundary(dep.rec.Project, point)
	return nil
}
