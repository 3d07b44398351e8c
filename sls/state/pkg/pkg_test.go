package pkg

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestPkgStates(t *testing.T) {
	m := statetest.NewMachine(t, States, "apt-get", "dpkg-query", "apt-cache")
	have := map[string]string{"curl": "1.0"}
	answer := func() {
		text := ""
		for n, v := range have {
			text += "install ok installed " + n + " " + v + " amd64\n"
		}
		m.Answers["dpkg-query --showformat ${Status} ${Package}"] = text
		m.Answers["dpkg-query --showformat ${db:Status-Status} ${Provides}"] = "installed mta, other (= 1)\ninstalled \n"
	}
	answer()
	m.Answers["dpkg --get-selections *"] = ""
	m.Answers["apt-cache -q policy curl"] = "curl:\n  Installed: 1.0\n  Candidate: 2.0\n"
	const apt = "apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef "
	m.On = func(line string) {
		switch {
		case strings.Contains(line, " install ") && strings.HasSuffix(line, "curl"):
			have["curl"] = "2.0"
		case strings.Contains(line, " install "):
			have["vim"] = "9"
		case strings.Contains(line, " remove ") || strings.Contains(line, " purge "):
			delete(have, "vim")
		}
		answer()
	}
	m.Answers["dpkg --compare-versions 1.0 lt 2.0"] = ""
	m.Answers["apt-cache -q policy vim"] = ""
	m.Is(m.Call(false, "pkg.installed", "curl"), core.True, "All specified packages are already installed", "")
	m.Is(m.Call(false, "pkg.installed", "mta"), core.True, "All specified packages are already installed", "")
	m.Is(m.Call(true, "pkg.installed", "x", "pkgs", py.NewList("curl", "vim")), core.None,
		"The following packages would be installed/updated: vim", `{"vim": {"new": "installed", "old": ""}}`)
	m.Is(m.Call(false, "pkg.installed", "x", "pkgs", py.NewList("curl", py.NewDict("vim", "9")), "install_recommends", false), core.True,
		"The following packages were installed/updated: vim=9\nThe following packages were already installed: curl", `{"vim": {"old": "", "new": "9"}}`,
		apt+"update", apt+"install --no-install-recommends vim=9")
	m.Is(m.Call(true, "pkg.latest", "curl"), core.None, "The following packages would be installed/upgraded: curl", `{"curl": {"new": "installed", "old": "1.0"}}`)
	m.Is(m.Call(false, "pkg.latest", "curl"), core.True, "The following packages were successfully installed/upgraded: curl",
		`{"curl": {"old": "1.0", "new": "2.0"}}`, apt+"install curl") // the lists were refreshed before
	m.Is(m.Call(false, "pkg.latest", "curl"), core.True, "Package curl is already up-to-date", "")
	m.Is(m.Call(true, "pkg.purged", "vim"), core.None, "The following packages will be purged: vim.", `{"vim": {"new": "purged", "old": ""}}`)
	m.Is(m.Call(false, "pkg.removed", "vim"), core.True, "All targeted packages were removed.", `{"vim": {"old": "9", "new": ""}}`, apt+"remove vim")
	m.Is(m.Call(false, "pkg.purged", "vim"), core.True, "None of the targeted packages are installed or partially installed", "")
	m.Answers[apt+"install broken"] = "!E: Unable to locate package broken"
	r := m.Call(false, "pkg.installed", "broken", "refresh", false)
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "Unable to locate package broken")
}

// Package files come from salt:// and http(s):// too, into a folder that is gone afterwards.
func TestPkgFilesFromAfar(t *testing.T) {
	m := statetest.NewMachine(t, States, "apt-get", "dpkg-query", "dpkg")
	m.Answers["dpkg-query "], m.Answers["dpkg --get-selections"] = "", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/far.deb") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "a package")
	}))
	defer srv.Close()
	file := ""
	m.On = func(line string) {
		if deb, ok := strings.CutPrefix(line, "dpkg -I "); ok {
			b, err := os.ReadFile(deb)
			require.NoError(t, err)
			require.Equal(t, "a package", string(b))
			file = deb
		}
		if strings.Contains(line, " install ") {
			m.Answers["dpkg-query "] = "install ok installed far 1-1 all\n"
		}
	}
	m.Answers["dpkg -I "] = " new Debian package\n Package: far\n Version: 1-1\n Architecture: all\n"
	r := m.Call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("far", srv.URL+"/pool/far.deb?x=1")))
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "The following packages were installed/updated: far", r.Comment)
	require.Equal(t, "far.deb", filepath.Base(file))
	require.NoFileExists(t, file)
	require.Contains(t, m.Ran[len(m.Ran)-1], " install "+file)
	r = m.Call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("gone", srv.URL+"/gone.deb")))
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "An error was encountered while installing package(s): ")
	require.Contains(t, r.Comment, "HTTP 404")
	m.Answers["dpkg -I "] = " Package: far\n"
	r = m.Call(false, "pkg.installed", "x", "reinstall", true, "sources", py.NewList(py.NewDict("far", srv.URL+"/far.deb")))
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "Unable to get version, arch for ")
	m.Answers["dpkg -I "] = "!dpkg-deb: error: not a Debian format archive"
	r = m.Call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("far", srv.URL+"/far.deb")))
	require.Contains(t, r.Comment, "not a Debian format archive")
}
