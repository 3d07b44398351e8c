package compile

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
)

// oneFile is the Input of an SLS file.
func oneFile(text string) *sls.Input {
	return &sls.Input{SLS: "app", Roots: fileroot.Roots{{FS: fstest.MapFS{"app.sls": {Data: []byte(text), Mode: 0o644}}}}, Host: host.New(execx.OS{})}
}

// TestLackingFiltersGoToSalt: what templates can do in Salt and not here is no error of the template, wherever it is.
func TestLackingFiltersGoToSalt(t *testing.T) {
	for src, want := range map[string]string{
		"a:\n  test.nop: []\n# {{ {'a': 1}|xml }}\n":                        "the filter 'xml'",
		"a:\n  test.nop: []\n# {% if false %}{{ 'sh'|which }}{% endif %}\n": "the filter 'which'",
		"a:\n  test.nop: []\n# {{ ['a']|map('json_query', 'a')|list }}\n":   "the filter 'json_query'",
		"a:\n  test.nop: []\n# {{ [1, 2]|random_shuffle(seed=1) }}\n":       "the argument seed of random_sample and random_shuffle",
		"a:\n  test.nop: []\n# {{ ifelse('G@os:Debian', 1, 2) }}\n":         "a target as a condition of ifelse",
		"a:\n  test.nop: []\n# {{ lipsum() }}\n":                            "the function lipsum",
	} {
		in := oneFile(src)
		in.Pillar, in.Grains = py.NewDict(), py.NewDict()
		_, err := SLS(t.Context(), in, nil)
		n, ok := NeedOf(err)
		require.True(t, ok, "%s: %v", src, err)
		require.Equal(t, want, n.What)
		require.Equal(t, 3, n.Line)
	}
	_, err := SLS(t.Context(), oneFile("# {{ 'x'|nosuch }}\na:\n  test.nop: []\n"), nil)
	require.ErrorContains(t, err, "No filter named 'nosuch'")
	_, ok := NeedOf(err)
	require.False(t, ok, "Salt has no such filter either")
}

// TestLackingPartsGoToSalt: functions of modules that are built in, arguments, grains and tags that Salt has are needs, found
// before anything ran; what Salt lacks, too, is a mistake with a suggestion.
func TestLackingPartsGoToSalt(t *testing.T) {
	for src, want := range map[string]string{
		"a:\n  pip.removed: []\n":                                                         "the state function pip.removed",
		"a:\n  file.tidied:\n    - name: /x\n":                                            "the state function file.tidied",
		"a:\n  cmd.run:\n    - bg: true\n":                                                "the argument bg of cmd.run",
		"a:\n  cmd.run:\n    - quiet: true\n":                                             "the argument quiet of cmd.run",
		"a:\n  cmd.run:\n    - parallel: true\n":                                          "the argument parallel",
		"a:\n  test.nop:\n    - x: !!binary aGk=\n":                                       "the YAML tag !!binary",
		"a:\n  test.nop: []\n# {{ salt['cp.list_master_symlinks']() }}\n":                 "salt['cp.list_master_symlinks']",
		"a:\n  test.nop: []\n# {{ salt['pkg.latest_version']('x') }}\n":                   "salt['pkg.latest_version']",
		"a:\n  test.nop: []\n# {{ grains['zmqversion'] }}\n":                              "the grain zmqversion",
		"a:\n  test.nop: []\n# {{ grains.pythonpath[0] }}\n":                              "the grain pythonpath",
		"a:\n  test.nop: []\n# {{ salt['grains.get']('selinux:enabled') }}\n":             "the grain selinux",
		"a:\n  module.run:\n    - name: service.missing\n    - m_name: x\n":               "salt['service.missing']",
		"a:\n  test.nop:\n    - onlyif:\n      - fun: pkg.info_installed\n":               "salt['pkg.info_installed']",
		"a:\n  file.managed:\n    - name: /x\n    - contents: __slot__:salt:cp.push(x)\n": "salt['cp.push']",
	} {
		in := oneFile(src)
		in.Pillar, in.Grains = py.NewDict(), py.NewDict("os", "Debian")
		_, err := SLS(t.Context(), in, nil)
		n, ok := NeedOf(err)
		require.True(t, ok, "%s: %v", src, err)
		require.Equal(t, want, n.What)
	}
	for src, want := range map[string]string{
		"a:\n  pip.instaled: []\n":                               "State 'pip.instaled' was not found",
		"a:\n  cmd.run:\n    - bgg: true\n":                      "cmd.run of state 'a' has no argument 'bgg'",
		"a:\n  test.nop: []\n# {{ salt['pillar.gett']('x') }}\n": "salt has no function 'pillar.gett'",
		"a:\n  test.nop: []\n# {{ grains['nosuch'] }}\n":         "has no attribute 'nosuch'",
	} {
		in := oneFile(src)
		in.Pillar, in.Grains = py.NewDict(), py.NewDict("os", "Debian")
		_, err := SLS(t.Context(), in, nil)
		require.ErrorContains(t, err, want)
		_, ok := NeedOf(err)
		require.False(t, ok, "%s: %v", src, err)
	}
}

