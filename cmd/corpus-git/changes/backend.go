package changes

import (
	"context"
	"time"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/cmd/corpus-git/verbs/approve"
	"corpus-git/cmd/corpus-git/verbs/jobs"
	kvverbs "corpus-git/cmd/corpus-git/verbs/keys"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/cmd/corpus-git/verbs/waits"
	"corpus-git/fleet"
	"corpus-git/kv"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/receive"
	outside "corpus-git/signals"
	"corpus-git/web"
)

type projects struct {
	verbs.Projects
	r *request
}

func (p projects) Create(ctx context.Context, name project.Name, s registry.Settings) (out registry.Created, err error) {
	defer func() { p.r.gate.after(name, err) }()
	return with(p.r, func() (registry.Created, error) { return p.Projects.Create(ctx, name, s) })
}

func (p projects) Destroy(ctx context.Context, name project.Name, data bool) (out registry.Destroyed, err error) {
	defer func() { p.r.gate.after(name, err) }()
	return with(p.r, func() (registry.Destroyed, error) { return p.Projects.Destroy(ctx, name, data) })
}

func (p projects) Link(ctx context.Context, name project.Name) (bool, error) {
	return with(p.r, func() (bool, error) { return p.Projects.Link(ctx, name) })
}

func (p projects) Unlink(ctx context.Context, name project.Name) (bool, error) {
	return with(p.r, func() (bool, error) { return p.Projects.Unlink(ctx, name) })
}

type runs struct {
	verbs.Runs
	r *request
}

func (x runs) Start(ctx context.Context, d project.Deployment, in project.Incoming) (project.ID, error) {
	return with(x.r, func() (project.ID, error) { return x.Runs.Start(ctx, d, in) })
}

func (x runs) Cancel(ctx context.Context, name project.Name, id project.ID, by project.Pusher) (project.ID, error) {
	return with(x.r, func() (project.ID, error) { return x.Runs.Cancel(ctx, name, id, by) })
}

type principals struct {
	verbs.Access
	r *request
}

func (p principals) AddPrincipal(ctx context.Context, by access.Identity, x access.Principal) (access.Principal, error) {
	return with(p.r, func() (access.Principal, error) { return p.Access.AddPrincipal(ctx, by, x) })
}

func (p principals) SetPrincipal(ctx context.Context, by access.Identity, name string, c access.Change) (access.Principal, error) {
	return with(p.r, func() (access.Principal, error) { return p.Access.SetPrincipal(ctx, by, name, c) })
}

func (p principals) RemovePrincipal(ctx context.Context, by access.Identity, name string) error {
	return p.r.do(func() error { return p.Access.RemovePrincipal(ctx, by, name) })
}

func (p principals) AddToken(ctx context.Context, by access.Identity, t access.Token) (token access.Token, secret string, err error) {
	err = p.r.do(func() (err error) {
		token, secret, err = p.Access.AddToken(ctx, by, t)
		return err
	})
	return token, secret, err
}

func (p principals) RevokeToken(ctx context.Context, by access.Identity, principal, token string) error {
	return p.r.do(func() error { return p.Access.RevokeToken(ctx, by, principal, token) })
}

func (p principals) AddKeyTo(ctx context.Context, by access.Identity, k access.NewKey) (access.Key, error) {
	return with(p.r, func() (access.Key, error) { return p.Access.AddKeyTo(ctx, by, k) })
}

func (p principals) RemoveKey(ctx context.Context, by access.Identity, name string) error {
	return p.r.do(func() error { return p.Access.RemoveKey(ctx, by, name) })
}

func (p principals) Grant(ctx context.Context, by access.Identity, name project.Name, principal string, right project.Right) error {
	return p.r.do(func() error { return p.Access.Grant(ctx, by, name, principal, right) })
}

func (p principals) Revoke(ctx context.Context, by access.Identity, name project.Name, principal string, right project.Right) error {
	return p.r.do(func() error { return p.Access.Revoke(ctx, by, name, principal, right) })
}

func (p principals) RevokeAll(ctx context.Context, by access.Identity, name project.Name) error {
	return p.r.do(func() error { return p.Access.RevokeAll(ctx, by, name) })
}

type archives struct {
	verbs.Archives
	r *request
}

func (a archives) Pin(ctx context.Context, name project.Name, id project.ID, pinned bool) (err error) {
	defer func() { a.r.gate.after(name, err) }()
	return a.r.do(func() error { return a.Archives.Pin(ctx, name, id, pinned) })
}

func (a archives) Prune(ctx context.Context, name project.Name, how verbs.Prune) (out status.Pruned, err error) {
	defer func() { a.r.gate.after(name, err) }()
	err = a.r.long(func() (err error) {
		out, err = a.Archives.Prune(ctx, name, how)
		return err
	})
	return out, err
}

