package diskfull_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/diskfull"
	"corpus-git/internal/fault"
)

// Wherever a full disk occurs, and whatever wrapped the error, the exit code is the same.
func TestOneExitCode(t *testing.T) {
	write := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, write, fmt.Errorf("record: %w", write), fault.New(fault.Internal, "record", "%w", write)} {
		require.True(t, diskfull.Is(err))
		got := diskfull.Explain(err)
		require.Equal(t, 4, fault.ExitCode(got), "%v", err)
		require.ErrorContains(t, got, "the disk of the server is full")
		require.NotEmpty(t, fault.HintOf(got))
		require.True(t, diskfull.Is(got))
	}
	for _, err := range []error{nil, errors.New("x"), syscall.EIO, fault.New(fault.Failed, "step", "%w", syscall.ENOSPC)} {
		require.Equal(t, err, diskfull.Explain(err))
	}
}
