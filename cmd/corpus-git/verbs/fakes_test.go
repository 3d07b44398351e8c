package verbs_test

import (
	"context"
	"corpus-git/cmd/corpus-git/doctor"
	"corpus-git/cmd/corpus-git/verbs/diagnose"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	codeA  = project.Commit("3f2a9c1000000000000000000000000000000000")
	codeB  = project.Commit("91bd0e2000000000000000000000000000000000")
	pillar = project.Commit("7aa01bc000000000000000000000000000000000")
	idLive = project.ID("0198c2f4-0000-4000-8000-000000000001")
	idBad  = project.ID("0198c2f5-0000-4000-8000-000000000002")
	idRun  = project.ID("0298c2f6-0000-4000-8000-000000000003")
)

// runs is a pipeline that has run already.
type runs struct {
	records   map[project.Name][]project.Record // newest first
	queue     map[project.Name]project.Queue
	events    []event.Event
	result    project.Result
	startErr  error
	started   []project.Deployment
	cancelled []project.ID
	// hang makes Follow wait for the end of its context, until something is cancelled.
	hang bool
}

func (r *runs) Start(_ context.Context, d project.Deployment, _ project.Incoming) (project.ID, error) {
	if r.startErr != nil {
		return "", r.startErr
	}
	r.started = append(r.started, d)
	d.ID, d.At = project.ID(fmt.Sprintf("%08x-0000-4000-8000-000000000003", 0x0298c2f5+len(r.started))), noon
	res := r.result
	r.records[d.Project] = append([]project.Record{{Deployment: d, State: res.State, Result: &res}}, r.records[d.Project]...)
	return d.ID, nil
}

func (r *runs) Follow(ctx context.Context, _ project.ID, seq uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range r.events {
			if e.Seq > seq && !yield(e, nil) {
				return
			}
		}
		if r.hang {
			<-ctx.Done()
			yield(event.Event{}, ctx.Err())
		}
	}
}

func (r *runs) Wait(context.Context, project.ID) (project.Result, error) { return r.result, nil }

func (r *runs) Cancel(_ context.Context, name project.Name, id project.ID, _ project.Pusher) (project.ID, error) {
	if r.queue[name].Running == nil && len(r.started) == 0 {
		return "", fault.New(fault.Refused, "cancel", "nothing of %s runs", name)
	}
	if id == "" {
		id = idRun
	}
	r.cancelled, r.hang = append(r.cancelled, id), false
	return id, nil
}

func (r *runs) Supersede(context.Context, project.Name, project.ID) error { return nil }

func (r *runs) Held(context.Context, project.ID) (bool, error) { return true, nil }

func (r *runs) Release(project.ID, json.RawMessage) {}

func (r *runs) Deployments(_ context.Context, name project.Name, limit int) ([]project.Record, error) {
	all := r.records[name]
	return all[:min(limit, len(all))], nil
}

func (r *runs) Before(_ context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error) {
	all := r.records[name]
	i := slices.IndexFunc(all, func(rec project.Record) bool { return rec.ID == id })
	all = all[i+1:]
	return all[:min(limit, len(all))], nil
}

func (r *runs) LastLive(context.Context, []project.Name) (map[project.Name]project.Record, error) {
	return nil, nil
}

func (r *runs) Last(_ context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	out := map[project.Name]project.Record{}
	for _, name := range names {
		for _, rec := range slices.Backward(r.records[name]) {
			if rec.State.Terminal() {
				out[name] = rec
			}
		}
	}
	return out, nil
}

