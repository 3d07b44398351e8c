package project_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func TestUnits(t *testing.T) {
	for text, want := range map[string][]project.Unit{
		"units: [a, 'b-*.timer']": {{Name: "a", Kind: project.UnitSystemd, Pattern: "a.service"}, {Name: "b-*.timer", Kind: project.UnitSystemd, Pattern: "b-*.timer"}},
		"units: {web: 'w@?.socket', s: {systemd: x}, q: {supervisor: 'app:*'}, gone: null}": {{Name: "web", Kind: project.UnitSystemd, Pattern: "w@?.socket"}, {Name: "s", Kind: project.UnitSystemd, Pattern: "x.service"},
			{Name: "q", Kind: project.UnitSupervisor, Pattern: "app:*"}},
		"units: [" + strings.Repeat("a", 255) + "]":                  {{Name: strings.Repeat("a", 255), Kind: project.UnitSystemd, Pattern: strings.Repeat("a", 255) + ".service"}},
		"units: {old: {start: ./run, stop: ./stop, user: www-data}}": {{Name: "old", Kind: project.UnitCommand, Start: "./run", Stop: "./stop", User: "www-data"}},
	} {
		c, err := project.BuildCfg(t.Context(), inputs(t, "makina-projects.x: {}\n", "makina-projects.app:\n  "+text+"\n"))
		require.NoError(t, err, text)
		require.Equal(t, want, c.Units(), text)
	}
	glob := "units: must be the name of a systemd unit or a glob such as app-*.service, which does not begin with a wildcard"
	for text, says := range map[string]string{
		"units: ['*']":   glob,
		"units: [--all]": glob,
		"units: ['a b']": glob,
		"units: ['a[']":  glob,
		"units: [" + strings.Repeat("a", 256) + "]":                  glob,
		"units: {a: {supervisor: " + strings.Repeat("a", 256) + "}}": "units:a:supervisor: must be a program of supervisord or a glob such as app:*, which does not begin with a wildcard",
		"units: [5]":                         "units: must be a mapping of names, or a list of systemd units",
		"units: {'a b': x}":                  "units:a b: a name has at most 64 of A-Z a-z 0-9 . _ -",
		"units: {a: 5}":                      "units:a: must be the name of a systemd unit, or a mapping",
		"units: {a: {}}":                     "units:a: must have systemd, supervisor, or one of start, stop, restart, status",
		"units: {a: {systemd: x, start: y}}": "units:a: is one of systemd, supervisor, or commands",
		"units: {a: {supervisor: '*'}}":      "units:a:supervisor: must be a program of supervisord or a glob such as app:*, which does not begin with a wildcard",
		"units: {a: {start: x, user: '0;'}}": "units:a:user: must be the name of an account",
		"units: {a: {begin: x}}":             "units:a:begin: unknown key; a unit has systemd, supervisor, or start, stop, restart, status and user",
		"logs: [5]":                          "logs: must be a text or a list of texts",
		"logs: {a: ['/var/log/[']}":          "logs:a: is not a glob: /var/log/[",
	} {
		_, err := project.BuildCfg(t.Context(), inputs(t, "makina-projects.x: {}\n", "makina-projects.app:\n  "+text+"\n"))
		var e *project.KeyError
		if assertAs(t, err, &e, text) {
			require.Equal(t, says, e.Error(), text)
		}
	}
	c, err := project.BuildCfg(t.Context(), inputs(t, "makina-projects.x: {}\n", "makina-projects.app:\n  logs: {a: log/*.log, b: [/var/log/x, '{data_root}/y']}\n"))
	require.NoError(t, err)
	require.Equal(t, []project.LogFiles{{Name: "a", Globs: []string{"/srv/projects/app/project/log/*.log"}}, {Name: "b", Globs: []string{"/var/log/x", "/srv/projects/app/data/y"}}}, c.Logs())
}
