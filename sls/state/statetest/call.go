package statetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// Do calls a function of a family with arguments in pairs.
func Do(t *testing.T, states func(*core.Table), test bool, fun, name string, args ...any) core.Return {
	t.Helper()
	f, ok := core.NewTable(states).Lookup(fun)
	require.True(t, ok, fun)
	c := CallFor(t, "", fun, name, args...)
	c.Test = test
	for _, k := range c.Args.Keys() {
		require.True(t, f.Accepts(k.(string)), "%s does not know %s", fun, k)
	}
	return f.Run(c)
}

// CallFor returns a call on this machine; backups is where old files are kept.
func CallFor(t *testing.T, backups, fun, name string, args ...any) *core.Call {
	t.Helper()
	c := &core.Call{
		Env: &core.Env{Host: host.New(execx.OS{}), Pillar: py.NewDict(), Grains: py.NewDict(), Cache: map[string]any{}, Accumulated: map[string]*core.Accumulator{}, Backups: backups},
		Ctx: context.Background(), Function: fun, Name: name, ID: name, Args: py.NewDict(args...),
	}
	c.Args.SetStr("name", name)
	return c
}
