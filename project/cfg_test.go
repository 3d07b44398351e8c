package project_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/saltyaml"
	"corpus-git/layout"
	"corpus-git/project"
)

func yamlFile(t testing.TB, text string) func(context.Context) (*py.Dict, error) {
	return func(context.Context) (*py.Dict, error) {
		doc, err := saltyaml.Parse("f", []byte(text), saltyaml.Options{})
		if err != nil {
			return nil, err
		}
		d, _ := doc.Value.(*py.Dict)
		return d, nil
	}
}

func inputs(t testing.TB, sample, pillar string) project.CfgInputs {
	return project.CfgInputs{
		Name: "app", Layout: layout.Root("/srv").Project("app"),
		Facts:  project.Facts{FQDN: "h.example.org", MinionID: "h", OS: "Debian", OSFamily: "Debian", PushSaltURL: "ssh://h:2222/app/project.git", PushPillarURL: "ssh://h:2222/app/pillar.git"},
		Sample: yamlFile(t, sample), Pillar: yamlFile(t, pillar),
	}
}

func build(t testing.TB, in project.CfgInputs) *project.Cfg {
	t.Helper()
	c, err := project.BuildCfg(t.Context(), in)
	require.NoError(t, err)
	return c
}

const samplePillar = `
makina-projects.sample:
  default_env: dev
  data:
    domain: "{name}.local"
    url: "http://{domain}:{port}/"
    port: 80
    nested: {a: 1, b: 2, list: [1, 2]}
    workers: 1
    db: "pg://{db_user}:{db_pw}@localhost/{name}"
    db_user: "{name}_db"
    db_pw: changeme
    root: "{project_root}/www"
    missing: "{nothing} and {name}"
    json: '{"a": "{name}"}'
    all: "{list_of}"
    list_of: ["{name}", {x: "{port}"}]
  env_defaults:
    dev: {workers: 2, nested: {b: 3}}
    prod: {workers: 8, debug: false}
  os_defaults:
    Debian: {data: {pkg: apache2}}
    RedHat: {data: {pkg: httpd}}
`

func TestCfgLayers(t *testing.T) {
	c := build(t, inputs(t, samplePillar, `
makina-projects.app:
  default_env: prod
  keep_archives: '5'
  data:
    nested: {a: 9, list: [3]}
    db_pw: s3cr3t-{name}
makina-projects.app.data.extra: from-a-path
makina-projects.other: {data: {port: 1}}
`))
	for path, want := range map[string]struct {
		value  string
		origin project.Layer
	}{
		"data:domain":       {"'app.local'", project.LayerSample},
		"data:url":          {"'http://app.local:80/'", project.LayerSample},
		"data:port":         {"80", project.LayerSample},
		"data:nested":       {"{'a': 9, 'b': 2, 'list': [3]}", project.LayerPillar},
		"data:nested:a":     {"9", project.LayerPillar},
		"data:nested:b":     {"2", project.LayerSample},
		"data:workers":      {"8", project.LayerSampleEnv},
		"data:debug":        {"False", project.LayerSampleEnv},
		"data:pkg":          {"'apache2'", project.LayerSampleOS},
		"data:db":           {"'pg://app_db:s3cr3t-app@localhost/app'", project.LayerSample},
		"data:db_pw":        {"'s3cr3t-app'", project.LayerPillar},
		"data:extra":        {"'from-a-path'", project.LayerPillar},
		"data:root":         {"'/srv/projects/app/project/www'", project.LayerSample},
		"data:missing":      {"'{nothing} and app'", project.LayerSample},
		"data:json":         {`'{"a": "app"}'`, project.LayerSample},
		"data:all":          {"['app', {'x': '80'}]", project.LayerSample},
		"data:list_of:1:x":  {"'80'", ""},
		"default_env":       {"'prod'", project.LayerPillar},
		"keep_archives":     {"5", project.LayerPillar},
		"user":              {"'app-user'", project.LayerDefault},
		"group":             {"'app-grp'", project.LayerDefault},
		"groups":            {"['app-grp']", project.LayerDefault},
		"project_root":      {"'/srv/projects/app/project'", project.LayerFacts},
		"pillar_git_root":   {"'/srv/projects/app/git/pillar.git'", project.LayerFacts},
		"skip_release_sync": {"False", project.LayerDefault},
		"push_salt_url":     {"'ssh://h:2222/app/project.git'", project.LayerDefault},
		"fqdn":              {"'h.example.org'", project.LayerFacts},
		"sls_default_pillar:makina-projects.sample:data:domain": {"'app.local'", project.LayerSample},
	} {
		v, ok := c.Get(path)
		require.True(t, ok, path)
		require.Equal(t, want.value, py.Repr(v), path)
		require.Equal(t, want.origin, c.Origin(path), path)
	}
	_, ok := c.Get("data:nope")
	require.False(t, ok)
	require.Equal(t, "prod", c.Env())
	require.Equal(t, 5, c.Retention().Keep)
	require.Equal(t, "app-user", c.User())
	require.True(t, c.IsSecret("data:db_pw"))
	require.True(t, c.IsSecret("data:db"), "a reference brought a pillar value in")
	require.True(t, c.IsSecret("data"))
	require.False(t, c.IsSecret("data:domain"))

	c.Dict().SetStr("name", "changed")
	require.Equal(t, project.Name("app"), c.Name())
	name, _ := c.Dict().GetStr("name")
	require.Equal(t, "app", name, "Dict gives a copy")
}

