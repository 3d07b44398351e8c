package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// A push of a commit that has gone live since the client asked is refused, and told that it need not fetch anything.
func TestPushOfWhatWentLiveMeanwhile(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	two := m.commit(project.Code, one, map[string]string{"page": "two"})
	for new, want := range map[project.Commit]string{one: "is at " + one.Short() + " already", two: "fetch first"} {
		_, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Change: project.Change{Ref: "refs/heads/master", New: new}}, nil)
		require.Equal(t, fault.Refused, fault.KindOf(err))
		require.ErrorContains(t, err, want)
	}
}
