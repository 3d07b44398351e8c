package state

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// machine is a machine of which only what commands say and do is known.
type machine struct {
	t      *testing.T
	users  map[string]host.User
	groups map[string]host.Group
	// answers are what commands print, by their beginning; those that begin with "!" fail.
	answers map[string]string
	// on runs when a command does.
	on func(line string)
	// ran are the commands that change something.
	ran   []string
	stdin []string
	cache map[string]any
	dir   string
	// exit is the status of those that fail; 0 is 1.
	exit   int
	grains *py.Dict
}

func newMachine(t *testing.T, tools ...string) *machine {
	m := &machine{t: t, users: map[string]host.User{}, groups: map[string]host.Group{}, answers: map[string]string{},
		cache: map[string]any{}, dir: t.TempDir()}
	for _, n := range tools {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, n), nil, 0o755))
	}
	return m
}

// Run implements execx.Commander.
func (m *machine) Run(_ context.Context, c execx.Cmd) (execx.Status, error) {
	line := strings.Join(c.Argv, " ")
	if c.Stdin != nil {
		b, err := io.ReadAll(c.Stdin)
		if err != nil {
			return execx.Status{}, err
		}
		if len(b) > 0 {
			m.stdin = append(m.stdin, string(b))
		}
	}
	best := ""
	for k := range m.answers {
		if strings.HasPrefix(line, k) && len(k) >= len(best) {
			best = k
		}
	}
	text, known := m.answers[best]
	if !known || best == "" {
		m.ran = append(m.ran, line)
	}
	if m.on != nil {
		m.on(line)
	}
	if msg, failed := strings.CutPrefix(text, "!"); failed {
		_, _ = io.WriteString(c.Stderr, msg)
		return execx.Status{Exit: max(m.exit, 1)}, nil
	}
	_, err := io.WriteString(c.Stdout, text)
	return execx.Status{}, err
}

// User implements host.Users.
func (m *machine) User(n string) (host.User, error) {
	for _, u := range m.users {
		if u.Name == n || strconv.Itoa(u.UID) == n {
			return u, nil
		}
	}
	return host.User{}, fmt.Errorf("user %s: %w", n, host.ErrNoAccount)
}

// Group implements host.Users.
func (m *machine) Group(n string) (host.Group, error) {
	for _, g := range m.groups {
		if g.Name == n || strconv.Itoa(g.GID) == n {
			return g, nil
		}
	}
	return host.Group{}, fmt.Errorf("group %s: %w", n, host.ErrNoAccount)
}

// GroupsOf implements host.Users.
func (m *machine) GroupsOf(u host.User) ([]int, error) {
	out := []int{u.GID}
	for _, g := range m.groups {
		for _, n := range g.Members {
			if n == u.Name && g.GID != u.GID {
				out = append(out, g.GID)
			}
		}
	}
	return out, nil
}

func (m *machine) call(test bool, fun, name string, args ...any) Return {
	m.t.Helper()
	m.ran, m.stdin = nil, nil
	f, ok := NewTable().Lookup(fun)
	require.True(m.t, ok, fun)
	h := host.New(m)
	h.Users, h.Environ, h.EtcDir, h.AptDir = m, []string{"PATH=" + m.dir, "HOME=/"}, m.dir, m.dir
	c := &Call{Env: &Env{Host: h, Cache: m.cache, Grains: m.grains}, Ctx: context.Background(), Function: fun, Name: name, ID: name, Args: py.NewDict(args...), Test: test}
	for _, k := range c.Args.Keys() {
		require.True(m.t, f.Knows(k.(string)), "%s does not know %s", fun, k)
	}
	return f.Run(c)
}

// is compares a result with what it should be; changes are JSON.
func (m *machine) is(r Return, want Tri, comment, changes string, ran ...string) {
	m.t.Helper()
	require.Equal(m.t, want, r.Result, r.Comment)
	require.Equal(m.t, comment, r.Comment)
	got := ""
	if r.Changed() {
		var err error
		got, err = py.ToJSON(r.Changes, py.JSONOptions{})
		require.NoError(m.t, err)
	}
	require.Equal(m.t, changes, got)
	require.Equal(m.t, ran, m.ran)
}

