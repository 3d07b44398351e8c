package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
	"corpus-git/project/status"
)

func TestSummarize(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var all []project.Record // the newest first
	add := func(ago time.Duration, trigger project.Trigger, state project.State, took time.Duration) {
		at := now.Add(-ago)
		r := project.Record{Deployment: project.Deployment{Trigger: trigger, At: at}, State: state, Result: &project.Result{State: state, Started: at, Ended: at.Add(took),
			Timings: []project.Timing{{Name: "archive", Duration: took / 2}, {Name: "install/0100_build", Duration: took / 4}, {Name: "install/0100_build/state", Duration: 1}}}}
		all = append([]project.Record{r}, all...)
	}
	add(40*24*time.Hour, project.TriggerPush, project.Live, 4*time.Second)
	add(26*time.Hour, project.TriggerPush, project.RolledBack, time.Second)
	add(25*time.Hour, project.TriggerRedeploy, project.Failed, time.Second)
	add(24*time.Hour, project.TriggerPush, project.Refused, time.Second)
	add(24*time.Hour, project.TriggerPush, project.Live, 8*time.Second)
	add(time.Hour, project.TriggerTask, project.Done, time.Hour)
	add(time.Hour, project.TriggerPush, project.Live, 20*time.Second)
	all = append([]project.Record{{Deployment: project.Deployment{Trigger: project.TriggerPush, At: now}, State: project.Running}}, all...)
	s := status.Summarize(all, now)
	require.Equal(t, 5, s.Deployments)
	require.Equal(t, []int{3, 2, 1, 60}, []int{s.Good, s.Bad, s.Refused, s.Rate()})
	require.Equal(t, now.Add(-40*24*time.Hour), s.Since)
	require.Equal(t, status.Spread{N: 3, Median: 8 * time.Second, P95: 20 * time.Second}, s.Whole)
	require.Equal(t, []status.Spread{{Name: "archive", N: 3, Median: 4 * time.Second, P95: 10 * time.Second}, {Name: "install/0100_build", N: 3, Median: 2 * time.Second, P95: 5 * time.Second}}, s.Steps)
	require.Equal(t, 1, s.Restored)
	require.Equal(t, 2*time.Hour+7*time.Second, s.Restore.Median, "from the end of the first that failed to the end of the one that went live")
	require.Len(t, s.Days, 30)
	require.Equal(t, status.Day{Day: now.Truncate(24 * time.Hour), Good: 1}, s.Days[29])
	require.Equal(t, status.Day{Day: now.Truncate(24*time.Hour).AddDate(0, 0, -1), Good: 1, Bad: 2}, s.Days[28])
	require.Zero(t, status.Summarize(nil, now).Rate())
}
