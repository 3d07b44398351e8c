package account

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func TestGroupStates(t *testing.T) {
	m := statetest.NewMachine(t, States, "groupadd", "groupmod", "gpasswd", "groupdel")
	m.On = func(line string) {
		switch line {
		case "groupadd -g 700 web":
			m.Groups["web"] = host.Group{Name: "web", GID: 700, Passwd: "x"}
		case "gpasswd --add bob web":
			m.Groups["web"] = host.Group{Name: "web", GID: 700, Members: []string{"bob"}}
		case "gpasswd --add ann web":
			m.Groups["web"] = host.Group{Name: "web", GID: 700, Members: []string{"bob", "ann"}}
		case "groupdel web":
			delete(m.Groups, "web")
		}
	}
	m.Is(m.Call(true, "group.present", "web", "gid", int64(700)), core.None, "Group web set to be added", "")
	m.Is(m.Call(false, "group.present", "web", "gid", int64(700)), core.True, "New group web created",
		`{"name": "web", "passwd": "x", "gid": 700, "members": []}`, "groupadd -g 700 web")
	m.Is(m.Call(false, "group.present", "web", "gid", int64(700)), core.True, "Group web is present and up to date", "")
	m.Is(m.Call(false, "group.present", "web", "addusers", py.NewList("bob", "ann")), core.True,
		"The following group attributes are set to be changed:\naddusers: ['bob', 'ann']\n", `{"Final": "All changes applied successfully"}`,
		"gpasswd --add bob web", "gpasswd --add ann web")
	m.Is(m.Call(false, "group.present", "web", "members", py.NewList("eve")), core.False,
		"The following group attributes are set to be changed:\nmembers: ['eve']\nSome changes could not be applied", `{"Failed": {"members": ["eve"]}}`,
		"gpasswd --members eve web")
	m.Is(m.Call(false, "group.present", "web", "members", py.NewList(), "addusers", py.NewList("eve")), core.False,
		`Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. `, "")
	m.Is(m.Call(false, "group.present", "web", "gid", "x"), core.False, "Invalid gid", "")
	m.Is(m.Call(false, "group.present", "web", "addusers", py.NewList("bob"), "delusers", py.NewList("bob")), core.False,
		"Error. Same user(s) can not be added and deleted simultaneously", "")
	m.Is(m.Call(true, "group.absent", "web"), core.None, "Group web is set for removal", "")
	m.Is(m.Call(false, "group.absent", "web"), core.True, "Removed group web", `{"web": ""}`, "groupdel web")
	m.Is(m.Call(false, "group.absent", "web"), core.True, "Group not present", "")
}

func TestUserStates(t *testing.T) {
	m := statetest.NewMachine(t, States, "useradd", "usermod", "userdel", "chage")
	m.Groups["web"] = host.Group{Name: "web", GID: 700}
	m.Groups["adm"] = host.Group{Name: "adm", GID: 4}
	m.On = func(line string) {
		u := m.Users["ann"]
		switch {
		case strings.HasPrefix(line, "useradd "):
			u = host.User{Name: "ann", UID: 1500, GID: 700, Home: m.Dir, Shell: "/bin/sh", Passwd: "x"}
		case line == "usermod -c Ann ann":
			u.Gecos = "Ann"
		case line == "usermod -s /bin/bash ann":
			u.Shell = "/bin/bash"
		case line == "usermod -G adm ann":
			m.Groups["adm"] = host.Group{Name: "adm", GID: 4, Members: []string{"ann"}}
		case strings.HasPrefix(line, "chpasswd "):
			require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "shadow"), []byte("ann:$6$hash:19000:0:99999:7:::\n"), 0o600))
		case strings.HasPrefix(line, "userdel "):
			delete(m.Users, "ann")
			return
		}
		m.Users["ann"] = u
	}
	args := []any{"uid", int64(1500), "gid", "web", "shell", "/bin/sh", "fullname", "Ann", "groups", py.NewList("adm")}
	m.Is(m.Call(true, "user.present", "ann", args...), core.None, "User ann set to be added", "")
	r := m.Call(false, "user.present", "ann", append(args, "password", "$6$hash")...)
	require.Equal(t, core.True, r.Result, r.Comment)
	require.Equal(t, "New user ann created", r.Comment)
	require.Equal(t, []string{"useradd -s /bin/sh -u 1500 -g web -m ann", "usermod -G adm ann", "usermod -c Ann ann", "chpasswd -e"}, m.Ran)
	require.Equal(t, []string{"ann:$6$hash\n"}, m.Stdin, "a hash is no argument: others can see those")
	shown, err := py.ToJSON(r.Changes, py.JSONOptions{})
	require.NoError(t, err)
	require.NotContains(t, shown, "$6$hash")
	m.Is(m.Call(false, "user.present", "ann", args...), core.True, "User ann is present and up to date", "")
	m.Is(m.Call(true, "user.present", "ann", "shell", "/bin/bash"), core.None,
		"The following user attributes are set to be changed:\nshell: /bin/bash\n", "")
	m.Is(m.Call(false, "user.present", "ann", "shell", "/bin/bash"), core.True, "Updated user ann", `{"shell": "/bin/bash"}`, "usermod -s /bin/bash ann")
	m.Is(m.Call(false, "user.present", "ann", "groups", py.NewList("none")), core.False, "The following group(s) are not present: none", "")
	r = m.Call(false, "user.present", "ann", "uid", int64(7))
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "allow_uid_change")
	r = m.Call(false, "user.present", "ann", "password", "$6$other")
	require.Equal(t, core.False, r.Result)
	require.NotContains(t, r.Comment, "$6$other", "not even where it could not be set")
	m.Is(m.Call(false, "user.present", "ann", "mindays", int64(1)), core.False, "These values could not be changed: {'mindays': 1}", "", "chage -m 1 ann")
	m.Is(m.Call(true, "user.absent", "ann"), core.None, "User ann set for removal", "")
	m.Is(m.Call(false, "user.absent", "ann", "purge", true, "force", true), core.True, "Removed user ann", `{"ann": "removed"}`, "userdel -r -f ann")
	m.Is(m.Call(false, "user.absent", "ann"), core.True, "User ann is not present", "")
	m.Is(m.Call(false, "user.present", "ann", "local", true), core.False, "Command 'luseradd' cannot be found", "")
}