func TestGroupStates(t *testing.T) {
	m := newMachine(t, "groupadd", "groupmod", "gpasswd", "groupdel")
	m.on = func(line string) {
		switch line {
		case "groupadd -g 700 web":
			m.groups["web"] = host.Group{Name: "web", GID: 700, Passwd: "x"}
		case "gpasswd --add bob web":
			m.groups["web"] = host.Group{Name: "web", GID: 700, Members: []string{"bob"}}
		case "gpasswd --add ann web":
			m.groups["web"] = host.Group{Name: "web", GID: 700, Members: []string{"bob", "ann"}}
		case "groupdel web":
			delete(m.groups, "web")
		}
	}
	m.is(m.call(true, "group.present", "web", "gid", int64(700)), None, "Group web set to be added", "")
	m.is(m.call(false, "group.present", "web", "gid", int64(700)), True, "New group web created",
		`{"name": "web", "passwd": "x", "gid": 700, "members": []}`, "groupadd -g 700 web")
	m.is(m.call(false, "group.present", "web", "gid", int64(700)), True, "Group web is present and up to date", "")
	m.is(m.call(false, "group.present", "web", "addusers", py.NewList("bob", "ann")), True,
		"The following group attributes are set to be changed:\naddusers: ['bob', 'ann']\n", `{"Final": "All changes applied successfully"}`,
		"gpasswd --add bob web", "gpasswd --add ann web")
	m.is(m.call(false, "group.present", "web", "members", py.NewList("eve")), False,
		"The following group attributes are set to be changed:\nmembers: ['eve']\nSome changes could not be applied", `{"Failed": {"members": ["eve"]}}`,
		"gpasswd --members eve web")
	m.is(m.call(false, "group.present", "web", "members", py.NewList(), "addusers", py.NewList("eve")), False,
		`Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. `, "")
	m.is(m.call(false, "group.present", "web", "gid", "x"), False, "Invalid gid", "")
	m.is(m.call(false, "group.present", "web", "addusers", py.NewList("bob"), "delusers", py.NewList("bob")), False,
		"Error. Same user(s) can not be added and deleted simultaneously", "")
	m.is(m.call(true, "group.absent", "web"), None, "Group web is set for removal", "")
	m.is(m.call(false, "group.absent", "web"), True, "Removed group web", `{"web": ""}`, "groupdel web")
	m.is(m.call(false, "group.absent", "web"), True, "Group not present", "")
}

func TestUserStates(t *testing.T) {
	m := newMachine(t, "useradd", "usermod", "userdel")
	m.groups["web"] = host.Group{Name: "web", GID: 700}
	m.groups["adm"] = host.Group{Name: "adm", GID: 4}
	m.on = func(line string) {
		u := m.users["ann"]
		switch {
		case strings.HasPrefix(line, "useradd "):
			u = host.User{Name: "ann", UID: 1500, GID: 700, Home: m.dir, Shell: "/bin/sh", Passwd: "x"}
		case line == "usermod -c Ann ann":
			u.Gecos = "Ann"
		case line == "usermod -s /bin/bash ann":
			u.Shell = "/bin/bash"
		case line == "usermod -G adm ann":
			m.groups["adm"] = host.Group{Name: "adm", GID: 4, Members: []string{"ann"}}
		case strings.HasPrefix(line, "chpasswd "):
			require.NoError(t, os.WriteFile(filepath.Join(m.dir, "shadow"), []byte("ann:$6$hash:19000:0:99999:7:::\n"), 0o600))
		case strings.HasPrefix(line, "userdel "):
			delete(m.users, "ann")
			return
		}
		m.users["ann"] = u
	}
	args := []any{"uid", int64(1500), "gid", "web", "shell", "/bin/sh", "fullname", "Ann", "groups", py.NewList("adm")}
	m.is(m.call(true, "user.present", "ann", args...), None, "User ann set to be added", "")
	r := m.call(false, "user.present", "ann", append(args, "password", "$6$hash")...)
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, "New user ann created", r.Comment)
	require.Equal(t, []string{"useradd -s /bin/sh -u 1500 -g web -m ann", "usermod -G adm ann", "usermod -c Ann ann", "chpasswd -e"}, m.ran)
	require.Equal(t, []string{"ann:$6$hash\n"}, m.stdin, "a hash is no argument: others can see those")
	shown, err := py.ToJSON(r.Changes, py.JSONOptions{})
	require.NoError(t, err)
	require.NotContains(t, shown, "$6$hash")
	m.is(m.call(false, "user.present", "ann", args...), True, "User ann is present and up to date", "")
	m.is(m.call(true, "user.present", "ann", "shell", "/bin/bash"), None,
		"The following user attributes are set to be changed:\nshell: /bin/bash\n", "")
	m.is(m.call(false, "user.present", "ann", "shell", "/bin/bash"), True, "Updated user ann", `{"shell": "/bin/bash"}`, "usermod -s /bin/bash ann")
	m.is(m.call(false, "user.present", "ann", "groups", py.NewList("none")), False, "The following group(s) are not present: none", "")
	r = m.call(false, "user.present", "ann", "uid", int64(7))
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "allow_uid_change")
	r = m.call(false, "user.present", "ann", "password", "$6$other")
	require.Equal(t, False, r.Result)
	require.NotContains(t, r.Comment, "$6$other", "not even where it could not be set")
	m.is(m.call(false, "user.present", "ann", "mindays", int64(1)), False, "These values could not be changed: {'mindays': 1}", "", "chage -m 1 ann")
	m.is(m.call(true, "user.absent", "ann"), None, "User ann set for removal", "")
	m.is(m.call(false, "user.absent", "ann", "purge", true, "force", true), True, "Removed user ann", `{"ann": "removed"}`, "userdel -r -f ann")
	m.is(m.call(false, "user.absent", "ann"), True, "User ann is not present", "")
	m.is(m.call(false, "user.present", "ann", "local", true), False, "Command 'luseradd' cannot be found", "")
}

