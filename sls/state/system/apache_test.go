package system_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
	"corpus-git/sls/state/system"
)

// apache is a machine on which headers is on, ssl and dav are off, and dav cannot be turned on.
func apache(t *testing.T, tools ...string) (m *statetest.Machine, on map[string]bool) {
	m = statetest.NewMachine(t, system.States, tools...)
	on = map[string]bool{"headers": true}
	answer := func() {
		m.Answers = map[string]string{"a2enmod -q dav": "!Module dav does not exist!"}
		for _, name := range []string{"headers", "ssl", "dav"} {
			m.Answers["a2query -q -m "+name], m.Answers["a2query -m "+name] = "!", "!No module matches "+name
			if on[name] {
				m.Answers["a2query -q -m "+name], m.Answers["a2query -m "+name] = "", name+" (enabled by site administrator)\n"
			}
		}
	}
	answer()
	m.On = func(line string) {
		switch line {
		case "a2enmod -q ssl":
			on["ssl"] = true
		case "a2dismod -q -f ssl":
			on["ssl"] = false
		case "a2dismod -q headers":
			on["headers"] = false
		case "a2enmod -q -f headers":
			on["headers"] = true
		}
		answer()
	}
	return m, on
}

func TestApacheModules(t *testing.T) {
	m, on := apache(t, "a2query", "a2enmod", "a2dismod")
	dir := filepath.Join(t.TempDir(), "undo", "1")
	m.NoteUndo(dir)
	include := func(test bool, modules any) core.Return {
		return m.Call(test, "mc_apache.include_module", "x", "modules", modules)
	}
	would := include(true, py.NewList("headers", "ssl"))
	require.Equal(t, core.None, would.Result)
	require.Empty(t, m.Ran)

	did := include(false, "headers, ssl")
	require.Equal(t, core.True, did.Result, did.Comment)
	require.Equal(t, []string{"a2enmod -q ssl"}, m.Ran)
	require.Equal(t, "{'ssl': 'a2enmod'}", py.Repr(did.Changes))
	require.NoError(t, m.Undo.After(t.Context()))

	again := include(false, py.NewList("headers", "ssl"))
	require.Equal(t, core.True, again.Result)
	require.Zero(t, again.Changes.Len())

	none := m.Call(false, "mc_apache.exclude_module", "x", "modules", py.NewList("headers", "dav"))
	require.Equal(t, core.True, none.Result, none.Comment)
	require.Equal(t, map[string]bool{"headers": false, "ssl": true}, on)
	require.NoError(t, m.Undo.After(t.Context()))

	fails := include(false, py.NewList("dav"))
	require.Equal(t, core.False, fails.Result)
	require.Contains(t, fails.Comment, "FAILURE a2enmod dav")
	require.NoError(t, m.Undo.After(t.Context()))

	m.Rollback(dir)
	require.Equal(t, map[string]bool{"headers": true, "ssl": false}, on, "as it was before the deployment")
}

// Before Apache is installed nothing is known of its modules: a plan says what would be, a run fails.
func TestApacheModulesWithoutApache(t *testing.T) {
	m, _ := apache(t)
	r := m.Call(true, "mc_apache.include_module", "x", "modules", "ssl")
	require.Equal(t, core.None, r.Result)
	r = m.Call(false, "mc_apache.include_module", "x", "modules", "ssl")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "a2query is not installed")
}
