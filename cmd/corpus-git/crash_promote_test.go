package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// TestCrashPromote kills the server at boundaries of a promotion to another environment, and each recovery at its first boundary: when the server is up again, the project has that environment if and only if
// the promotion is live, and what the steps wrote outside of the tree is that of the environment that the project has. It kills at the first boundary, in the steps and at each boundary from "committing" on;
// in a long run (see TestCrash) at each of all.
func TestCrashPromote(t *testing.T) {
	if testing.Short() {
		t.Skip("kills many servers")
	}
	m := newCrashed(t, 1)
	m.write("code", ".salt/040_environment.sls", "environment:\n  file.managed:\n    - name: "+m.outside()+"/environment\n    - contents: {{ opts.ms_project.default_env }}\n    - makedirs: true\n")
	m.prepare()
	environment := func() string {
		t.Helper()
		var doc struct{ Project struct{ Env string } }
		require.NoError(t, json.Unmarshal([]byte(m.must("project", "show", "app", "--json")), &doc))
		return doc.Project.Env
	}
	_, _, long := crashSettings(t)
	was := environment()
	promote := func(arm int) (lived bool, state project.State) {
		t.Helper()
		want := map[bool]string{true: "prod", false: "staging"}[was == "staging"]
		m.clear()
		m.arm(arm)
		host, port, _ := strings.Cut(m.addr, ":")
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec $GIT_SSH_COMMAND -p "+port+" deploy@"+host+" promote app --env "+want)
		cmd.Env, cmd.Dir = m.env, m.dir
		out, err := m.start(action{cmd: cmd})()
		if lived = m.armed(); lived {
			m.disarm()
			require.NoError(t, err, out)
		} else {
			m.died(<-m.ended)
			m.arm(0)
			m.begin()
			if !m.up() {
				m.begin()
				require.True(t, m.up(), m.points())
			}
			m.disarm()
		}
		rec := m.records()[0]
		require.Equal(t, project.TriggerPromote, rec.Trigger)
		require.True(t, rec.State.Terminal(), m.points())
		if rec.State == project.Live {
			was = want
		}
		require.Equal(t, was, environment(), "%s after %q", rec.State, m.points())
		said, err := contents(m.outside() + "/environment")
		require.NoError(t, err)
		if was != "" {
			require.Contains(t, said, was, "%s after %q", rec.State, m.points())
		}
		return lived, rec.State
	}
	lived, _ := promote(1000)
	require.True(t, lived)
	points := m.points()
	commits := slices.Index(points, "committing")
	require.Greater(t, commits, 5, points)
	for n := range points {
		if !long && n != 0 && n != commits/2 && n < commits-1 {
			continue
		}
		lived, state := promote(n)
		require.False(t, lived, "it has fewer boundaries than the one before")
		if n >= commits {
			require.Equal(t, project.Live, state, points[n])
		} else {
			require.Equal(t, project.RolledBack, state, points[n])
		}
	}
}