// TestCfgHasEveryKeyOfTheContract lists the keys that SLS files of public projects read.
func TestCfgHasEveryKeyOfTheContract(t *testing.T) {
	in := inputs(t, "", "")
	in.Deployment = &project.Deployment{ID: "0198c2f4-0000-7000-8000-000000000000", At: time.Date(2026, 2, 3, 4, 5, 6, 0, time.Local)}
	d := build(t, in).Dict()
	for key := range strings.FieldsSeq(`name user group groups data default_env project_dir project_root salt_root pillar_root
		data_root archives_root current_archive_dir git_root project_git_root pillar_git_root keep_archives
		remote_less fqdn minion_id rollback deploy_summary deploy_ret push_pillar_url push_salt_url sls_default_pillar
		only only_steps api_version installer chrono skip_archive skip_sync skip_release_sync skip_fixperms skip_install skip_rollback skip_notify`) {
		require.True(t, d.Has(key), key)
	}
	v, _ := d.GetStr("current_archive_dir")
	require.Equal(t, "/srv/projects/app/archives/2026-02-03_04_05-06_0198c2f4-0000-7000-8000-000000000000", v)
	v, _ = d.GetStr("chrono")
	require.Equal(t, "2026-02-03_04_05-06_0198c2f4-0000-7000-8000-000000000000", v)
	v, _ = d.GetStr("default_env")
	require.Equal(t, "prod", v)
	require.Empty(t, build(t, inputs(t, "", "")).ArchiveDir())
}

func TestCfgNothingOverridesFacts(t *testing.T) {
	c := build(t, inputs(t, "makina-projects.x: {project_root: /etc, name: evil, data_root: /}", "makina-projects.app: {archives_root: /, name: evil}"))
	for path, want := range map[string]any{"project_root": "/srv/projects/app/project", "name": "app", "data_root": "/srv/projects/app/data", "archives_root": "/srv/projects/app/archives"} {
		v, _ := c.Get(path)
		require.Equal(t, want, v)
	}
}

func TestCfgCommandLine(t *testing.T) {
	in := inputs(t, samplePillar, "makina-projects.app: {skip_archive: true, skip_notify: true, data: {port: 81}}")
	in.Env, in.RemoteLess = "staging", true
	var sel project.Selection
	set, err := project.ParseSettings([]string{"port=8080", "nested:a=7", "keep_archives='9'", "data.nested.c.d=deep"}, &sel)
	require.NoError(t, err)
	in.Deployment = &project.Deployment{Set: set, Select: project.Selection{Only: []string{"archive", "release-sync"}, OnlySteps: []string{"000_a.sls", "0_1"}, Skip: []string{"release-sync"}}}
	c := build(t, in)
	require.Equal(t, "staging", c.Env())
	require.True(t, c.RemoteLess())
	require.Equal(t, 9, c.Retention().Keep)
	v, _ := c.Get("data:url")
	require.Equal(t, "http://app.local:8080/", v)
	v, _ = c.Get("data:nested")
	require.Equal(t, "{'a': 7, 'b': 2, 'list': [1, 2], 'c': {'d': 'deep'}}", py.Repr(v))
	require.Equal(t, project.LayerCommand, c.Origin("data:port"))
	require.Equal(t, []string{"archive", "release_sync"}, c.Only())
	require.Equal(t, []string{"000_a", "0_1"}, c.OnlySteps())
	require.False(t, c.Skip("archive"), "only wins over a skip in a file")
	require.True(t, c.Skip("install"))
	require.True(t, c.Skip("release-sync"), "the command line's skip wins over its only")
	require.True(t, c.Skip("notify"))
	require.False(t, c.Skip("deploy"))
}

func TestCfgChoices(t *testing.T) {
	c := build(t, inputs(t, "", ""))
	require.Empty(t, c.Runner())
	_, set := c.StoreOtherBranches()
	require.False(t, set)
	c = build(t, inputs(t, "makina-projects.x: {runner: builtin}", "makina-projects.app: {runner: salt-call, store_other_branches: false}"))
	require.Equal(t, "salt-call", c.Runner())
	store, set := c.StoreOtherBranches()
	require.True(t, set)
	require.False(t, store)
}

