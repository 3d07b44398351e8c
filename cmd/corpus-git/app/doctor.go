package app

import (
	"context"
	"slices"

	"corpus-git/cmd/corpus-git/doctor"
	"corpus-git/cmd/corpus-git/verbs/diagnose"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// doctor returns the doctor for this server.
func (c *core) doctor() diagnose.Doctor {
	cfg := c.cfg.Load()
	projects := doctor.Projects{
		Root: c.root, List: c.registry.List, Upkeep: c.live.Upkeep, Exec: c.tools.Exec, Passwd: "/etc/passwd", Accounts: cfg.Accounts != "off", Repair: c.repair,
		Exclusive: func(ctx context.Context, name project.Name) (func(), error) {
			return c.pipeline.Exclusive(ctx, name, "doctor", project.Pusher{Key: "doctor"})
		},
	}
	projects.Destroyed = func(ctx context.Context, name string) (bool, error) {
		entries, err := c.audit.List(ctx, name, 1000)
		return slices.ContainsFunc(entries, func(e audit.Entry) bool { return e.Action == "project destroy" && e.Outcome == "ok" }), err
	}
	return diagnose.Doctor{Projects: projects.Inspect, Inspect: func(ctx context.Context) []doctor.Finding {
		return doctor.Doctor{Config: c.cfg.Load(), Env: c.env, Database: c.db, Registry: c.registry, Status: c.status(), Addresses: listens}.Run(ctx)
	}}
}

// repair redeploys the live release of a project with sync and fixperms only, and waits for the end.
func (c *core) repair(ctx context.Context, name project.Name) error {
	id, err := c.pipeline.Start(ctx, project.Deployment{Project: name, Trigger: project.TriggerRedeploy, Pusher: project.Pusher{Key: "doctor"},
		Select: project.Selection{Only: []string{"sync", "fixperms"}}}, nil)
	if err != nil {
		return err
	}
	res, err := c.pipeline.Wait(ctx, id)
	if err == nil && res.State != project.Live {
		err = fault.New(fault.Failed, "", "deployment %s of %s is %s", id.Short(), name, res.State).WithHint("see why:  corpus-git logs %s %s", name, id.Short())
	}
	return err
}
