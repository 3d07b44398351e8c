package pipeline

import (
	"context"
	"slices"
	"strings"

	"corpus-git/pipeline/journal"
	"corpus-git/procedures/extends"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// Pins are refs that keep commits from garbage collection if no branch does; receive never shows them.
//
//	refs/corpus/deployments/<id>  what a deployment deploys, from its publication until it has ended: then the branch holds it, or nothing does
//	refs/corpus/approvals/<id>    what a deployment that waits for approval would deploy, as long as it waits
//	refs/corpus/archives/<id>     what the archive of that deployment holds, as long as the archive holds its tree
//
// An archive's commit is where the branch points when its deployment begins. A forced push, a rollback or a change of the pillar may later
// leave it without any ref, and a rollback to that archive moves the branch there again: so the commit is pinned before anything moves, and
// before the archive is made.
const (
	pinPrefix      = "refs/corpus/"
	deploymentPins = pinPrefix + "deployments/"
	archivePins    = pinPrefix + "archives/"
	approvalPins   = pinPrefix + "approvals/"
)

// BundlePin returns the ref that keeps the commits of a bundle until its deployment has pinned them; the end of the next deployment removes it.
func BundlePin(id project.ID) string { return pinPrefix + "bundles/" + string(id) }

// livePins returns the pins of what is live when a deployment begins.
func livePins(d project.Deployment) []journal.RefChange {
	return pins(archivePins+string(d.ID), d.LiveCode, d.LivePillar)
}

// newPins returns the pins of a deployment's new commits.
func newPins(d project.Deployment) []journal.RefChange {
	code, pillar := d.Code, d.Pillar
	if code == d.LiveCode {
		code = ""
	}
	if pillar == d.LivePillar {
		pillar = ""
	}
	return pins(deploymentPins+string(d.ID), code, pillar)
}

// pins returns a ref for each repository for which a commit is given.
func pins(ref string, code, pillar project.Commit) (out []journal.RefChange) {
	if code != "" {
		out = append(out, journal.RefChange{Repo: project.Code, Change: project.Change{Ref: ref, New: code}})
	}
	if pillar != "" {
		out = append(out, journal.RefChange{Repo: project.PillarRepo, Change: project.Change{Ref: ref, New: pillar}})
	}
	return out
}

// SweepPins removes the pins of deployments that have ended and of archives that are gone or no longer hold their tree. Those of
// running and waiting deployments stay. It may be called at any time.
func (p *Pipeline) SweepPins(ctx context.Context, name project.Name) {
	p.sweepPins(ctx, name, "")
}

// sweepPins is SweepPins at the end of a deployment, including its own pins.
func (p *Pipeline) sweepPins(ctx context.Context, name project.Name, ended project.ID) {
	warn := func(err error, ref string) {
		p.cfg.Logger.Warn().Err(err).Str("project", name.String()).Str("ref", ref).Msg("drop pin")
	}
	found := map[project.Repo]map[string]project.Commit{}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		refs, err := p.cfg.Repository(name, repo).List(ctx, pinPrefix)
		if err != nil {
			continue // remote-less, or not created yet
		}
		found[repo] = refs
	}
	waiting, err := p.approvals.List(ctx, name, true, -1)
	if err != nil {
		warn(err, "")
		return
	}
	// In this order: a deployment that is no longer running has its archive, if it keeps one.
	busy := p.active()
	delete(busy, ended)
	list, err := p.cfg.Tools.Archives(name).List()
	if err != nil {
		warn(err, "")
		return
	}
	holds := map[project.ID]bool{}
	for _, a := range list {
		holds[project.ID(a.ID)] = a.Whole
	}
	for repo, refs := range found {
		var gone []project.Change
		for ref, c := range refs {
			if strings.HasPrefix(ref, extends.Refs) {
				continue // those of projects that extend this one
			}
			id, ofArchive := strings.CutPrefix(ref, archivePins)
			if !ofArchive {
				id = strings.TrimPrefix(ref, deploymentPins)
			}
			if a, ok := strings.CutPrefix(ref, approvalPins); ok && slices.ContainsFunc(waiting, func(r approval.Request) bool { return string(r.ID) == a }) {
				continue
			}
			if busy[project.ID(id)] || (ofArchive && holds[project.ID(id)]) {
				continue
			}
			gone = append(gone, project.Change{Ref: ref, Old: c})
		}
		if len(gone) == 0 {
			continue
		}
		s, err := p.cfg.Repository(name, repo).Stage(ctx, gone)
		if err == nil {
			if err = s.Publish(); err != nil {
				s.Abort()
			} else {
				err = s.Settle(0)
			}
		}
		if err != nil {
			warn(err, gone[0].Ref) // the next deployment tries again
		}
	}
}

// active returns the deployments that run or wait.
func (p *Pipeline) active() map[project.ID]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[project.ID]bool{}
	for id := range p.byID {
		out[id] = true
	}
	return out
}
