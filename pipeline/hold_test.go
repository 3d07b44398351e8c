package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A deployment that waits with Hold and is not released ends when the next one arrives; one that was released does not.
func TestSupersede(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	begin := func(page string) project.ID {
		c := m.commit(project.Code, one, map[string]string{"page": page})
		id, err := m.p.Start(t.Context(), project.Deployment{
			Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Hold: true, Pusher: project.Pusher{Key: "marie"},
			Change: project.Change{Ref: "refs/heads/master", Old: one, New: c},
		}, nil)
		require.NoError(t, err)
		return id
	}
	first := begin("first")
	ended, err := m.p.Held(t.Context(), first)
	require.NoError(t, err)
	require.False(t, ended)
	queued := begin("queued") // behind the first

	require.NoError(t, m.p.Supersede(t.Context(), "app", "0198c0de-0000-7000-8000-000000000000"))
	for _, id := range []project.ID{first, queued} {
		res, out = m.follow(id)
		require.Contains(t, res.Reason, "superseded by 0198c0de", out)
	}
	require.Equal(t, "one", m.live("page"))

	next := begin("next")
	require.NoError(t, m.p.Supersede(t.Context(), "app", next), "itself")
	ended, err = m.p.Held(t.Context(), next)
	require.NoError(t, err)
	require.False(t, ended)
	m.p.Release(next, nil)
	require.NoError(t, m.p.Supersede(t.Context(), "app", first))
	res, out = m.follow(next)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "next", m.live("page"))
}

// A deployment with Hold waits also where the archive is skipped: otherwise it would go live before its stage begins, and on some nodes only if others are not ready.
func TestHoldWithoutArchive(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"page": "one"})
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	two := m.commit(project.Code, one, map[string]string{"page": "two"})
	id, err := m.p.Start(t.Context(), project.Deployment{
		Project: "app", Trigger: project.TriggerPush, Repo: project.Code, Hold: true, Pusher: project.Pusher{Key: "marie"}, Select: project.Selection{Skip: []string{"archive"}},
		Change: project.Change{Ref: "refs/heads/master", Old: one, New: two},
	}, nil)
	require.NoError(t, err)
	ended, err := m.p.Held(t.Context(), id)
	require.NoError(t, err)
	require.False(t, ended)
	require.Equal(t, "one", m.live("page"))
	m.p.Release(id, nil)
	res, out = m.follow(id)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "two", m.live("page"))
}
