package procedures_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/procedures"
)

// failedDeployment is a project whose tree an archive holds and a deployment changed; from then on decide fails calls of the archives.
func failedDeployment(t *testing.T, decide func(n int, op vfstest.Op) error) (env *procedures.Env, live string) {
	t.Helper()
	begun, calls := false, 0
	f := vfstest.New(vfs.OS{}, func(_ int, op vfstest.Op) error {
		if !begun {
			return nil
		}
		calls++
		return decide(calls, op)
	})
	env = archiveEnv(t, f, time.Now)
	live = env.Paths.Live()
	require.NoError(t, os.MkdirAll(live, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(live, "file"), []byte("old"), 0o640))
	require.NoError(t, procedures.Archive{}.Run(t.Context(), env))
	require.NoError(t, env.Tools.Archives("app").Wait())
	require.NoError(t, os.WriteFile(filepath.Join(live, "file"), []byte("new"), 0o640))
	require.NoError(t, os.WriteFile(filepath.Join(live, "more"), []byte("new"), 0o640))
	begun = true
	return env, live
}

func requireOld(t *testing.T, live, says string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(live, "file"))
	require.NoError(t, err, says)
	require.Equal(t, "old", string(b), says)
	require.NoFileExists(t, filepath.Join(live, "more"), says)
}

// Whichever call of a rollback fails once, the old tree is live when it returns.
func TestRollbackEveryCallMayFail(t *testing.T) {
	again := 0
	for n := 1; ; n++ {
		met := ""
		env, live := failedDeployment(t, func(i int, op vfstest.Op) error {
			if i == n {
				met = op.Name + " " + op.Path
				return &os.PathError{Op: op.Name, Path: op.Path, Err: syscall.EIO}
			}
			return nil
		})
		require.NoError(t, procedures.Rollback{}.Run(t.Context(), env), met)
		requireOld(t, live, met)
		if met == "" {
			break
		}
		for _, e := range env.Report.(*heard).events {
			if strings.Contains(e.Text, "trying again") {
				require.Contains(t, e.Text, "input/output error", met)
				again++
			}
		}
	}
	require.Greater(t, again, 10, "most calls matter")
}

// A disk that stays broken is notified of, with what to do.
func TestRollbackOnABrokenDisk(t *testing.T) {
	env, _ := failedDeployment(t, func(_ int, op vfstest.Op) error {
		if op.Name == "exchange" {
			return &os.PathError{Op: op.Name, Path: op.Path, Err: syscall.EROFS}
		}
		return nil
	})
	err := procedures.Rollback{}.Run(t.Context(), env)
	require.ErrorIs(t, err, syscall.EROFS)
	require.Contains(t, fault.HintOf(err), "mounted read-only")
	tries := 1
	for _, e := range env.Report.(*heard).events {
		if strings.Contains(e.Text, "trying again") {
			tries++
		}
	}
	require.Equal(t, 3, tries)
}