func (r *runs) Find(_ context.Context, name project.Name, prefix string) (project.Record, error) {
	var found []project.Record
	for _, rec := range r.records[name] {
		if strings.HasPrefix(string(rec.ID), prefix) {
			found = append(found, rec)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return project.Record{}, fault.New(fault.Refused, "", "%s has no deployment %s", name, prefix)
	}
	return project.Record{}, fault.New(fault.Usage, "", "%s is ambiguous: %s, %s", prefix, found[0].ID, found[1].ID)
}

func (r *runs) Queue(_ context.Context, name project.Name) (project.Queue, error) {
	return r.queue[name], nil
}

func (r *runs) Exclusive(context.Context, project.Name, string, project.Pusher) (func(), error) {
	return func() {}, nil
}

func (r *runs) Forget(context.Context, project.Name) error { return nil }

// repository is one of the project app; no other project has any.
type repository struct {
	name project.Name
	repo project.Repo
}

func (r repository) Live(context.Context) (string, project.Commit, error) {
	switch {
	case r.name != "app":
		return "", "", nil
	case r.repo == project.Code:
		return "refs/heads/master", codeA, nil
	}
	return "refs/heads/master", pillar, nil
}

func (repository) Create(context.Context) (bool, error) { return true, nil }

type archives struct {
	all    []status.Archive
	pinned map[project.ID]bool
}

func (a *archives) List(_ context.Context, name project.Name) ([]status.Archive, error) {
	if name != "app" {
		return nil, nil
	}
	return a.all, nil
}

func (a *archives) Pin(_ context.Context, _ project.Name, id project.ID, pinned bool) error {
	a.pinned[id] = pinned
	return nil
}

func (a *archives) Keeping(context.Context, project.Name) (status.Keeping, error) {
	return status.Keeping{Good: 3, Failed: 1, FailedMaxAge: 7 * 24 * time.Hour, MaxBytes: 2_000_000_000, Spare: 24_117_248}, nil
}

func (a *archives) Prune(_ context.Context, name project.Name, how verbs.Prune) (status.Pruned, error) {
	gone := a.all[1:]
	if how.Keep > 1 {
		gone = nil
	}
	return status.Pruned{Version: status.Version, Project: name, DryRun: how.DryRun, Removed: gone, Kept: len(a.all) - len(gone), Freed: 1_500_000}, nil
}

func (a *archives) Export(_ context.Context, _ project.Name, id project.ID, w io.Writer) error {
	_, err := fmt.Fprintf(w, "tar of %s", id)
	return err
}

type cfg struct{}

func (cfg) Cfg(ctx context.Context, name project.Name) (*project.Cfg, error) {
	sample := py.NewDict("makina-projects."+string(name), py.NewDict("data", py.NewDict("db", py.NewDict("name", "appdb"), "hosts", py.NewList("a.example", "b.example"))))
	pillar := py.NewDict("makina-projects."+string(name), py.NewDict("data", py.NewDict("db", py.NewDict("password", "hunter2hunter2"))))
	return project.BuildCfg(ctx, project.CfgInputs{
		Name: name, Layout: layout.Root("/srv").Project(string(name)), Env: "prod",
		Sample: func(context.Context) (*py.Dict, error) { return sample, nil },
		Pillar: func(context.Context) (*py.Dict, error) { return pillar, nil },
	})
}

type linker struct{}

func (linker) Link(context.Context, project.Name) ([]string, error)   { return nil, nil }
func (linker) Unlink(context.Context, project.Name) ([]string, error) { return nil, nil }

// Public keys made for these tests; nobody has the private ones.
const (
	keyMarie = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f marie@laptop"
	keyBot   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/ jenkins"
	keyRoot  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEBBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5f ops"
	keyNew   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGBhYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/ new"
)

// house is a machine with two projects, three keys and some history.
type house struct {
	*verbs.Backend
	runs     *runs
	archives *archives
	audit    *audit.Log
	keys     map[string]access.Identity
}

func build(t *testing.T) *house {
	t.Helper()
	ctx := t.Context()
	root := layout.Root(t.TempDir())
	now := func() time.Time { return noon }
	d, err := db.Open(ctx, root.DefaultState().Database())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	log, err := audit.Open(ctx, d, now)
	require.NoError(t, err)
	acc, err := access.Open(ctx, d, log, now)
	require.NoError(t, err)
	reg, err := registry.Open(ctx, d, root, root.DefaultState(), now)
	require.NoError(t, err)
	r := &runs{records: map[project.Name][]project.Record{}, queue: map[project.Name]project.Queue{}, result: project.Result{State: project.Live}}
	a := &archives{pinned: map[project.ID]bool{}}
	reg.Linker, reg.Deployments = linker{}, r
	reg.Repository = func(n project.Name, r project.Repo) registry.Repository { return repository{n, r} }
	local := access.Local("op")
	h := &house{runs: r, archives: a, audit: log, keys: map[string]access.Identity{"local": local}}
	for _, k := range []struct {
		name, text string
		admin      bool
	}{{"marie", keyMarie, false}, {"jenkins", keyBot, false}, {"ops", keyRoot, true}} {
		key, err := acc.AddKey(ctx, local, k.name, []byte(k.text), k.admin)
		require.NoError(t, err)
		h.keys[k.name] = access.Identity{Name: key.Name, Fingerprint: key.Fingerprint, Admin: key.Admin, From: "192.0.2.7:50022"}
	}
	for _, n := range []project.Name{"app", "secret"} {
		_, err := reg.Create(ctx, n, registry.Settings{Env: map[project.Name]string{"app": "prod"}[n]})
		require.NoError(t, err)
	}
	require.NoError(t, acc.Grant(ctx, local, "app", "marie", project.Deploy))
	require.NoError(t, acc.Grant(ctx, local, "app", "jenkins", project.Read))

	at := noon.Add(-2 * time.Hour)
	r.records["app"] = []project.Record{
		{
			Deployment: project.Deployment{ID: idBad, Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Code: codeB, Pillar: pillar,
				At: at.Add(time.Hour), Pusher: project.Pusher{Key: "jenkins", From: "192.0.2.8:1"}},
			State: project.RolledBack,
			Result: &project.Result{State: project.RolledBack, Kind: "failed", Procedure: "install", Step: "0100_build", StateID: "npm-install",
				Reason: "failed in 0100_build, state npm-install: npm ci exited with status 1 after a very long explanation", Code: codeA, Pillar: pillar,
				Started: at.Add(time.Hour), Ended: at.Add(time.Hour + 12*time.Second)},
		},
		{
			Deployment: project.Deployment{ID: idLive, Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Code: codeA, Pillar: pillar, At: at,
				Pusher: project.Pusher{Key: "marie", From: "192.0.2.7:1"}},
			State:  project.Live,
			Result: &project.Result{State: project.Live, Code: codeA, Pillar: pillar, Started: at, Ended: at.Add(1600 * time.Millisecond)},
		},
	}
	a.all = []status.Archive{
		{ID: idBad, Name: "2026-05-01_11_00-00_" + string(idBad), At: at.Add(time.Hour), Code: codeA, Pillar: pillar, Verdict: project.RolledBack, Pusher: "jenkins",
			Failed: true, Files: 5003, Bytes: 22_000_000, Disk: 25_000_000, Own: 25_000_000},
		{ID: idLive, Name: "2026-05-01_10_00-00_" + string(idLive), At: at, Code: codeB, Pillar: pillar, Verdict: project.Live, Pusher: "marie", Pinned: true,
			Tree: true, Files: 5000, Bytes: 21_000_000, Disk: 24_000_000, Own: 24_000_000},
	}
	r.events = []event.Event{
		{Seq: 1, Time: noon, Kind: event.Head, Text: "app  91bd0e2..3f2a9c1"},
		{Seq: 2, Time: noon, Kind: event.ProcedureDone, Status: event.OK, Procedure: "archive", Duration: 40 * time.Millisecond, Text: "5,003 files"},
		{Seq: 3, Time: noon, Kind: event.Output, Stream: "stdout", Text: "building"},
		{Seq: 4, Time: noon, Kind: event.Verdict, Status: event.OK, Text: "live in 1.6s"},
	}
	h.Backend = &verbs.Backend{
		Projects: reg, Runs: r, Access: acc, Archives: a, Cfg: cfg{}, Audit: log,
		Status: &status.Source{Root: root, Projects: reg, Records: r, Archives: a, Repository: func(n project.Name, r project.Repo) status.Repository { return repository{n, r} }, Remotes: func(n project.Name) status.Remotes {
			base := "ssh://deploy@host.example:2222/" + string(n)
			return status.Remotes{Project: base + "/project.git", Pillar: base + "/pillar.git"}
		}},
		Events: func(_ project.Name, id project.ID) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				if id == idBad {
					yield(event.Event{}, errors.New("disk on fire at /secret/place"))
					return
				}
				for _, e := range r.events {
					if !yield(e, nil) {
						return
					}
				}
			}
		},
		Doctor: diagnose.Doctor{Inspect: func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Check: status.Check{Name: "root", Status: "ok", Text: "/srv is there"}}, {Check: status.Check{Name: "salt-call", Status: "skipped", Text: "not installed", Hint: "pip install salt"}}}
		}},
		Host: "host.example", Build: status.Build{Release: "1.2.3", Go: "go1.26", Platform: "linux/amd64"}, Now: now, Detached: true,
	}
	return h
}

func (c cfg) Explain(ctx context.Context, name project.Name, key string, show project.Show) ([]project.Explained, error) {
	cfg, err := c.Cfg(ctx, name)
	if err != nil {
		return nil, err
	}
	return cfg.Explain(key, show, func(_ []string, all []project.LayerSetting) []project.LayerSetting { return all })
}
