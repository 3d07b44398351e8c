package approvals_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/pipeline/approvals"
	"corpus-git/pipeline/records"
	"corpus-git/project"
	"corpus-git/project/approval"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// rights holds the permissions of principals on any project.
type rights map[string][]project.Right

func (r rights) may(_ context.Context, who project.Pusher, _ project.Name, want project.Right) (bool, error) {
	for _, x := range r[who.Key] {
		if x.Grants(want) {
			return true, nil
		}
	}
	return false, nil
}

func open(t *testing.T) (*approvals.Store, *clock, rights, *[]string) {
	s, _, c, r, told := openWithRecords(t)
	return s, c, r, told
}

func openWithRecords(t *testing.T) (*approvals.Store, *records.Store, *clock, rights, *[]string) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	c := &clock{time.Unix(1_700_000_000, 0)}
	recs, err := records.Open(t.Context(), d)
	require.NoError(t, err)
	s, err := approvals.NewStore(t.Context(), d, c.now)
	require.NoError(t, err)
	s.Audit, err = audit.Open(t.Context(), d, c.now)
	require.NoError(t, err)
	r := rights{"dev": {project.Deploy}, "ci": {project.Approve}, "ops": {project.Approve, project.Admin}, "reader": {project.Read}}
	s.May = r.may
	var told []string
	s.Notify = func(_ context.Context, _ db.Execer, n project.Notification) error {
		told = append(told, n.Event+" by "+n.By.Key)
		return nil
	}
	return s, recs, c, r, &told
}

func request(id project.ID, c *clock, need int) approval.Request {
	return approval.Request{ID: id, Project: "app", At: c.t, Expires: c.t.Add(time.Hour), Need: need, Plan: "p",
		Deployment: approval.Facts{Deployment: project.Deployment{ID: id, Project: "app", Repo: project.Code, Code: "c", LiveCode: "l", Pusher: project.Pusher{Key: "dev"}}}}
}

const one, two, three = project.ID("11111111-0000-4000-8000-000000000000"), project.ID("22222222-0000-4000-8000-000000000000"), project.ID("33333333-0000-4000-8000-000000000000")

func by(name string) approval.Vote { return approval.Vote{By: project.Pusher{Key: name}} }

func TestVotes(t *testing.T) {
	s, c, r, told := open(t)
	ctx := t.Context()
	require.NoError(t, s.Add(ctx, request(one, c, 2)))
	find := func() approval.Request {
		q, err := s.Find(ctx, "app", "1111")
		require.NoError(t, err)
		return q
	}
	for name, want := range map[string]string{"dev": "somebody else has to approve it", "reader": "requires approve permission", "stranger": "requires approve permission"} {
		_, err := s.Vote(ctx, find(), by(name))
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Refused, fault.KindOf(err))
	}
	require.Empty(t, find().Votes)
	q, err := s.Vote(ctx, find(), by("ci"))
	require.NoError(t, err)
	require.False(t, q.Enough())
	_, err = s.Vote(ctx, find(), by("ci"))
	require.ErrorContains(t, err, "has already approved it; 2 approvals are required")
	q, err = s.Vote(ctx, find(), by("ops"))
	require.NoError(t, err)
	require.True(t, q.Enough())
	require.Nil(t, q.Broken())
	require.Equal(t, []string{"ci", "ops"}, q.Names())
	require.Empty(t, *told)

	// Break-glass requires admin and a reason, whoever made the request.
	require.NoError(t, s.Add(ctx, request(two, c, 3)))
	other, err := s.Find(ctx, "app", string(two))
	require.NoError(t, err)
	for name, v := range map[string]approval.Vote{"requires a reason": {By: project.Pusher{Key: "ops"}, BreakGlass: true}, "requires admin": {By: project.Pusher{Key: "ci"}, BreakGlass: true, Reason: "x"}} {
		_, err = s.Vote(ctx, other, v)
		require.ErrorContains(t, err, name)
	}
	_, err = s.Vote(ctx, other, by("ops"))
	require.NoError(t, err)
	other, err = s.Vote(ctx, other, approval.Vote{By: project.Pusher{Key: "ops"}, BreakGlass: true, Reason: "down"})
	require.NoError(t, err, "who approved may still break it")
	require.True(t, other.Enough())
	require.Equal(t, "down", other.Broken().Reason)
	require.Equal(t, []string{"break-glass by ops"}, *told)

	// The first was superseded, since the same principal made another request; no ended request accepts
	// a vote.
	require.Equal(t, approval.Void, find().State)
	_, err = s.Vote(ctx, find(), by("ci"))
	require.ErrorContains(t, err, "superseded by "+string(two))

	// The requester no longer has the permission: void.
	require.NoError(t, s.Add(ctx, request(three, c, 1)))
	r["dev"] = nil
	last, err := s.Find(ctx, "app", string(three))
	require.NoError(t, err)
	_, err = s.Vote(ctx, last, by("ci"))
	require.ErrorContains(t, err, "no longer has the permission deploy")
	last, err = s.Find(ctx, "app", string(three))
	require.NoError(t, err)
	require.Equal(t, approval.Void, last.State)
	require.Empty(t, last.Votes)
}

