package pillar

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// What Salt 3008.3 says of the same targets; what differs from it would be a wrong pillar, so the rest is refused.
func TestPillarTargets(t *testing.T) {
	tr := &tree{data: &Reader{Grains: py.NewDict("id", "web1.example.org", "os", "Debian", "roles", py.NewList("web", "db"),
		"net", py.NewDict("eth0", py.NewDict("mac", "aa:bb")), "kernel", "Linux")}}
	for target, want := range map[string]bool{
		"*": true, "web*": true, "web?.example.org": true, "db*": false, "web[0-9]*": true, "web[!0-9]*": false, "not db*": true,
		"web* and not G@os:Debian": false, "G@os:debian": true, "G@OS:Debian": false, "G@roles:d*": true, "G@roles:mail": false,
		"L@a,web1.example.org": true, "G@net:eth0:mac:aa:bb": true, "G@net:eth0": true, "G@net:eth*": true, "web1": false,
		"db* or web* and G@kernel:Linux": true, "db* and web* or G@kernel:Windows": false, "web1.example.org": true, "G@os:*": true,
	} {
		got, err := tr.targets(target, py.NewList("x"))
		require.NoError(t, err, target)
		require.Equal(t, want, got, target)
	}
	for _, target := range []string{"E@web.*", "I@a:b", "N@group", "( web* )", "web* and", "and web*", "web* db*", "not not web*", "G@net:*:mac:aa:bb", "", "S@10.0.0.0/8"} {
		_, err := tr.targets(target, py.NewList("x"))
		require.Error(t, err, target)
	}
	for how, want := range map[string]bool{"glob": true, "list": false, "grain": false} {
		got, err := tr.targets("web*", py.NewList(py.NewDict("match", how), "x"))
		require.NoError(t, err)
		require.Equal(t, want, got, how)
	}
	_, err := tr.targets("web*", py.NewList(py.NewDict("match", "pcre")))
	require.Error(t, err)
}
