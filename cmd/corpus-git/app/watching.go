package app

import (
	"context"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"corpus-git/checks/watch"
	"corpus-git/converge"
	"corpus-git/internal/py"
	"corpus-git/kv/register"
	keywatch "corpus-git/kv/watch"
	"corpus-git/live"
	"corpus-git/project"
)

// openWatch creates the watcher of periodic checks, which a server starts.
func (c *core) openWatch(ctx context.Context) (err error) {
	of := live.Checks{Projects: c.live, Undeployed: c.pipeline.Undeployed, LastLive: c.pipeline.LastLive, Notify: c.outbox.AddNow, Log: c.log}
	c.watch, err = watch.Open(ctx, watch.Config{
		DB: c.db, Live: of.Of, Quiet: func(n project.Name) (context.Context, func(), bool) { return c.pipeline.Quiet(n) }, Now: time.Now, Log: c.log,
		Projects: c.everyProject,
	})
	return err
}

// openConverge creates the converge scheduler, which a server starts.
func (c *core) openConverge(ctx context.Context) (err error) {
	c.register = register.New(register.Config{Checks: c.watch.States, Address: c.machineAddress, Publish: c.publish, Log: c.log})
	of := live.Converge{Projects: c.live, Registers: c.register.Set, Undeployed: c.pipeline.Undeployed, Server: func() project.ConvergePolicy { return c.cfg.Load().Converge.Policy() }, Node: func(ctx context.Context, name project.Name) (bool, error) {
		p, err := c.registry.Get(ctx, name)
		return err == nil && p.Node != nil && p.Node.Name != "", err
	}}
	c.converge, err = converge.Open(ctx, converge.Config{
		DB: c.db, Projects: c.everyProject, Plan: of.Plan, Notify: c.outbox.Add, Boot: converge.BootOf(os.DirFS("/proc")), Now: time.Now, Log: c.log,
		Start: func(ctx context.Context, d project.Deployment) (project.ID, error) {
			return c.pipeline.Start(ctx, d, nil)
		},
		AtOnce: func() int { return c.cfg.Load().Converge.AtOnce },
	})
	if err != nil {
		return err
	}
	c.keys, err = keywatch.Open(ctx, keywatch.Config{
		DB: c.db, Keys: c.kv, Projects: c.everyProject, Log: c.log,
		Plan: func(ctx context.Context, name project.Name) (keywatch.Plan, error) {
			w, nodes, err := of.Watches(ctx, name)
			return keywatch.Plan{Watches: w, Project: name, Nodes: nodes}, err
		},
		Start: func(ctx context.Context, d project.Deployment) (project.ID, error) {
			return c.pipeline.Start(ctx, d, nil)
		}, Wait: c.pipeline.Wait,
	})
	return err
}

// publish registers the services that run here: at the hub if this is an agent that dials in, else in this server's keys.
func (c *core) publish(ctx context.Context, services map[string]string) error {
	if a := c.agent.Load(); a != nil {
		return a.Call("kv register "+a.Hub.Node, services)
	}
	return c.kv.Register(ctx, strings.Trim(instance.ReplaceAllString(c.hostName(), "-"), "-."), services, register.Lease)
}

// instance matches characters that cannot be in the name of an instance.
var instance = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// machineAddress returns an address of this machine for others: its first IPv4 address that is not loopback, else its name.
func (c *core) machineAddress() string {
	v, _ := c.facts().GetStr("ipv4")
	if list, ok := v.(*py.List); ok {
		for _, x := range list.Items() {
			if ip := net.ParseIP(py.Str(x)); ip != nil && !ip.IsLoopback() {
				return ip.String()
			}
		}
	}
	return c.hostName()
}

// visibleKeys returns the keys that the steps of a project can read; on a node those sent by its hub.
func (c *core) visibleKeys(ctx context.Context, name project.Name, nodes ...string) (map[string]string, error) {
	if p, err := c.registry.Get(ctx, name); err == nil && p.Node != nil {
		return p.Node.KV, nil
	}
	return c.kv.Visible(ctx, name, nodes...)
}

// wentLive implements pipeline.Config.OnLive.
func (c *core) wentLive(name project.Name, list []project.Check) {
	c.watch.Live(name, list)
	c.converge.Live(name)
}
