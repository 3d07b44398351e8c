package converge

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestBootOf(t *testing.T) {
	proc := func(stat string) fstest.MapFS {
		out := fstest.MapFS{"sys/kernel/random/boot_id": {Data: []byte("11111111-2222-3333-4444-555555555555\n")}}
		if stat != "" {
			out["1/stat"] = &fstest.MapFile{Data: []byte(stat)}
		}
		return out
	}
	const id = "11111111-2222-3333-4444-555555555555"
	rest := " S 0 1 1 0 -1 4194560 10 20 30 40 50 60 70 80 20 0 1 0 "
	first, again := BootOf(proc("1 (systemd)"+rest+"4711 1 2 3\n")), BootOf(proc("1 (a) (b c)"+rest+"9000 1 2 3\n"))
	require.Equal(t, id+"/4711", first)
	require.Equal(t, id+"/9000", again, "a container was started again, the kernel was not")
	require.Equal(t, id, BootOf(proc("")))
	require.Equal(t, id, BootOf(proc("1 (systemd) S 0")))
	require.Empty(t, BootOf(fstest.MapFS{}))

	require.True(t, sameBoot(first, first))
	require.False(t, sameBoot(first, again))
	require.True(t, sameBoot(id, first), "recorded by an earlier release")
	require.False(t, sameBoot("", first))
	require.True(t, sameBoot("", ""))

	now := BootOf(os.DirFS("/proc"))
	require.Equal(t, now, BootOf(os.DirFS("/proc")))
	require.Regexp(t, `^[0-9a-f-]{36}(/[0-9]+)?$`, now)
}
