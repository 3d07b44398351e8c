package pipeline

import (
	"context"

	"corpus-git/procedures"
	"corpus-git/project"
)

// guard refuses, before anything runs, what is more likely a mistake than a wish: a push that leaves nothing to deploy.
func (p *Pipeline) guard(ctx context.Context, r *run, tools *procedures.Tools, d project.Deployment, src procedures.Sources) error {
	if d.Trigger == project.TriggerRollback || d.Trigger == project.TriggerTask || src.RemoteLess || d.AllowEmpty || d.LiveCode == "" || d.LiveCode == d.Code {
		return nil
	}
	live, err := p.liveTree(ctx, r, tools, d)
	if err != nil {
		return err
	}
	return procedures.RefuseEmptied(live, src.Code)
}
