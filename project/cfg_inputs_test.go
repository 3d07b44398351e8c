package project

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project/schema"
)

// held builds a configuration that is held against inputs.
func held(t *testing.T, inputs string, pillar *py.Dict, set ...string) (*Cfg, error) {
	t.Helper()
	in, err := schema.ParseInputs(".salt/inputs.yaml", []byte(inputs))
	require.NoError(t, err)
	d := &Deployment{Trigger: TriggerRedeploy}
	d.Set, err = ParseSettings(set, &d.Select)
	require.NoError(t, err)
	return BuildCfg(t.Context(), CfgInputs{
		Name: "app", Layout: layout.Root("/srv").Project("app"), Inputs: in, Hold: true, Deployment: d,
		Pillar: func(context.Context) (*py.Dict, error) { return py.NewDict("makina-projects.app", pillar), nil },
	})
}

func TestInputsAreHeld(t *testing.T) {
	_, err := held(t, "port: {type: integer, default: 1, constraints: [{range: {max: 9}}]}", py.NewDict("data", py.NewDict("port", "2")))
	require.ErrorContains(t, err, "data:port: must be an integer, not a text")
	at, _ := fault.PosOf(err)
	require.Equal(t, "pillar/init.sls", at.File)

	c, err := held(t, "v: string\nlist: {type: list, default: []}\nref: {default: '{v}!'}", py.NewDict("data", py.NewDict()), "v=1.10", "list=a, b")
	require.NoError(t, err)
	for path, want := range map[string]string{"data:v": "'1.10'", "data:list": "['a', 'b']", "data:ref": "'1.10!'"} {
		got, _ := c.Get(path)
		require.Equal(t, want, py.Repr(got), path)
	}
	_, err = held(t, "v: {default: a}", py.NewDict("env_defaults", py.NewDict("prod", py.NewDict("w", int64(1)))))
	require.ErrorContains(t, err, "env_defaults:w: this input is not declared", "what an environment adds counts, too")
	_, err = held(t, "v: {default: a}", py.NewDict(), "x=1")
	require.Equal(t, fault.Usage, fault.KindOf(err))

	// A secret is hidden wherever it comes from, and is in no list of inputs.
	c, err = held(t, "pin: {type: integer, secret: true}\nport: {type: integer, default: 1}", py.NewDict("redact_show", "data.pin", "data", py.NewDict("pin", int64(12345678))))
	require.NoError(t, err)
	require.Equal(t, "12345678", c.InputSecrets()[0].Value)
	require.Equal(t, "{'port': 1}", py.Repr(c.Inputs()))
	text, err := c.Tree("data", Show{Redact: func(s string) string { return s }})
	require.NoError(t, err)
	require.NotContains(t, text, "12345678")

	// Thousands of undeclared keys are not compared with thousands of names.
	many := py.NewDict()
	for i := range 5000 {
		many.SetStr(fmt.Sprintf("key%d", i), int64(i))
	}
	_, err = held(t, "port: {type: integer, default: 1}", py.NewDict("data", many))
	var all InputErrors
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 100)
}