// With libuser there, local accounts are its tools' work, which know other flags.
func TestLocalAccounts(t *testing.T) {
	m := newMachine(t, "luseradd", "luserdel", "lgroupadd", "lgroupdel", "usermod")
	m.on = func(line string) {
		switch {
		case strings.HasPrefix(line, "luseradd "):
			m.users["ann"] = host.User{Name: "ann", UID: 1500, GID: 100, Home: m.dir}
		case strings.HasPrefix(line, "lgroupadd "):
			m.groups["web"] = host.Group{Name: "web", GID: 700}
		case strings.HasPrefix(line, "luserdel "):
			delete(m.users, "ann")
		}
	}
	add := func(args ...any) []string {
		delete(m.users, "ann")
		r := m.call(false, "user.present", "ann", append(args, "local", true)...)
		require.Equal(t, True, r.Result, r.Comment)
		return m.ran
	}
	require.Equal(t, []string{"luseradd ann"}, add())
	require.Equal(t, []string{"luseradd -n -M ann"}, add("usergroup", false, "createhome", false))
	require.Equal(t, []string{"luseradd ann"}, add("usergroup", true))
	r := m.call(false, "user.absent", "ann", "local", true, "force", true)
	require.Equal(t, "Removed user ann", r.Comment)
	require.Equal(t, []string{"luserdel ann"}, m.ran)
	r = m.call(false, "group.present", "web", "local", true, "gid", int64(700), "non_unique", true)
	require.Equal(t, "New group web created", r.Comment)
	require.Equal(t, []string{"lgroupadd -g 700 web"}, m.ran)
	m.is(m.call(false, "group.absent", "web", "local", true), True, "Removed group web", `{"web": ""}`, "lgroupdel web")
}

// userdel of Debian ends with an error where there never was mail; the account is gone all the same. A home that is missing
// is made, as the user's own.
func TestUserHomeAndMail(t *testing.T) {
	m := newMachine(t, "userdel", "usermod")
	home := filepath.Join(m.dir, "home/ann")
	m.users["ann"] = host.User{Name: "ann", UID: os.Geteuid(), GID: os.Getegid(), Home: home}
	m.is(m.call(true, "user.present", "ann"), None, "The following user attributes are set to be changed:\nhomeDoesNotExist: "+home+"\n", "")
	require.NoDirExists(t, home)
	m.is(m.call(false, "user.present", "ann"), True, "User ann is present and up to date", "")
	st, err := os.Stat(home)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm())
	m.exit = 12
	m.answers["userdel ann"] = "!userdel: ann mail spool (/var/mail/ann) not found"
	require.Equal(t, "Removed user ann", m.call(false, "user.absent", "ann").Comment)
	m.answers["userdel ann"] = "!userdel: cannot lock /etc/passwd"
	require.Equal(t, "Failed to remove user ann", m.call(false, "user.absent", "ann").Comment)
}

