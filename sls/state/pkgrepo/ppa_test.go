package pkgrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

// Only Ubuntu and what comes of it know archives of Launchpad's.
func TestPPA(t *testing.T) {
	m := statetest.NewMachine(t, States, "apt-get", "apt-add-repository")
	m.Grains = py.NewDict("os", "Ubuntu", "oscodename", "jammy")
	list := filepath.Join(m.Dir, "sources.list")
	const line = "deb http://ppa.launchpad.net/owner/name/ubuntu jammy main\n"
	m.On = func(l string) {
		if strings.HasPrefix(l, "apt-add-repository ") {
			require.NoError(t, os.WriteFile(list, []byte(line+"deb-src"+line[3:]), 0o644))
		}
	}
	ppa := []any{"ppa", "owner/name", "refresh", false}
	r := m.Call(false, "pkgrepo.managed", "x", ppa...)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, []string{"apt-add-repository -y ppa:owner/name"}, m.Ran)
	m.Is(m.Call(true, "pkgrepo.absent", "x", ppa...), core.None, "Package repo 'ppa:owner/name' will be removed. This may cause pkg states to behave "+
		"differently than stated if this action is repeated without test=True, due to the differences in the configured repositories.", "")
	r = m.Call(false, "pkgrepo.absent", "x", append(ppa, "keyid_ppa", true)...)
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "Removed repo ppa:owner/name, but failed to remove key: ")
	left, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NotContains(t, string(left), "ppa.launchpad.net", "the entry for sources goes too")
	r = m.Call(false, "pkgrepo.managed", "x", append(ppa, "ppa_auth", "me:secret")...)
	require.Equal(t, core.False, r.Result)
	require.NotContains(t, r.Comment, "secret")
	m.On, m.Answers["apt-add-repository"] = nil, "!no such archive"
	r = m.Call(false, "pkgrepo.managed", "x", ppa...)
	require.Equal(t, "Failed to configure repo 'x': Unable to add PPA 'owner/name': no such archive", r.Comment)
}
