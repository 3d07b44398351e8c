package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSees(t *testing.T) {
	m := Member{Name: "web1.example.org", Roles: []string{"web", "a.b"}}
	for path, want := range map[string][2]bool{
		"init.sls": {true, false}, "nodes.yaml": {false, false}, "map/nodes.yaml": {true, false}, "files": {true, false},
		"roles": {false, true}, "nodes": {false, true},
		"roles/web.sls": {true, false}, "roles/web": {true, false}, "roles/web/x.sls": {true, false}, "roles/a.b.sls": {true, false},
		"roles/db.sls": {false, false}, "roles/db": {false, false}, "roles/webx.sls": {false, false}, "roles/init.sls": {false, false},
		"nodes/web1.example.org.sls": {true, false}, "nodes/web1.example.org": {true, false}, "nodes/web2.example.org.sls": {false, false}, "nodes/web1": {false, false},
	} {
		whole, below := m.Includes(path)
		require.Equal(t, want, [2]bool{whole, below}, path)
	}
}