// TestTemplatesOfStatesGoToSalt: what the template of a state lacks is found before anything ran, in what it imports, in the folder of a file.recurse and in a
// script's, too.
func TestTemplatesOfStatesGoToSalt(t *testing.T) {
	const lacking = "x\n{{ {'a': 1}|xml }}\n"
	for name, src := range map[string]string{
		"managed":         "a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: salt://dir/sub/t\n",
		"first of two":    "a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: [salt://none, salt://dir/sub/t]\n",
		"imported":        "a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: salt://importing\n",
		"append":          "a:\n  file.append:\n    - name: /x\n    - template: jinja\n    - source: salt://dir/sub/t\n",
		"recurse":         "a:\n  file.recurse:\n    - name: /x\n    - template: jinja\n    - source: salt://dir\n",
		"recurse, named":  "a:\n  file.recurse:\n    - name: /x\n    - template: jinja\n    - source: salt://dir\n    - include_pat: 'sub/*'\n",
		"script":          "a:\n  cmd.script:\n    - source: salt://dir/sub/t\n    - template: jinja\n",
		"script by name":  "salt://dir/sub/t:\n  cmd.script:\n    - template: jinja\n",
		"behind a state":  "a:\n  cmd.run: [{name: 'true'}]\nb:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: salt://dir/sub/t\n",
		"template engine": "a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: salt://dir/sub/t?saltenv=base\n",
	} {
		in := oneFile(src)
		in.Roots[0].FS.(fstest.MapFS)["dir/sub/t"] = &fstest.MapFile{Data: []byte(lacking)}
		in.Roots[0].FS.(fstest.MapFS)["dir/good"] = &fstest.MapFile{Data: []byte("good {{ 1 }} {% broken")}
		in.Roots[0].FS.(fstest.MapFS)["importing"] = &fstest.MapFile{Data: []byte("{% import 'dir/sub/t' as t %}")}
		in.Pillar, in.Grains = py.NewDict(), py.NewDict("os", "Debian")
		_, err := SLS(t.Context(), in, nil)
		n, ok := NeedOf(err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, "the filter 'xml'", n.What, name)
		require.Equal(t, 2, n.Line, name)
	}
}

// TestFunctionsInTemplatesOfStates: a function that is not built in is known before anything ran where the template calls it in any case. In branches, loops
// and imports it is one where there is a Salt to go to, as Salt would have it whatever is taken; else it is left to its branch.
func TestFunctionsInTemplatesOfStates(t *testing.T) {
	for src, want := range map[string][2]bool{ // without Salt, with Salt
		"{{ salt['network.interfaces']() }}":                                           {true, true},
		"{% set i = salt.network.interfaces() %}":                                      {true, true},
		"{% if salt['network.interfaces']() %}x{% endif %}":                            {true, true},
		"{% if grains.os == 'Windows' %}{{ salt['network.interfaces']() }}{% endif %}": {false, true},
		"{% for i in [1] %}{{ salt['network.interfaces']() }}{% endfor %}":             {false, true},
		"{% from 'lib' import m %}{{ m() }}":                                           {false, true},
		"{% macro m() %}{{ salt['network.interfaces']() }}{% endmacro %}{{ 1 }}":       {false, true},
		"{{ salt['network.interfaces']() if false else 1 }}":                           {false, true},
		"{% if salt['network.interfaces'] is defined %}x{% endif %}":                   {},
		"{% if grains.os == 'Windows' %}{{ salt['no.such']() }}{% endif %}":            {}, // Salt lacks it, too
		"{{ salt['test.ping']() }}":                                                    {},
		"{{ salt['test.ping']() if false else salt['grains.get']('os', 'x') }}":        {},
	} {
		for i, branches := range []bool{false, true} {
			in := oneFile("a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - source: salt://t\n")
			files := in.Roots[0].FS.(fstest.MapFS)
			files["t"] = &fstest.MapFile{Data: []byte(src)}
			files["lib"] = &fstest.MapFile{Data: []byte("{% macro m() %}{{ salt['network.interfaces']() }}{% endmacro %}")}
			in.Pillar, in.Grains, in.Branches = py.NewDict(), py.NewDict("os", "Debian"), branches
			_, err := SLS(t.Context(), in, nil)
			n, ok := NeedOf(err)
			require.Equal(t, want[i], ok, "%s: %v", src, err)
			if ok {
				require.Equal(t, "salt['network.interfaces']", n.What, src)
				continue
			}
			require.NoError(t, err, src)
		}
	}
	in := oneFile("a:\n  file.recurse:\n    - name: /x\n    - template: jinja\n    - source: salt://dir\n    - exclude_pat: 'sub/*'\n")
	in.Roots[0].FS.(fstest.MapFS)["dir/sub/t"] = &fstest.MapFile{Data: []byte("{{ salt['network.interfaces']() }}")}
	in.Pillar, in.Grains = py.NewDict(), py.NewDict("os", "Debian")
	_, err := SLS(t.Context(), in, nil)
	require.NoError(t, err, "what the patterns leave out is not rendered")
}
