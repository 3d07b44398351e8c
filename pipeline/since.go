package pipeline

import (
	"context"
	"slices"

	"corpus-git/internal/humanize"
	"corpus-git/pipeline/sources"
	"corpus-git/procedures"
	"corpus-git/project"
)

// since returns the deployments that a manual rollback reverts: the one that made the archive, and all after it. There are none if what is
// outside the trees must stay.
func (dep *deployment) since(ctx context.Context) []project.ID {
	d := dep.env.Deployment
	if d.Trigger != project.TriggerRollback || dep.env.Prepared.Cfg.OnRollback() == project.RollbackTree {
		return nil
	}
	list, err := dep.p.records.List(ctx, d.Project, maxBack)
	if err != nil {
		dep.p.cfg.Logger.Error().Err(err).Str("deployment", string(d.ID)).Msg("list deployments")
		return nil
	}
	var out []project.ID
	for _, rec := range list {
		if rec.ID != d.ID {
			out = append(out, rec.ID)
		}
		if rec.ID == d.Restore {
			return out
		}
	}
	return nil // it is older than the kept records
}

// rewound returns the deployments that a push of an older commit reverts: all that went live after the newest one of that commit, or of one
// that it contains, all of whose steps ran. There are none if the commit is not older than what is live, if none of them left anything to
// undo outside the trees, if that must stay, and if only some steps run, since all are needed to recreate the older commit's state.
func (dep *deployment) rewound(ctx context.Context, desc *project.Description) ([]project.ID, error) {
	d := dep.env.Deployment
	if desc == nil || !desc.Forced || d.Trigger == project.TriggerRollback || dep.env.Prepared.Cfg.OnRollback() == project.RollbackTree || dep.env.Prepared.Dev() || len(dep.env.Prepared.Cfg.OnlySteps()) > 0 {
		return nil, nil
	}
	if _, skip := dep.env.Prepared.Skips(procedures.NameInstall); skip {
		return nil, nil
	}
	logs, err := dep.p.cfg.Tools.UndoLogs().List(d.Project)
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	of := func(d project.Deployment) (code, live project.Commit) { return d.Code, d.LiveCode }
	if d.Repo == project.PillarRepo {
		of = func(d project.Deployment) (code, live project.Commit) { return d.Pillar, d.LivePillar }
	}
	to, live := of(d)
	if older, err := dep.contains(ctx, live, to); err != nil || !older {
		return nil, err
	}
	list, err := dep.p.records.List(ctx, d.Project, maxBack)
	if err != nil {
		return nil, err
	}
	var all, out []project.ID
	seen := map[project.Commit]bool{}
	for _, rec := range list {
		at, before := of(rec.Deployment)
		if rec.ID != d.ID && rec.Trigger == project.TriggerConverge && rec.State.Terminal() {
			all = append(all, rec.ID)
			continue
		}
		if rec.State != project.Live || rec.ID == d.ID {
			continue
		}
		whole := ranSteps(rec.Select)
		if whole && at == to {
			return all, nil
		}
		if _, known := seen[at]; whole && out == nil && at != "" && !known {
			// A commit that is gone counts as not contained.
			if seen[at], err = dep.contains(ctx, to, at); err == nil && seen[at] {
				out = append([]project.ID{}, all...)
			}
		}
		all = append(all, rec.ID)
		if out == nil && before == "" {
			out = all // the project's first
		}
	}
	return out, nil
}

// ranSteps reports whether all steps ran in a deployment with these options: only then does what is outside the trees match its commit.
func ranSteps(s project.Selection) bool {
	return len(s.OnlySteps) == 0 && !slices.Contains(s.Skip, procedures.NameInstall) && (len(s.Only) == 0 || slices.Contains(s.Only, procedures.NameInstall))
}

// contains reports whether a commit is equal to another one, or has it among its ancestors.
func (dep *deployment) contains(ctx context.Context, commit, old project.Commit) (bool, error) {
	d := dep.env.Deployment
	repo := project.Code
	if d.Repo == project.PillarRepo {
		repo = project.PillarRepo
	}
	desc, err := dep.p.cfg.Repository(d.Project, repo).Describe(ctx, old, commit, sources.Incoming(d, dep.in, repo))
	return err == nil && !desc.Forced, err
}

// noteReverted finds what a push of an older commit reverts, and reports it.
func (dep *deployment) noteReverted(ctx context.Context, desc *project.Description) {
	since, err := dep.rewound(ctx, desc)
	if err != nil {
		dep.p.cfg.Logger.Error().Err(dep.redact.Error(err)).Str("deployment", string(dep.rec.ID)).Msg("find the deployments that an older commit goes back over")
		dep.env.Note("an older commit: cannot determine what newer deployments changed outside of the tree; these changes are kept")
		return
	}
	dep.env.Since = since
	if (procedures.Reverse{}).Needed(dep.env) {
		are := "are"
		if dep.env.Deployment.Trigger == project.TriggerPlan {
			are = "would be"
		}
		dep.env.Note("an older commit: changes of %s outside of the tree %s undone before its steps run", humanize.Plural(len(since), "newer deployment"), are)
	}
}

// reverse undoes what the deployments in Env.Since changed outside the trees. Failures change nothing but the result.
func (dep *deployment) reverse(ctx context.Context) {
	if !(procedures.Reverse{}).Needed(dep.env) {
		return
	}
	dep.stepsBegan = true
	if err := dep.procedure(ctx, dep.env, procedures.Reverse{}); err != nil {
		dep.unsure("some changes outside of the tree could not be undone")
	}
}

// restartReversed restarts the services that the deployments Env.Since restarted.
func (dep *deployment) restartReversed(ctx context.Context) {
	if !(procedures.RestartReversed{}).Needed(dep.env) {
		return
	}
	if err := dep.procedure(ctx, dep.env, procedures.RestartReversed{}); err != nil {
		dep.unsure("some services could not be restarted")
	}
}
