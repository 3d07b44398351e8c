package pipeline

import (
	"context"
	"slices"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/sources"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// demand refuses a deployment of commits that are not live, if the server demands signatures that it does not have. env is its environment.
//
// What a push sets as its environment must not exempt it from demands: the demands on the environment of what is live count, too, and if nothing is
// live those on the environment that the project has without the push.
func (dep *deployment) demand(ctx context.Context, env string) error {
	p := dep.p
	dep.update(func(rec *project.Record) { rec.Environment = env })
	d := dep.record().Deployment
	new := brings(d)
	if p.cfg.Demands == nil || !new && (d.Trigger != project.TriggerRedeploy && d.Trigger != project.TriggerPromote || len(d.Set) == 0) {
		return nil
	}
	envs := []string{env, dep.set.Environment}
	live, err := p.records.Live(ctx, []project.Name{d.Project})
	if err != nil {
		return err
	}
	if len(live) > 0 {
		envs = append(envs, live[0].Environment)
	} else if dep.set.Environment == "" && p.cfg.Tools.Environments != nil {
		envs = append(envs, p.cfg.Tools.Environments().Default)
	}
	envs = slices.DeleteFunc(envs, func(e string) bool { return e == "" })
	want := p.cfg.Demands(d.Project, envs)
	dep.need = want.Approvals // from other settings, too
	if !new {
		return nil
	}
	if want.SignedPush && !slices.ContainsFunc(d.Signatures, func(s demands.Signature) bool { return s.Of == demands.OfPush }) {
		if d.Promoted != nil {
			return fault.New(fault.Refused, "", "what goes live in %s must be pushed with a signature, and a promotion has none", d.Project).
				WithHint("push the commit:  git push --signed prod %s:refs/deploy/now", d.Code.Short())
		}
		return fault.New(fault.Refused, "", "a push to %s must be signed", d.Project).
			WithHint("git push --signed …  with  git config gpg.format ssh  and  git config user.signingKey ~/.ssh/id_ed25519.pub ; the server must know the key")
	}
	if !want.SignedCommits {
		return nil
	}
	for _, x := range []struct {
		repo      project.Repo
		live, new project.Commit
	}{{project.Code, d.LiveCode, d.Code}, {project.PillarRepo, d.LivePillar, d.Pillar}} {
		if x.new == "" || x.new == x.live && !moves(d) {
			continue
		}
		s, err := p.cfg.Signed(ctx, d, x.repo, sources.Incoming(d, dep.in, x.repo))
		if err != nil {
			if fault.KindOf(err) == fault.Refused && fault.HintOf(err) == "" {
				err = fault.New(fault.Refused, "", "%w, and what is deployed to %s must be", err, d.Project).
					WithHint("git commit --amend --no-edit -S  signs the last commit; or push a signed tag of it:  git push prod TAG:refs/deploy/now")
			}
			return err
		}
		dep.update(func(rec *project.Record) { rec.Signatures = append(slices.Clone(rec.Signatures), s) })
		dep.log.Append(event.Event{Kind: event.Note, Text: "signed " + s.String()})
	}
	return nil
}

// brings reports whether a deployment would make a commit live that is not live yet: a push does, and so does a redeployment if a branch was moved without the
// server. What a rollback restores was checked when it was first deployed; a bundle is signed by a trusted machine.
func brings(d project.Deployment) bool {
	switch d.Trigger {
	case project.TriggerPush, project.TriggerRedeploy, project.TriggerPromote:
		return d.Code != d.LiveCode || d.Pillar != d.LivePillar || moves(d)
	}
	return false
}

// moves reports whether a deployment moves what is live to an environment in which it was not live.
func moves(d project.Deployment) bool {
	return d.Trigger == project.TriggerPromote && d.Promoted != nil && d.Promoted.Environment != ""
}
