package procedures_test

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
)

// brokenDisk fails every checkout.
type brokenDisk struct {
	procedures.Repository
	err error
}

func (b brokenDisk) Checkout(context.Context, project.Checkout) (project.CheckoutStats, error) {
	return project.CheckoutStats{}, b.err
}

// What the disk refuses is told with the file, and with what to do.
func TestReleaseSyncTellsWhatTheDiskSaid(t *testing.T) {
	cfg, err := project.BuildCfg(t.Context(), project.CfgInputs{Name: "app", Layout: layout.Root("/srv").Project("app"), Retention: project.DefaultRetention()})
	require.NoError(t, err)
	for errno, hint := range map[syscall.Errno]string{
		syscall.ENOSPC: "archives prune", syscall.EDQUOT: "quota", syscall.EROFS: "read-only", syscall.EBUSY: "umount",
		syscall.EACCES: "as root", syscall.EPERM: "as root", syscall.EIO: "kernel's log",
	} {
		env := &procedures.Env{
			Tools:      &procedures.Tools{Repository: always(brokenDisk{err: fmt.Errorf("sync: %w", &fs.PathError{Op: "write", Path: "a/b", Err: errno})})},
			Paths:      layout.Root("/srv").Project("app"),
			Prepared:   &procedures.Prepared{Cfg: cfg},
			Deployment: project.Deployment{Project: "app", Code: "0123456789abcdef0123456789abcdef01234567"},
		}
		err := procedures.ReleaseSync{}.Run(t.Context(), env)
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, "check out project")
		require.ErrorContains(t, err, "a/b")
		require.Contains(t, fault.HintOf(err), hint)
	}
}
