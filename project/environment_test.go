package project_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

func TestEnvironments(t *testing.T) {
	e, err := project.ParseEnvironments([]string{"preprod=staging", "qa = dev"}, "preprod")
	require.NoError(t, err)
	require.Equal(t, []string{"dev", "staging", "prod", "preprod", "qa"}, e.Names())
	for name, class := range map[string]string{"dev": "dev", "prod": "prod", "preprod": "staging", "qa": "dev"} {
		got, err := e.Class(name)
		require.NoError(t, err)
		require.Equal(t, class, got)
	}
	_, err = e.Class("live")
	require.Equal(t, fault.Usage, fault.KindOf(err))
	require.Contains(t, fault.HintOf(err), "environments: [live=staging]")
	for _, bad := range []string{"", "preprod", "preprod=", "preprod=production", "=dev", "Pre=dev", "a b=dev", "dev=prod", "prod=prod", "a/b=dev"} {
		_, err := project.ParseEnvironments([]string{bad}, "")
		require.Equal(t, fault.Usage, fault.KindOf(err), bad)
	}
	_, err = project.ParseEnvironments([]string{"qa=dev", "qa=prod"}, "")
	require.Error(t, err)
	_, err = project.ParseEnvironments(nil, "qa")
	require.Error(t, err)
	// What is unknown is refused in all layers; the class's defaults are under those of the name.
	in := inputs(t, "makina-projects.x: {env_defaults: {staging: {a: class, b: class}, preprod: {b: name}}}", "makina-projects.app: {default_env: preprod}")
	_, err = project.BuildCfg(t.Context(), in)
	require.ErrorContains(t, err, "default_env: must be one of: dev, staging, prod")
	in.Environments = e
	c := build(t, in)
	require.Equal(t, "preprod", c.Env())
	require.Equal(t, "staging", c.EnvClass())
	for path, want := range map[string]string{"data:a": "class", "data:b": "name", "env_class": "staging", "default_env": "preprod"} {
		v, _ := c.Get(path)
		require.Equal(t, want, v, path)
	}
	in = inputs(t, "", "")
	in.Environments = e
	require.Equal(t, "preprod", build(t, in).Env())
}
