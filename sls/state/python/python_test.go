package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestVirtualenvState(t *testing.T) {
	m := statetest.NewMachine(t, States, "virtualenv", "python3")
	venv := filepath.Join(t.TempDir(), "v")
	python := filepath.Join(venv, "bin/python")
	frozen := "pip==1\n"
	m.On = func(line string) {
		if strings.HasPrefix(line, "virtualenv ") {
			require.NoError(t, os.MkdirAll(filepath.Dir(python), 0o755))
			require.NoError(t, os.WriteFile(python, nil, 0o755))
		}
		if strings.Contains(line, " install ") {
			frozen = "pip==1\nflask==2\n"
		}
		m.Answers[python+" -m pip freeze"] = frozen
	}
	m.Answers[python+" -m pip freeze"] = frozen
	m.Is(m.Call(true, "virtualenv.managed", venv), core.None, "Virtualenv "+venv+" is set to be created", "")
	m.Is(m.Call(false, "virtualenv.managed", venv, "python", "python3", "system_site_packages", true, "requirements", "/r.txt", "pip_upgrade", true), core.True,
		"Created new virtualenv", `{"new": "", "packages": {"new": ["flask==2"], "old": ""}}`,
		"virtualenv --python=python3 --system-site-packages "+venv, python+" -m pip install --requirement /r.txt --upgrade")
	m.Is(m.Call(false, "virtualenv.managed", venv), core.True, "virtualenv exists", "")
	m.Is(m.Call(false, "virtualenv.managed", "relative"), core.False, "Specified path relative is not absolute", "")
}

// What virtualenv is told depends on its release. Source: release notes of virtualenv 1.10 and 14.
func TestVirtualenvReleases(t *testing.T) {
	for _, tt := range []struct {
		version string
		args    []any
		want    string
	}{
		{"1.9.1", []any{"distribute", true, "never_download", true}, "virtualenv --distribute --never-download"},
		{"1.10", []any{"distribute", true, "never_download", true}, "virtualenv"},
		{"13.1.2", []any{"never_download", false}, "virtualenv"},
		{"14.0.0", []any{"never_download", true}, "virtualenv --never-download"},
		{"20.24.0", []any{"distribute", true, "never_download", false, "prompt", "me"}, "virtualenv --download --prompt='me'"},
		{"20.0rc1", []any{"extra_search_dir", "/a, /b"}, "virtualenv --extra-search-dir=/a --extra-search-dir=/b"},
	} {
		m := statetest.NewMachine(t, States, "virtualenv", "python3")
		m.Answers["virtualenv --version"] = "virtualenv " + tt.version + " from /usr/lib/python3/dist-packages/virtualenv/__init__.py\n"
		m.Call(false, "virtualenv.managed", "/none", tt.args...)
		require.Equal(t, []string{tt.want + " /none"}, m.Ran, tt.version)
	}
}

func TestPipState(t *testing.T) {
	m := statetest.NewMachine(t, States, "pip3")
	m.Answers["pip3 freeze"] = "Flask==2.0\nzope.interface==5\n"
	m.On = func(line string) {
		if strings.Contains(line, " install ") {
			m.Answers["pip3 freeze"] = "Flask==3.0\nzope.interface==5\n"
		}
	}
	const right = "\nAll specified packages are already installed"
	m.Is(m.Call(false, "pip.installed", "flask"), core.True, "Python package flask was already installed"+right, "")
	m.Is(m.Call(false, "pip.installed", "x", "pkgs", py.NewList("flask==2.0", "zope-interface")), core.True,
		"Python package flask==2.0 was already installed\nPython package zope-interface was already installed"+right, "")
	m.Is(m.Call(true, "pip.installed", "flask==3.0"), core.None, "Python package flask==3.0 is set to be installed", "")
	m.Is(m.Call(false, "pip.installed", "flask==3.0", "index_url", "https://example.org/simple", "no_deps", true), core.True,
		"All packages were successfully installed", `{"flask==3.0": "Installed"}`,
		"pip3 install --index-url https://example.org/simple --disable-pip-version-check --no-deps flask==3.0")
	m.Answers["pip3 install --disable-pip-version-check nothing"] = "!ERROR: No matching distribution found for nothing"
	r := m.Call(false, "pip.installed", "nothing")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "No matching distribution")
}
