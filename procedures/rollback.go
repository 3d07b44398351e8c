package procedures

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/archive"
	"corpus-git/archive/tree"
	"corpus-git/hooks"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
)

// Rollback restores what was live before the deployment: the failed tree goes to project.failed in the deployment's archive, the archived
// tree takes its place, and the rollback hooks run.
type Rollback struct{}

// Name implements Procedure.
func (Rollback) Name() string { return NameRollback }

// Run implements Procedure.
func (Rollback) Run(ctx context.Context, env *Env) error {
	describe := func(d *hooks.Description) { d.Result = &env.Result }
	if err := env.runAside(ctx, hooks.PreRollback, describe); err != nil {
		env.Note("%v; the rollback continues", err)
	}
	got, err := rollBack(ctx, env)
	if err != nil {
		return err
	}
	env.back = true
	lines := modifiedLines(got.Proof)
	if _, err := env.linkModules(); err != nil {
		lines = append(lines, err.Error())
	}
	if err := env.runAside(ctx, hooks.Rollback, describe); err != nil {
		lines = append(lines, err.Error())
	}
	text := fmt.Sprintf("restored files of %s", env.Deployment.LiveCode.Short())
	if env.Deployment.LiveCode == "" {
		text = "emptied, as before the first deployment"
	}
	text += ", " + proofText(got.Proof)
	if got.FailedKept {
		text += ", failed tree kept"
	}
	env.Summarize(lines, "%s", text)
	return nil
}

// rollbackTries is how often a failing rollback is tried. Each attempt continues the previous one.
const rollbackTries = 3

// rollBack restores the archived tree. A failure is retried immediately: a tree that is a mix of both is useless.
func rollBack(ctx context.Context, env *Env) (archive.Restored, error) {
	store := env.Tools.Archives(env.Deployment.Project)
	for try := 1; ; try++ {
		got, err := store.Rollback(ctx, string(env.Deployment.ID))
		if err == nil {
			return got, nil
		}
		if try == rollbackTries || ArchiveDamaged(err) {
			return got, diskfull.WithHint(fault.New(fault.Internal, NameRollback, "%w", err))
		}
		env.Note("rollback: %v; trying again", err)
	}
}

// ArchiveDamaged reports whether a rollback failed because the archive does not contain what was archived. Nothing from it went live.
func ArchiveDamaged(err error) bool { return errors.Is(err, archive.ErrNotWhole) }

// proofText describes the verification of the restored tree before it went live.
func proofText(p tree.Proof) string {
	text := humanize.Plural(p.Entries, "file") + " verified"
	if !p.Exact() {
		text += fmt.Sprintf(", %s changed since by running programs", humanize.Count(p.Different))
	}
	return text
}

// modifiedLines lists the files that were modified since the tree went live.
func modifiedLines(p tree.Proof) []string {
	var out []string
	for _, d := range p.Differences {
		out = append(out, "changed since: "+d.String())
	}
	return out
}

// nameRestore is the name of the manual rollback in events.
const nameRestore = "restore"

// Restore restores the tree of an earlier deployment's archive; the archive is kept.
type Restore struct{}

// Name implements Procedure.
func (Restore) Name() string { return nameRestore }

// Run implements Procedure.
func (Restore) Run(ctx context.Context, env *Env) error {
	describe := func(d *hooks.Description) { d.Result = &env.Result }
	if err := env.runHooks(ctx, hooks.PreRollback, describe); err != nil {
		return err
	}
	store := env.Tools.Archives(env.Deployment.Project)
	got, err := store.Restore(ctx, string(env.Deployment.Restore), env.progress())
	if err != nil {
		switch {
		case errors.Is(err, archive.ErrNotFound):
			return fault.New(fault.Refused, "restore", "%w", err)
		case ArchiveDamaged(err):
			return fault.New(fault.Failed, "restore", "%w", err).
				WithHint("nothing of it went live; corpus-git archives list %[1]s  lists the others, corpus-git rollback %[1]s DEPLOYMENT  restores one", env.Deployment.Project)
		}
		return err
	}
	if err := env.runHooks(ctx, hooks.Rollback, describe); err != nil {
		return err
	}
	env.Summarize(modifiedLines(got.Proof), "restored files of %s, %s", env.Deployment.Code.Short(), proofText(got.Proof))
	return nil
}
