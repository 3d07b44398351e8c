package live

import (
	"context"

	"corpus-git/converge"
	"corpus-git/project"
)

// Converge is when and how the live release of a project is applied again, for a converge.Scheduler.
type Converge struct {
	*Projects
	// Undeployed reports whether a project was undeployed.
	Undeployed func(context.Context, project.Name) (bool, error)
	// Registers is told which services what is live registers here, where a Plan is asked.
	Registers func(name project.Name, services map[string]string)
	// Server is the default where a project sets nothing.
	Server func() project.ConvergePolicy
}

// Watches returns the keys that what is live watches, and whether it runs on nodes; none if nothing is live.
func (c Converge) Watches(ctx context.Context, name project.Name) (w project.Watches, nodes bool, err error) {
	if gone, err := c.Undeployed(ctx, name); err != nil || gone {
		return w, false, err
	}
	l, err := c.Release(ctx, name)
	if err != nil || l.Deployment.Code+l.Deployment.Pillar == "" && !l.Prepared.Cfg.RemoteLess() {
		return w, false, l.Hide.Error(err)
	}
	return l.Prepared.Cfg.Watches(), l.Prepared.Rollout != nil, nil
}

// Plan is that of the live release; none if there is none, where it was undeployed, and where it runs on nodes.
func (c Converge) Plan(ctx context.Context, name project.Name) (converge.Plan, error) {
	if gone, err := c.Undeployed(ctx, name); err != nil || gone {
		c.Registers(name, nil)
		return converge.Plan{}, err
	}
	l, err := c.Release(ctx, name)
	if err != nil || l.Prepared.Rollout != nil || l.Deployment.Code+l.Deployment.Pillar == "" && !l.Prepared.Cfg.RemoteLess() {
		c.Registers(name, nil)
		return converge.Plan{}, l.Hide.Error(err)
	}
	c.Registers(name, l.Prepared.Cfg.Services())
	return converge.Plan{Policy: l.Prepared.Cfg.Converge(c.Server()), Environment: l.Prepared.Environment()}, nil
}
