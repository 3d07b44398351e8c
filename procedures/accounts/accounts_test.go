package accounts

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/procedures/permissions"
	"corpus-git/sls/host"
)

// stranger is a user of no machine.
const stranger = 54321

// homeOf makes a home of stranger's.
func homeOf(t *testing.T) (base string, u host.User) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root works in folders of others")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	u = host.User{Name: "app-user", UID: stranger, GID: stranger, Home: filepath.Join(base, "home", "app-user")}
	require.NoError(t, os.MkdirAll(u.Home, 0o755))
	require.NoError(t, os.Chown(u.Home, stranger, stranger))
	return base, u
}

func TestSSHKeyIsMadeOnce(t *testing.T) {
	_, u := homeOf(t)
	made, err := sshKey(u)
	require.NoError(t, err)
	require.True(t, made)
	for name, mode := range map[string]os.FileMode{".ssh": 0o700, ".ssh/id_ed25519": 0o600, ".ssh/id_ed25519.pub": 0o644} {
		fi, err := os.Lstat(filepath.Join(u.Home, name))
		require.NoError(t, err)
		require.Equal(t, mode, fi.Mode().Perm(), name)
		require.Equal(t, uint32(stranger), fi.Sys().(*syscall.Stat_t).Uid, name)
	}
	before, err := os.ReadFile(filepath.Join(u.Home, ".ssh", "id_ed25519"))
	require.NoError(t, err)
	made, err = sshKey(u)
	require.NoError(t, err)
	require.False(t, made)
	after, err := os.ReadFile(filepath.Join(u.Home, ".ssh", "id_ed25519"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	list, err := os.ReadDir(filepath.Join(u.Home, ".ssh"))
	require.NoError(t, err)
	require.Len(t, list, 2, "no temporary file stays")
}

// The attack: the project's user owns his home. Between root's look at ~/.ssh and its writing there he puts a link in its place, to a folder that
// only root may write in; a key file was written there, and given to him.
func TestSSHKeyIsWrittenNowhereElse(t *testing.T) {
	base, u := homeOf(t)
	victim := filepath.Join(base, "etc")
	require.NoError(t, os.Mkdir(victim, 0o755))
	dir, real := filepath.Join(u.Home, ".ssh"), filepath.Join(u.Home, "real")
	untouched := func() {
		t.Helper()
		list, err := os.ReadDir(victim)
		require.NoError(t, err)
		require.Empty(t, list)
		fi, err := os.Stat(victim)
		require.NoError(t, err)
		require.Zero(t, fi.Sys().(*syscall.Stat_t).Uid)
	}
	// A link that is there from the beginning, in place of .ssh and of the home.
	require.NoError(t, os.Symlink(victim, dir))
	require.NoError(t, os.Lchown(dir, stranger, stranger))
	made, err := sshKey(u)
	require.NoError(t, err)
	require.False(t, made)
	linked := u
	linked.Home = filepath.Join(base, "home", "link")
	require.NoError(t, os.Symlink(victim, linked.Home))
	require.NoError(t, os.Lchown(linked.Home, stranger, stranger))
	made, err = sshKey(linked)
	require.NoError(t, err)
	require.False(t, made)
	untouched()
	require.NoError(t, os.Remove(dir))

	// One that comes and goes.
	require.NoError(t, os.Mkdir(real, 0o700))
	require.NoError(t, os.Chown(real, stranger, stranger))
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(dir)
			_ = os.Symlink(victim, dir)
			_ = os.Remove(dir)
			_ = os.Rename(real, dir)
			_ = os.Rename(dir, real)
		}
	})
	for range 300 {
		_, _ = sshKey(u) // it may fail; what counts is where it wrote
		_ = os.Remove(filepath.Join(real, "id_ed25519"))
		_ = os.Remove(filepath.Join(dir, "id_ed25519"))
	}
	close(stop)
	swaps.Wait()
	untouched()
}

// The attack: a recipe's fixperms lets reset-perms set the owner below a folder of the project's, and the project's user has put a link in the place of
// that folder: root would give him what it names.
func TestResetPermsFollowsNoLinkOfAUser(t *testing.T) {
	base, u := homeOf(t)
	victim := filepath.Join(base, "etc")
	require.NoError(t, os.MkdirAll(filepath.Join(victim, "conf"), 0o755))
	link := filepath.Join(u.Home, "var")
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, os.Lchown(link, stranger, stranger))
	r := &permissions.Reset{UID: stranger, GID: stranger, DirMode: 0o770, FileMode: 0o660, Paths: []string{filepath.Join(link, "conf")}}
	require.ErrorContains(t, r.Run(t.Context()), "a symbolic link of another user is in the way")
	fi, err := os.Stat(filepath.Join(victim, "conf"))
	require.NoError(t, err)
	require.Zero(t, fi.Sys().(*syscall.Stat_t).Uid)
	require.Zero(t, r.Changed)
}
