package pipeline

import (
	"context"
	"encoding/json"

	"corpus-git/internal/event"
	"corpus-git/project"
)

// hold waits after the archive until the deployment is released; nothing live has changed then.
func (dep *deployment) hold(ctx context.Context) error {
	if dep.env.Deployment.Hold {
		if err := dep.settleNames(0); err != nil {
			return err
		}
		if err := dep.wait(ctx); err != nil {
			return err
		}
	}
	exports := dep.env.Deployment.Exports
	if dep.env.Deployment.Hold {
		exports = dep.exports
	}
	if len(exports) == 0 {
		return nil
	}
	return dep.env.SetExports(exports)
}

// wait returns when the deployment is released.
func (dep *deployment) wait(ctx context.Context) error {
	select {
	case <-dep.released:
		return context.Cause(ctx)
	default:
	}
	dep.log.Append(event.Event{Kind: event.Note, Text: "ready: waiting for the other nodes"})
	close(dep.held)
	select {
	case <-dep.released:
	case <-ctx.Done():
		dep.log.Append(event.Event{Kind: event.Note, Text: dep.explain(context.Cause(ctx))[0]})
	}
	return context.Cause(ctx)
}

// Held returns when a deployment with Hold waits after its archive; ended reports that it has ended, or was released.
func (p *Pipeline) Held(ctx context.Context, id project.ID) (ended bool, err error) {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep == nil {
		return true, nil
	}
	select {
	case <-dep.ended:
		return true, nil
	default:
	}
	select {
	case <-dep.held:
		return false, nil
	case <-dep.ended:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Supersede ends the deployments of a project that wait because of Hold, except this one, and returns when they have ended. The sender of the
// next one has abandoned them: a project has one rollout at a time.
func (p *Pipeline) Supersede(ctx context.Context, name project.Name, by project.ID) error {
	var old []*deployment
	p.mu.Lock()
	if q := p.queues[name]; q != nil {
		for _, dep := range q.all {
			if rec := dep.record(); !rec.Hold || rec.ID == by {
				continue
			}
			select {
			case <-dep.released:
			default:
				dep.stop(&ended{why: "superseded by " + by.Short()})
				old = append(old, dep)
			}
		}
	}
	p.mu.Unlock()
	for _, dep := range old {
		select {
		case <-dep.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Release continues a deployment with Hold, with the outputs of earlier stages' nodes. It is idempotent; a deployment that has ended is ignored.
func (p *Pipeline) Release(id project.ID, exports json.RawMessage) {
	p.mu.Lock()
	dep := p.byID[id]
	p.mu.Unlock()
	if dep != nil {
		dep.release.Do(func() {
			dep.exports = exports
			close(dep.released)
		})
	}
}
