package procedures

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/archive"
	"corpus-git/hooks"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
)

// Rollback brings back what was live before the deployment: the failed tree goes to project.failed in the
// deployment's archive, the archived tree takes its place, and the rollback hooks run.
type Rollback struct{}

// Name implements Procedure.
func (Rollback) Name() string { return NameRollback }

// Run implements Procedure.
func (Rollback) Run(ctx context.Context, env *Env) error {
	describe := func(d *hooks.Description) { d.Result = &env.Result }
	if err := env.runHooks(ctx, hooks.PreRollback, describe); err != nil {
		env.Note("%v; the rollback goes on", err)
	}
	got, err := rollBack(ctx, env)
	if err != nil {
		return err
	}
	lines := proofLines(got.Proof)
	if _, err := env.linkModules(); err != nil {
		lines = append(lines, err.Error())
	}
	if err := env.runHooks(ctx, hooks.Rollback, describe); err != nil {
		lines = append(lines, err.Error())
	}
	text := fmt.Sprintf("tree of %s back", env.Deployment.LiveCode.Short())
	if env.Deployment.LiveCode == "" {
		text = "empty again, as it was before the first deployment"
	}
	text += ", " + proofText(got.Proof)
	if got.FailedKept {
		text += ", failed tree kept"
	}
	env.Summarize(lines, "%s", text)
	return nil
}

// rollbackTries is how often a rollback that fails is begun. Each goes on where the one before came to.
const rollbackTries = 3

// rollBack brings the archived tree back. What fails is tried again at once: a tree that is half of each serves nobody.
func rollBack(ctx context.Context, env *Env) (archive.Restored, error) {
	store := env.Archives(env.Deployment.Project)
	for try := 1; ; try++ {
		got, err := store.Rollback(ctx, string(env.Deployment.ID))
		if err == nil {
			return got, nil
		}
		if try == rollbackTries {
			return got, withDiskHint(fault.New(fault.Internal, NameRollback, "%w", err))
		}
		env.Note("rollback: %v; trying again", err)
	}
}

func proofText(p archive.Proof) string {
	if p.Exact() {
		return event.Plural(p.Entries, "file") + " verified"
	}
	return fmt.Sprintf("%s of %s differ", event.Count(p.Different), event.Plural(p.Entries, "file"))
}

func proofLines(p archive.Proof) []string {
	var out []string
	for _, d := range p.Differences {
		out = append(out, fmt.Sprintf("%s: %s differs", d.Path, d.What))
	}
	return out
}

// Restore puts the tree of an earlier deployment's archive back; the archive stays.
type Restore struct{}

// Name implements Procedure.
func (Restore) Name() string { return "restore" }

// Run implements Procedure.
func (Restore) Run(ctx context.Context, env *Env) error {
	describe := func(d *hooks.Description) { d.Result = &env.Result }
	if err := env.runHooks(ctx, hooks.PreRollback, describe); err != nil {
		return err
	}
	store := env.Archives(env.Deployment.Project)
	got, err := store.Restore(ctx, string(env.Deployment.Restore), env.progress())
	if err != nil {
		if errors.Is(err, archive.ErrNotFound) {
			return fault.New(fault.Refused, "restore", "%w", err)
		}
		return err
	}
	if err := env.runHooks(ctx, hooks.Rollback, describe); err != nil {
		return err
	}
	env.Summarize(proofLines(got.Proof), "tree of %s back, %s", env.Deployment.Code.Short(), proofText(got.Proof))
	return nil
}
