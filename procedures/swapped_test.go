package procedures_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/procedures"
)

// The attack: the working copy belongs to the project's user, and root walks it. He swaps a folder for a symbolic link to one
// that is not his, back and forth, while permissions are fixed and archives are made and brought back, and hopes that root follows it: a
// mode changed there, a file written or removed there, a secret of there copied into what he may read.
func TestSwappedFoldersLeadNowhere(t *testing.T) {
	env := archiveEnv(t, vfs.OS{}, time.Now)
	live := env.Paths.Live()
	perm := permEnv(t, vfs.OS{}, env.Paths.Root(), py.NewDict("project", py.NewDict("files", "0646", "dirs", "0757")), false)
	outside := t.TempDir()
	for _, dir := range []string{filepath.Join(live, "sub/deep"), filepath.Join(outside, "deep")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for _, p := range []string{"a", "deep/b"} {
		require.NoError(t, os.WriteFile(filepath.Join(live, "sub", p), []byte("his"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(outside, p), []byte("not his"), 0o600))
	}
	before := modes(t, outside)

	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		sub, kept := filepath.Join(live, "sub"), filepath.Join(live, "kept")
		for {
			select {
			case <-stop:
				return
			default:
			}
			// A rollback may have taken any of them away meanwhile: then it begins again.
			_ = os.Rename(sub, kept)
			_ = os.Symlink(outside, sub)
			_ = os.Remove(sub)
			_ = os.Rename(kept, sub)
		}
	})
	for range 60 {
		// They may fail where a folder vanishes under them; what counts is what they did not touch.
		_ = procedures.Fixperms{}.Run(t.Context(), perm)
		if (procedures.Archive{}).Run(t.Context(), env) == nil {
			_ = procedures.Rollback{}.Run(t.Context(), env)
		}
		require.NoError(t, os.RemoveAll(env.ArchiveDir()))
	}
	close(stop)
	swapping.Wait()
	require.NoError(t, env.Tools.Archives("app").Wait())
	require.Equal(t, before, modes(t, outside), "what lies behind the link")
	err := filepath.WalkDir(env.Paths.Dir(), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		require.NotEqual(t, "not his", string(b), "copied to %s", p)
		return err
	})
	require.NoError(t, err)
}

// modes are names, modes and contents below a folder.
func modes(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		b, rerr := os.ReadFile(p)
		if rerr != nil && !d.IsDir() {
			return rerr
		}
		out[p] = st.Mode().String() + " " + string(b)
		return nil
	}))
	return out
}
