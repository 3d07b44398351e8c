package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// A power failure while the tree changes may take the names of the archive, the pins and the pushed objects, but not the journal's entry: the old tree comes back,
// and the same commit can be pushed again.
func TestRecoveryWithoutTheNamesOfTheArchive(t *testing.T) {
	m := newMachine(t)
	files := map[string]string{"page": "one", ".salt/010_ok.sls": okStep}
	one := m.commit(project.Code, "", files)
	res, out := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, out)
	m.settled()
	files["page"] = "two"
	two := m.commit(project.Code, one, files)
	id := m.diesAt("begin install", one, two)
	require.Equal(t, "two", m.live("page"))
	paths := m.root.Project("app")
	made, err := filepath.Glob(filepath.Join(paths.Archives(), "*"+string(id)))
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.NoError(t, os.Rename(made[0], filepath.Join(paths.Archives(), ".tmp-"+filepath.Base(made[0]))))
	for _, of := range []string{"archives", "deployments"} {
		require.NoError(t, os.Remove(filepath.Join(m.rep.Open("app", project.Code).Dir(), "refs/corpus", of, string(id))))
	}
	m.start()
	rec, err := m.p.Find(t.Context(), "app", string(id))
	require.NoError(t, err)
	require.Equal(t, project.RolledBack, rec.State, rec.Result)
	require.Equal(t, "one", m.live("page"))
	require.Equal(t, one, m.branch(project.Code))
	res, out = m.push(project.Code, one, two)
	require.Equal(t, project.Live, res.State, out)
	require.Equal(t, "two", m.live("page"))
}
