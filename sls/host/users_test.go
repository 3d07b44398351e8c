package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// accounts are files in the format of passwd(5) and group(5), with what a person may leave in them.
func accounts(t *testing.T) FileUsers {
	t.Helper()
	dir := t.TempDir()
	f := FileUsers{Passwd: filepath.Join(dir, "passwd"), GroupF: filepath.Join(dir, "group")}
	require.NoError(t, os.WriteFile(f.Passwd, []byte("# accounts\n\nroot:x:0:0:root:/root:/bin/bash\n"+
		"ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\nold:x:2000:100::/:/bin/sh\n2000:x:1001:1000::/home/odd:/bin/false\nshort:x:5\nnan:x:many:1::/:/bin/sh\n"), 0o600))
	require.NoError(t, os.WriteFile(f.GroupF, []byte("root:x:0:\nann:x:1000:ann\nwww:x:33:ann,bob\nadm:*:4:bob\nbroken:x:y:ann\n"), 0o600))
	return f
}

func TestFileUsers(t *testing.T) {
	f := accounts(t)
	ann := User{Name: "ann", UID: 1000, GID: 1000, Gecos: "Ann,,,", Home: "/home/ann", Shell: "/bin/sh", Passwd: "x"}
	u, err := f.User("ann")
	require.NoError(t, err)
	require.Equal(t, ann, u)
	u, err = f.User("2000")
	require.NoError(t, err)
	require.Equal(t, 1001, u.UID, "a name goes before a number")
	u, err = f.User("0")
	require.NoError(t, err)
	require.Equal(t, "root", u.Name)
	for _, name := range []string{"nobody-here", "short", "nan", "", "4711"} {
		_, err = f.User(name)
		require.ErrorIs(t, err, ErrNoAccount, "%q", name)
	}
	u, err = f.UserByID(2000)
	require.NoError(t, err)
	require.Equal(t, "old", u.Name, "a number is not a name, though an account is called so")
	require.Equal(t, "old", (&Host{Users: f, EUID: 2000}).Whoami())
	require.Contains(t, CleanEnviron(nil, f, 2000), "USER=old")
	_, err = f.UserByID(4711)
	require.ErrorIs(t, err, ErrNoAccount)
	require.Contains(t, CleanEnviron(nil, f, 4711), "USER=4711")
	require.Contains(t, CleanEnviron(nil, f, 4711), "HOME=/")
	g, err := f.Group("www")
	require.NoError(t, err)
	require.Equal(t, Group{Name: "www", GID: 33, Members: []string{"ann", "bob"}, Passwd: "x"}, g)
	g, err = f.Group("4")
	require.NoError(t, err)
	require.Equal(t, "adm", g.Name)
	g, err = f.GroupByID(4)
	require.NoError(t, err)
	require.Equal(t, "adm", g.Name)
	_, err = f.GroupByID(5)
	require.ErrorIs(t, err, ErrNoAccount)
	_, err = f.Group("broken")
	require.ErrorIs(t, err, ErrNoAccount)
	ids, err := f.GroupsOf(ann)
	require.NoError(t, err)
	require.Equal(t, []int{1000, 33}, ids, "the primary group first, and once")

	gone := FileUsers{Passwd: filepath.Join(t.TempDir(), "passwd")}
	_, err = gone.User("root")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrNoAccount, "an unreadable database is not a missing account")
}

func TestCredFor(t *testing.T) {
	root := &Host{Users: accounts(t)}
	cred, err := root.CredFor("ann")
	require.NoError(t, err)
	require.Equal(t, &Cred{UID: 1000, GID: 1000, Groups: []int{1000, 33}, Name: "ann", Home: "/home/ann", Shell: "/bin/sh"}, cred)
	require.Equal(t, []uint32{1000, 33}, cred.Syscall().Groups)
	require.Equal(t, "root", root.Whoami())

	user := &Host{Users: accounts(t), EUID: 1000, EGID: 1000}
	for _, own := range []string{"", "ann"} {
		cred, err = user.CredFor(own)
		require.NoError(t, err)
		require.Nil(t, cred, "%q is who this process runs as", own)
	}
	require.Nil(t, cred.Syscall())
	_, err = user.CredFor("root")
	require.EqualError(t, err, "only root can run a command as root (this process runs as uid 1000)")
	_, err = user.CredFor("nobody-here")
	require.ErrorIs(t, err, ErrNoAccount)
	require.Equal(t, "4711", (&Host{Users: accounts(t), EUID: 4711}).Whoami())
}
