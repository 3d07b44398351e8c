package pipeline_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A push of an older commit undoes what the newer one made outside. If the server dies during the push after that began, the result has what the newer one made or, once
// the branch was about to move, does not have it.
func TestDeathInAPushOfAnOlderCommit(t *testing.T) {
	type world struct {
		*machine
		one, two project.Commit
		outside  string
	}
	begin := func(t *testing.T) world {
		m := world{machine: newMachine(t), outside: t.TempDir()}
		site := func(text string) string {
			return "site:\n  file.managed:\n    - name: " + m.outside + "/site\n    - contents: " + text + "\n"
		}
		m.one = m.commit(project.Code, "", map[string]string{"page": "one", ".salt/010_site.sls": site("one")})
		m.two = m.commit(project.Code, m.one, map[string]string{"page": "two", ".salt/010_site.sls": site("two"),
			".salt/020_more.sls": "more:\n  file.managed:\n    - name: " + m.outside + "/new/more\n    - contents: more\n    - makedirs: true\n"})
		for _, c := range [][2]project.Commit{{"", m.one}, {m.one, m.two}} {
			res, out := m.push(project.Code, c[0], c[1])
			require.Equal(t, project.Live, res.State, out)
		}
		return m
	}
	holds := func(t *testing.T, m world, release string) {
		require.Equal(t, release, m.live("page"))
		site, err := os.ReadFile(filepath.Join(m.outside, "site"))
		require.NoError(t, err)
		require.Equal(t, release+"\n", string(site))
		if release == "two" {
			require.FileExists(t, filepath.Join(m.outside, "new/more"))
		} else {
			require.NoDirExists(t, filepath.Join(m.outside, "new"))
		}
	}
	var points []string
	probe := begin(t)
	probe.at = func(s string) { points = append(points, s) }
	res, out := probe.push(project.Code, probe.two, probe.one)
	require.Equal(t, project.Live, res.State, out)
	require.Contains(t, out, "an older commit: changes of 1 newer deployment outside of the tree are undone")
	holds(t, probe, "one")
	from := slices.Index(points, "begin undo")
	require.Positive(t, from, points)
	for i, point := range points[from:] {
		t.Run(point, func(t *testing.T) {
			m := begin(t)
			n, dead := 0, make(chan struct{})
			m.at = func(string) {
				if n == from+i {
					close(dead)
					select {} // the process dies right after this entry
				}
				n++
			}
			_, err := m.p.Start(t.Context(), project.Deployment{Project: "app", Trigger: project.TriggerPush, Repo: project.Code,
				Change: project.Change{Ref: "refs/heads/master", Old: m.two, New: m.one}}, nil)
			require.NoError(t, err)
			<-dead
			m.at = nil
			m.start()
			list, err := m.p.Deployments(t.Context(), "app", 1)
			require.NoError(t, err)
			if point == "committing" || point == "ended" {
				require.Equal(t, project.Live, list[0].State, list[0].Result)
				holds(t, m, "one")
				return
			}
			require.Equal(t, project.RolledBack, list[0].State, list[0].Result)
			require.Empty(t, list[0].Result.Unhealthy)
			holds(t, m, "two")
			res, out := m.push(project.Code, m.two, m.one)
			require.Equal(t, project.Live, res.State, out)
			holds(t, m, "one")
		})
	}
}
