package core

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/undo"
)

// The attack: a state writes as root into a folder of the project's user, who exchanges that folder, again and again, with a link to one of root's that
// holds files of the same names. Whatever the moment, nothing of root's is written, removed or given away.
func TestSwappedFoldersAreNotWrittenThrough(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("links of other users are root's to make")
	}
	const user = 65534
	dir := t.TempDir()
	data, root := filepath.Join(dir, "data"), filepath.Join(dir, "root")
	own, other := filepath.Join(data, "d"), filepath.Join(data, "l")
	for _, d := range []string{data, own, root} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	for _, f := range []string{own + "/f", own + "/gone", root + "/f", root + "/gone"} {
		require.NoError(t, os.WriteFile(f, []byte("as it was"), 0o600))
	}
	require.NoError(t, os.Symlink(root, other))
	for _, p := range []string{data, own, own + "/f", own + "/gone", other} {
		require.NoError(t, os.Lchown(p, user, user))
	}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		}
	}()
	log, err := undo.New(undo.Machine{FS: vfs.OS{}}, filepath.Join(dir, "undo"))
	require.NoError(t, err)
	c := &Call{Ctx: t.Context(), Env: &Env{Host: &host.Host{EUID: 0, EGID: 0}, Cache: map[string]any{}, Undo: log}}
	uid, gid := user, user
	owner := Owner{User: &uid, Group: &gid}
	for range 300 { // errors are what is expected where the link stood there
		_ = c.ReplaceFile(own+"/f", []byte("written"), 0o644, user, user)
		_ = c.Rewrite(own+"/f", []byte("rewritten"))
		_ = c.WriteFile(own+"/f", []byte("in place"), 0o644)
		_ = c.MakeDir(own+"/new", owner, nil)
		_, _ = c.Enforce(own+"/f", owner, nil, true)
		_, _ = c.Enforce(own+"/f", owner, nil, false)
		_ = c.Chtimes(own+"/f", time.Unix(1, 0), time.Unix(1, 0))
		_ = c.Symlink("x", own+"/link")
		_ = c.Link(own+"/f", own+"/hard")
		_ = c.Rename(own+"/gone", own+"/moved")
		_ = c.Remove(own + "/gone")
		_ = c.RemoveAll(own + "/new")
		_ = c.MkdirAll(own+"/a/b", 0o755)
	}
	stop.Store(true)
	<-done
	require.NoError(t, log.Close())
	noted, err := os.ReadFile(filepath.Join(dir, "undo", "journal"))
	require.NoError(t, err)
	require.Contains(t, string(noted), data, "what was changed is in the undo log")
	require.NotContains(t, string(noted), `"`+root+"/", "and nothing that only a link led to")
	got, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, got, 2)
	for _, e := range got {
		b, err := os.ReadFile(filepath.Join(root, e.Name()))
		require.NoError(t, err)
		require.Equal(t, "as it was", string(b))
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(filepath.Join(root, e.Name()), &st))
		require.Zero(t, st.Uid)
		require.Greater(t, st.Mtim.Sec, int64(1))
		require.Equal(t, uint32(0o600), st.Mode&0o777)
	}
}