func TestPkgStates(t *testing.T) {
	m := newMachine(t, "apt-get", "dpkg-query", "apt-cache")
	have := map[string]string{"curl": "1.0"}
	answer := func() {
		text := ""
		for n, v := range have {
			text += "install ok installed " + n + " " + v + " amd64\n"
		}
		m.answers["dpkg-query --showformat ${Status} ${Package}"] = text
		m.answers["dpkg-query --showformat ${db:Status-Status} ${Provides}"] = "installed mta, other (= 1)\ninstalled \n"
	}
	answer()
	m.answers["dpkg --get-selections *"] = ""
	m.answers["apt-cache -q policy curl"] = "curl:\n  Installed: 1.0\n  Candidate: 2.0\n"
	const apt = "apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef "
	m.on = func(line string) {
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
	m.answers["dpkg --compare-versions 1.0 lt 2.0"] = ""
	m.answers["apt-cache -q policy vim"] = ""
	m.is(m.call(false, "pkg.installed", "curl"), True, "All specified packages are already installed", "")
	m.is(m.call(false, "pkg.installed", "mta"), True, "All specified packages are already installed", "")
	m.is(m.call(true, "pkg.installed", "x", "pkgs", py.NewList("curl", "vim")), None,
		"The following packages would be installed/updated: vim", `{"vim": {"new": "installed", "old": ""}}`)
	m.is(m.call(false, "pkg.installed", "x", "pkgs", py.NewList("curl", py.NewDict("vim", "9")), "install_recommends", false), True,
		"The following packages were installed/updated: vim=9\nThe following packages were already installed: curl", `{"vim": {"old": "", "new": "9"}}`,
		apt+"update", apt+"install --no-install-recommends vim=9")
	m.is(m.call(true, "pkg.latest", "curl"), None, "The following packages would be installed/upgraded: curl", `{"curl": {"new": "installed", "old": "1.0"}}`)
	m.is(m.call(false, "pkg.latest", "curl"), True, "The following packages were successfully installed/upgraded: curl",
		`{"curl": {"old": "1.0", "new": "2.0"}}`, apt+"install curl") // the lists were refreshed before
	m.is(m.call(false, "pkg.latest", "curl"), True, "Package curl is already up-to-date", "")
	m.is(m.call(true, "pkg.purged", "vim"), None, "The following packages will be purged: vim.", `{"vim": {"new": "purged", "old": ""}}`)
	m.is(m.call(false, "pkg.removed", "vim"), True, "All targeted packages were removed.", `{"vim": {"old": "9", "new": ""}}`, apt+"remove vim")
	m.is(m.call(false, "pkg.purged", "vim"), True, "None of the targeted packages are installed or partially installed", "")
	m.answers[apt+"install broken"] = "!E: Unable to locate package broken"
	r := m.call(false, "pkg.installed", "broken", "refresh", false)
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "Unable to locate package broken")
}

// Package files come from salt:// and http(s):// too, into a folder that is gone afterwards.
func TestPkgFilesFromAfar(t *testing.T) {
	m := newMachine(t, "apt-get", "dpkg-query", "dpkg")
	m.answers["dpkg-query "], m.answers["dpkg --get-selections"] = "", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/far.deb") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "a package")
	}))
	defer srv.Close()
	file := ""
	m.on = func(line string) {
		if deb, ok := strings.CutPrefix(line, "dpkg -I "); ok {
			b, err := os.ReadFile(deb)
			require.NoError(t, err)
			require.Equal(t, "a package", string(b))
			file = deb
		}
		if strings.Contains(line, " install ") {
			m.answers["dpkg-query "] = "install ok installed far 1-1 all\n"
		}
	}
	m.answers["dpkg -I "] = " new Debian package\n Package: far\n Version: 1-1\n Architecture: all\n"
	r := m.call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("far", srv.URL+"/pool/far.deb?x=1")))
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, "The following packages were installed/updated: far", r.Comment)
	require.Equal(t, "far.deb", filepath.Base(file))
	require.NoFileExists(t, file)
	require.Contains(t, m.ran[len(m.ran)-1], " install "+file)
	r = m.call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("gone", srv.URL+"/gone.deb")))
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "An error was encountered while installing package(s): ")
	require.Contains(t, r.Comment, "HTTP 404")
	m.answers["dpkg -I "] = " Package: far\n"
	r = m.call(false, "pkg.installed", "x", "reinstall", true, "sources", py.NewList(py.NewDict("far", srv.URL+"/far.deb")))
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "Unable to get version, arch for ")
	m.answers["dpkg -I "] = "!dpkg-deb: error: not a Debian format archive"
	r = m.call(false, "pkg.installed", "x", "sources", py.NewList(py.NewDict("far", srv.URL+"/far.deb")))
	require.Contains(t, r.Comment, "not a Debian format archive")
}

