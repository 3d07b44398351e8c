package demands_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project/demands"
)

func TestPolicy(t *testing.T) {
	p, err := demands.ParsePolicy([]string{"prod", "*/shop"}, []string{"staging/app"}, []string{"prod=2", "*/blog=0", "prod/shop=1", "staging"})
	require.NoError(t, err)
	for _, c := range []struct {
		env  []string
		name string
		want demands.Demands
	}{
		{[]string{"prod"}, "app", demands.Demands{SignedPush: true, Approvals: 2}},
		{[]string{"dev"}, "app", demands.Demands{}},
		{nil, "shop", demands.Demands{SignedPush: true}},
		{[]string{"prod"}, "shop", demands.Demands{SignedPush: true, Approvals: 1}},
		{[]string{"prod"}, "blog", demands.Demands{SignedPush: true}},
		{[]string{"dev", "prod"}, "app", demands.Demands{SignedPush: true, Approvals: 2}},
		{[]string{"staging"}, "app", demands.Demands{SignedCommits: true, Approvals: 1}},
	} {
		require.Equal(t, c.want, p.Of(c.env, c.name), "%v %s", c.env, c.name)
	}
	for _, bad := range [][3][]string{{{"Prod"}}, {{"prod/"}}, {nil, {"a/b/c"}}, {nil, nil, {"prod=x"}}, {nil, nil, {"prod=11"}}, {nil, nil, {"=1"}}, {{""}}} {
		_, err := demands.ParsePolicy(bad[0], bad[1], bad[2])
		require.ErrorContains(t, err, "require.", "%v", bad)
	}
}
