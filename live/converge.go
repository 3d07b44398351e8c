package live

import (
	"context"

	"corpus-git/converge"
	"corpus-git/project"
)

// Converge determines when and how the live release of a project is applied again, for a converge.Scheduler.
type Converge struct {
	*Projects
	// Undeployed reports whether a project was undeployed.
	Undeployed func(context.Context, project.Name) (bool, error)
	// Registers is called with the services that the live release registers here, whenever Plan is called.
	Registers func(name project.Name, services map[string]string)
	// Node reports whether this machine is a node on which another machine deploys a project.
	Node func(context.Context, project.Name) (bool, error)
	// Server returns the default for a project that sets nothing.
	Server func() project.ConvergePolicy
}

// Watches returns the keys that the live release watches, and the nodes that it runs on, nil for this machine; none if nothing is
// live.
func (c Converge) Watches(ctx context.Context, name project.Name) (w project.Watches, nodes []string, err error) {
	if gone, err := c.Undeployed(ctx, name); err != nil || gone {
		return w, nil, err
	}
	l, err := c.Release(ctx, name)
	if err != nil || l.Deployment.Code+l.Deployment.Pillar == "" && !l.Prepared.Cfg.RemoteLess() {
		return w, nil, l.Hide.Error(err)
	}
	if l.Prepared.Rollout != nil {
		nodes = l.Prepared.Rollout.Left
	}
	return l.Prepared.Cfg.Watches(), nodes, nil
}

// Plan returns the plan of the live release; none if nothing is live, or if it was undeployed. The hub of a project with nodes starts the runs at
// intervals, on all of them; a node starts its own after its boot, and at the intervals that its own settings say.
func (c Converge) Plan(ctx context.Context, name project.Name) (converge.Plan, error) {
	if gone, err := c.Undeployed(ctx, name); err != nil || gone {
		c.Registers(name, nil)
		return converge.Plan{}, err
	}
	l, err := c.Release(ctx, name)
	if err != nil || l.Deployment.Code+l.Deployment.Pillar == "" && !l.Prepared.Cfg.RemoteLess() {
		c.Registers(name, nil)
		return converge.Plan{}, l.Hide.Error(err)
	}
	p := converge.Plan{Policy: l.Prepared.Cfg.Converge(c.Server()), Environment: l.Prepared.Environment()}
	if l.Prepared.Rollout != nil {
		c.Registers(name, nil)
		p.Policy.Boot = false
		return p, nil
	}
	c.Registers(name, l.Prepared.Cfg.Services())
	if node, err := c.Node(ctx, name); err != nil {
		return converge.Plan{}, err
	} else if node {
		p.Policy.Every = c.Server().Every
	}
	return p, nil
}