// Only Ubuntu and what comes of it know archives of Launchpad's.
func TestPPA(t *testing.T) {
	m := newMachine(t, "apt-get", "apt-add-repository")
	m.grains = py.NewDict("os", "Ubuntu", "oscodename", "jammy")
	list := filepath.Join(m.dir, "sources.list")
	const line = "deb http://ppa.launchpad.net/owner/name/ubuntu jammy main\n"
	m.on = func(l string) {
		if strings.HasPrefix(l, "apt-add-repository ") {
			require.NoError(t, os.WriteFile(list, []byte(line+"deb-src"+line[3:]), 0o644))
		}
	}
	ppa := []any{"ppa", "owner/name", "refresh", false}
	r := m.call(false, "pkgrepo.managed", "x", ppa...)
	require.Equal(t, True, r.Result, r.Comment)
	require.Equal(t, []string{"apt-add-repository -y ppa:owner/name"}, m.ran)
	m.is(m.call(true, "pkgrepo.absent", "x", ppa...), None, "Package repo 'ppa:owner/name' will be removed. This may cause pkg states to behave "+
		"differently than stated if this action is repeated without test=True, due to the differences in the configured repositories.", "")
	r = m.call(false, "pkgrepo.absent", "x", append(ppa, "keyid_ppa", true)...)
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "Removed repo ppa:owner/name, but failed to remove key: ")
	left, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NotContains(t, string(left), "ppa.launchpad.net", "the entry for sources goes too")
	r = m.call(false, "pkgrepo.managed", "x", append(ppa, "ppa_auth", "me:secret")...)
	require.Equal(t, False, r.Result)
	require.NotContains(t, r.Comment, "secret")
	m.on, m.answers["apt-add-repository"] = nil, "!no such archive"
	r = m.call(false, "pkgrepo.managed", "x", ppa...)
	require.Equal(t, "Failed to configure repo 'x': Unable to add PPA 'owner/name': no such archive", r.Comment)
}

func TestServiceStates(t *testing.T) {
	m := newMachine(t)
	m.cache["service-manager"] = "systemctl"
	active, enabled := false, false
	answer := func() {
		m.answers = map[string]string{
			"systemctl show -p LoadState --value web.service":  "loaded\n",
			"systemctl show -p LoadState --value none.service": "not-found\n",
			"systemctl is-active --quiet web.service":          map[bool]string{true: "", false: "!"}[active],
			"systemctl is-enabled web.service":                 map[bool]string{true: "enabled\n", false: "!disabled\n"}[enabled],
		}
	}
	answer()
	m.on = func(line string) {
		switch line {
		case "systemctl start web.service", "systemctl restart web.service":
			active = true
		case "systemctl stop web.service":
			active = false
		case "systemctl enable web.service":
			enabled = true
		case "systemctl disable web.service":
			enabled = false
		}
		answer()
	}
	m.is(m.call(false, "service.running", "none"), False, "The named service none is not available", "")
	m.is(m.call(false, "service.dead", "none"), True, "The named service none is not available", "")
	m.is(m.call(true, "service.running", "web"), None, "Service web is set to start", "")
	m.is(m.call(false, "service.running", "web"), True, "Started service web", `{"web": true}`, "systemctl start web.service")
	m.is(m.call(false, "service.running", "web"), True, "The service web is already running", "")
	m.is(m.call(false, "service.running", "web", "enable", true), True, "Service web has been enabled, and is in the desired state",
		`{"web": true}`, "systemctl enable web.service")
	m.is(m.call(false, "service.enabled", "web"), True, "Service web is already enabled, and is in the desired state", "")
	m.is(m.call(true, "service.disabled", "web"), None, "Service web set to be disabled", "")
	m.is(m.call(false, "service.disabled", "web"), True, "Service web has been disabled, and is in the desired state", `{"web": true}`, "systemctl disable web.service")
	m.is(m.call(false, "service.dead", "web"), True, "Service web was killed", `{"web": false}`, "systemctl stop web.service")
	m.is(m.call(false, "service.dead", "web"), True, "The service web is already dead", "")

	watch := func(test bool, args ...any) Return {
		m.ran = nil
		h := host.New(m)
		h.Users, h.Environ = m, []string{"PATH=" + m.dir, "HOME=/"}
		c := &Call{Env: &Env{Host: h, Cache: m.cache}, Ctx: context.Background(), Name: "web", Args: py.NewDict(args...), Test: test}
		return NewTable().Watch("service")(c, "running")
	}
	m.is(watch(false), True, "Service started", `{"web": true}`, "systemctl stop web.service", "systemctl start web.service")
	m.is(watch(false), True, "Service restarted", `{"web": true}`, "systemctl restart web.service")
	m.is(watch(false, "reload", true), True, "Service reloaded", `{"web": true}`, "systemctl reload web.service")
	m.is(watch(true, "reload", true), None, "Service is set to be reloaded", "")

	// Without systemd a service can be looked for among the processes.
	m.cache["service-manager"], m.ran, m.on = "service", nil, nil
	m.answers = map[string]string{"ps -efHww": "UID PID PPID\nroot 17 1 0 /usr/sbin/web -d\n", "service web status": "!dead"}
	h := host.New(m)
	h.Users, h.Environ = m, []string{"PATH=" + m.dir, "HOME=/"}
	running := func(args ...any) bool {
		c := &Call{Env: &Env{Host: h, Cache: m.cache}, Ctx: context.Background(), Name: "web", Args: py.NewDict(args...)}
		return c.active()
	}
	require.True(t, running("sig", "bin/web .*-d"))
	require.False(t, running("sig", "bin/other"))
	require.False(t, running())
	m.cache["service-manager"] = ""
	r := m.call(false, "service.running", "web")
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "no service manager")
}

