package procedures

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/sls"
)

// Override runs a procedure: the project's own .salt/<procedure>.sls where there is one that differs from the stock
// files, the native one otherwise. Two things hold whatever the project says. The native archive is always made, before
// the project's own runs, so a tree is never lost. When the project's own rollback fails, the native one does it.
func (e *Env) Override(ctx context.Context, proc Procedure) error {
	s, own, err := e.ownProcedure(proc.Name())
	if err != nil {
		return err
	}
	if !own {
		return proc.Run(ctx, e)
	}
	switch proc.Name() {
	case NameArchive:
		if err := proc.Run(ctx, e); err != nil {
			return err
		}
		text, lines := e.TakeSummary()
		if err := e.runOwn(ctx, proc.Name(), s); err != nil {
			return err
		}
		own, _ := e.TakeSummary()
		e.Summarize(lines, "%s; %s", text, own)
		return nil
	case NameRollback:
		if err := e.runOwn(ctx, proc.Name(), s); err != nil {
			e.Note("%v; rolling back natively", err)
			return proc.Run(ctx, e)
		}
		return nil
	}
	return e.runOwn(ctx, proc.Name(), s)
}

// ownProcedure finds the project's own file for a procedure in the live recipe.
func (e *Env) ownProcedure(name string) (s Step, own bool, err error) {
	file := name + ".sls"
	if !special(file) {
		return s, false, nil
	}
	data, err := os.ReadFile(filepath.Join(e.Paths.Salt(), file))
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fault.New(fault.Internal, name, "%w", err)
	}
	return Step{Name: name, File: file}, !isStock(name, string(data)), nil
}

// ownIn tells which procedures a recipe has its own files for.
func ownIn(recipe fs.FS) ([]Step, error) {
	var out []Step
	for _, name := range Names() {
		file := name + ".sls"
		if !special(file) {
			continue
		}
		data, err := fs.ReadFile(recipe, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.New(fault.Internal, "read "+layout.SaltDir+"/"+file, "%w", err)
		}
		if !isStock(name, string(data)) {
			out = append(out, Step{Name: name, File: file})
		}
	}
	return out, nil
}

// runOwn applies the project's own file for a procedure.
func (e *Env) runOwn(ctx context.Context, procedure string, s Step) error {
	e.seen = nil // whatever it does may change the tree
	sink := &stepSink{outputs: e.outputs(procedure)}
	res, err := s.Runner(e.Tools).Apply(ctx, e.Prepared.input(e, s, sls.Live), sink)
	sink.close()
	file := layout.SaltDir + "/" + s.File
	if err != nil {
		return fault.New(fault.KindOf(err), file, "%w", err)
	}
	if !res.OK() {
		lines, first := e.failedStates(res)
		e.Report.Append(event.Event{Kind: event.Failure, Status: event.Bad, Procedure: procedure, State: first, Text: file + "  failed", Lines: lines})
		return &Failure{Step: s.Name, StateID: first}
	}
	e.Summarize(nil, "by %s: %s", file, countText(res, s))
	return nil
}
