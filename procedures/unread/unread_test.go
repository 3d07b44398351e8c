package unread_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/procedures/keyplace"
	"corpus-git/procedures/unread"
	"corpus-git/project"
)

// found returns the keys that nothing reads in a recipe of one file: the pillar sets port, db.host, db.port, tree.a and the section mysql.
func found(t *testing.T, file, text string, code fstest.MapFS) string {
	section := py.NewDict("data", py.NewDict("port", int64(1), "db", py.NewDict("host", "h", "port", int64(2)), "tree", py.NewDict("a", "x")))
	pillar := py.NewDict("makina-projects.app", section, "mysql", py.NewDict("host", "h", "user", "u"))
	cfg, err := project.BuildCfg(context.Background(), project.CfgInputs{
		Name: "app", Layout: layout.Root("/srv").Project("app"),
		Pillar: func(context.Context) (*py.Dict, error) { return pillar, nil },
	})
	require.NoError(t, err)
	var out []string
	in := unread.Sources{Name: "app", Recipe: fstest.MapFS{file: {Data: []byte(text)}}, Trees: keyplace.Trees{Code: code}}
	for _, u := range unread.Of(cfg, pillar, in) {
		s := strings.TrimPrefix(strings.Join(u.Keys, "."), "data.")
		if u.Near != "" {
			s += "(" + u.Near + ")"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestOf(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"010_a.sls", "", "db mysql port tree"},
		{"010_a.sls", "{% set cfg = opts.ms_project %}{% set d = cfg.data %}", "db mysql port tree"},
		{"010_a.sls", "{% set d = opts['ms_project'].data %}{{ d.port }}{{ d.db.host }}", "db.port(host) mysql tree"},
		{"010_a.sls", "{{ cfg.data.db }}", "mysql port tree"},
		{"010_a.sls", "{{ cfg|json }}", "mysql"},
		{"010_a.sls", "{% for k, v in cfg.data.items() %}{{ k }}{% endfor %}", "mysql"},
		{"010_a.sls", "{% if cfg.data.db %}1{% endif %}", "db.host db.port mysql port tree"},
		{"010_a.sls", "{{ salt['mc_project.get_configuration']('app').data.port }}", "db mysql tree"},
		{"010_a.sls", "{{ pillar['makina-projects.app'].data.port }}{{ pillar.mysql.host }}", "db mysql.user tree"},
		{"010_a.sls", "{{ salt['pillar.get']('mysql:user') }}{{ salt['pillar.get']('mysql:host', 'x') }}", "db port tree"},
		{"010_a.sls", "{{ pillar|json }}", "db port tree"},
		{"010_a.sls", "{% macro m(x) %}{{ x.port }}{% endmacro %}{{ m(cfg.data.db) }}", "mysql tree"},
		{"010_a.sls", "#!py\ndef run():\n  return __opts__['ms_project']['data']['port']\n", "db mysql tree"},
		{"files/a.conf", "listen {{ data.port }}; host tree", "db mysql tree"},
		{"files/a.conf", "port host tree", "db mysql port tree"},
		{"020_b.sh", "#!/bin/sh\njq -r .data.port\n", "db mysql tree"},
		{"020_b.sh", "#!/bin/sh\ncat > /etc/app.json\n", "mysql"},
		{"020_b.sh", "#!/bin/sh\njq .data > /etc/app.json\n", "mysql"},
		{"020_b.py", "#!/usr/bin/python3\nfor k, v in json.load(sys.stdin)['data'].items():\n  print(k)\n", "mysql"},
		{"030_c.yml", "- hosts: all\n  tasks:\n  - debug: msg={{ cfg.data.port }}\n    when: cfg.data.tree is defined\n", "db mysql"},
		{"030_c.yml", "- hosts: all\n  tasks:\n  - debug:\n    with_dict: cfg.data\n", "mysql"},
		{"040_d.pp", "$cfg = $facts['corpus']\nnotify { $cfg['data']['port']: }\n", "db mysql tree"},
		{"050_e.tool", "port", "db mysql tree"},
		{"hooks/post-deploy.d/a", "#!/bin/sh\necho port\n", "db mysql tree"},
		{"README.md", "port", "db mysql port tree"},
	} {
		require.Equal(t, c.want, found(t, c.file, c.text, nil), c.text)
	}
	code := fstest.MapFS{"etc/app.conf": {Data: []byte("{{ opts.ms_project.data.port }} tree")}, "bin/x": {Data: []byte("tree")}}
	require.Equal(t, "db mysql tree", found(t, "010_a.sls", "a: {file.managed: [{template: jinja}]}", code), "templates of the commit")
	require.Equal(t, "db mysql port tree", found(t, "010_a.sls", "a: b", code), "nothing renders them")
	require.Equal(t, "db mysql port", found(t, "020_b.sh", "#!/bin/sh\nbin/x\n", fstest.MapFS{"bin/x": code["bin/x"]}), "a program runs others")
}