func TestCfgCyclesStay(t *testing.T) {
	c := build(t, inputs(t, `makina-projects.x: {data: {a: "{b}", b: "{c}!", c: "{a}", self: "x{self}", l: ["{l}"], m: {k: "{m}"}, whole: "{data}"}}`, ""))
	for path, want := range map[string]string{"data:self": "'x{self}'", "data:l": "['{l}']", "data:m": "{'k': '{m}'}", "data:whole": "'{data}'"} {
		v, _ := c.Get(path)
		require.Equal(t, want, py.Repr(v), path)
	}
	v, _ := c.Get("data:a")
	require.Equal(t, "{a}!", v)
}

func TestCfgReferenceBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("makina-projects.x:\n  data:\n    k0: " + strings.Repeat("x", 1000) + "\n")
	for i := range 40 {
		b.WriteString("    k" + string(rune('A'+i)) + ": '{" + map[bool]string{true: "k0", false: "k" + string(rune('A'+i-1))}[i == 0] + "}{" + map[bool]string{true: "k0", false: "k" + string(rune('A'+i-1))}[i == 0] + "}'\n")
	}
	_, err := project.BuildCfg(t.Context(), inputs(t, b.String(), ""))
	require.ErrorContains(t, err, "larger than")
}

func TestCfgValidation(t *testing.T) {
	for _, c := range []struct{ sample, pillar, msg, file string }{
		{"makina-projects.x: {default_env: production}", "", "default_env: must be one of: dev, staging, prod", ".salt/PILLAR.sample"},
		{"", "makina-projects.app: {default_env: [s3cret]}", "default_env: must be the name of an environment: dev, staging, prod", "pillar/init.sls"},
		{"", "makina-projects.app: {keep_archives: many-s3cret}", "keep_archives: must be an integer from 1", "pillar/init.sls"},
		{"", "makina-projects.app: {keep_archives: 0}", "keep_archives: must be an integer", "pillar/init.sls"},
		{"makina-projects.x: {keep_archives: {a: 1}}", "", "keep_archives: must be an integer", ".salt/PILLAR.sample"},
		{"", "makina-projects.app: {only: 7}", "only: must be a list of names", "pillar/init.sls"},
		{"", "makina-projects.app: {only: [7]}", "only: must be a list of names", "pillar/init.sls"},
		{"", "makina-projects.app: {only: 'archive,s3cret'}", "only: unknown procedure", "pillar/init.sls"},
		{"", "makina-projects.app: {only_steps: {a: s3cret}}", "only_steps: must be a list of names", "pillar/init.sls"},
		{"", "makina-projects.app: {skip_instal: true}", "skip_instal: unknown procedure", "pillar/init.sls"},
		{"", "makina-projects.app: {skip_install: s3cret}", "skip_install: must be true or false", "pillar/init.sls"},
		{"", "makina-projects.app: {data: s3cret}", "data: must be a mapping, not str", "pillar/init.sls"},
		{"", "makina-projects.app: s3cret", "makina-projects.app: must be a mapping, not str", "pillar/init.sls"},
		{"makina-projects.x: [a]", "", "makina-projects.x: must be a mapping, not list", ".salt/PILLAR.sample"},
		{"", "makina-projects.app: {user: 's3cret; rm -rf'}", "user: must be a name", "pillar/init.sls"},
		{"", "makina-projects.app: {groups: ['a b']}", "groups: each must be a name", "pillar/init.sls"},
		{"", "makina-projects.app: {remote_less: s3cret}", "remote_less: must be true or false", "pillar/init.sls"},
		{"", "makina-projects.app: {runner: s3cret}", "runner: must be one of: auto, builtin, salt-call", "pillar/init.sls"},
		{"", "makina-projects.app: {store_other_branches: s3cret}", "store_other_branches: must be true or false", "pillar/init.sls"},
		{"makina-projects.x: {env_defaults: [a]}", "", "env_defaults: must be a mapping", ".salt/PILLAR.sample"},
		{"makina-projects.x: {env_defaults: {prod: 1}}", "", "env_defaults:prod: must be a mapping", ".salt/PILLAR.sample"},
		{"", "makina-projects.app: {os_defaults: {Debian: s3cret}}", "os_defaults:Debian: must be a mapping", "pillar/init.sls"},
	} {
		_, err := project.BuildCfg(t.Context(), inputs(t, c.sample, c.pillar))
		require.ErrorContains(t, err, c.msg)
		require.NotContains(t, err.Error()+fault.HintOf(err), "s3cret")
		require.Equal(t, fault.Failed, fault.KindOf(err))
		p, _ := fault.PosOf(err)
		require.Equal(t, c.file, p.File, c.msg)
	}
	in := inputs(t, "", "")
	in.Env = "qa"
	_, err := project.BuildCfg(t.Context(), in)
	require.Equal(t, fault.Usage, fault.KindOf(err))
	want := errors.New("broken file")
	in.Sample = func(context.Context) (*py.Dict, error) { return nil, want }
	_, err = project.BuildCfg(t.Context(), in)
	require.ErrorIs(t, err, want)
	in = inputs(t, "", "")
	in.Sample, in.Pillar = nil, nil
	build(t, in)
}

