package local

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

type fakeDeployments map[project.ID]project.Record

func (f fakeDeployments) Begun(context.Context, project.Deployment) (bool, error) { return true, nil }

func (f fakeDeployments) LastLive(context.Context, []project.Name) (map[project.Name]project.Record, error) {
	return map[project.Name]project.Record{"app": f["last"]}, nil
}

func (f fakeDeployments) Find(_ context.Context, _ project.Name, id string) (project.Record, error) {
	return f[project.ID(id)], nil
}

func (f fakeDeployments) Undeployed(context.Context, project.Name) (bool, error) { return false, nil }

// Only a project in which nothing was live before is undeployed: one whose archive was skipped, or is gone, keeps what it has.
func TestWhatWasLiveBefore(t *testing.T) {
	record := func(id project.ID, live project.Commit) project.Record {
		return project.Record{Deployment: project.Deployment{ID: id, LiveCode: live}}
	}
	for name, c := range map[string]struct {
		last, first project.Record
		archive     string
		want        project.Trigger
		kind        fault.Kind
	}{
		"an archive":                       {last: record("first", "a"), archive: "2026_first", want: project.TriggerRollback},
		"nothing was live":                 {last: record("first", ""), want: project.TriggerUndeploy},
		"nothing was live, several runs":   {last: record("second", "a"), first: record("first", ""), want: project.TriggerUndeploy},
		"something was live, no archive":   {last: record("first", "a"), kind: fault.Refused},
		"something else went live since":   {last: record("other", "a")},
		"something was live, several runs": {last: record("second", "a"), first: record("first", "a"), kind: fault.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			if c.first.ID == "" {
				c.first = c.last
			}
			b := Machine{
				Deployments: fakeDeployments{"last": c.last, "first": c.first},
				Restorable:  func(project.Name, project.ID) (string, error) { return c.archive, nil },
			}
			d, err := b.before(t.Context(), bundle.Manifest{Release: bundle.Release{Project: "app"}, Restore: "first", Also: []project.ID{"second"}}, project.Pusher{})
			if c.kind != 0 {
				require.Equal(t, c.kind, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "no archive has what was live")
				require.Empty(t, d.Trigger)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, d.Trigger)
		})
	}
}
