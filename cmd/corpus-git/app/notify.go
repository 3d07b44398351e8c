package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/notify"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/registry"
	"corpus-git/web"
)

// openNotify creates the outbox and its worker, which a server runs.
func (c *core) openNotify(ctx context.Context) (err error) {
	c.outbox, err = notify.Open(ctx, c.db, func() []config.Sink { return c.cfg.Load().Notify.All() }, c.environments, time.Now)
	if err != nil {
		return err
	}
	c.notifier = &notify.Worker{
		Outbox: c.outbox, Settings: func() config.Notify { return c.cfg.Load().Notify }, Secrets: func() []redact.Secret { return c.cfg.Load().Secrets() },
		Describe: c.describe, Exec: execx.OS{Notes: c.state.Processes()}, Host: c.hostName(), Log: c.log,
	}
	c.audit.OnEntry = c.notifyAccess
	c.registry.OnCreate = c.notifyCreated
	return nil
}

// describe returns the output of  report PROJECT  for an administrator.
func (c *core) describe(ctx context.Context, name project.Name) (string, error) {
	if _, err := c.registry.Get(ctx, name); err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	who := verbs.Caller{Identity: access.Identity{Name: "corpus-git", Admin: true, From: "local"}}
	if code := verbs.Run(ctx, c.backend(c.serves), who, []string{"report", string(name)}, strings.NewReader(""), &out, io.MultiWriter(&errs)); code != 0 {
		return "", errors.New(strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// notifyAccess reports changes of keys and rights, with their entry in the audit log.
func (c *core) notifyAccess(ctx context.Context, tx db.Execer, e audit.Entry) error {
	subject, _, _ := strings.Cut(e.Action, " ")
	if e.Outcome != "ok" || !slices.Contains([]string{"key", "access", "user", "token"}, subject) {
		return nil
	}
	n := project.Notification{
		ID: fmt.Sprintf("access_%d_%d", e.Seq, e.Time.UnixNano()), Event: project.EventAccessChanged, At: e.Time, Project: project.Name(e.Project),
		Access: &project.AccessChange{Action: e.Action, Object: e.Object}, By: &project.Pusher{Key: e.Actor, Fingerprint: e.Fingerprint, From: e.From},
	}
	return c.outbox.Add(ctx, tx, n)
}

// notifyCreated adds the notification of a new project, in the transaction of its row.
func (c *core) notifyCreated(ctx context.Context, tx db.Execer, p registry.Project, by project.Pusher) error {
	return c.outbox.Add(ctx, tx, project.Notification{
		ID: fmt.Sprintf("created_%s_%d", p.Name, p.Created.UnixNano()), Event: project.EventCreated, At: p.Created, Project: p.Name,
		Environment: cmp.Or(p.Env, c.environments().Default), By: &by,
	})
}

// drain attempts due deliveries before the process exits; failed ones wait for the next server.
func (c *core) drain() {
	if c.notifier == nil || c.pipeline == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, fault.New(fault.Busy, "notify", "the process ends"))
	defer cancel()
	c.notifier.Drain(ctx)
}

// outbox adapts the outbox to the verbs.
type outbox struct {
	*notify.Outbox
	c *core
}

func (o outbox) Sinks() []config.Sink { return o.c.cfg.Load().Notify.All() }

// Deliver does nothing if a server is running, which delivers itself.
func (o outbox) Deliver(ctx context.Context) {
	if !o.c.serves {
		o.c.notifier.Drain(ctx)
	}
}

// deliveries adapts the outbox's counts to the metrics.
func (s *server) deliveries(ctx context.Context) (web.Outbox, error) {
	c, err := notify.Count(ctx, s.db)
	return web.Outbox{Waiting: c.Waiting, GivenUp: c.GivenUp, Oldest: c.Oldest}, err
}
