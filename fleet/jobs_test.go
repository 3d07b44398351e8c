package fleet_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
)

func TestJobs(t *testing.T) {
	ctx := t.Context()
	d, err := db.Open(ctx, filepath.Join(t.TempDir(), "x.db"))
	require.NoError(t, err)
	defer d.Close()
	s, err := fleet.Open(ctx, d)
	require.NoError(t, err)
	one := fleet.Job{Project: "app", Name: "up", Text: "about: first\nstages: [{name: a}]\n", Added: time.Unix(1, 0).UTC(), AddedBy: "marie"}
	j, changed, err := s.SetJob(ctx, one)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "up@1 first", j.Ref()+" "+j.About)
	_, changed, err = s.SetJob(ctx, one)
	require.NoError(t, err)
	require.False(t, changed, "the same text is no revision")
	two := one
	two.Text = "stages: [{name: b}]"
	j, _, err = s.SetJob(ctx, two)
	require.NoError(t, err)
	require.Equal(t, "up@2", j.Ref())
	j, err = s.Job(ctx, "app", "up@1")
	require.NoError(t, err)
	require.Equal(t, one.Text, j.Text)
	for _, name := range []string{"", "Up", "a/b", "-a", "a@1", strings.Repeat("a", 65)} {
		bad := one
		bad.Name = name
		_, _, err = s.SetJob(ctx, bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), "%q", name)
	}
	require.NoError(t, s.RemoveJob(ctx, "app", "up", "marie", time.Unix(2, 0)))
	require.Equal(t, fault.Refused, fault.KindOf(s.RemoveJob(ctx, "app", "up", "marie", time.Unix(2, 0))))
	_, err = s.Job(ctx, "app", "up")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, err = s.Job(ctx, "app", "up@3")
	require.Equal(t, fault.Refused, fault.KindOf(err), "the removal is no revision to run")
	_, err = s.Job(ctx, "app", "up@2")
	require.NoError(t, err, "what ran it is explained")
	_, err = s.Job(ctx, "other", "up@2")
	require.Equal(t, fault.Refused, fault.KindOf(err), "another project has none")
	j, changed, err = s.SetJob(ctx, two)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "up@4", j.Ref(), "a revision is used once")
	all, err := s.Jobs(ctx, "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, s.Forget(ctx, "app"))
	_, err = s.Job(ctx, "app", "up@1")
	require.Equal(t, fault.Refused, fault.KindOf(err))
}

func TestReadJob(t *testing.T) {
	for text, want := range map[string]string{
		"": "no stages", "about: x": "no stages", "stages: [{name: a, wait_for: [{}]}]": "one of tcp", "stages: [{name: a}]\nset: {a: 1}": "unknown key set",
		"about: \"a\\nb\"\nstages: [{name: a}]": "one line", "stages: [{name: a}]\n#" + strings.Repeat("x", 64<<10): "longer than", "on_failure: x\nstages: [{name: a}]": "on_failure",
	} {
		_, err := fleet.ReadJob(text)
		require.ErrorContains(t, err, want)
	}
	// Nodes that no stage takes are left out, and the leader is that of the code.
	s, err := fleet.JobStages(fleet.Job{Text: "stages: [{name: d, roles: [db]}]"}, code("leader: {steps: [020], roles: [web]}"))
	require.NoError(t, err)
	list := members(t, webs)
	p, err := fleet.NewPlan(list, s, known(list), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"db1"}, names(p.Nodes()))
	require.Len(t, p.Left, 6)
	require.Len(t, p.Leads, 6)
	s.Stages[0].Roles = []string{"nobody"}
	_, err = fleet.NewPlan(list, s, known(list), nil)
	require.ErrorContains(t, err, "no node has a role")
}