func TestExpiryAndEnds(t *testing.T) {
	s, c, _, _ := open(t)
	ctx := t.Context()
	require.NoError(t, s.Add(ctx, request(one, c, 1)))
	q, err := s.Find(ctx, "app", string(one))
	require.NoError(t, err)
	require.NoError(t, q.Closed())
	c.t = c.t.Add(time.Hour)
	_, err = s.Vote(ctx, q, by("ci"))
	require.ErrorContains(t, err, "nobody approved it in time", "an old answer is looked at again")
	list, err := s.List(ctx, "app", true, 10)
	require.NoError(t, err)
	require.Empty(t, list)
	list, err = s.List(ctx, "app", false, 10)
	require.NoError(t, err)
	require.Equal(t, approval.Expired, list[0].State)
	done, err := s.End(ctx, one, approval.Deployed, "", "", two)
	require.NoError(t, err)
	require.False(t, done, "it ends once")

	require.NoError(t, s.Add(ctx, request(two, c, 1)))
	_, err = s.Reject(ctx, "app", string(two), project.Pusher{Key: "reader"}, "no")
	require.ErrorContains(t, err, "requires approve permission")
	q, err = s.Reject(ctx, "app", string(two), project.Pusher{Key: "dev"}, "my mistake")
	require.NoError(t, err, "who asked may withdraw it")
	require.Equal(t, approval.Rejected, q.State)
	require.Equal(t, "my mistake", q.Reason)
	_, err = s.Reject(ctx, "app", string(two), project.Pusher{Key: "ci"}, "")
	require.ErrorContains(t, err, "no longer waiting")
	_, err = s.Find(ctx, "other", string(two))
	require.Equal(t, fault.Usage, fault.KindOf(err))
	require.NoError(t, s.Forget(ctx, "app"))
	list, err = s.List(ctx, "app", false, 10)
	require.NoError(t, err)
	require.Empty(t, list)
}

// What is bound: both commits, what is live, the settings, and the plan, character by character.
func TestChanged(t *testing.T) {
	_, c, _, _ := open(t)
	q := request(one, c, 1)
	d := q.Deployment.Deployment
	require.True(t, q.Asks(d))
	require.Empty(t, q.Changed(d, "p", q.Basis))
	for want, change := range map[string]func(*project.Deployment){
		"commits": func(d *project.Deployment) { d.Code = "x" }, "went live": func(d *project.Deployment) { d.LiveCode = "x" }, "the pillar": func(d *project.Deployment) { d.LivePillar = "x" },
		"differ from the approved ones": func(d *project.Deployment) { d.Pillar = "x" },
	} {
		other := d
		change(&other)
		require.False(t, q.Asks(other))
		require.Contains(t, q.Changed(other, "p", q.Basis), want)
	}
	other := d
	other.Set = []project.Setting{{Key: "a", Value: "b"}}
	require.False(t, q.Asks(other))
	for _, option := range []func(*project.Deployment){
		func(d *project.Deployment) { d.Overwrite = true }, func(d *project.Deployment) { d.AllowEmpty = true }, func(d *project.Deployment) { d.AllowMissing = true },
		func(d *project.Deployment) { d.Resume = two },
	} {
		other := d
		option(&other)
		require.False(t, q.Asks(other), "who approves by a push approves what was asked for")
	}
	require.Contains(t, q.Changed(d, "q", q.Basis), "its plan has changed")
	for want, b := range map[string]approval.Basis{
		"a recipe that it extends": {Recipe: "x"}, "a recipe that it includes": {Others: "x"}, "the configuration of the machine": {Cfg: "x"}, "files of the live tree": {Live: "x"},
	} {
		require.Contains(t, q.Changed(d, "p", b), "a change of "+want)
	}

	sum := func(events ...event.Event) string {
		p := approval.NewPlan()
		for _, e := range events {
			p.Add(e)
		}
		return p.Sum()
	}
	a := event.Event{Kind: event.Plan, Text: "x", Lines: []string{"a", "b"}}
	require.Equal(t, sum(a), sum(event.Event{Kind: event.Note, Text: "n"}, event.Event{Kind: event.Plan, Text: "x", Lines: []string{"a", "b"}, Seq: 7, Time: c.t}))
	require.NotEqual(t, sum(a), sum(event.Event{Kind: event.Plan, Text: "x", Lines: []string{"ab"}}))
	require.NotEqual(t, sum(a), sum(event.Event{Kind: event.Plan, Text: "x", Lines: []string{"a"}}, event.Event{Kind: event.Plan, Text: "b"}))
	require.NotEqual(t, sum(a), sum(a, a))
}

// A request is removed with the record of its deployment.
func TestRequestsAreRemovedWithTheirRecords(t *testing.T) {
	s, recs, c, _, _ := openWithRecords(t)
	for _, id := range []project.ID{one, two} {
		require.NoError(t, recs.Put(t.Context(), project.Record{Deployment: project.Deployment{ID: id, Project: "app", At: c.t}, State: project.Refused}))
		require.NoError(t, s.Add(t.Context(), request(id, c, 1)))
	}
	require.NoError(t, recs.Forget(t.Context(), "other"))
	all, err := s.List(t.Context(), "app", false, 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.NoError(t, recs.Forget(t.Context(), "app"))
	all, err = s.List(t.Context(), "app", false, 10)
	require.NoError(t, err)
	require.Empty(t, all)
}
