package procedures

import (
	"context"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures/plantext"
	"corpus-git/procedures/recipe"
	"corpus-git/sls"
)

// place is where a project's own file for a procedure runs relative to the native one.
type place int

const (
	// instead: the native procedure does not run.
	instead place = iota
	// after: the native procedure runs first, whatever the file contains, and a failure of the file fails the procedure.
	after
	// beside: like after, but a failure of the file is only notified: the native procedure can't be undone.
	beside
)

// placeOf determines which procedures a project may replace. Whatever guarantees depend on always runs: the archive, the rollback, the
// checkout and the procedures around it, and the notifications of the server's operator. See ADR 6.
func placeOf(procedure string) place {
	switch procedure {
	case NameFixperms, NameInstall:
		return instead
	case NameRollback, nameRestore, NameNotify:
		return beside
	}
	return after
}

// ownNote tells the pusher of a project's own file for a procedure.
func ownNote(s recipe.OwnStep) string {
	file := layout.SaltDir + "/" + s.File
	if placeOf(s.Procedure) == instead {
		return fmt.Sprintf("%s by the project's own %s", s.Procedure, file)
	}
	return fmt.Sprintf("%s, then the project's own %s", s.Procedure, file)
}

// Override runs a procedure and the project's own .salt/<procedure>.sls, if there is one that differs from the stock files: instead of the
// native one, after it or beside it, according to placeOf.
func (e *Env) Override(ctx context.Context, proc Procedure) error {
	name := proc.Name()
	how := placeOf(name)
	if name == NameInstall {
		return proc.Run(ctx, e) // Prepare has made the project's own file the only step
	}
	if how == instead {
		r, s, own, err := e.ownProcedure(ctx, name)
		if err != nil {
			return err
		}
		if own {
			return e.runOwn(ctx, name, r, s)
		}
		return proc.Run(ctx, e)
	}
	native := proc.Run(ctx, e)
	if native != nil && name != NameNotify { // a failing notification must not prevent the other
		return native
	}
	text, lines := e.TakeSummary()
	r, s, own, err := e.ownProcedure(ctx, name)
	if err == nil && own {
		err = e.runOwn(ctx, name, r, s)
	}
	said, _ := e.TakeSummary()
	switch {
	case err != nil && how == beside:
		file := layout.SaltDir + "/" + ownName(name) + ".sls"
		if s.File != "" {
			file = layout.SaltDir + "/" + s.File
		}
		lines = append(lines, fmt.Sprintf("the project's own %s failed: %s", file, fault.Cause(err)))
		e.OwnFailed = append(e.OwnFailed, file)
	case err != nil:
		return err
	case own && text != "":
		text += "; " + said
	case own:
		text = said
	}
	e.Summarize(lines, "%s", text)
	return native
}

// ownName returns the procedure whose file is used: for a manual rollback that of every rollback.
func ownName(procedure string) string {
	if procedure == nameRestore {
		return NameRollback
	}
	return procedure
}

// ownProcedure finds the project's own file for a procedure: in the live recipe while it runs around the archive and after a rollback, in
// the new one otherwise.
func (e *Env) ownProcedure(ctx context.Context, name string) (*recipe.Recipe, recipe.Step, bool, error) {
	r := e.Prepared.Recipe
	if name == NameArchive || name == NameRollback || e.back {
		var err error
		if r, err = e.liveRecipe(ctx); err != nil {
			return nil, recipe.Step{}, false, err
		}
	}
	s, own, err := r.Own(ownName(name))
	if err != nil {
		return nil, s, false, fault.New(fault.KindOf(err), name, "%w", err)
	}
	return r, s, own, nil
}

// runOwn applies the project's own file for a procedure.
func (e *Env) runOwn(ctx context.Context, procedure string, r *recipe.Recipe, s recipe.Step) error {
	e.scan, e.synced = nil, nil // anything that it does may change the tree
	if procedure == NameArchive && e.Settle != nil {
		if err := e.Settle(); err != nil {
			return err
		}
	}
	switch procedure {
	case NameRollback, nameRestore, NameNotify:
		e.reportResult(procedure)
	}
	ctx, end := e.ownContext(ctx, procedure)
	defer end()
	sink := &stepSink{outputs: e.outputs(procedure)}
	in := e.Prepared.input(e, r, s, sls.Live)
	if procedure == NameRollback {
		in.Undo = nil // it repairs, so it is not undone
	}
	res, err := e.apply(ctx, r, s, in, sink, false)
	sink.close()
	file := layout.SaltDir + "/" + s.File
	if err != nil {
		return fault.New(fault.KindOf(err), file, "%w", err)
	}
	if !res.OK() {
		lines, first := e.states().Failed(res)
		e.Report.Append(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: procedure, State: first, Text: file + "  failed", Lines: lines})
		return &Failure{Step: s.Name, StateID: first}
	}
	e.Summarize(nil, "by %s: %s", file, plantext.Counted(res, s))
	return nil
}
