package project_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/project"
)

// The values that salt-call 3008.3 reads from test.arg k=VALUE.
func TestSettingTyped(t *testing.T) {
	for text, want := range map[string]string{
		"k=1": "1", "k=1.5": "1.5", "k=true": "True", "k=yes": "True", "k=bob": "'bob'", "k=None": "None", "k=null": "None",
		"k=": "''", "k= ": "' '", "k='1'": "'1'", `k="a b"`: "'a b'", "k=[1, two]": "[1, 'two']", "k={a: 1}": "{'a': 1}",
		"k=a: 1": "'a: 1'", "k=- 1": "'- 1'", "k=a # b": "'a # b'", "k=#": "'#'", "k=1_000": "'1_000'", "k=0644": "644",
		"k=[1": "'[1'", "k=|": "'|'", "k=!": "'!'", "k=a=b": "'a=b'", "k=---": "'---'", "k=2026-01-02": "'2026-01-02'", "k=a\nb": `'a\nb'`,
		"k={a: 1, a: 2}": "'{a: 1, a: 2}'", "k=5 # x": "5", "k=!!binary aGk=": "'!!binary aGk='", "k=~": "None", "k=a: 1 # b": "{'a': 1}", "k= {a: 1}": "' {a: 1}'",
	} {
		s, err := project.ParseSetting(text)
		require.NoError(t, err, text)
		require.Equal(t, want, py.Repr(s.Typed()), text)
	}
}

func TestSettingSyntax(t *testing.T) {
	for _, text := range []string{"", "k", "=1", "1k=1", "k==1", "a..b=1", "a.=1", "a b=1", "a/b=1", "-k=1", "k\x1b=1"} {
		_, err := project.ParseSetting(text)
		require.Equal(t, fault.Usage, fault.KindOf(err), text)
	}
	var sel project.Selection
	set, err := project.ParseSettings([]string{"only=install,fixperms", "only_steps=[a, 'b']", "skip_archive=True", "skip_notify=false", "a:b=1"}, &sel)
	require.NoError(t, err)
	require.Equal(t, project.Selection{Only: []string{"install", "fixperms"}, OnlySteps: []string{"a", "b"}, Skip: []string{"archive"}}, sel)
	require.Equal(t, []project.Setting{{Key: "skip_notify", Value: "false"}, {Key: "a.b", Value: "1"}}, set)
	_, err = project.ParseSettings(make([]string, 0), &sel)
	require.NoError(t, err)
	_, err = project.ParseSettings([]string{"only="}, &sel)
	require.Equal(t, fault.Usage, fault.KindOf(err))
}

func TestSettingSecretIsNotRecorded(t *testing.T) {
	d := project.Deployment{Set: []project.Setting{{Key: "db.password", Value: "hunter2", Secret: true}, {Key: "port", Value: "1"}}}
	doc, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(doc), "hunter2")
	require.Contains(t, string(doc), `"set":[{"key":"db.password","secret":true},{"key":"port","value":"1"}]`)
	var back project.Deployment
	require.NoError(t, json.Unmarshal(doc, &back))
	// After a record was read again, the pillar's own value applies.
	in := inputs(t, "", "makina-projects.app: {data: {db: {password: swordfish}}}")
	in.Deployment = &back
	v, _ := build(t, in).Get("data:db:password")
	require.Equal(t, "swordfish", v)
}

func TestSettingOfFactsIsRefused(t *testing.T) {
	for _, key := range []string{"name", "project_root", "rollback", "deployment_id", "remote_less"} {
		in := inputs(t, "", "")
		in.Deployment = &project.Deployment{Set: []project.Setting{{Key: key, Value: "x"}}}
		_, err := project.BuildCfg(t.Context(), in)
		require.Equal(t, fault.Usage, fault.KindOf(err), key)
		require.ErrorContains(t, err, key)
	}
	in := inputs(t, "", "makina-projects.app: {default_env: prod}")
	in.Deployment = &project.Deployment{Set: []project.Setting{{Key: "default_env", Value: "dev"}}}
	require.Equal(t, "dev", build(t, in).Env())
}
