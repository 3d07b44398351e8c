package pipeline_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/pipeline/journal"
	"corpus-git/project"
)

// losesAfterReady removes from the journal what a power failure may take after a Ready: all that follows, or only the Committing.
func (m *machine) losesAfterReady(all bool) {
	m.t.Helper()
	path := m.root.DefaultState().Journal("app")
	text, err := os.ReadFile(path)
	require.NoError(m.t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	at := -1
	for i, l := range lines {
		if bytes.Contains(l, []byte(`"kind":"`+journal.Ready+`"`)) {
			at = i
		}
	}
	require.Positive(m.t, at, "%s", text)
	require.Contains(m.t, string(lines[at+1]), `"kind":"`+journal.Committing+`"`)
	if all {
		lines = lines[:at+1]
	} else {
		lines[at+1] = make([]byte, len(lines[at+1]))
	}
	require.NoError(m.t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
}

// What ran is durable before a ref moves, and the journal says which refs are about to. So if a power failure takes what the journal said after that, the refs tell which of both trees is live.
func TestTheRefsDecideAboutWhatIsReady(t *testing.T) {
	for name, c := range map[string]struct {
		point string // where the power fails
		all   bool   // everything after Ready is lost, otherwise only the Committing
		live  bool
	}{
		"before the branch has moved": {point: "committing", all: true},
		"after it has moved":          {point: "ended", all: true, live: true},
		"the end is there":            {point: "ended", live: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			one := m.commit(project.Code, "", map[string]string{"page": "one", ".salt/010_ok.sls": okStep})
			res, out := m.push(project.Code, "", one)
			require.Equal(t, project.Live, res.State, out)
			two := m.commit(project.Code, one, map[string]string{"page": "two", ".salt/010_ok.sls": okStep})
			id := m.diesAt(c.point, one, two)
			m.losesAfterReady(c.all)
			m.start()
			state, page, branch := project.RolledBack, "one", one
			if c.live {
				state, page, branch = project.Live, "two", two
			}
			for range 2 { // a second recovery changes nothing
				rec, err := m.p.Find(t.Context(), "app", string(id))
				require.NoError(t, err)
				require.Equal(t, state, rec.State, rec.Result)
				require.Equal(t, page, m.live("page"))
				require.Equal(t, branch, m.branch(project.Code))
				if !c.live {
					require.Contains(t, rec.Result.Reason, "the server stopped before the branch moved")
				}
				m.start()
			}
			if !c.live {
				res, out := m.push(project.Code, one, two)
				require.Equal(t, project.Live, res.State, out)
			}
		})
	}
}

// A rollback that moves the branches of both repositories: if one of them has moved, both do.
func TestOneMovedRefMovesTheOthers(t *testing.T) {
	for name, moved := range map[string]bool{"none has moved": false, "the code's has moved": true} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			code := m.commit(project.Code, "", map[string]string{"page": "one"})
			res, out := m.push(project.Code, "", code)
			require.Equal(t, project.Live, res.State, out)
			pillar := m.commit(project.PillarRepo, "", map[string]string{"init.sls": "a: 1\n"})
			res, out = m.push(project.PillarRepo, "", pillar)
			require.Equal(t, project.Live, res.State, out)
			two := m.commit(project.Code, code, map[string]string{"page": "two"})
			res, out = m.push(project.Code, code, two)
			require.Equal(t, project.Live, res.State, out)
			later := m.commit(project.PillarRepo, pillar, map[string]string{"init.sls": "a: 2\n"})
			res, out = m.push(project.PillarRepo, pillar, later)
			require.Equal(t, project.Live, res.State, out)
			list, err := m.p.Deployments(t.Context(), "app", 4)
			require.NoError(t, err)
			require.Equal(t, pillar, list[2].Pillar) // when it went live
			dead := make(chan struct{})
			m.at = func(at string) {
				if at == "committing" {
					close(dead)
					select {}
				}
			}
			_, err = m.p.Start(context.Background(), project.Deployment{Project: "app", Trigger: project.TriggerRollback, Restore: list[2].ID}, nil)
			require.NoError(t, err)
			<-dead
			m.at = nil
			m.losesAfterReady(true)
			if moved {
				require.NoError(t, os.WriteFile(filepath.Join(m.root.Project("app").ProjectGit(), "refs/heads/master"), []byte(code+"\n"), 0o644))
			}
			m.start()
			list, err = m.p.Deployments(t.Context(), "app", 1)
			require.NoError(t, err)
			if !moved {
				require.Equal(t, project.RolledBack, list[0].State, list[0].Result)
				require.Equal(t, []any{"two", two, later}, []any{m.live("page"), m.branch(project.Code), m.branch(project.PillarRepo)})
				return
			}
			require.Equal(t, project.Live, list[0].State, list[0].Result)
			require.Equal(t, []any{"one", code, pillar}, []any{m.live("page"), m.branch(project.Code), m.branch(project.PillarRepo)})
		})
	}
}