func TestCfgAccounts(t *testing.T) {
	for _, c := range []struct {
		pillar, user, group string
		groups              []string
	}{
		{"", "app-user", "app-grp", []string{"app-grp"}},
		{"makina-projects.app: {groups: [www-data, app-grp]}", "app-user", "www-data", []string{"www-data", "app-grp"}},
		{"makina-projects.app: {group: editor, groups: [www-data]}", "app-user", "editor", []string{"editor", "www-data"}},
		{"makina-projects.app: {user: '{name}-run'}", "app-run", "app-grp", []string{"app-grp"}},
		{"makina-projects.app: {user: null, group: ~}", "app-user", "app-grp", []string{"app-grp"}},
	} {
		cfg := build(t, inputs(t, "", c.pillar))
		require.Equal(t, c.user, cfg.User())
		require.Equal(t, c.group, cfg.Group())
		require.Equal(t, c.groups, cfg.Groups())
	}
}

func TestCfgShow(t *testing.T) {
	pillar := "redact_show: [data.visible]\nmakina-projects.app: {data: {db_pw: s3cr3t-pw, visible: can-be-seen, port: 8123, lines: \"one line\\ntwo lines\\n\"}}"
	c := build(t, inputs(t, samplePillar, pillar))
	r := redact.New(redact.Secrets(c.PillarValues()))
	text, err := c.Tree("data", project.Show{Redact: r.String})
	require.NoError(t, err)
	require.Contains(t, text, "port: 8123")
	require.Contains(t, text, "visible: can-be-seen")
	require.Contains(t, text, "db_pw: '[pillar:makina-projects.app.data.db_pw]'")
	require.Regexp(t, `db: pg://app_db:\[pillar:makina-projects.app.data.db_pw\]@localhost/app +# PILLAR.sample\n`, text)
	require.Regexp(t, `workers: 2 +# PILLAR.sample env_defaults\n`, text)
	require.NotContains(t, text, "s3cr3t")
	text, err = c.Tree("", project.Show{})
	require.NoError(t, err)
	require.NotContains(t, text, "s3cr3t")
	require.NotContains(t, text, "two lines")
	require.Contains(t, text, "db_pw: '[pillar:data.db_pw]'")
	text, err = c.Tree("data:db_pw", project.Show{Secrets: true})
	require.NoError(t, err)
	require.Equal(t, "s3cr3t-pw  # pillar\n", text)
	text, err = c.Tree("data:list_of:0", project.Show{})
	require.NoError(t, err)
	require.Equal(t, "app  # PILLAR.sample\n", text)
	_, err = c.Tree("data:nope", project.Show{})
	require.Equal(t, fault.Usage, fault.KindOf(err))

	raw, err := c.JSON("data", project.Show{})
	require.NoError(t, err)
	require.NotContains(t, string(raw), "s3cr3t")
	var doc struct {
		Version int
		Project string
		Cfg     map[string]any
		Origins map[string]string
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Equal(t, 1, doc.Version)
	require.Equal(t, "pillar", doc.Origins["data:db_pw"])
	require.InDelta(t, 8123, doc.Cfg["port"], 0)
}

// FuzzBuildCfg checks that no sample or pillar causes a panic or a hang, and that facts are not
// overridden.
func FuzzBuildCfg(f *testing.F) {
	f.Add(samplePillar, "makina-projects.app: {data: {a: '{b}', b: '{a}'}}")
	f.Add("makina-projects.x: {data: {a: ['{a}'], b: {c: '{b}'}}, user: '{data}'}", "makina-projects.app.data.x.y: 1\nmakina-projects.app.data: 1")
	f.Add("makina-projects.x: {only: 'archive', skip_: 1}", "makina-projects.app.: 1\nredact_show: a")
	f.Fuzz(func(t *testing.T, sample, pillar string) {
		c, err := project.BuildCfg(t.Context(), inputs(t, sample, pillar))
		if err != nil {
			return
		}
		if v, _ := c.Get("project_root"); v != "/srv/projects/app/project" {
			t.Fatal(v)
		}
		if _, err := c.Tree("", project.Show{}); err != nil {
			t.Fatal(err)
		}
	})
}