type units struct {
	verbs.Units
	r *request
}

func (u units) Act(ctx context.Context, name project.Name, a project.UnitAction, only []string, by project.Pusher) (out []project.UnitState, err error) {
	err = u.r.long(func() (err error) {
		out, err = u.Units.Act(ctx, name, a, only, by)
		return err
	})
	return out, err
}

type signals struct {
	waits.Signals
	r *request
}

func (s signals) Signal(ctx context.Context, name project.Name, id project.ID, wait string, g outside.Given) (outside.Answer, error) {
	return with(s.r, func() (outside.Answer, error) { return s.Signals.Signal(ctx, name, id, wait, g) })
}

type votes struct {
	all approve.Approvals
	r   *request
}

func (a votes) Approvals(ctx context.Context, name project.Name, open bool, limit int) ([]approval.Request, error) {
	return a.all.Approvals(ctx, name, open, limit)
}

func (a votes) Approve(ctx context.Context, name project.Name, request string, v approval.Vote) (r approval.Request, id project.ID, err error) {
	err = a.r.do(func() (err error) {
		r, id, err = a.all.Approve(ctx, name, request, v)
		return err
	})
	return r, id, err
}

func (a votes) Reject(ctx context.Context, name project.Name, request string, by project.Pusher, reason string) (approval.Request, error) {
	return with(a.r, func() (approval.Request, error) { return a.all.Reject(ctx, name, request, by, reason) })
}

type keys struct {
	kvverbs.KV
	r *request
}

func (k keys) Set(ctx context.Context, p kv.Put) (int64, error) {
	return with(k.r, func() (int64, error) { return k.KV.Set(ctx, p) })
}

func (k keys) Delete(ctx context.Context, key string, want *int64) error {
	return k.r.do(func() error { return k.KV.Delete(ctx, key, want) })
}

type notifications struct {
	verbs.Notifications
	r *request
}

func (n notifications) Test(ctx context.Context, sink string, by project.Pusher) (string, error) {
	return with(n.r, func() (string, error) { return n.Notifications.Test(ctx, sink, by) })
}

func (n notifications) Retry(ctx context.Context, id string) (int64, error) {
	return with(n.r, func() (int64, error) { return n.Notifications.Retry(ctx, id) })
}

type stored struct {
	all jobs.Jobs
	r   *request
}

func (s stored) Jobs(ctx context.Context, of project.Name) ([]fleet.Job, error) {
	return s.all.Jobs(ctx, of)
}

func (s stored) Job(ctx context.Context, of project.Name, ref string) (fleet.Job, error) {
	return s.all.Job(ctx, of, ref)
}

func (s stored) SetJob(ctx context.Context, j fleet.Job) (out fleet.Job, changed bool, err error) {
	err = s.r.do(func() (err error) {
		out, changed, err = s.all.SetJob(ctx, j)
		return err
	})
	return out, changed, err
}

func (s stored) RemoveJob(ctx context.Context, of project.Name, name, by string, now time.Time) error {
	return s.r.do(func() error { return s.all.RemoveJob(ctx, of, name, by, now) })
}

type machines struct {
	nodes.Fleet
	r *request
}

func (m machines) Add(ctx context.Context, n fleet.Node) error {
	return m.r.do(func() error { return m.Fleet.Add(ctx, n) })
}

func (m machines) Remove(ctx context.Context, name string) error {
	return m.r.do(func() error { return m.Fleet.Remove(ctx, name) })
}

func (m machines) SetSlots(ctx context.Context, name string, slots int) (bool, error) {
	return with(m.r, func() (bool, error) { return m.Fleet.SetSlots(ctx, name, slots) })
}

func (m machines) Drain(ctx context.Context, name string, drained bool) (bool, error) {
	return with(m.r, func() (bool, error) { return m.Fleet.Drain(ctx, name, drained) })
}

func (m machines) Pause(ctx context.Context, name project.Name, paused bool) (bool, error) {
	return with(m.r, func() (bool, error) { return m.Fleet.Pause(ctx, name, paused) })
}

type lookup struct {
	receive.Projects
	gate *Gate
}

func (l lookup) Create(ctx context.Context, by access.Identity, name project.Name) error {
	return l.gate.share(func() error { return l.Projects.Create(ctx, by, name) })
}

// Signals returns the signals of senders without an account.
func (g *Gate) Signals(s web.Signals) web.Signals { return addressed{s, g} }

type addressed struct {
	web.Signals
	gate *Gate
}

func (a addressed) Accept(ctx context.Context, at outside.Address, g outside.Given) (out outside.Answer, name project.Name, err error) {
	err = a.gate.share(func() (err error) {
		out, name, err = a.Signals.Accept(ctx, at, g)
		return err
	})
	a.gate.after(name, err)
	return out, name, err
}
