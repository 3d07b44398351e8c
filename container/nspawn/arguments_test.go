package nspawn

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process that becomes another program again and again always has arguments; one that has ended and was not reaped has none, and is not waited for.
func TestArguments(t *testing.T) {
	const again = `n=$1; [ "$n" -gt 0 ] || { read -r _ || :; exit 0; }; exec sh -c "$0" "$0" $((n-1)) --directory=/x`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", again, again, "300", "--directory=/x")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for range 3000 {
		args, err := arguments(cmd.Process.Pid)
		require.NoError(t, err)
		require.NotEmpty(t, args)
	}
	require.NoError(t, in.Close())
	require.NoError(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	args, err := arguments(cmd.Process.Pid)
	require.NoError(t, err)
	require.Empty(t, args)
	require.NoError(t, cmd.Wait())
	_, err = arguments(cmd.Process.Pid)
	require.ErrorIs(t, err, os.ErrNotExist)
}