// With libuser there, local accounts are its tools' work, which know other flags.
func TestLocalAccounts(t *testing.T) {
	m := statetest.NewMachine(t, States, "luseradd", "luserdel", "lgroupadd", "lgroupdel", "usermod")
	m.On = func(line string) {
		switch {
		case strings.HasPrefix(line, "luseradd "):
			m.Users["ann"] = host.User{Name: "ann", UID: 1500, GID: 100, Home: m.Dir}
		case strings.HasPrefix(line, "lgroupadd "):
			m.Groups["web"] = host.Group{Name: "web", GID: 700}
		case strings.HasPrefix(line, "luserdel "):
			delete(m.Users, "ann")
		}
	}
	add := func(args ...any) []string {
		delete(m.Users, "ann")
		r := m.Call(false, "user.present", "ann", append(args, "local", true)...)
		require.Equal(t, core.True, r.Result, r.Comment)
		return m.Ran
	}
	require.Equal(t, []string{"luseradd ann"}, add())
	require.Equal(t, []string{"luseradd -n -M ann"}, add("usergroup", false, "createhome", false))
	require.Equal(t, []string{"luseradd ann"}, add("usergroup", true))
	r := m.Call(false, "user.absent", "ann", "local", true, "force", true)
	require.Equal(t, "Removed user ann", r.Comment)
	require.Equal(t, []string{"luserdel ann"}, m.Ran)
	r = m.Call(false, "group.present", "web", "local", true, "gid", int64(700), "non_unique", true)
	require.Equal(t, "New group web created", r.Comment)
	require.Equal(t, []string{"lgroupadd -g 700 web"}, m.Ran)
	m.Is(m.Call(false, "group.absent", "web", "local", true), core.True, "Removed group web", `{"web": ""}`, "lgroupdel web")
}

// userdel of Debian ends with an error where there never was mail; the account is removed nonetheless. A home that is missing
// is made, as the user's own.
func TestUserHomeAndMail(t *testing.T) {
	m := statetest.NewMachine(t, States, "userdel", "usermod")
	home := filepath.Join(m.Dir, "home/ann")
	m.Users["ann"] = host.User{Name: "ann", UID: os.Geteuid(), GID: os.Getegid(), Home: home}
	m.Is(m.Call(true, "user.present", "ann"), core.None, "The following user attributes are set to be changed:\nhomeDoesNotExist: "+home+"\n", "")
	require.NoDirExists(t, home)
	m.Is(m.Call(false, "user.present", "ann"), core.True, "User ann is present and up to date", "")
	st, err := os.Stat(home)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm())
	m.Exit = 12
	m.Answers["userdel ann"] = "!userdel: ann mail spool (/var/mail/ann) not found"
	require.Equal(t, "Removed user ann", m.Call(false, "user.absent", "ann").Comment)
	m.Answers["userdel ann"] = "!userdel: cannot lock /etc/passwd"
	require.Equal(t, "Failed to remove user ann", m.Call(false, "user.absent", "ann").Comment)
}
