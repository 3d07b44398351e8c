package procedures

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/fleet"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures/passwords"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// An approval of a project with nodes, whose steps run there, does not depend on which of several hubs leads. Without nodes it does, and whoever approves is told what differs, as with another root.
func TestBasisOfAnotherHub(t *testing.T) {
	basis := func(root, host, port string, nodes []fleet.Member) approval.Basis {
		at := layout.Root(root).Project("app")
		cfg, err := project.BuildCfg(t.Context(), project.CfgInputs{
			Name: "app", Layout: at, Facts: project.Facts{MinionID: host, FQDN: host + ".example.org"},
			Sample: func(context.Context) (*py.Dict, error) { return nil, nil },
			Pillar: func(context.Context) (*py.Dict, error) {
				return py.NewDict("makina-projects.app", py.NewDict("data", py.NewDict("port", port))), nil
			},
		})
		require.NoError(t, err)
		e := Env{RemoteLess: true, Paths: at, Prepared: &Prepared{Cfg: cfg, pillar: py.NewDict(), nodes: nodes, passwords: passwords.Open(vfs.OS{}, filepath.Join(t.TempDir(), "none"), nil, true)}}
		b, err := e.Basis(t.Context())
		require.NoError(t, err)
		return b
	}
	web := []fleet.Member{{Name: "web1"}}
	changed := func(was, now approval.Basis) string {
		r := approval.Request{Plan: "p", Basis: was}
		return r.Changed(project.Deployment{}, "p", now)
	}
	require.Empty(t, changed(basis("/srv", "hub1", "1", web), basis("/srv", "hub2", "1", web)))
	require.Equal(t, "since then there was a change of the configuration of the machine", changed(basis("/srv", "hub1", "1", web), basis("/srv", "hub2", "2", web)))
	require.Equal(t, "since then there was a change of minion_id and fqdn of the machine (hub1 hub1.example.org, now hub2 hub2.example.org)", changed(basis("/srv", "hub1", "1", nil), basis("/srv", "hub2", "1", nil)))
	require.Equal(t, "since then there was a change of the root of the server (/srv, now /opt)", changed(basis("/srv", "hub1", "1", web), basis("/opt", "hub2", "1", web)))
}