func TestVirtualenvState(t *testing.T) {
	m := newMachine(t, "virtualenv")
	venv := filepath.Join(t.TempDir(), "v")
	python := filepath.Join(venv, "bin/python")
	frozen := "pip==1\n"
	m.on = func(line string) {
		if strings.HasPrefix(line, "virtualenv ") {
			require.NoError(t, os.MkdirAll(filepath.Dir(python), 0o755))
			require.NoError(t, os.WriteFile(python, nil, 0o755))
		}
		if strings.Contains(line, " install ") {
			frozen = "pip==1\nflask==2\n"
		}
		m.answers[python+" -m pip freeze"] = frozen
	}
	m.answers[python+" -m pip freeze"] = frozen
	m.is(m.call(true, "virtualenv.managed", venv), None, "Virtualenv "+venv+" is set to be created", "")
	m.is(m.call(false, "virtualenv.managed", venv, "python", "python3", "system_site_packages", true, "requirements", "/r.txt", "pip_upgrade", true), True,
		"Created new virtualenv", `{"new": "", "packages": {"new": ["flask==2"], "old": ""}}`,
		"virtualenv --python=python3 --system-site-packages "+venv, python+" -m pip install --requirement /r.txt --upgrade")
	m.is(m.call(false, "virtualenv.managed", venv), True, "virtualenv exists", "")
	m.is(m.call(false, "virtualenv.managed", "relative"), False, "Specified path relative is not absolute", "")
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
		m := newMachine(t, "virtualenv")
		m.answers["virtualenv --version"] = "virtualenv " + tt.version + " from /usr/lib/python3/dist-packages/virtualenv/__init__.py\n"
		m.call(false, "virtualenv.managed", "/none", tt.args...)
		require.Equal(t, []string{tt.want + " /none"}, m.ran, tt.version)
	}
}

func TestPipState(t *testing.T) {
	m := newMachine(t, "pip3")
	m.answers["pip3 freeze"] = "Flask==2.0\nzope.interface==5\n"
	m.on = func(line string) {
		if strings.Contains(line, " install ") {
			m.answers["pip3 freeze"] = "Flask==3.0\nzope.interface==5\n"
		}
	}
	const right = "\nAll specified packages are already installed"
	m.is(m.call(false, "pip.installed", "flask"), True, "Python package flask was already installed"+right, "")
	m.is(m.call(false, "pip.installed", "x", "pkgs", py.NewList("flask==2.0", "zope-interface")), True,
		"Python package flask==2.0 was already installed\nPython package zope-interface was already installed"+right, "")
	m.is(m.call(true, "pip.installed", "flask==3.0"), None, "Python package flask==3.0 is set to be installed", "")
	m.is(m.call(false, "pip.installed", "flask==3.0", "index_url", "https://example.org/simple", "no_deps", true), True,
		"All packages were successfully installed", `{"flask==3.0": "Installed"}`,
		"pip3 install --index-url https://example.org/simple --disable-pip-version-check --no-deps flask==3.0")
	m.answers["pip3 install --disable-pip-version-check nothing"] = "!ERROR: No matching distribution found for nothing"
	r := m.call(false, "pip.installed", "nothing")
	require.Equal(t, False, r.Result)
	require.Contains(t, r.Comment, "No matching distribution")
}
